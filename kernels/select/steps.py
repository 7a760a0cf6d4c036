"""Steps in the making, and the two launches of a quantisation."""

from __future__ import annotations

from zyfa_ort.kernels.select.arguments import Places, Values, quantize_arguments, rows_arguments
from zyfa_ort.kernels.select.checks import check_grid
from zyfa_ort.kernels.select.choice import At, Choice, Launch
from zyfa_ort.kernels.select.layouts import LAYOUTS
from zyfa_ort.kernels.select.table import (
    COPY_BYTES,
    KERNELS,
    QUANTIZE_ELEMENTS,
    QUANTIZE_WORKGROUPS,
    SLICE_BYTES,
    UNIT_ELEMENTS,
    KernelRow,
)
from zyfa_ort.kernels.select.tensors import Bytes, Sizes, Tensor, Workspace


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def quantize_blocks(batch_heads: int, elements: int) -> int:
    """Workgroups for a head of so many elements; changes no bit."""
    most = QUANTIZE_WORKGROUPS // max(batch_heads, 1)
    return max(1, min(most, ceil_div(elements, QUANTIZE_ELEMENTS)))


def kernel_of(family: str, reads: str) -> KernelRow:
    return next(row for row in KERNELS if row.family == family and row.reads == reads)


def hadamard_block(dim: int) -> int:
    return 64 if dim == 192 else dim


class Steps:
    def __init__(self) -> None:
        self.workspace = Workspace(SLICE_BYTES)
        self._made: list[Launch] = []

    def choice(self, why: str) -> Choice:
        return Choice(tuple(self._made), self.workspace.size, why)

    def launch(self, row: KernelRow, grid: tuple[int, int, int], values: Values, places: Places) -> None:
        check_grid(row, grid)
        layout = LAYOUTS[row.layout]
        pointers = sorted((layout.offset(name), at) for name, at in places.items() if at is not None)
        self._made.append(Launch(row, grid, layout.pack(values), tuple(pointers)))

    def rows(
        self,
        row: KernelRow,
        source: tuple[At | None, Bytes],
        target: tuple[At, Bytes],
        counts: tuple[int, int, int],
        units: int,
    ) -> None:
        """`counts` are batch, heads and rows of `units`; launches nothing for none."""
        batch, heads, rows = counts
        if batch * heads * rows * units <= 0:
            return
        blocks = quantize_blocks(batch * heads, rows * units * UNIT_ELEMENTS)
        values = rows_arguments(source[1], target[1], rows, units, blocks)
        self.launch(row, (blocks, heads, batch), values, {"source": source[0], "target": target[0]})

    def copy(
        self, source: Tensor, target: tuple[At, Bytes], counts: tuple[int, int, int], row_bytes: int
    ) -> None:
        places = (*source.strides, *target[1], source.at.offset, target[0].offset, row_bytes)
        unit = 1 if any(place % COPY_BYTES for place in places) else COPY_BYTES
        row = kernel_of(f"copy_{unit}", "float")
        self.rows(row, (source.at, source.strides), target, counts, row_bytes // unit)

    def zero(self, target: At, size: int) -> None:
        """Whole slices of the workspace."""
        rows, units = size // SLICE_BYTES, SLICE_BYTES // COPY_BYTES
        strides = (0, 0, SLICE_BYTES)
        self.rows(kernel_of("zero_16", "float"), (None, (0, 0, 0)), (target, strides), (1, 1, rows), units)

    def cast(self, x: Tensor, sizes: Sizes) -> Tensor:
        """To bfloat16, contiguous per head."""
        batch, heads, rows, dim = sizes
        made = Tensor(
            self.workspace.take(2 * batch * heads * rows * dim),
            (2 * heads * rows * dim, 2 * rows * dim, 2 * dim),
            "bfloat16",
        )
        row = kernel_of("cast", x.dtype)
        self.rows(row, (x.at, x.strides), (made.at, made.strides), (batch, heads, rows), dim // UNIT_ELEMENTS)
        return made

    def quantise(
        self,
        x: Tensor,
        codes: Tensor,
        scale: At,
        sizes: Sizes,
        rotated: bool,
        granularity: str,
        counted: tuple[int, int],
        mask: tuple[int, int] | None,
    ) -> None:
        """`counted` rows that `mask` (its batch stride and bytes of a number) leaves make the scale."""
        batch, heads, rows, dim = sizes
        blocks = quantize_blocks(batch * heads, rows * dim)
        partial = self.workspace.take(4 * batch * heads * blocks)
        rotation = hadamard_block(dim) if rotated else 0
        values = quantize_arguments(x, codes, mask or (0, 1), sizes, rotation, counted, granularity, blocks)
        places: Places = {"x": x.at, "codes": codes.at, "scale": scale, "partial": partial}
        places["mask"] = At("key_mask") if mask else None
        for family in ("quantize_amax", "quantize_convert"):
            self.launch(kernel_of(family, x.dtype), (blocks, heads, batch), values, places)
