"""What the timing model says about AMD's shipped BF16 attention kernels: figures that nobody chose a constant for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kernels.peers import aiter_attention as shipped
from zyfa_ort.kernels.emulator import timing

pytestmark = pytest.mark.peers


def timed(folder, kernel: shipped.ShippedKernel, length: int, **constants: float) -> timing.Timing:
    """One workgroup over `length` keys, the busiest ones first."""
    rng = np.random.default_rng(0)
    query, key, value = (
        rng.standard_normal((1, length, 1, width)).astype(ml_dtypes.bfloat16)
        for width in (kernel.head_dim, kernel.head_dim, shipped.VALUE_DIM)
    )
    output, lse = (
        np.zeros((1, length, 1, shipped.VALUE_DIM), ml_dtypes.bfloat16),
        np.zeros((1, 1, length), np.float32),
    )
    tiles = length // kernel.query_tile
    return timing.time(
        (folder / "fmha_v3_fwd" / kernel.file).read_bytes(), kernel.symbol,
        (tiles // 2 if kernel.causal else tiles, 1, 1), (kernel.block,),
        {"output": output, "query": query, "key": key, "value": value, "lse": lse},
        kernarg=lambda addresses: shipped.kernel_arguments(
            kernel, query, key, value, output, lse, kernel.head_dim**-0.5, addresses
        ),
        max_runs=1, run_rest=False, check=False, constants=constants,
    )  # fmt: skip


def steady_state(folder, kernel: shipped.ShippedKernel, **constants: float) -> float:
    """How busy the matrix pipe is in the loop: prologue and epilogue cancel between two lengths."""
    short, long = (timed(folder, kernel, length, **constants) for length in (1024, 2048))
    assert (
        short.conflict_cycles == long.conflict_cycles == 0
    )  # their LDS layouts are free of conflicts in our phases
    matrix = sum(s["matrix"] for s in long.simds) - sum(s["matrix"] for s in short.simds)
    return matrix / timing.SIMDS / (long.cycles - short.cycles)


@pytest.mark.parametrize(
    "kernel", [shipped.HD128, shipped.HD128_CAUSAL, shipped.HD192_CAUSAL], ids=lambda k: k.file
)
def test_the_loop_keeps_the_matrix_pipe_busy(aiter_objects, kernel):
    assert 0.8 < steady_state(aiter_objects, kernel) < 0.95


def test_the_loop_is_built_for_our_readings(aiter_objects):
    # A hand-tuned kernel loses a third under the other reading of LDS width and of wave placement.
    as_modelled = steady_state(aiter_objects, shipped.HD128)
    assert steady_state(aiter_objects, shipped.HD128, lds_bytes_per_clock=128) < 0.7 * as_modelled
    assert steady_state(aiter_objects, shipped.HD128, wave_placement=1) < 0.7 * as_modelled
