"""s_nop goes exactly where gfx950 needs it; the emulator judges whole kernels with rules of its own."""

from __future__ import annotations

import pytest
from zyfa_ort.kernels.asm.hazards import with_wait_states
from zyfa_ort.kernels.asm.program import Instruction, Label, Program
from zyfa_ort.kernels.asm.registers import M0, VCC, Register

A, B = Register("v", 8, 8), Register("v", 16, 8)
D, E = Register("v", 32, 16), Register("v", 64, 16)
X, Y = Register("v", 2, 1), Register("v", 3, 1)
S = Register("s", 20, 1)
RESOURCE = Register("s", 4, 4)


def states(program: Program, before: int) -> int:
    """Wait states that the inserted s_nop give right before the item with this index."""
    items = with_wait_states(program.items)
    at = next(i for i, item in enumerate(items) if item is program.items[before])
    total = 0
    while at > 0 and isinstance(item := items[at - 1], Instruction) and item.row.name == "s_nop":
        total, at = total + int(str(item.sources[0])) + 1, at - 1
    return total


CASES = {
    "matrix result read by a vector instruction": (
        lambda p: p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, 0), lambda p: p.v_mov_b32(X, D[5]), 20),
    "matrix result as C, same registers": (
        lambda p: p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, 0), lambda p: p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, D), 0),
    "matrix result as C, shifted": (
        lambda p: p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, 0),
        lambda p: p.v_mfma_f32_32x32x64_f8f6f4(E, A, B, Register("v", 34, 16)), 18),
    "matrix result as B": (
        lambda p: p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, 0), lambda p: p.v_mfma_f32_32x32x64_f8f6f4(E, A, D[:8], 0), 20),
    "C overwritten": (
        lambda p: p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, E), lambda p: p.v_mov_b32(E[0], 0), 15),
    "vector result as A": (
        lambda p: p.v_mov_b32(A[3], 0), lambda p: p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, 0), 2),
    "transcendental": (lambda p: p.v_exp_f32(X, Y), lambda p: p.v_mov_b32(Y, X), 1),
    "permlane swap": (lambda p: p.v_mov_b32(X, 0), lambda p: p.v_permlane32_swap_b32(X, Y), 2),
    "mask": (lambda p: p.v_cmp_gt_f32(VCC, X, Y), lambda p: p.v_cndmask_b32(X, X, Y, VCC), 2),
    "read first lane": (lambda p: p.v_mov_b32(X, 0), lambda p: p.v_readfirstlane_b32(S, X), 1),
    "SGPR of a vector instruction in an address": (
        lambda p: p.v_readfirstlane_b32(RESOURCE[0], X),
        lambda p: p.buffer_load_dword(Y, X, RESOURCE, 0, modifiers="offen"), 5),
    "M0 before LDS-DMA": (
        lambda p: p.s_mov_b32(M0, 0), lambda p: p.buffer_load_lds_dwordx4(X, RESOURCE, 0, modifiers="offen"), 1),
    "wide store": (
        lambda p: p.buffer_store_dwordx4(D[:4], X, RESOURCE, 0, modifiers="offen"), lambda p: p.v_mov_b32(D[1], 0), 2),
    "nothing": (lambda p: p.v_mov_b32(X, 0), lambda p: p.v_mov_b32(Y, X), 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_as_many_wait_states_as_the_rule_says(case):
    first, second, needed = CASES[case]
    p = Program("k")
    first(p)
    second(p)
    assert states(p, 1) == needed


def test_instructions_between_count():
    p = Program("k")
    p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, 0)
    for _ in range(5):
        p.s_mov_b32(S, 0)
    p.v_mov_b32(X, D[0])
    assert states(p, 6) == 15


def test_the_shortest_way_round_a_loop_decides():
    p = Program("k")
    p.label("loop")
    p.v_mov_b32(X, D[0])
    p.s_mov_b32(S, 0)
    p.v_mfma_f32_32x32x64_f8f6f4(D, A, B, 0)
    p.s_cmp_eq_u32(S, 0)
    p.s_cbranch_scc1("loop")
    assert isinstance(p.items[0], Label)
    assert states(p, 1) == 18
