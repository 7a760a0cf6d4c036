"""Questions to the clock: cycles of an instruction, with two waves on every SIMD of one compute unit and none waiting for
itself; which waves share a SIMD."""

from __future__ import annotations

import numpy as np
from zyfa_ort.kernels.asm.probe.answers import FAMILIES, FP8_PREFILL, Bound, Meaning, Probe, Words
from zyfa_ort.kernels.asm.probe.kernels import RATE_INSTRUCTIONS, RATE_WAVES, RATES, rate_kernel

NOT_MEASURED = "emulated, not a measurement"
WAVES_PER_SIMD = RATE_WAVES // 4
# Cycles that the timing model has (docs/timing_model.md), and who has the instruction in a loop that counts.
ROWS: dict[str, tuple[float, tuple[str, ...], str]] = {
    "v_fma_f32": (4, FAMILIES, "the other rows can be compared with this one"),
    "v_cvt_pk_u8_f32": (4, FP8_PREFILL, "the modelled vector phase of interior tiles holds"),
    "v_cvt_pk_fp8_f32": (4, (*FP8_PREFILL, "quantize"), "the modelled vector phase of edge tiles holds"),
    "v_permlane32_swap_b32": (8, FAMILIES, "the modelled row maximum holds"),
    "v_exp_f32": (
        8,
        (*FP8_PREFILL, "bf16_prefill", "decode"),
        "the modelled vector phase of edge tiles holds",
    ),
    "v_pk_fma_f32": (4, FP8_PREFILL, "the modelled vector phase of edge tiles holds"),
}


def cycles_per_instruction(out: Words) -> float:
    """From the first wave's start to the last one's end, for an instruction of one wave of a SIMD."""
    # Wave w has its two readings of the clock in the four words from 4 w.
    readings = np.ascontiguousarray(out.reshape(-1)[: 4 * RATE_WAVES]).view(np.uint64).reshape(RATE_WAVES, 2)
    span = int(readings[:, 1].max()) - int(readings[:, 0].min())
    return span / (RATE_INSTRUCTIONS * WAVES_PER_SIMD)


def _read(_: Words, out: Words) -> str:
    return f"{cycles_per_instruction(out):.2f} cycles"


def _no_input() -> Words:
    return np.zeros((1, 64), np.uint32)


def _probe(mnemonic: str) -> Probe:
    cycles, users, holds = ROWS[mnemonic]
    return Probe(
        f"rate_{mnemonic.removeprefix('v_')}", f"cycles of {mnemonic}", mnemonic, users, rate_kernel(mnemonic),
        _no_input, 1, _read,
        {"as modelled": Meaning(holds), NOT_MEASURED: Meaning("ask a real device")},
        Meaning("numbers stay right; the modelled times do not hold, see docs/fp8_prefill.md"),
        bound=Bound(0.75 * cycles, 1.25 * cycles, "cycles"), waves=RATE_WAVES, times=True,
    )  # fmt: skip


# The same work takes twice as long for two waves on one SIMD.
SHARED = 1.5


def _placement(_: Words, out: Words) -> str:
    clock = np.ascontiguousarray(out.reshape(-1)[:8]).view(np.uint64).astype(np.float64)  # of wave 0
    with_fourth, with_next = clock[1] - clock[0], clock[3] - clock[2]
    if with_fourth > SHARED * with_next:
        return "w and w + 4"
    return "w and w + 1" if with_next > SHARED * with_fourth else "other"


PLACEMENT = Probe(
    "placement", "which waves of a workgroup share a SIMD", "s_barrier", FAMILIES, "probe_placement", _no_input, 1,
    _placement,
    {"w and w + 4": Meaning("wave groups of FP8 prefill alternate on each SIMD"),
     "w and w + 1": Meaning("numbers stay right; FP8 prefill takes 61 % longer by the timing model"),
     NOT_MEASURED: Meaning("ask a real device")},
    Meaning("numbers stay right; the modelled times do not hold, see docs/fp8_prefill.md"),
    waves=RATE_WAVES, times=True,
)  # fmt: skip
TIMED = (*(_probe(mnemonic) for mnemonic in RATES), PLACEMENT)
