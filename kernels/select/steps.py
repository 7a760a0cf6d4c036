"""Steps in the making, and the two launches of a quantisation."""

from __future__ import annotations

from zyfa_ort.kernels.select.arguments import Places, Values, quantize_arguments
from zyfa_ort.kernels.select.checks import check_grid
from zyfa_ort.kernels.select.choice import At, Choice, Copy, Launch
from zyfa_ort.kernels.select.layouts import LAYOUTS
from zyfa_ort.kernels.select.table import (
    KERNELS,
    QUANTIZE_ELEMENTS,
    QUANTIZE_WORKGROUPS,
    SLICE_BYTES,
    KernelRow,
)
from zyfa_ort.kernels.select.tensors import Sizes, Tensor, Workspace


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
        self._made: list[Copy | Launch] = []

    def add(self, step: Copy | Launch) -> None:
        self._made.append(step)

    def choice(self, why: str) -> Choice:
        return Choice(tuple(self._made), self.workspace.size, why)

    def launch(self, row: KernelRow, grid: tuple[int, int, int], values: Values, places: Places) -> None:
        check_grid(row, grid)
        layout = LAYOUTS[row.layout]
        pointers = sorted((layout.offset(name), at) for name, at in places.items() if at is not None)
        self.add(Launch(row, grid, layout.pack(values), tuple(pointers)))

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
