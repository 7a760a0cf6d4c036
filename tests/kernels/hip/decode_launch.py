"""The launches of decode.hip as a host makes them.

As a program it prints their modelled time: python tests/kernels/hip/decode_launch.py
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import timing

Array = NDArray[Any]

SOURCE = Path(__file__).parents[3] / "kernels" / "hip" / "decode.hip"
ITEMS = 256
HEAD_DIMS = [(64, 64), (128, 128), (192, 128), (256, 256)]
TYPES = {np.dtype(bfloat16): 0, np.dtype(np.float16): 1, np.dtype(np.float32): 2, np.dtype(float8_e4m3fn): 3}
KV_NAMES = {np.dtype(bfloat16): "bf16", np.dtype(float8_e4m3fn): "e4m3"}


@dataclass
class Problem:
    """q (B, Sq, Hq, Dqk), k (B, S, Hkv, Dqk), v (B, S, Hkv, Dv); scales (B, H); key_mask (B, S)."""

    q: Array
    k: Array
    v: Array
    causal: bool = True
    window_left: int = -1
    scale: float | None = None
    q_scale: Array | None = None
    k_scale: Array | None = None
    v_scale: Array | None = None
    sinks: Array | None = None
    key_range: tuple[list[int], list[int]] | None = None
    key_mask: Array | None = None
    top_left: bool = False
    out_dtype: Any = bfloat16

    @property
    def natural_scale(self) -> float:
        return self.q.shape[-1] ** -0.5 if self.scale is None else self.scale

    def visible(self) -> Array:
        """(B, Sq, S)."""
        batch, queries, keys = self.q.shape[0], self.q.shape[1], self.k.shape[1]
        position = np.arange(queries)[:, None] + (0 if self.top_left else keys - queries)
        key = np.arange(keys)
        seen = np.ones((queries, keys), bool)
        if self.causal:
            seen &= key <= position
        if self.window_left >= 0:
            seen &= key >= position - self.window_left
        begin, end = self.key_range or ([0] * batch, [keys] * batch)
        inside = (key >= np.array(begin)[:, None]) & (key < np.array(end)[:, None])
        if self.key_mask is not None:
            inside &= self.key_mask
        return seen & inside[:, None]


def buffer_of(x: Array) -> Array:
    """The contiguous array that x is or is a part of."""
    if x.flags.c_contiguous:
        return x
    assert x.base is not None
    return x.base


class Decoding:
    """Arguments and outputs of one problem, and the two launches."""

    def __init__(self, p: Problem, splits: int, rows_per_tile: int) -> None:
        batch, queries, heads, dqk = p.q.shape
        keys, kv_heads, dv = p.v.shape[1:]
        rows = batch * heads * queries
        self.out = np.full((batch, queries, heads, dv), 77, p.out_dtype)
        self.lse = np.full((batch, heads, queries), 77, np.float32)
        arrays = [p.q, p.k, p.v, self.out, self.lse, p.q_scale, p.k_scale, p.v_scale, p.sinks]
        arrays += [None if p.key_range is None else np.array(p.key_range, np.int32).T.copy(), p.key_mask]
        arrays += [np.full(rows * splits * n, np.nan, np.float32) for n in (dv, 2)]
        # Arrays without elements have no address: a kernel that touched one would be found out.
        self.arrays = [None if x is None or x.size == 0 else x for x in arrays]
        tensors = (p.q, p.k, p.v, self.out)
        self.rest = struct.pack(
            "<8q15IiIifIIII4x",
            *(p.q.strides[0], *(n for x in tensors[1:] for n in (x.strides[0], x.strides[2]))),
            0 if p.key_mask is None else p.key_mask.strides[0],
            *(p.q.strides[2], *(x.strides[1] for x in tensors)),
            *(
                n
                for x in (p.q_scale, p.k_scale, p.v_scale)
                for n in ((0, 0) if x is None else (x.shape[1], 1))
            ),
            *(heads, kv_heads, queries, keys, 0 if p.top_left else keys - queries, p.causal, p.window_left),
            *(p.natural_scale, dv, splits, TYPES[p.q.dtype], TYPES[self.out.dtype]),
        )
        tiles = -(-(heads // kv_heads * queries) // rows_per_tile)
        name = f"decode_{KV_NAMES[p.k.dtype]}_{dqk}_{dv}_{rows_per_tile}"
        self.launches = [
            (name, (splits, tiles, batch * kv_heads), ITEMS),
            ("decode_combine", (heads, queries, batch), ITEMS),
        ]

    def buffers(self) -> list[Array]:
        return [buffer_of(x) for x in self.arrays if x is not None]

    def packed(self, addresses: list[int]) -> bytes:
        """DecodeArguments, from the addresses of buffers()."""
        where = iter(addresses)
        pointers = [
            0 if x is None else next(where) + x.ctypes.data - buffer_of(x).ctypes.data for x in self.arrays
        ]
        return struct.pack("<13Q", *pointers) + self.rest


def main() -> None:
    code = compile_hip(SOURCE)
    rng = np.random.default_rng(0)
    print("MODELLED, 1 query, 64 heads of 128 on 8 key heads, nothing cached, microseconds: decode, combine")
    for dtype in (bfloat16, float8_e4m3fn):
        for keys, splits in ((4096, 32), (32768, 64)):
            q = rng.standard_normal((1, 1, 64, 128)).astype(bfloat16)
            k, v = (rng.standard_normal((1, keys, 8, 128), np.float32).astype(dtype) for _ in range(2))
            job = Decoding(Problem(q, k, v), splits, 16)
            costs = [
                timing.time(
                    *(code, kernel, grid, block, job.buffers()),
                    kernarg=job.packed,
                    constants={"l2_hit_rate": 0.0, "mall_hit_rate": 0.0},
                ).chip.microseconds
                for kernel, grid, block in job.launches
            ]
            bytes_read = k.nbytes + v.nbytes
            print(
                f"{KV_NAMES[np.dtype(dtype)]:4} {keys:6} keys, {splits:3} splits: {costs[0]:7.2f} {costs[1]:6.2f}"
                f"  ({bytes_read / costs[0] / 1e6:.2f} TB/s)"
            )


if __name__ == "__main__":
    main()
