"""Head dim 64 in FP8 prefill of 128, beside BF16 prefill of 64, modelled: python -m kernels.padding_cost in tests/."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import timing
from zyfa_ort.kernels.select import make_problem, select
from zyfa_ort.kernels.select.choice import Launch
from zyfa_ort.kernels.select.table import SLICE_BYTES

from kernels import quantise_cost
from kernels.hip import convert_launch, prefill_launch, quantize_launch

Array = NDArray[Any]

HEADS, KV_HEADS, DIM = 32, 8, 64


def normal(length: int, heads: int) -> Array:
    return np.ascontiguousarray(quantise_cost.normal(length, heads, bfloat16)[..., :DIM])


def bf16_attention(length: int) -> float:
    """Microseconds of BF16 prefill of 64, causal."""
    arrays = {
        "query": normal(length, HEADS),
        "key": normal(length, KV_HEADS),
        "value": normal(length, KV_HEADS),
    }
    arrays["output"] = np.zeros_like(arrays["query"])
    (launch,) = select(make_problem(q_len=length, q_heads=HEADS, kv_heads=KV_HEADS, qk_dim=DIM)).launches
    names = list(arrays)

    def packed(addresses: list[int]) -> bytes:
        block = bytearray(launch.arguments)
        for offset, at in launch.pointers:
            block[offset : offset + 8] = addresses[names.index(at.buffer)].to_bytes(8, "little")
        return bytes(block)

    return timing.time(
        prefill_launch.code(prefill_launch.PLAIN), launch.row.kernel, launch.grid, launch.row.work_items,
        list(arrays.values()), kernarg=packed, work=lambda x, y, z: x + 1, max_runs=4, run_rest=False,
    ).chip.microseconds  # fmt: skip


def quantising(length: int) -> float:
    """Microseconds for Q, K and V of 64, read from HBM."""
    code = prefill_launch.code(quantize_launch.SOURCE)
    total = 0.0
    for heads in (HEADS, KV_HEADS, KV_HEADS):
        job = quantize_launch.Quantization(normal(length, heads), blocks=quantise_cost.WORKGROUPS // heads)
        total += sum(cost.chip.microseconds for cost in quantize_launch.modelled_cost(code, job, warm=False))
    return total


def padding(length: int) -> float:
    """Microseconds of the zeros in front and the copy behind."""
    code = compile_hip(convert_launch.SOURCE)
    problem = make_problem(q_len=length, q_heads=HEADS, kv_heads=KV_HEADS, qk_dim=DIM, precision="fp8")
    steps = [s for s in select(problem).launches if s.row.kernel in ("zero_rows_16", "copy_rows_16")]
    return sum(_rows(code, step, length) for step in steps)


def _rows(code: bytes, step: Launch, length: int) -> float:
    """A wide output is 256 bytes a row, codes are as much for a query head's two rows."""
    wide = np.zeros(length * HEADS * 256 + SLICE_BYTES, np.uint8)
    narrow = np.zeros(length * HEADS * 128 + SLICE_BYTES, np.uint8)

    def packed(addresses: list[int]) -> bytes:
        block = bytearray(step.arguments)
        for (offset, _), address in zip(step.pointers, addresses[-len(step.pointers) :], strict=True):
            block[offset : offset + 8] = address.to_bytes(8, "little")
        return bytes(block)

    cold = {"l2_hit_rate": 0.0, "mall_hit_rate": 0.0}
    return timing.time(
        code, step.row.kernel, step.grid, step.row.work_items, [wide, narrow] if len(step.pointers) == 2 else [wide],
        kernarg=packed, constants=cold,
    ).chip.microseconds  # fmt: skip


def main() -> None:
    print(
        f"MODELLED, batch 1, {HEADS} query and {KV_HEADS} key heads of {DIM}, bf16 inputs, causal, microseconds"
    )
    print(
        "| tokens | BF16 | FP8 attention | quantise | zeros and copy | FP8 in all |\n|---|---|---|---|---|---|"
    )
    for length in (2048, 8192, 32768):
        parts = [quantise_cost.attention(length).chip.microseconds, quantising(length), padding(length)]
        cells = [bf16_attention(length), *parts, sum(parts)]
        print(f"| {length:,} | " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
