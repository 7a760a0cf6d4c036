"""What a generator may write: operands are checked where an instruction is written."""

from __future__ import annotations

import pytest
from zyfa_ort.kernels.asm.isa import OperandError
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import VCC, Register, RegisterFile

V = Register("v", 4, 1, "score")
PAIR = Register("v", 4, 2, "scores")
ODD = Register("v", 5, 2, "odd pair")
S = Register("s", 8, 1, "factor")


def test_text_is_the_assemblers():
    p = Program("k")
    assert p.v_fma_f32(V, V, S, 1.0).text() == "v_fma_f32 v4, v4, s8, 1.0"
    assert p.v_cndmask_b32(V, V, V, VCC).text() == "v_cndmask_b32 v4, v4, v4, vcc"
    assert p.v_mov_b32(V, 8.80708).text() == "v_mov_b32 v4, 0x410ce9cd"
    assert (
        p.buffer_load_lds_dwordx4(V, Register("s", 4, 4), 0, modifiers="offen").text()
        == "buffer_load_dwordx4 v4, s[4:7], 0 offen lds"
    )


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: p.v_fma_f32(V, V, S), "v_fma_f32: takes 4 operands"),
        (lambda p: p.v_fma_f32(S, V, V, V), "v_fma_f32: result 0 must be in file v, got s8 (factor)"),
        (lambda p: p.v_fma_f32(PAIR, V, V, V), r"v_fma_f32: result 0 takes 1 registers, got v[4:5] (scores)"),
        (lambda p: p.v_fma_f32(V, V, V, 8.5), "v_fma_f32: 8.5 would need a literal"),
        (lambda p: p.v_pk_mul_f32(ODD, PAIR, PAIR), "v_pk_mul_f32: result 0 must begin at an even register"),
        (lambda p: p.s_mov_b32(S, V), "s_mov_b32: source 0 must be in file s, got v4"),
        (lambda p: p.ds_read_b128(Register("v", 4, 4), 0), "ds_read_b128: source 0 must be a register"),
        (lambda p: p.s_nop(S), "s_nop: source 0 is an immediate"),
    ],
)
def test_a_wrong_operand_is_refused_with_its_place(write, message):
    with pytest.raises(OperandError) as error:
        write(Program("k"))
    assert message in str(error.value)


def test_an_instruction_that_is_not_in_the_table():
    with pytest.raises(AttributeError, match="program k: no instruction 'v_frobnicate' in the table"):
        Program("k").v_frobnicate()


def test_registers_are_handed_out_by_role_and_run_out_with_a_sentence():
    file = RegisterFile("v", 16, reserved=1)
    first, wide = file.take("lane"), file.take("scores", 8)
    assert (first.first, wide.first, file.high) == (1, 2, 10)
    assert str(wide[2:4]) == "v[4:5]" and wide[7].role == "scores"
    with pytest.raises(ValueError, match="v registers: no 8 free ones for 'output'; 6 of 16 are free"):
        file.take("output", 8)
    file.release(wide)
    assert file.take("output", 8).first == 2
    with pytest.raises(IndexError, match="scores: register 8 of 8"):
        wide[8]
