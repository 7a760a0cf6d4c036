"""Whether there is a kernel for a problem, and which: the refusals, in the order in which they are made."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from zyfa_ort.kernels.select.choice import NoKernelError
from zyfa_ort.kernels.select.problem import DTYPES, Problem
from zyfa_ort.kernels.select.table import (
    ALIGNMENT,
    ARCHITECTURE,
    DECODE_QUERIES,
    KERNELS,
    MOST_GRID,
    MOST_LENGTH,
    MOST_QUANTIZED,
    PADDED_DIMS,
    REFUSALS,
    KernelRow,
)

Dims = tuple[int, int]


def refuse(name: str, got: object, detail: str = "", most: int = 0) -> NoReturn:
    raise NoKernelError(REFUSALS[name].line(got, detail, most))


def f32(x: float) -> float:
    """Rounded to float32."""
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def check_architecture(arch: str) -> None:
    """`arch` as HIP names it, features behind a colon included."""
    if arch.split(":")[0] != ARCHITECTURE:
        refuse("architecture", arch)


def check_attributes(p: Problem) -> None:
    """What no kernel can do, whatever the shape."""
    check_architecture(p.arch)
    if p.precision == "fp32":
        refuse("precision", p.precision)
    if p.precision == "fp8" and p.fp8_edges == "bf16":
        refuse("fp8_edges", p.fp8_edges)
    if not takes_scores_apart(p):
        if p.softcap != 0:
            refuse("softcap", f"{f32(p.softcap):g}")
        if p.bias is not None:
            refuse("bias", "a bias")
    if p.precision == "bf16" and p.dtype == "float8e4m3fn" and not is_decode(p):
        refuse("quantised_prefill", p.precision)


def takes_scores_apart(p: Problem) -> bool:
    """Softcap and bias are for the BF16 kernels on inputs that are not quantised."""
    return p.precision == "bf16" and p.dtype != "float8e4m3fn"


def is_decode(p: Problem) -> bool:
    return p.q_len <= DECODE_QUERIES and p.softcap == 0 and p.bias is None


def needs_general(p: Problem) -> bool:
    """needs_general() of kernels/hip/prefill_arguments.hpp."""
    return p.softcap != 0 or p.bias is not None or not f32(1e-37) <= f32(p.scale) <= f32(0.69)


def kernel_for(p: Problem) -> KernelRow:
    """The row that computes attention. Refuses head dims, masks, and FP8 rounding without one."""
    if is_decode(p):
        cache = "bfloat16" if takes_scores_apart(p) else "float8e4m3fn"
        rows = 16 if p.group_size * p.q_len <= 16 else 32
        found = [r for r in _of_dims(p, "decode") if r.reads == cache and r.rows == rows]
    elif p.precision == "fp8":
        found = [
            r
            for r in _of_dims(p, "fp8_prefill", PADDED_DIMS)
            if r.edges == p.fp8_edges and r.writes == p.out_dtype
        ]
        if p.key_mask == "holes":
            refuse("mask_holes", "a mask with holes")
        wanted = "nearest" if p.byte_rounding == "unknown" else p.byte_rounding
        made = [r.rounding for r in found]
        found = [r for r in found if r.rounding == wanted]
        if not found:
            refuse("byte_rounding", wanted, " or ".join(made))
    else:
        found = _of_dims(p, "bf16_prefill_general" if needs_general(p) else "bf16_prefill")
    (row,) = found
    return row


def _of_dims(p: Problem, family: str, padded: Mapping[Dims, Dims] = MappingProxyType({})) -> list[KernelRow]:
    dims = (p.qk_dim, p.v_dim)
    rows = [r for r in KERNELS if r.family == family]
    found = [r for r in rows if (r.qk_dim, r.v_dim) == padded.get(dims, dims)]
    if not found:
        there = dict.fromkeys(f"{qk}/{v}" for qk, v in [*padded, *((r.qk_dim, r.v_dim) for r in rows)])
        refuse("head_dims", f"{p.qk_dim}/{p.v_dim}", f"{', '.join(there)} ({family.split('_general')[0]})")
    return found


def check_sizes(p: Problem, quantised_here: bool) -> None:
    for name, size in (("query rows", p.q_len), ("keys", p.kv_len)):
        if size > MOST_LENGTH:
            refuse("length", size, name)
        if quantised_here and size > MOST_QUANTIZED:
            refuse("quantized_rows", size, name)


def check_strides(name: str, strides: tuple[int, int, int], most_row: int) -> None:
    """Bytes from batch to batch, head to head, row to row."""
    for step in strides:
        if step % ALIGNMENT:
            refuse("alignment", step, name)
    if strides[2] > most_row:
        refuse("row_stride", strides[2], f"{name} row", most_row)


def check_grid(row: KernelRow, grid: tuple[int, int, int]) -> None:
    if any(size > most for size, most in zip(grid, MOST_GRID, strict=True)):
        refuse("grid", "x".join(map(str, grid)), row.kernel)


def is_padded(p: Problem, row: KernelRow) -> bool:
    """Whether the kernel's head dims are larger than the problem's."""
    return (row.qk_dim, row.v_dim) != (p.qk_dim, p.v_dim)


def size_of(dtype: str) -> int:
    return DTYPES[dtype]
