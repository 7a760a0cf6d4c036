"""Queries, keys and values of SmolLM2-135M behind RoPE, on this repository's licence: 2,048 tokens of English legal text.

As a program, in tests/, it renews the heads that the default tests use (needs torch, transformers and the package with
the model, as `make demo` does): python -m kernels.asm.smollm2_capture
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kernels.asm.fp8_problems import Problem
from ml_dtypes import float8_e4m3fn
from numpy.typing import NDArray
from reference.fp8_quantise import quantise

KEPT = Path(__file__).with_name("smollm2_heads.npz")
TEXT = Path(__file__).parents[3] / "LICENSE"
TOKENS, HEADS, GROUP, HEAD_DIM, KERNEL_DIM = 2048, 9, 3, 64, 128
# (layer, query head): 4 of 270, spread over the depth of the model
SAMPLE = ((3, 1), (11, 4), (19, 7), (27, 0))


@dataclass(frozen=True)
class Capture:
    """e4m3 codes (1, heads, tokens, 64) as bytes, with the amax scale of every head."""

    codes: dict[str, NDArray[np.uint8]]
    scales: dict[str, NDArray[np.float32]]

    def problem(self) -> Problem:
        """As the kernel for head dim 128 takes them: padded with zeros, which change no score; scale 1/sqrt(64)."""
        padding = [(0, 0)] * 3 + [(0, KERNEL_DIM - HEAD_DIM)]
        padded = [np.pad(self.codes[name], padding).view(float8_e4m3fn) for name in "qkv"]
        scales = {f"{name}_scale": self.scales[name] for name in "qkv"}
        return Problem(*padded, scales=scales, options={"scale": HEAD_DIM**-0.5})


def capture_model() -> list[Capture]:
    """Every layer of the real model: 9 query heads, 3 key heads."""
    import torch
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    from zyfa_ort.demo.checkpoint import load_checkpoint

    layers: list[Capture] = []

    def attend(module, query, key, value, *args, **options):
        layers.append(_coded(*(x.numpy() for x in (query, key, value))))
        return sdpa_attention_forward(module, query, key, value, *args, **options)

    AttentionInterface.register("capture", attend)
    checkpoint = load_checkpoint()
    checkpoint.model.set_attn_implementation("capture")
    ids = checkpoint.tokenizer.encode(TEXT.read_text(encoding="utf-8")).ids[:TOKENS]
    with torch.no_grad():
        checkpoint.model.model(torch.tensor([ids]))
    return layers


def _coded(*tensors: NDArray[np.float32]) -> Capture:
    coded = dict(zip("qkv", (quantise(x) for x in tensors), strict=True))
    return Capture({n: c.codes for n, c in coded.items()}, {n: c.scale for n, c in coded.items()})


def load_sample() -> Capture:
    """The kept heads, side by side, each with a key head of its own."""
    with np.load(KEPT) as kept:
        return Capture({n: kept[n] for n in "qkv"}, {n: kept[f"{n}_scale"] for n in "qkv"})


def save_sample(layers: list[Capture]) -> None:
    parts = {}
    for name in "qkv":
        at = [(layer, head if name == "q" else head // GROUP) for layer, head in SAMPLE]
        parts[name] = np.stack([layers[layer].codes[name][0, head] for layer, head in at])[None]
        parts[f"{name}_scale"] = np.array([[layers[layer].scales[name][0, head] for layer, head in at]])
    np.savez_compressed(KEPT, **parts)


if __name__ == "__main__":
    save_sample(capture_model())
    print(f"{KEPT.name}: {KEPT.stat().st_size} bytes")
