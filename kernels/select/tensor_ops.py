"""ZyfaQuantizeFp8 and ZyfaHadamard. Tensors are x, and y with scale, or y."""

from __future__ import annotations

from zyfa_ort.kernels.select.arguments import GRANULARITIES, Values
from zyfa_ort.kernels.select.checks import check_architecture, check_strides, refuse, size_of
from zyfa_ort.kernels.select.choice import At, Choice
from zyfa_ort.kernels.select.problem import LAYOUTS, Strides, contiguous
from zyfa_ort.kernels.select.steps import Steps, hadamard_block, kernel_of, quantize_blocks
from zyfa_ort.kernels.select.table import (
    ANY_ROW,
    ARCHITECTURE,
    MOST_QUANTIZED,
    REASONS,
    TENSOR_DIMS,
)
from zyfa_ort.kernels.select.tensors import Bytes, Tensor


def select_quantize(
    shape: tuple[int, int, int, int],
    dtype: str,
    *,
    granularity: str = "batch_head",
    rotation: str = "none",
    layout: str = "BSHD",
    arch: str = ARCHITECTURE,
) -> Choice:
    """How x of this shape is quantised. Raises NoKernelError; ValueError for words that are none."""
    for name, word, known in (
        ("dtype", dtype, ("float", "float16", "bfloat16")),
        ("granularity", granularity, tuple(GRANULARITIES)),
        ("rotation", rotation, ("none", "hadamard")),
        ("layout", layout, LAYOUTS),
    ):
        if word not in known:
            raise ValueError(f"{name}: expected one of {', '.join(known)}, got {word!r}")
    batch, second, third, dim = shape
    heads, rows = (third, second) if layout == "BSHD" else (second, third)
    check_architecture(arch)
    _check_dim(dim)
    if rows > MOST_QUANTIZED:
        refuse("quantized_rows", rows, "x rows")
    scales = {"tensor": 1, "head": heads, "batch_head": batch * heads}[granularity]
    steps = Steps()
    if scales == 0:
        return steps.choice(REASONS["nothing"])
    # Without elements there still are scales to write, of 1: no rows of one head and batch entry make them.
    rows = rows if batch * heads else 0
    sizes = max(batch, 1), max(heads, 1), rows, dim
    strides = contiguous(layout, sizes[1], rows, dim)
    x = Tensor(At("x"), _bytes(strides, size_of(dtype)), dtype)
    check_strides("x", x.strides, ANY_ROW)
    y = Tensor(At("y"), _bytes(strides, 1), "float8e4m3fn")
    steps.quantise(x, y, At("scale"), sizes, rotation == "hadamard", granularity, (0, rows), None)
    return steps.choice(REASONS["quantise_op"] + (REASONS["rotate_op"] if rotation == "hadamard" else ""))


def select_hadamard(count: int, dim: int, dtype: str, *, arch: str = ARCHITECTURE) -> Choice:
    """How `count` elements in rows of `dim` are rotated. Raises NoKernelError."""
    check_architecture(arch)
    _check_dim(dim)
    steps = Steps()
    if count == 0:
        return steps.choice(REASONS["nothing"])
    blocks = quantize_blocks(1, count)
    values: Values = {"count": count, "rotation": hadamard_block(dim), "blocks": blocks}
    steps.launch(kernel_of("hadamard", dtype), (blocks, 1, 1), values, {"x": At("x"), "y": At("y")})
    return steps.choice(REASONS["hadamard_op"])


def _check_dim(dim: int) -> None:
    if dim not in TENSOR_DIMS:
        refuse("tensor_dims", dim, ", ".join(map(str, TENSOR_DIMS)))


def _bytes(strides: Strides, size: int) -> Bytes:
    return strides.batch * size, strides.head * size, strides.row * size
