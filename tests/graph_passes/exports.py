"""Live exports of a small model of SmolLM2's shape by both exporters of torch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

LAYERS, HEADS, KV_HEADS, HEAD_DIM = 2, 9, 3, 64
VOCABULARY = 256
PAST = [f"past_key_values.{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
PRESENT = [f"present.{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
# Sizes of the traced example; all different, so that none is mistaken for another.
BATCH, TOKENS, CACHED = 2, 7, 3
OPSET = {"dynamo": 18, "torchscript": 17}


@dataclass(frozen=True)
class Export:
    """One way to write the model to ONNX."""

    route: Literal["dynamo", "torchscript"]
    attention: Literal["sdpa", "eager"]
    past: bool
    dtype: Literal["float32", "bfloat16"] = "float32"

    def __str__(self) -> str:
        return f"{self.route}-{self.attention}-{'past' if self.past else 'nopast'}-{self.dtype}"


def write(export: Export, path: Path) -> None:
    """Exports to `path`, weights inside the file.

    Inputs: input_ids (batch, tokens), attention_mask (batch, past + tokens), with a past also past_key_values.N.key/value
    (batch, 3, past, 64). Outputs: logits, and present.N.key/value.
    """
    import torch

    dtype = getattr(torch, export.dtype)
    ids = torch.ones((BATCH, TOKENS), dtype=torch.long)
    mask = torch.ones((BATCH, TOKENS + (CACHED if export.past else 0)), dtype=torch.long)
    cache = [torch.zeros((BATCH, KV_HEADS, CACHED, HEAD_DIM), dtype=dtype) for _ in PAST if export.past]
    names = {
        "input_names": ["input_ids", "attention_mask", *(PAST if export.past else ())],
        "output_names": ["logits", *(PRESENT if export.past else ())],
    }
    module = _with_cache(_model(export)) if export.past else _without_cache(_model(export))
    with quiet(), torch.no_grad():
        torch.onnx.export(
            module,
            (ids, mask, *cache),
            str(path),
            opset_version=OPSET[export.route],
            **names,
            **(_dynamo_lengths(export) if export.route == "dynamo" else _torchscript_lengths(export)),
        )


def _dynamo_lengths(export: Export) -> dict[str, Any]:
    import torch

    free = torch.export.Dim.DYNAMIC
    shapes: list[Any] = [{0: free, 1: free}, {0: free, 1: free}]
    if export.past:
        shapes.append(tuple({0: free, 2: free} for _ in PAST))
    return {"dynamo": True, "external_data": False, "verbose": False, "dynamic_shapes": tuple(shapes)}


def _torchscript_lengths(export: Export) -> dict[str, Any]:
    axes = {
        "input_ids": {0: "batch", 1: "tokens"},
        "attention_mask": {0: "batch", 1: "total" if export.past else "tokens"},
        "logits": {0: "batch", 1: "tokens"},
    }
    axes |= {name: {0: "batch", 2: "past"} for name in PAST if export.past}
    axes |= {name: {0: "batch", 2: "total"} for name in PRESENT if export.past}
    return {"dynamo": False, "dynamic_axes": axes}


def _model(export: Export) -> torch.nn.Module:
    """Random weights. Queries and keys are enlarged until scores spread over several nats, and each key head has an
    outlier channel: with torch's initial weights all keys weigh the same and a wrong scale would not show."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=HEADS * HEAD_DIM,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        num_hidden_layers=LAYERS,
        vocab_size=VOCABULARY,
        intermediate_size=256,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        attn_implementation=export.attention,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight *= 4
            layer.self_attn.k_proj.weight *= 4
            layer.self_attn.k_proj.weight[5::HEAD_DIM] *= 3
    return model.to(getattr(torch, export.dtype))


def _without_cache(model: torch.nn.Module) -> torch.nn.Module:
    import torch

    class WithoutCache(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits

    return WithoutCache()


def _with_cache(model: torch.nn.Module) -> torch.nn.Module:
    import torch
    from transformers.cache_utils import DynamicCache

    class WithCache(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(
            self, input_ids: torch.Tensor, attention_mask: torch.Tensor, *past: torch.Tensor
        ) -> tuple[torch.Tensor, ...]:
            cache = DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
            result = self.model(
                input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True
            )
            present = [x for layer in result.past_key_values.layers for x in (layer.keys, layer.values)]
            return (result.logits, *present)

    return WithCache()


@contextmanager
def quiet() -> Iterator[None]:
    """Without the exporters' warnings about every shape they look at."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


@dataclass(frozen=True)
class Request:
    """Sizes of one run; `padding` tokens of the last batch row are padding on the left."""

    batch: int
    tokens: int
    past: int = 0
    padding: int = 0


def feeds(export: Export, request: Request, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Inputs of an exported model. A cache holds values of the size that the model's own keys have."""
    rng = np.random.default_rng(seed)
    mask = np.ones((request.batch, request.past + request.tokens), np.int64)
    mask[-1, : request.padding] = 0
    given: dict[str, NDArray[Any]] = {
        "input_ids": rng.integers(0, VOCABULARY, (request.batch, request.tokens)),
        "attention_mask": mask,
    }
    if export.past:
        shape = (request.batch, KV_HEADS, request.past, HEAD_DIM)
        given |= {name: 2 * rng.standard_normal(shape).astype(np.float32) for name in PAST}
    return given
