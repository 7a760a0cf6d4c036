"""One-node models that this process and the environment of a wheel both make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from custom_ops.op_session import ATTENTION, Array, attention_outputs, one_node_model
from ml_dtypes import bfloat16, float8_e4m3fn

from zyfa_ort.numerics import TOLERANCES


@dataclass(frozen=True)
class Case:
    """`bound` of the relative error against the CPU; None: the same bits."""

    op: str
    inputs: Callable[[], dict[str, Array]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    bound: float | None = None

    def outputs(self) -> dict[str, Any]:
        if self.op == ATTENTION:
            return attention_outputs(self.inputs(), self.attributes, ["output"])
        return (
            {"y": float8_e4m3fn, "scale": np.float32} if self.op == "ZyfaQuantizeFp8" else {"y": np.float32}
        )

    def model(self) -> onnx.ModelProto:
        return one_node_model(self.op, self.inputs(), self.outputs(), self.attributes)


def gaussian(seed: int, *shape: int, dtype: Any = np.float32, factor: float = 1) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * factor).astype(dtype)


def attention(
    rows: int, keys: int, heads: tuple[int, int], dtype: Any = np.float32, past: int = 0, factor: float = 1
) -> dict[str, Array]:
    sizes = {"query": (rows, heads[0]), "key": (keys, heads[1]), "value": (keys, heads[1])}
    made = {
        name: gaussian(seed, 1, *size, 128, dtype=dtype, factor=factor)
        for seed, (name, size) in enumerate(sizes.items())
    }
    for seed, name in enumerate(("past_key", "past_value") if past else ()):
        made[name] = gaussian(10 + seed, 1, heads[1], past, 128, dtype=dtype)
    return made


def coded() -> dict[str, Array]:
    """Codes, whose scales are device memory too."""
    scales = {"q_scale": (1,), "k_scale": (2,), "v_scale": (1, 2)}
    return attention(40, 90, (2, 2), float8_e4m3fn, factor=30) | {
        name: np.full(shape, 0.03, np.float32) for name, shape in scales.items()
    }


def masked(visible: Array) -> dict[str, Array]:
    return attention(40, visible.size, (4, 2), bfloat16) | {"key_mask": visible.reshape(1, -1)}


CASES = {
    "bf16": Case(ATTENTION, lambda: masked(np.arange(90) % 7), {}, TOLERANCES["bf16"].relative),
    "fp8": Case(
        ATTENTION,
        lambda: attention(40, 60, (2, 2), past=30),
        {"precision": "fp8", "rotation": "hadamard"},
        TOLERANCES["fp8_model"].relative,
    ),
    "codes": Case(ATTENTION, coded, {"out_dtype": onnx.TensorProto.FLOAT}, TOLERANCES["fp8_model"].relative),
    "decode": Case(
        ATTENTION, lambda: attention(1, 1, (8, 2), bfloat16, past=300), {}, TOLERANCES["bf16"].relative
    ),
    "quantise": Case("ZyfaQuantizeFp8", lambda: {"x": gaussian(1, 2, 30, 3, 128)}, {"rotation": "hadamard"}),
    "hadamard": Case(
        "ZyfaHadamard", lambda: {"x": gaussian(1, 2, 30, 3, 192)}, {}, TOLERANCES["fp32"].relative
    ),
    "a mask with holes": Case(
        ATTENTION, lambda: masked((np.arange(40) % 3 != 1).astype(np.int64)), {"precision": "fp8"}
    ),
}
