"""One launch of the BF16 prefill kernels on the emulated device: contract tensors in, output and lse out."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import Device, Result

Array = NDArray[Any]

SOURCE = Path(__file__).parents[3] / "kernels" / "hip" / "bf16_prefill.hip"
KERNELS = {(64, 64): "d64", (128, 128): "d128", (192, 128): "d192_v128", (256, 256): "d256"}
OUTPUT_TYPES = {np.dtype(bfloat16): 0, np.dtype(np.float16): 1, np.dtype(np.float32): 2}
WAVE_ROWS = 32
POINTERS = ("query", "key", "value", "output", "lse", "key_range", "sinks", "key_mask", "bias")
STRIDES = (
    *(f"{name}_{axis}" for name in ("q", "k", "v", "o", "lse") for axis in ("batch", "head")),
    *("mask_batch", "bias_batch", "bias_head", "bias_row"),
)
COUNTS = (
    *("q_row", "k_row", "v_row", "o_row", "bias_column", "bias_is_float"),
    *("queries", "keys", "group_reciprocal", "causal"),
)
POISON = 0xFFFF  # NaN in bfloat16 and float16, and twice so in float32


class Arguments(ctypes.Structure):
    """kernels/hip/prefill_arguments.hpp."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in POINTERS),
        *((name, ctypes.c_int64) for name in STRIDES),
        *((name, ctypes.c_uint32) for name in COUNTS),
        ("diagonal", ctypes.c_int32),
        ("window_left", ctypes.c_int32),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
        ("output_type", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


@functools.cache
def code() -> bytes:
    return compile_hip(SOURCE)


def waves(head_dim: int, general: bool = False) -> int:
    return 4 if general or head_dim == 256 else 8


def axes(layout: str) -> tuple[int, int]:
    """The axes of head and row."""
    return (2, 1) if layout == "BSHD" else (1, 2)


def strides(array: Array | None, layout: str) -> tuple[int, int, int]:
    """Bytes from batch to batch, head to head, row to row."""
    if array is None:
        return 0, 0, 0
    head, row = axes(layout)
    return array.strides[0], array.strides[head], array.strides[row]


def run(
    inputs: Mapping[str, Array],
    *,
    layout: str = "BSHD",
    is_causal: int = 1,
    causal_alignment: str = "bottom_right",
    window_left: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    out: Any = np.float32,
    key_range: Array | None = None,
    with_lse: bool = True,
    **options: Any,
) -> tuple[Array, Array | None, Result]:
    """Output, lse (B, Hq, Sq) and findings. Inputs: query, key, value and what the operator names besides them."""
    head, row = axes(layout)
    query, key, value = (inputs[name] for name in ("query", "key", "value"))
    assert {query.dtype, key.dtype, value.dtype} == {np.dtype(bfloat16)}
    batch, heads, queries, dim = query.shape[0], query.shape[head], query.shape[row], query.shape[3]
    keys, value_dim = key.shape[row], value.shape[3]
    output = np.full((*query.shape[:3], value_dim), np.nan, out)
    lse = np.full((batch, heads, queries), np.nan, np.float32) if with_lse else None

    a = Arguments(queries=queries, keys=keys, causal=is_causal, window_left=window_left, softcap=softcap)
    a.scale = dim**-0.5 if scale is None else scale
    a.diagonal = keys - queries if causal_alignment == "bottom_right" else 0
    group = heads // key.shape[head]
    a.group_reciprocal = 0 if group == 1 else -(-(1 << 32) // group)
    a.output_type = OUTPUT_TYPES[np.dtype(out)]
    a.q_batch, a.q_head, a.q_row = strides(query, layout)
    a.k_batch, a.k_head, a.k_row = strides(key, layout)
    a.v_batch, a.v_head, a.v_row = strides(value, layout)
    a.o_batch, a.o_head, a.o_row = strides(output, layout)
    if lse is not None:
        a.lse_batch, a.lse_head = lse.strides[:2]
    mask, bias = inputs.get("key_mask"), inputs.get("attn_bias")
    if mask is not None:
        a.mask_batch = mask.strides[0]
    if bias is not None:
        set_bias(a, bias, (batch, heads, queries, keys))

    buffers = {
        "query": query,
        "key": key,
        "value": value,
        "output": output,
        "lse": lse,
        "key_range": key_range,
        "sinks": inputs.get("sinks"),
        "key_mask": mask,
        "bias": bias,
    }
    device = Device()
    for name, array in buffers.items():
        # A tensor without elements has no memory: any address will do.
        address = 0 if array is None else device.address(owner(array), name) if array.size else 1 << 20
        setattr(a, name, address)
    general = softcap != 0 or bias is not None or not 1e-37 <= a.scale <= 1e38
    kernel = f"bf16_prefill_{KERNELS[dim, value_dim]}{'_general' * general}"
    group_waves = waves(dim, general)
    grid = (-(-queries // (group_waves * WAVE_ROWS)), heads, batch)
    result = device.launch(code(), kernel, grid, (group_waves * 64,), bytes(a), **options)
    return output, lse, result


def owner(array: Array) -> Array:
    """The contiguous array that a view is part of; the view begins where it begins."""
    if array.flags.c_contiguous:
        return array
    base = array.base
    assert isinstance(base, np.ndarray) and base.flags.c_contiguous
    assert base.ctypes.data == array.ctypes.data
    return base


def set_bias(a: Arguments, bias: Array, full: tuple[int, ...]) -> None:
    """Strides of 0 along axes of length 1."""
    steps = [0 if have == 1 else step for have, step in zip(bias.shape, bias.strides, strict=True)]
    steps = [0] * (4 - len(steps)) + steps
    assert np.broadcast_shapes(bias.shape, full) == full
    a.bias_batch, a.bias_head, a.bias_row, a.bias_column = steps
    a.bias_is_float = int(bias.dtype == np.float32)


def gaussian(
    shape: tuple[int, ...] = (1, 1, 1), q: int = 32, k: int = 64, dims: tuple[int, int] = (128, 128), seed: int = 0
) -> dict[str, Array]:
    """query, key, value in bfloat16, BSHD; `shape` is batch, heads, key heads."""
    batch, heads, kv_heads = shape
    rng = np.random.default_rng([seed, q, k, *dims])
    sizes = {"query": (batch, q, heads, dims[0]), "key": (batch, k, kv_heads, dims[0])}
    sizes["value"] = (batch, k, kv_heads, dims[1])
    return {name: rng.standard_normal(size).astype(bfloat16) for name, size in sizes.items()}


assert ml_dtypes.finfo(bfloat16).bits == 16
