"""What quantising Q, K and V costs beside the attention that follows, modelled: python -m kernels.quantise_cost in tests/."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.fp8_config import VALUE_DIM, Fp8Config
from zyfa_ort.kernels.emulator import timing

from kernels.asm import fp8_launch
from kernels.hip import prefill_launch, quantize_launch

Array = NDArray[Any]

HEADS, KV_HEADS = 32, 8
WORKGROUPS = 1024  # of the quantise kernels, over all heads
SPREAD = 0.25  # deviation of the logits in nats


def normal(length: int, heads: int, dtype: Any) -> Array:
    """(1, length, heads, 128), drawn from 65,536 normal numbers: 32K tokens of float64 would be 1 GB."""
    rng = np.random.default_rng(length + heads)
    pool = rng.standard_normal(2**16).astype(dtype)
    return pool[rng.integers(0, 2**16, (1, length, heads, VALUE_DIM), np.uint16)]


def quantising(length: int, rotation: str) -> float:
    """Microseconds of both launches for Q, K (rotated alike) and V, read from HBM."""
    code = prefill_launch.code(quantize_launch.SOURCE)
    total = 0.0
    for heads, rotated in ((HEADS, True), (KV_HEADS, True), (KV_HEADS, False)):
        x = normal(length, heads, bfloat16)
        job = quantize_launch.Quantization(
            x, rotation=rotation if rotated else "none", blocks=WORKGROUPS // heads
        )
        total += sum(cost.chip.microseconds for cost in quantize_launch.modelled_cost(code, job, warm=False))
    return total


def attention(length: int) -> timing.Timing:
    """Causal self-attention, hi/lo edges, bf16 output."""
    config = Fp8Config(head_dim=128)
    query, key, value = (normal(length, heads, float8_e4m3fn) for heads in (HEADS, KV_HEADS, KV_HEADS))
    one = np.ones(1, np.float32)
    made = fp8_launch.make_launch(
        config, query, key, value, q_scale=np.full(1, SPREAD, np.float32), k_scale=one, v_scale=one
    )
    blocks = made.grid[1]
    return timing.time(
        fp8_launch.code_object(config), config.name, made.grid, made.block, made.args,
        work=lambda x, y, z: blocks - y, max_runs=4, run_rest=False,
    )  # fmt: skip


def main() -> None:
    print(f"MODELLED, batch 1, {HEADS} query and {KV_HEADS} key heads of 128, microseconds")
    print(
        "| tokens | attention | quantise Q, K, V | share | with Hadamard | share |\n|---|---|---|---|---|---|"
    )
    for length in (2048, 8192, 32768):
        whole = attention(length).chip.microseconds
        cells = [f"{length:,}", f"{whole:,.0f}"]
        for rotation in ("none", "hadamard"):
            cost = quantising(length, rotation)
            cells += [f"{cost:.1f}", f"{cost / whole:.2%}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
