"""How the corpus was exported, by the exporters that are at hand: torch's two, and the optimizers that work on their files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnx
import torch
import transformers
from graph_passes.exports import quiet
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from models import corpus, peers
from models.corpus import Entry
from models.families import FAMILIES
from models.hand_written import MODULES, WIDTH
from models.inputs import ENCODER_LENGTH, IMAGE

# The traced example: also the sizes of static exports.
BATCH, TOKENS, CACHED = 2, 12, 5
DTYPES: Final = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

# Exporter -> what it takes to run it; none of them goes together with the transformers that torch's routes were run with.
ELSEWHERE: Final[dict[str, str]] = {
    "optimum": "needs optimum-onnx 0.1.0 with transformers 4.57 in an environment of its own: save the model there with "
    "save_pretrained, then 'optimum-cli export onnx --model FOLDER --task TASK OUT' (TASK text-generation[-with-past], "
    "feature-extraction; the attention implementation is the one of the saved configuration)",
    "genai": "needs onnxruntime-genai 0.18.0 in an environment of its own: save the model there with save_pretrained, "
    "then 'python -m onnxruntime_genai.models.builder -i FOLDER -o OUT -p fp32|fp16|bf16|int4 -e cpu|cuda'",
}


class NotHere(Exception):
    """A file of an exporter that this environment does not have."""


@dataclass(frozen=True)
class Call:
    """Arguments of one torch.onnx.export: the module, the example and the free lengths of its inputs."""

    module: nn.Module
    example: dict[str, Tensor]
    free: dict[str, dict[int, str]]


def export(entry: Entry, path: Path) -> None:
    """Exports the model of `entry` again, with new random weights, to `path`.

    Raises:
        NotHere: the file is of an exporter that needs an environment of its own.
    """
    if entry.exporter in ELSEWHERE:
        raise NotHere(f"{entry.file}: {ELSEWHERE[entry.exporter]}")
    if entry.exporter in ("ortopt", "osfuse"):
        onnx.save(_optimized(entry), path)
        return
    route, opset = entry.exporter.rstrip("0123456789"), int(re.sub(r"\D", "", entry.exporter))
    call = _call(entry)
    with quiet():
        torch.onnx.export(
            call.module.eval(),
            tuple(call.example.values()),
            str(path),
            input_names=list(call.example),
            opset_version=opset,
            **(_dynamo(call) if route == "dynamo" else {"dynamo": False, "dynamic_axes": call.free}),
        )


def _dynamo(call: Call) -> dict[str, Any]:
    lengths = [{axis: torch.export.Dim.DYNAMIC for axis in call.free.get(name, {})} for name in call.example]
    named = [one for name, one in zip(call.example, lengths, strict=True) if not name.startswith("past.")]
    past = [one for name, one in zip(call.example, lengths, strict=True) if name.startswith("past.")]
    shapes = (*named, tuple(past)) if past else tuple(named)
    return {
        "dynamo": True,
        "external_data": False,
        "verbose": False,
        "dynamic_shapes": shapes if call.free else None,
    }


def _optimized(entry: Entry) -> onnx.ModelProto:
    """The stored export that the file was made from, through the optimizer."""
    wanted = f"{entry.family}__{entry.file.split('__')[2].replace('_', '__', 1)}"
    source = next((one for one in corpus.entries() if one.file == wanted), None)
    if source is None:
        raise NotHere(f"{entry.file}: made from {wanted}, which is not stored")
    if entry.exporter == "osfuse":
        return peers.onnxscript_fusions(corpus.model(source))
    return peers.ort_optimizer(corpus.model(source), "bert", heads=source.sites[0].heads, hidden=128)


def _call(entry: Entry) -> Call:
    torch.manual_seed(0)
    dtype = DTYPES[entry.dtype]
    if entry.attention == "hand":
        module: nn.Module = MODULES[entry.family]()
        example = {"x": torch.randn(BATCH, TOKENS, WIDTH)}
    else:
        module, example = _wrapped(entry)
    example = {name: one.to(dtype) if one.is_floating_point() else one for name, one in example.items()}
    free = {} if entry.static else {name: _free(name, entry) for name in example}
    return Call(module.to(dtype), example, free)


def _free(name: str, entry: Entry) -> dict[int, str]:
    """Free lengths of an input and their names."""
    if name == "pixel_values" or name == "encoder_hidden_states":
        return {0: "batch"}
    if name.startswith("past."):
        return {0: "batch", 2: "past"}
    return {0: "batch", 1: "total" if (name, entry.inputs) == ("attention_mask", "past") else "seq"}


def _model(entry: Entry) -> nn.Module:
    """A model of transformers whose weights are large enough for attention to prefer some keys."""
    family = FAMILIES[entry.family]
    config = getattr(transformers, family.config)(**family.sizes)
    config._attn_implementation = entry.attention
    # The default path of experts has no translation to ONNX in either exporter.
    config._experts_implementation = "batched_mm"
    make = getattr(transformers, family.model)
    model = make.from_config(config) if family.model.startswith("Auto") else make(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 1.5 * parameter.shape[-1] ** -0.5)
            elif "bias" in name or "sinks" in name:
                parameter.normal_(0, 0.1)
    return model


def _wrapped(entry: Entry) -> tuple[nn.Module, dict[str, Tensor]]:
    """A module with tensors for arguments, and an example of them."""
    m = _model(entry)
    ids, mask = torch.ones(BATCH, TOKENS, dtype=torch.long), torch.ones(BATCH, TOKENS, dtype=torch.long)
    if entry.inputs == "past":
        cache = _cache(entry)
        long_mask = torch.ones(BATCH, CACHED + TOKENS, dtype=torch.long)
        return WithCache(m), {"input_ids": ids, "attention_mask": long_mask, **cache}
    if entry.family == "vit":
        return Images(m), {"pixel_values": torch.randn(BATCH, *IMAGE)}
    if entry.family == "whisper":
        hidden = torch.randn(BATCH, ENCODER_LENGTH, m.config.d_model)
        return Decoder(m), {"decoder_input_ids": ids, "encoder_hidden_states": hidden}
    if entry.family == "t5":
        return EncoderDecoder(m), {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": ids[:, :9]}
    if entry.inputs == "position_ids":
        positions = torch.arange(TOKENS).expand(BATCH, TOKENS)
        return Positions(m), {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    if entry.inputs == "nomask":
        return Unmasked(m), {"input_ids": ids}
    return Masked(m), {"input_ids": ids, "attention_mask": mask}


def _cache(entry: Entry) -> dict[str, Tensor]:
    """Keys and values per layer; DeepSeek's are latent, with one head."""
    site = entry.sites[0]
    shapes = (
        ((1, 32), (1, 64))
        if entry.family == "deepseek_v3"
        else ((site.kv_heads, site.head_dim), (site.kv_heads, site.v_head_dim))
    )
    return {
        f"past.{layer}.{kind}": torch.randn(BATCH, heads, CACHED, width)
        for layer in range(len(entry.sites))
        for kind, (heads, width) in zip("kv", shapes, strict=True)
    }


