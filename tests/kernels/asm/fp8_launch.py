"""Launches a generated FP8 prefill kernel on the emulated device with the inputs of ZyfaPrefillAttention."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.asm.fp8_config import BLOCK_ROWS, VALUE_DIM, WAVES, Fp8Config, arguments
from zyfa_ort.kernels.asm.fp8_prefill import generate
from zyfa_ort.kernels.emulator import Result, launch, timing

Array = NDArray[Any]

OUTPUT_TYPES = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
}
UNWRITTEN = 0xCD


@dataclass(frozen=True)
class Launch:
    """What a kernel is called with: grid, block and arguments by name; arrays without elements are null pointers."""

    config: Fp8Config
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    values: dict[str, Any]
    output: Array
    lse: Array | None  # (B, H, Sq)

    @property
    def args(self) -> list[Any]:
        return [self.values[argument.name] for argument in arguments(self.config)]


@functools.cache
def code_object(config: Fp8Config) -> bytes:
    return assemble(generate(config), config.name)


def make_launch(
    config: Fp8Config,
    query: Array,
    key: Array,
    value: Array,
    *,
    q_scale: Array,
    k_scale: Array,
    v_scale: Array,
    layout: str = "BSHD",
    scale: float | None = None,
    is_causal: int = 1,
    causal_alignment: str = "bottom_right",
    window_left: int = -1,
    key_range: Array | None = None,
    sinks: Array | None = None,
    want_lse: bool = True,
    trace: Array | None = None,
) -> Launch:
    """Argument values as the host computes them. `key_range` is (B, 2): first and one past the last visible key."""
    batch, heads, queries, kv_heads, keys = _sizes(layout, query, key)
    shape = {"BSHD": (batch, queries, heads, VALUE_DIM), "BHSD": (batch, heads, queries, VALUE_DIM)}[layout]
    output = np.full(int(np.prod(shape)) * OUTPUT_TYPES[config.output].itemsize, UNWRITTEN, np.uint8).view(
        OUTPUT_TYPES[config.output]
    )
    output = output.reshape(shape)
    lse = np.full((batch, heads, queries), 7, np.float32) if want_lse else None
    values: dict[str, Any] = {"query": query, "key": key, "value": value, "output": output, "lse": lse}
    values |= {"key_range": None if key_range is None else np.ascontiguousarray(key_range, np.int32)}
    values |= {"sinks": None if sinks is None else np.ascontiguousarray(sinks, np.float32)}
    for letter, tensor in (("q", query), ("k", key), ("v", value), ("o", output)):
        by_batch, second, third = (step * tensor.itemsize for step in _steps(tensor.shape))
        by_head, by_row = (third, second) if layout == "BSHD" else (second, third)
        values |= {f"{letter}_batch": by_batch, f"{letter}_head": by_head, f"{letter}_row": by_row}
    for letter, factor, count in (("q", q_scale, heads), ("k", k_scale, kv_heads), ("v", v_scale, kv_heads)):
        values[f"{letter}_scale"] = np.ascontiguousarray(factor, np.float32)
        values[f"{letter}_scale_batch"] = count if factor.ndim == 2 else 0
        values[f"{letter}_scale_head"] = 0 if factor.shape == (1,) else 1
    group = heads // kv_heads if kv_heads else 1
    diagonal = keys - queries if causal_alignment == "bottom_right" else 0
    values |= {
        "lse_batch": 4 * heads * queries,
        "lse_head": 4 * queries,
        "queries": queries,
        "o_queries": queries,
        "keys": keys,
        "group_reciprocal": 0 if group == 1 else -(-(2**32) // group),
        "causal": is_causal,
        "diagonal": diagonal,
        "window_left": -1 if window_left < 0 else min(window_left, queries + keys),
        "scale": np.float32(1 / np.sqrt(np.float64(config.head_dim)) if scale is None else scale),
    }
    if trace is not None:
        batch_step, head_step, group_step = (step * trace.itemsize for step in _steps(trace.shape)[:3])
        values |= {"trace": trace, "trace_batch": batch_step, "trace_head": head_step}
        values |= {"trace_group": group_step}
    empty = {name: None for name, v in values.items() if isinstance(v, np.ndarray) and v.size == 0}
    grid = (heads, -(-queries // BLOCK_ROWS), batch)
    return Launch(config, grid, (64 * WAVES, 1, 1), values | empty, output, lse)


def run(
    config: Fp8Config, *tensors: Array, options: dict[str, Any] | None = None, **inputs: Any
) -> tuple[Array, Array | None, Result | None]:
    """output, lse and what the emulator says; a grid without workgroups is not launched."""
    made = make_launch(config, *tensors, **inputs)
    result = None
    if min(made.grid) > 0:
        result = launch(code_object(config), config.name, made.grid, made.block, made.args, **options or {})
    return made.output, made.lse, result


def timed(
    config: Fp8Config, length: int, heads: int = 1, spread: float = 1.0, **settings: Any
) -> timing.Timing:
    """Modelled time of causal self-attention over `length` Gaussian rows; `spread` is the deviation of the logits in nats."""
    rng = np.random.default_rng(0)
    dims = (config.head_dim, config.head_dim, VALUE_DIM)
    tensors = [rng.standard_normal((1, length, heads, d)).astype(ml_dtypes.float8_e4m3fn) for d in dims]
    one, spread_scale = np.ones(1, np.float32), np.full(1, spread, np.float32)
    made = make_launch(config, *tensors, q_scale=spread_scale, k_scale=one, v_scale=one)
    flops = length * (length + 1) * heads * (config.head_dim + VALUE_DIM)
    blocks = made.grid[1]
    return timing.time(
        code_object(config), config.name, made.grid, made.block, made.args, flops=flops,
        work=lambda x, y, z: blocks - y, **settings,
    )  # fmt: skip


def _sizes(layout: str, query: Array, key: Array) -> tuple[int, int, int, int, int]:
    if layout == "BSHD":
        (batch, queries, heads), (keys, kv_heads) = query.shape[:3], key.shape[1:3]
    else:
        (batch, heads, queries), (kv_heads, keys) = query.shape[:3], key.shape[1:3]
    return batch, heads, queries, kv_heads, keys


def _steps(shape: tuple[int, ...]) -> list[int]:
    """Elements from one index to the next of every axis but the last."""
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape) - 1)]
