"""One launch of the BF16 prefill kernels on the emulated device: contract tensors in, output and lse out."""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from custom_ops.op_session import run_attention
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from reference.attention import Attention, attention
from zyfa_ort.kernels.asm.assemble import HIP, compile_hip, write_atomically
from zyfa_ort.kernels.asm.toolchain import toolchain
from zyfa_ort.kernels.emulator import Device, Result

from zyfa_ort.numerics import LSE_TOLERANCES, TOLERANCES, relative_error

Array = NDArray[Any]

ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".cache" / "code_objects"
FOLDER = ROOT / "kernels" / "hip"
PLAIN, GENERAL = FOLDER / "bf16_prefill.hip", FOLDER / "bf16_prefill_general.hip"
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
def code(source: Path) -> bytes:
    """The code object of PLAIN or GENERAL. Compiling takes up to a quarter of a minute: kept until an input changes."""
    compiler = Path(toolchain().clang[0]).stat()
    key = hashlib.sha256(repr((HIP, toolchain(), compiler.st_size, compiler.st_mtime_ns)).encode())
    for file in (source, *sorted(FOLDER.glob("*.hpp"))):
        key.update(file.read_bytes())
    kept = CACHE / f"{source.stem}-{key.hexdigest()}.co"
    if not kept.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, compile_hip(source))
    return kept.read_bytes()


def waves(head_dim: int, general: bool = False) -> int:
    return 4 if general or head_dim == 256 else 8


def needs_general(a: Arguments) -> bool:
    """needs_general() of the header."""
    return a.softcap != 0 or a.bias != 0 or not 1e-37 <= a.scale <= 0.69


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
        setattr(a, name, address(device, array, name))
    general = needs_general(a)
    group_waves = waves(dim, general)
    result = device.launch(
        code(GENERAL if general else PLAIN),
        f"bf16_prefill_{KERNELS[dim, value_dim]}{'_general' * general}",
        (-(-queries // (group_waves * WAVE_ROWS)), heads, batch),
        (group_waves * 64,),
        bytes(a),
        **options,
    )
    return output, lse, result


def address(device: Device, array: Array | None, name: str) -> int:
    """Where a tensor lies; any address will do for one without elements."""
    if array is None:
        return 0
    if array.size == 0:
        return 1 << 20
    base = owner(array)
    return device.address(base, name) + array.ctypes.data - base.ctypes.data


def owner(array: Array) -> Array:
    """The contiguous array that a view is part of."""
    while not array.flags.c_contiguous:
        assert isinstance(array.base, np.ndarray)
        array = array.base
    return array


def set_bias(a: Arguments, bias: Array, full: tuple[int, ...]) -> None:
    """Strides of 0 along axes of length 1."""
    steps = [0 if have == 1 else step for have, step in zip(bias.shape, bias.strides, strict=True)]
    steps = [0] * (4 - len(steps)) + steps
    assert np.broadcast_shapes(bias.shape, full) == full
    a.bias_batch, a.bias_head, a.bias_row, a.bias_column = steps
    a.bias_is_float = int(bias.dtype == np.float32)


def gaussian(
    shape: tuple[int, ...] = (1, 1, 1),
    q: int = 32,
    k: int = 64,
    dims: tuple[int, int] = (128, 128),
    seed: int = 0,
) -> dict[str, Array]:
    """query, key, value in bfloat16, BSHD; `shape` is batch, heads, key heads."""
    batch, heads, kv_heads = shape
    rng = np.random.default_rng([seed, q, k, *dims])
    sizes = {"query": (batch, q, heads, dims[0]), "key": (batch, k, kv_heads, dims[0])}
    sizes["value"] = (batch, k, kv_heads, dims[1])
    return {name: rng.standard_normal(size).astype(bfloat16) for name, size in sizes.items()}


def bias(shape: tuple[int, ...], dtype: Any, hidden: float = 0.0) -> Array:
    """Gaussian biases, a part of them -inf."""
    rng = np.random.default_rng([*shape])
    values = rng.standard_normal(shape).astype(np.float32) * 2
    values[rng.random(shape) < hidden] = -np.inf
    return values.astype(dtype)


def check(
    inputs: Mapping[str, Array], *, tolerance: str = "bf16", order_seed: int = 0, **problem: Any
) -> tuple[Array, Array]:
    """Runs a problem: no findings, and output and lse near attention in float64. Returns both."""
    output, lse, result = run(inputs, report_only=True, order_seed=order_seed, **problem)
    assert not result.findings, result.findings[0]
    assert lse is not None
    wanted = reference(inputs, **problem)
    assert_near(output, wanted.output, tolerance)
    finite = np.isfinite(wanted.lse)
    np.testing.assert_array_equal(lse[~finite], wanted.lse[~finite])
    bound = LSE_TOLERANCES["bf16"] + 1e-6 * np.abs(wanted.lse[finite])
    assert np.all(np.abs(lse[finite] - wanted.lse[finite]) <= bound)
    return output, lse


def reference(inputs: Mapping[str, Array], *, key_range: Array | None = None, **problem: Any) -> Attention:
    """The problem in float64. Key ranges are masks there."""
    tensors = dict(inputs)
    if key_range is not None:
        keys = np.arange(inputs["key"].shape[axes(problem.get("layout", "BSHD"))[1]])
        inside = (keys >= key_range[:, :1]) & (keys < key_range[:, 1:])
        tensors["key_mask"] = inside & (np.asarray(inputs.get("key_mask", True)) != 0)
    with np.errstate(all="ignore"):
        return attention(**tensors, **problem)


def assert_near(output: Array, wanted: Array, tolerance: str) -> None:
    """NaN and infinities are where they should be, the rest is within the named tolerance.

    A sink can leave less than float16 has: one subnormal step of the output's type is no difference.
    """
    got = output.astype(np.float64)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(got[~finite], wanted[~finite])
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(got - wanted) <= float(ml_dtypes.finfo(output.dtype).smallest_subnormal))
    expected = np.where(finite, wanted, 0)
    violations = TOLERANCES[tolerance].violations(np.where(finite & far, got, expected), expected)
    assert not violations, f"{tolerance}: {'; '.join(violations)}"


def assert_same_as_cpu(inputs: Mapping[str, Array], **problem: Any) -> None:
    """The operator's own CPU kernel gives the same bits but for a few elements.

    Sums in another order put a score in ten thousand on the other side of a bfloat16 step of its probability.
    """
    output, lse, result = run(inputs, out=bfloat16, **problem)
    assert not result.findings
    cpu = run_attention(inputs, ("output", "lse"), precision="bf16", **problem)
    assert np.mean(output.view(np.uint16) != cpu["output"].view(np.uint16)) < 2e-3  # measured 5e-4
    assert relative_error(output, cpu["output"]) <= 3e-4  # measured 8e-5
    # One step of the largest probability is 2^-9 of it.
    np.testing.assert_allclose(lse, cpu["lse"], rtol=1e-6, atol=2e-3)