class Wrapper(nn.Module):
    """Holds the model as `m`, whose name the exporters write into the names of nodes and weights."""

    def __init__(self, m: nn.Module) -> None:
        super().__init__()
        self.m = m


class Masked(Wrapper):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        extra = {} if self.m.config.model_type in ("bert", "clip_text_model") else {"use_cache": False}
        out: Tensor = self.m(input_ids=input_ids, attention_mask=attention_mask, **extra)[0]
        return out


class Unmasked(Wrapper):
    def forward(self, input_ids: Tensor) -> Tensor:
        out: Tensor = self.m(input_ids=input_ids, use_cache=False)[0]
        return out


class Positions(Wrapper):
    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor) -> Tensor:
        out: Tensor = self.m(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, use_cache=False
        )[0]
        return out


class WithCache(Wrapper):
    def forward(self, input_ids: Tensor, attention_mask: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = DynamicCache()
        for layer, (key, value) in enumerate(zip(past[::2], past[1::2], strict=True)):
            cache.update(key, value, layer)
        out = self.m(
            input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True
        )
        present = [x for layer in out.past_key_values.layers for x in (layer.keys, layer.values)]
        return (out.logits, *present)


class Images(Wrapper):
    def forward(self, pixel_values: Tensor) -> Tensor:
        out: Tensor = self.m(pixel_values=pixel_values)[0]
        return out


class Decoder(Wrapper):
    def forward(self, decoder_input_ids: Tensor, encoder_hidden_states: Tensor) -> Tensor:
        out: Tensor = self.m(
            decoder_input_ids=decoder_input_ids, encoder_outputs=(encoder_hidden_states,), use_cache=False
        )[0]
        return out


class EncoderDecoder(Wrapper):
    def forward(self, input_ids: Tensor, attention_mask: Tensor, decoder_input_ids: Tensor) -> Tensor:
        out: Tensor = self.m(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            use_cache=False,
        )[0]
        return out
