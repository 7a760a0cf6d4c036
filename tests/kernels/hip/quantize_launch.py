"""The launches of quantize.hip as a host makes them.

As a program it prints their modelled time: python tests/kernels/hip/quantize_launch.py
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import timing

Array = NDArray[Any]

SOURCE = Path(__file__).parents[3] / "kernels" / "hip" / "quantize.hip"
ITEMS = 256
NAMES = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16", np.dtype(bfloat16): "bf16"}
GRANULARITIES = ["tensor", "head", "batch_head"]


def hadamard_block(dim: int) -> int:
    return 64 if dim == 192 else dim


@dataclass
class Quantization:
    """Buffers and arguments; `storage` is the buffer when x is a part of one."""

    x: Array
    granularity: str = "batch_head"
    rotation: str = "none"
    layout: str = "BSHD"
    storage: Array | None = None
    mask: Array | None = None
    rows_counted: tuple[int, int] | None = None
    blocks: int = 2
    codes: Array = field(init=False)
    scale: Array = field(init=False)
    partial: Array = field(init=False)

    def __post_init__(self) -> None:
        batch, heads, _, _ = self.sizes
        scales = {"tensor": (1,), "head": (heads,), "batch_head": (batch, heads)}[self.granularity]
        self.codes = np.full(self.x.shape, 0xAA, np.uint8)
        self.scale = np.full(scales, np.nan, np.float32)
        self.partial = np.full(batch * heads * self.blocks, np.nan, np.float32)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """(batch, heads, rows, dim)."""
        b, second, third, dim = self.x.shape
        return (b, second, third, dim) if self.layout == "BHSD" else (b, third, second, dim)

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.blocks, self.sizes[1], self.sizes[0]

    def kernels(self) -> list[str]:
        return [f"quantize_{stage}_{NAMES[self.x.dtype]}" for stage in ("amax", "convert")]

    def buffers(self) -> list[Array]:
        storage = self.x if self.storage is None else self.storage
        return [storage, self.codes, self.scale, self.partial, *([] if self.mask is None else [self.mask])]

    def _strides(self, x: Array) -> tuple[int, int, int]:
        """Bytes from batch to batch, head to head, row to row."""
        head, row = (1, 2) if self.layout == "BHSD" else (2, 1)
        return x.strides[0], x.strides[head], x.strides[row]

    def packed(self, addresses: list[int]) -> bytes:
        """QuantizeArguments, from the addresses of buffers()."""
        batch, heads, rows, dim = self.sizes
        x, codes = self._strides(self.x), self._strides(self.codes)
        mask = (0, 0, 1)
        if self.mask is not None:
            mask = (addresses[4], self.mask.strides[0], self.mask.itemsize)
        first = addresses[0] + self.x.ctypes.data - self.buffers()[0].ctypes.data
        return struct.pack(
            "<5Q5q12I",
            *(first, *addresses[1:4], mask[0], *x[:2], *codes[:2], mask[1], x[2], codes[2], mask[2]),
            *(rows, heads, batch, dim, hadamard_block(dim) if self.rotation == "hadamard" else 0),
            *(self.rows_counted or (0, rows)),
            *(GRANULARITIES.index(self.granularity), self.blocks),
        )


def modelled_cost(code: bytes, job: Quantization, warm: bool) -> list[timing.Timing]:
    """Of both launches; warm: what they read is in L2, else nothing is in any cache."""
    constants = {} if warm else {"l2_hit_rate": 0.0, "mall_hit_rate": 0.0}
    return [
        timing.time(code, name, job.grid, ITEMS, job.buffers(), kernarg=job.packed, constants=constants)
        for name in job.kernels()
    ]


def main() -> None:
    code = compile_hip(SOURCE)
    x = np.random.default_rng(0).standard_normal((1, 4096, 8, 128)).astype(bfloat16)
    print("MODELLED, (1, 4096, 8 heads, 128) bf16, microseconds: amax, convert")
    for rotation in ("none", "hadamard"):
        for warm in (True, False):
            job = Quantization(x, rotation=rotation, blocks=128)
            costs = [timed.chip.microseconds for timed in modelled_cost(code, job, warm)]
            place = "L2" if warm else "HBM"
            print(f"rotation {rotation:8} from {place:3}  {costs[0]:6.2f} {costs[1]:6.2f}")


if __name__ == "__main__":
    main()
