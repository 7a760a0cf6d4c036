"""Modelled time of what lies between tensors and kernels: python tests/kernels/hip/convert_launch.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import timing
from zyfa_ort.kernels.select.layouts import LAYOUTS
from zyfa_ort.kernels.select.steps import quantize_blocks

SOURCE = Path(__file__).parents[3] / "kernels/hip/convert.hip"
ITEMS = 256


def key_range_time(code: bytes, keys: int, dtype: type[np.generic]) -> float:
    """Microseconds for one batch entry and 32 heads, nothing in any cache."""
    mask = np.ones((1, keys), dtype)
    buffers: list[NDArray[np.generic]] = [
        mask, np.zeros(2, np.int32), np.ones(32, np.float32), np.zeros(32, np.float32), np.zeros(1, np.int32),
    ]  # fmt: skip
    layout = LAYOUTS["key_range"]
    values = {
        "mask_batch": mask.nbytes, "mask_bytes": mask.itemsize, "keys": keys, "heads": 32, "q_scale_batch": 32,
        "q_scale_head": 1, "reserved": 0,
    }  # fmt: skip
    return _microseconds(
        code,
        "key_range",
        (1, 1, 1),
        buffers,
        layout.pack(values),
        ("mask", "range", "q_scale", "guarded", "status"),
        "key_range",
    )


def rows_time(
    code: bytes, kernel: str, source: NDArray[np.generic], target: NDArray[np.generic], units: int
) -> float:
    """Microseconds for (8 heads, rows of `units`), nothing in any cache."""
    heads, rows = source.shape[0], source.shape[1]
    blocks = quantize_blocks(heads, rows * units * 8)
    values = dict.fromkeys(("source_batch", "target_batch", "reserved"), 0) | {
        "source_head": source.strides[0], "source_row": source.strides[1], "target_head": target.strides[0],
        "target_row": target.strides[1], "rows": rows, "units": units, "blocks": blocks,
    }  # fmt: skip
    return _microseconds(
        code,
        kernel,
        (blocks, heads, 1),
        [source, target],
        LAYOUTS["rows"].pack(values),
        ("source", "target"),
        "rows",
    )


def _microseconds(
    code: bytes, kernel: str, grid: tuple[int, int, int], buffers: list[NDArray[np.generic]], packed: bytes,
    names: tuple[str, ...], layout: str,
) -> float:  # fmt: skip
    def block(addresses: list[int]) -> bytes:
        made = bytearray(packed)
        for name, address in zip(names, addresses, strict=True):
            at = LAYOUTS[layout].offset(name)
            made[at : at + 8] = address.to_bytes(8, "little")
        return bytes(made)

    cold = {"l2_hit_rate": 0.0, "mall_hit_rate": 0.0}
    return timing.time(code, kernel, grid, ITEMS, buffers, kernarg=block, constants=cold).chip.microseconds


def main() -> None:
    code = compile_hip(SOURCE)
    print("MODELLED, microseconds, nothing in any cache")
    for dtype in (np.bool_, np.int64):
        for keys in (4096, 131072):
            print(
                f"key_range, {keys} keys of {np.dtype(dtype).name}: {key_range_time(code, keys, dtype):.1f}"
            )
    x = np.zeros((8, 4096, 128), np.float32)
    half = np.zeros((8, 4096, 128), np.uint16)
    print(f"cast_f32_bf16, (4096, 8 heads, 128): {rows_time(code, 'cast_f32_bf16', x, half, 16):.1f}")
    print(
        f"copy_rows_16, (4096, 8 heads, 128) of 2 bytes: {rows_time(code, 'copy_rows_16', half, half.copy(), 16):.1f}"
    )


if __name__ == "__main__":
    main()
