"""Wait counts are derived from what is outstanding, over every way through the program."""

from __future__ import annotations

from zyfa_ort.kernels.asm.program import Instruction, Program
from zyfa_ort.kernels.asm.registers import M0, Register
from zyfa_ort.kernels.asm.waits import with_waits

A, B, C = (Register("v", 8 + 4 * i, 4) for i in range(3))
ADDRESS, RESOURCE, BASE = Register("v", 1, 1), Register("s", 4, 4), Register("s", 8, 2)


def lines(program: Program) -> list[str]:
    return [item.text() for item in with_waits(program.items) if isinstance(item, Instruction)]


def test_younger_loads_may_stay_outstanding():
    p = Program("k")
    for target in (A, B, C):
        p.ds_read_b128(target, ADDRESS)
    p.v_add_u32(ADDRESS, A[0], A[1])
    p.v_add_u32(ADDRESS, C[0], A[1])
    assert [line for line in lines(p) if "wait" in line] == ["s_waitcnt lgkmcnt(2)", "s_waitcnt lgkmcnt(0)"]


def test_scalar_loads_return_in_any_order():
    p = Program("k")
    p.s_load_dword(Register("s", 20, 1), BASE, 0)
    p.s_load_dword(Register("s", 21, 1), BASE, 4)
    p.s_add_u32(Register("s", 22, 1), Register("s", 20, 1), 1)
    assert "s_waitcnt lgkmcnt(0)" in lines(p)


def test_overwriting_a_register_on_its_way_waits_too():
    p = Program("k")
    p.buffer_load_dwordx4(A, ADDRESS, RESOURCE, 0, modifiers="offen")
    p.v_mov_b32(A[3], 0)
    assert lines(p)[1] == "s_waitcnt vmcnt(0)"


def fetch(p: Program, token: str) -> None:
    p.s_mov_b32(M0, 0)
    p.buffer_load_lds_dwordx4(ADDRESS, RESOURCE, 0, modifiers="offen", produces=token)


def test_a_loop_waits_for_the_fetch_of_the_round_before():
    p = Program("k")
    fetch(p, "tile_1")
    p.label("loop")
    fetch(p, "tile_2")
    p.require("tile_1")
    p.s_barrier()
    p.rename(tile_2="tile_1")
    p.s_cmp_eq_u32(Register("s", 30, 1), 0)
    p.s_cbranch_scc1("loop")
    p.require("tile_1")
    assert [line for line in lines(p) if "wait" in line] == ["s_waitcnt vmcnt(1)", "s_waitcnt vmcnt(0)"]


def test_the_smaller_count_of_two_ways_holds():
    p = Program("k")
    fetch(p, "tile_1")
    p.s_cmp_eq_u32(Register("s", 30, 1), 0)
    p.s_cbranch_scc1("skip")
    fetch(p, "tile_2")
    p.label("skip")
    p.require("tile_1")
    assert [line for line in lines(p) if "wait" in line] == ["s_waitcnt vmcnt(0)"]
