"""Wait states along the path a wave really takes: branches, loops, several waves."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.emulator.straight_line import wait
from kernels.emulator.wave_kernel import run_kernel
from zyfa_ort.kernels.emulator import Finding
from zyfa_ort.kernels.errors import EmulationError

MATRIX = "v_mfma_f32_32x32x16_f16 v[16:31], v[4:7], v[4:7], 0"
LOOP = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v4, 0x3c003c00
  v_mov_b32 v5, v4
  v_mov_b32 v6, v4
  v_mov_b32 v7, v4
  v_mov_b32 v8, 0
  s_mov_b32 s6, 3
  s_nop 1
again:
  {matrix}
  {states}
  {use}
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 again
  s_waitcnt lgkmcnt(0)
  s_nop 15
  global_store_dword v1, v8, s[4:5]
"""


def run(body: str, lanes: int = 64, report_only: bool = True) -> tuple[np.ndarray, list[Finding]]:
    out = np.zeros(lanes, np.float32)
    result = run_kernel(body, [out], block=(lanes,), report_only=report_only)
    return out, list(result.findings)


@pytest.mark.parametrize("lanes", [64, 192])
def test_a_loop_is_found_each_time_round_and_in_each_wave(lanes: int) -> None:
    out, (found,) = run(LOOP.format(matrix=MATRIX, states=wait(9), use="v_add_f32 v8, v8, v20"), lanes)
    assert (found.rule, found.missing, found.times) == ("H4", 3, 3 * lanes // 64)
    assert found.message.startswith(
        "v[16:31] written by 'v_mfma_f32_32x32x16_f16 v[16:31], v[4:7], v[4:7], 0' at +0x"
    )
    assert np.all(out == 48)


def test_the_same_loop_with_enough_states_is_clean() -> None:
    out, found = run(LOOP.format(matrix=MATRIX, states=wait(12), use="v_add_f32 v8, v8, v20"))
    assert found == []
    assert np.all(out == 48)


def test_the_last_instruction_of_a_loop_meets_its_first() -> None:
    # One state short: v4 is written at the end of each round and read at the beginning of the next.
    body = LOOP.format(matrix=MATRIX, states=wait(12), use="v_add_f32 v8, v8, v20")
    clean = body.replace("  s_cbranch_scc1", "  v_mov_b32 v4, v5\n  s_nop 0\n  s_cbranch_scc1")
    short = body.replace("  s_cbranch_scc1", "  v_mov_b32 v4, v5\n  s_cbranch_scc1")
    assert run(clean)[1] == []
    (found,) = run(short)[1]
    assert (found.rule, found.missing, found.times) == ("H6", 1, 2)


def test_instructions_jumped_over_are_no_wait_states() -> None:
    jump = f"s_branch over\n{wait(20)}\nover:"
    (found,) = run(
        LOOP.format(matrix=MATRIX, states=jump, use="v_add_f32 v8, v8, v20").replace(
            "s_mov_b32 s6, 3", "s_mov_b32 s6, 1"
        )
    )[1]
    assert (found.rule, found.missing) == ("H4", 11)


def test_an_error_ends_the_launch_with_rule_place_and_missing_states() -> None:
    body = LOOP.format(matrix=MATRIX, states="", use="v_add_f32 v8, v8, v20")
    with pytest.raises(
        EmulationError, match=r"H4.*v_add_f32.*v\[16:31\] written by 'v_mfma.*12 wait states missing"
    ):
        run(body, report_only=False)


def test_a_warning_does_not_end_the_launch() -> None:
    body = LOOP.format(matrix="v_cmp_eq_f32 vcc, v4, v4", states=wait(1), use="v_cndmask_b32 v8, 0, v4, vcc")
    _, (found,) = run(body, report_only=False)
    assert (found.rule, found.severity, found.missing, found.times) == ("G6", "warning", 1, 3)


def test_error_and_warning_of_one_rule_at_one_place_are_both_kept() -> None:
    # The first round jumps to the use: one state between. The second falls into it.
    body = """
  v_mov_b32 v4, 1.0
  v_mov_b32 v5, 0
  s_mov_b32 s6, 0
  s_branch first
again:
  v_cmp_eq_f32 vcc, v4, v4
use:
  v_cndmask_b32 v6, v5, v4, vcc
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 done
  s_mov_b32 s6, 1
  s_branch again
first:
  v_cmp_eq_f32 vcc, v4, v4
  s_branch use
done:
"""
    _, found = run(body)
    assert [(f.severity, f.missing, f.times) for f in found] == [("error", 2, 1), ("warning", 1, 1)]
