"""Scalar instructions against Python integers: results and SCC, EXEC masks, jumps, hardware registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_kernel
from zyfa_ort.kernels.errors import EmulationError

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
VALUES32 = (
    0,
    1,
    2,
    5,
    31,
    32,
    33,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0xFFFF8000,
    0x00FF00FF,
    0xDEADBEEF,
)
VALUES64 = (0, 1, 0x80000000, 0xFFFFFFFF, 1 << 63, M64, 0x0123456789ABCDEF, 0xF0F0F0F000000000, (1 << 63) - 1)


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def run_scalars(cases: list[tuple[str, str]], before: str = "") -> list[int]:
    """Each case: instructions that leave a value in s[20:21] and SCC. Gives value and SCC of every case, in turn."""
    out = np.zeros(4 * len(cases), np.uint32)
    store = []
    for index, (setup, code) in enumerate(cases):
        store.append(f"""
  s_mov_b64 s[20:21], 0
{setup}
{code}
  s_cselect_b32 s22, 1, 0
  v_mov_b32 v2, s20
  v_mov_b32 v3, s21
  v_mov_b32 v4, s22
  v_mov_b32 v5, 0
  v_mov_b32 v1, {16 * index}
  global_store_dwordx4 v1, v[2:5], s[4:5]
  s_nop 4
""")
    text = f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b64 s[90:91], exec
  s_cmp_lg_u32 0, 0
  s_waitcnt lgkmcnt(0)
{before}
{"".join(store)}
  s_mov_b64 exec, s[90:91]
"""
    run_kernel(text, [out])
    rows = out.reshape(-1, 4)
    return [(int(r[0]) | int(r[1]) << 32, int(r[2])) for r in rows]


def literal(reg: int, value: int) -> str:
    return f"  s_mov_b32 s{reg}, 0x{value & M32:x}\n"


def pair(reg: int, value: int) -> str:
    return literal(reg, value) + literal(reg + 1, value >> 32)


def wrapped(a: int, bits: int = 32) -> int:
    return a & ((1 << bits) - 1)


def field(a: int, where: int, bits: int, extend: bool) -> int:
    offset, width = where & (bits - 1), where >> 16 & 127
    value = (signed(a, bits) if extend else a) >> offset
    value &= (1 << min(width, bits)) - 1
    if extend and 0 < width < bits and value >> (width - 1):
        value -= 1 << width
    return wrapped(value, bits)


Binary = Callable[[int, int], int]
# Operations that leave SCC = (result != 0).
TWO_32: dict[str, Binary] = {
    "s_and_b32": lambda a, b: a & b,
    "s_or_b32": lambda a, b: a | b,
    "s_xor_b32": lambda a, b: a ^ b,
    "s_andn2_b32": lambda a, b: a & ~b,
    "s_orn2_b32": lambda a, b: a | ~b,
    "s_nand_b32": lambda a, b: ~(a & b),
    "s_nor_b32": lambda a, b: ~(a | b),
    "s_xnor_b32": lambda a, b: ~(a ^ b),
    "s_lshl_b32": lambda a, b: a << (b & 31),
    "s_lshr_b32": lambda a, b: a >> (b & 31),
    "s_ashr_i32": lambda a, b: signed(a) >> (b & 31),
    "s_absdiff_i32": lambda a, b: wrapped(abs(signed(wrapped(a - b)))),
}
# Operations that leave SCC alone.
TWO_32_QUIET: dict[str, Binary] = {
    "s_mul_i32": lambda a, b: a * b,
    "s_mul_hi_u32": lambda a, b: a * b >> 32,
    "s_mul_hi_i32": lambda a, b: signed(a) * signed(b) >> 32,
    "s_bfm_b32": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31),
    "s_pack_ll_b32_b16": lambda a, b: (a & 0xFFFF) | (b & 0xFFFF) << 16,
    "s_pack_lh_b32_b16": lambda a, b: (a & 0xFFFF) | (b & 0xFFFF0000),
    "s_pack_hh_b32_b16": lambda a, b: a >> 16 | (b & 0xFFFF0000),
}
# Operations with an SCC of their own.
CARRY: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "s_add_u32": lambda a, b, c: (a + b, a + b > M32),
    "s_sub_u32": lambda a, b, c: (a - b, b > a),
    "s_add_i32": lambda a, b, c: (a + b, signed(a) + signed(b) != signed(a + b)),
    "s_sub_i32": lambda a, b, c: (a - b, signed(a) - signed(b) != signed(a - b)),
    "s_addc_u32": lambda a, b, c: (a + b + c, a + b + c > M32),
    "s_subb_u32": lambda a, b, c: (a - b - c, b + c > a),
    "s_min_i32": lambda a, b, c: (min(a, b, key=signed), signed(a) < signed(b)),
    "s_max_i32": lambda a, b, c: (max(a, b, key=signed), signed(a) > signed(b)),
    "s_min_u32": lambda a, b, c: (min(a, b), a < b),
    "s_max_u32": lambda a, b, c: (max(a, b), a > b),
    "s_lshl1_add_u32": lambda a, b, c: ((a << 1) + b, (a << 1) + b > M32),
    "s_lshl2_add_u32": lambda a, b, c: ((a << 2) + b, (a << 2) + b > M32),
    "s_lshl3_add_u32": lambda a, b, c: ((a << 3) + b, (a << 3) + b > M32),
    "s_lshl4_add_u32": lambda a, b, c: ((a << 4) + b, (a << 4) + b > M32),
}
PAIRS32 = [(a, b) for a in VALUES32 for b in VALUES32[::2]]


@pytest.mark.parametrize("name", [*TWO_32, *TWO_32_QUIET])
def test_two_sources(name):
    cases = [
        (literal(10, a) + literal(11, b) + "  s_cmp_eq_u32 0, 0\n", f"  {name} s20, s10, s11")
        for a, b in PAIRS32
    ]
    for (a, b), (value, scc) in zip(PAIRS32, run_scalars(cases), strict=True):
        expected = wrapped((TWO_32 | TWO_32_QUIET)[name](a, b))
        assert (value, scc) == (expected, int(expected != 0) if name in TWO_32 else 1), f"{a:#x} {b:#x}"


@pytest.mark.parametrize("name", CARRY)
def test_carries(name):
    cases, expected = [], []
    for number, (a, b) in enumerate(PAIRS32):
        carry = number & 1
        cases.append(
            (literal(10, a) + literal(11, b) + f"  s_cmp_eq_u32 {carry}, 1\n", f"  {name} s20, s10, s11")
        )
        value, scc = CARRY[name](a, b, carry)
        expected.append((wrapped(value), int(scc)))
    assert run_scalars(cases) == expected


ONE: dict[str, tuple[int, Callable[[int], int], bool]] = {  # bits, meaning, sets SCC
    "s_not_b32": (32, lambda a: ~a, True),
    "s_brev_b32": (32, lambda a: int(f"{a:032b}"[::-1], 2), False),
    "s_bcnt0_i32_b32": (32, lambda a: 32 - a.bit_count(), True),
    "s_bcnt1_i32_b32": (32, lambda a: a.bit_count(), True),
    "s_ff0_i32_b32": (32, lambda a: next((i for i in range(32) if not a >> i & 1), -1), False),
    "s_ff1_i32_b32": (32, lambda a: next((i for i in range(32) if a >> i & 1), -1), False),
    "s_flbit_i32_b32": (32, lambda a: 32 - a.bit_length() if a else -1, False),
    "s_flbit_i32": (
        32,
        lambda a: next((i for i in range(1, 32) if (a >> (31 - i) ^ a >> 31) & 1), -1),
        False,
    ),
    "s_sext_i32_i8": (32, lambda a: signed(a, 8), False),
    "s_sext_i32_i16": (32, lambda a: signed(a, 16), False),
    "s_abs_i32": (32, lambda a: abs(signed(a)), True),
    "s_quadmask_b32": (32, lambda a: sum((a >> 4 * i & 15 != 0) << i for i in range(8)), True),
    "s_wqm_b32": (32, lambda a: sum((15 if a >> 4 * i & 15 else 0) << 4 * i for i in range(8)), True),
    "s_mov_b32": (32, lambda a: a, False),
}
ONE64: dict[str, tuple[int, Callable[[int], int], bool]] = {  # bits of the result
    "s_not_b64": (64, lambda a: ~a, True),
    "s_mov_b64": (64, lambda a: a, False),
    "s_brev_b64": (64, lambda a: int(f"{a:064b}"[::-1], 2), False),
    "s_bcnt0_i32_b64": (32, lambda a: 64 - a.bit_count(), True),
    "s_bcnt1_i32_b64": (32, lambda a: a.bit_count(), True),
    "s_ff0_i32_b64": (32, lambda a: next((i for i in range(64) if not a >> i & 1), -1), False),
    "s_ff1_i32_b64": (32, lambda a: next((i for i in range(64) if a >> i & 1), -1), False),
    "s_flbit_i32_b64": (32, lambda a: 64 - a.bit_length() if a else -1, False),
    "s_flbit_i32_i64": (
        32,
        lambda a: next((i for i in range(1, 64) if (a >> (63 - i) ^ a >> 63) & 1), -1),
        False,
    ),
    "s_quadmask_b64": (64, lambda a: sum((a >> 4 * i & 15 != 0) << i for i in range(16)), True),
    "s_wqm_b64": (64, lambda a: sum((15 if a >> 4 * i & 15 else 0) << 4 * i for i in range(16)), True),
}


@pytest.mark.parametrize("name", [*ONE, *ONE64])
def test_one_source(name):
    wide = name in ONE64
    bits, meaning, sets_scc = (ONE64 if wide else ONE)[name]
    values = VALUES64 if wide else VALUES32
    to = "s[20:21]" if bits == 64 else "s20"
    source = "s[10:11]" if wide else "s10"
    cases = [
        ((pair if wide else literal)(10, a) + "  s_cmp_eq_u32 0, 0\n", f"  {name} {to}, {source}")
        for a in values
    ]
    for a, (value, scc) in zip(values, run_scalars(cases), strict=True):
        expected = wrapped(meaning(a), bits)
        assert (value, scc) == (expected, int(expected != 0) if sets_scc else 1), f"{a:#x}"


def test_bit_replicate_and_bit_set():
    cases = [
        (literal(10, 0x80000005), "  s_bitreplicate_b64_b32 s[20:21], s10"),
        (literal(20, 0xF0), "  s_bitset0_b32 s20, 36"),
        ("", "  s_bitset1_b32 s20, 33"),
        ("", "  s_bitset1_b64 s[20:21], 40"),
        (pair(20, M64), "  s_bitset0_b64 s[20:21], 63"),
    ]
    assert [v for v, _ in run_scalars(cases)] == [0xC000000000000033, 0xE0, 2, 1 << 40, M64 >> 1]


TWO_64: dict[str, Binary] = {
    "s_and_b64": lambda a, b: a & b,
    "s_or_b64": lambda a, b: a | b,
    "s_xor_b64": lambda a, b: a ^ b,
    "s_andn2_b64": lambda a, b: a & ~b,
    "s_orn2_b64": lambda a, b: a | ~b,
    "s_nand_b64": lambda a, b: ~(a & b),
    "s_nor_b64": lambda a, b: ~(a | b),
    "s_xnor_b64": lambda a, b: ~(a ^ b),
}
SHIFT_64: dict[str, Binary] = {
    "s_lshl_b64": lambda a, b: a << (b & 63),
    "s_lshr_b64": lambda a, b: a >> (b & 63),
    "s_ashr_i64": lambda a, b: signed(a, 64) >> (b & 63),
}


@pytest.mark.parametrize("name", [*TWO_64, *SHIFT_64])
def test_64_bits(name):
    shift = name in SHIFT_64
    pairs = [(a, b) for a in VALUES64 for b in ((0, 1, 31, 32, 63, 64) if shift else VALUES64)]
    cases = [
        (pair(10, a) + pair(12, b), f"  {name} s[20:21], s[10:11], {'s12' if shift else 's[12:13]'}")
        for a, b in pairs
    ]
    for (a, b), (value, scc) in zip(pairs, run_scalars(cases), strict=True):
        expected = wrapped((TWO_64 | SHIFT_64)[name](a, b), 64)
        assert (value, scc) == (expected, int(expected != 0)), f"{a:#x} {b:#x}"


@pytest.mark.parametrize(
    ("name", "bits", "extend"),
    [("s_bfe_u32", 32, False), ("s_bfe_i32", 32, True), ("s_bfe_u64", 64, False), ("s_bfe_i64", 64, True)],
)
def test_bit_fields(name, bits, extend):
    values = VALUES32 if bits == 32 else VALUES64
    wheres = [o | w << 16 for o in (0, 1, 7, bits - 1) for w in (0, 1, 8, bits // 2, bits - 1, bits)]
    wheres = [w for w in wheres if (w & 127) + (w >> 16) <= bits]
    combos = [(a, w) for a in values[::2] for w in wheres]
    to, source = ("s20", "s10") if bits == 32 else ("s[20:21]", "s[10:11]")
    cases = [
        ((literal if bits == 32 else pair)(10, a) + literal(12, w), f"  {name} {to}, {source}, s12")
        for a, w in combos
    ]
    for (a, w), (value, scc) in zip(combos, run_scalars(cases), strict=True):
        expected = field(a, w, bits, extend)
        assert (value, scc) == (expected, int(expected != 0)), f"{a:#x} {w:#x}"


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


@pytest.mark.parametrize("kind", ["i32", "u32"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_compares(relation, kind):
    view = signed if kind == "i32" else wrapped
    cases = [(literal(10, a) + literal(11, b), f"  s_cmp_{relation}_{kind} s10, s11") for a, b in PAIRS32]
    immediates = (0, 1, 31, 0x7FFF, -1, -0x8000) if kind == "i32" else (0, 1, 31, 0x7FFF, 0xFFFF, 0x8000)
    short = [(a, i) for a in VALUES32 for i in immediates]
    cases += [(literal(10, a), f"  s_cmpk_{relation}_{kind} s10, {i & 0xFFFF:#x}") for a, i in short]
    expected = [int(RELATIONS[relation](view(a), view(b))) for a, b in PAIRS32]
    expected += [int(RELATIONS[relation](view(a), i)) for a, i in short]
    assert [scc for _, scc in run_scalars(cases)] == expected


def test_compares_of_pairs_and_bits():
    cases = [
        (pair(10, 1 << 40) + pair(12, 1 << 40), "  s_cmp_eq_u64 s[10:11], s[12:13]"),
        (pair(10, 1 << 40) + pair(12, 1), "  s_cmp_eq_u64 s[10:11], s[12:13]"),
        (pair(10, 1 << 40) + pair(12, 1), "  s_cmp_lg_u64 s[10:11], s[12:13]"),
        (literal(10, 4), "  s_bitcmp1_b32 s10, 34"),
        (literal(10, 4), "  s_bitcmp0_b32 s10, 34"),
        (pair(10, 1 << 40), "  s_bitcmp1_b64 s[10:11], 40"),
        (pair(10, 1 << 40), "  s_bitcmp0_b64 s[10:11], 41"),
    ]
    assert [scc for _, scc in run_scalars(cases)] == [1, 0, 1, 1, 0, 1, 1]


def test_immediates_and_selects():
    cases = [
        ("", "  s_movk_i32 s20, 0x8000"),
        ("  s_cmp_eq_u32 0, 1\n" + literal(20, 7), "  s_cmovk_i32 s20, 3"),
        ("  s_cmp_eq_u32 0, 0\n" + literal(20, 7), "  s_cmovk_i32 s20, 3"),
        (literal(20, 0x7FFFFFFF), "  s_addk_i32 s20, 1"),
        (literal(20, 5), "  s_addk_i32 s20, 0xffff"),
        (literal(20, 5), "  s_mulk_i32 s20, 0xfffe"),
        ("  s_cmp_eq_u32 0, 0\n", "  s_cselect_b32 s20, 11, 22"),
        ("  s_cmp_eq_u32 0, 1\n", "  s_cselect_b64 s[20:21], 11, -1"),
        ("  s_cmp_eq_u32 0, 0\n" + literal(10, 9), "  s_cmov_b32 s20, s10"),
    ]
    values = run_scalars(cases)
    assert [v for v, _ in values] == [0xFFFF8000, 7, 3, 0x80000000, 4, wrapped(-10), 11, M64, 9]
    assert values[3][1] == 1 and values[4][1] == 0


SAVES: dict[str, Binary] = {  # source, EXEC
    "and": lambda s, e: s & e,
    "or": lambda s, e: s | e,
    "xor": lambda s, e: s ^ e,
    "andn2": lambda s, e: s & ~e,
    "orn2": lambda s, e: s | ~e,
    "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e),
    "xnor": lambda s, e: ~(s ^ e),
    "andn1": lambda s, e: ~s & e,
    "orn1": lambda s, e: ~s | e,
}


@pytest.mark.parametrize("name", SAVES)
def test_exec_is_saved(name):
    pairs = [(s, e) for s in VALUES64[::2] for e in VALUES64[1::2]]
    cases = []
    for s, e in pairs:
        before = pair(10, s) + pair(12, e) + "  s_mov_b64 exec, s[12:13]\n"
        rest = "  s_mov_b64 s[20:21], exec\n  s_mov_b64 exec, s[90:91]"
        # The old EXEC goes to s[30:31]; both are folded into one value.
        fold = "  s_cselect_b32 s33, 1, 0\n  s_xor_b64 s[30:31], s[30:31], s[12:13]\n  s_or_b64 s[20:21], s[20:21], s[30:31]"
        cases.append(
            (before, f"  s_{name}_saveexec_b64 s[30:31], s[10:11]\n{rest}\n{fold}\n  s_cmp_eq_u32 s33, 1")
        )
    for (s, e), (value, scc) in zip(pairs, run_scalars(cases), strict=True):
        expected = wrapped(SAVES[name](s, e), 64)
        assert (value, scc) == (expected, int(expected != 0)), f"{s:#x} {e:#x}"


def test_write_exec():
    cases = [
        (
            pair(10, 0xF0F0) + pair(12, 0xFF00) + "  s_mov_b64 exec, s[12:13]\n",
            f"  s_{name}_wrexec_b64 s[20:21], s[10:11]\n  s_mov_b64 exec, s[90:91]",
        )
        for name in ("andn1", "andn2")
    ]
    assert [v for v, _ in run_scalars(cases)] == [0x0F00, 0x00F0]


def test_jumps():
    cases = [
        ("", "  s_branch .La\n  s_mov_b32 s20, 1\n.La:\n  s_add_u32 s20, s20, 2"),
        ("  s_cmp_eq_u32 0, 1\n", "  s_cbranch_scc1 .Lb\n  s_mov_b32 s20, 1\n.Lb:\n  s_add_u32 s20, s20, 2"),
        ("  s_cmp_eq_u32 0, 1\n", "  s_cbranch_scc0 .Lc\n  s_mov_b32 s20, 1\n.Lc:\n  s_add_u32 s20, s20, 2"),
        ("  s_mov_b64 vcc, 0\n", "  s_cbranch_vccz .Ld\n  s_mov_b32 s20, 1\n.Ld:\n  s_add_u32 s20, s20, 2"),
        ("  s_mov_b64 vcc, 1\n", "  s_cbranch_vccnz .Le\n  s_mov_b32 s20, 1\n.Le:\n  s_add_u32 s20, s20, 2"),
        ("", "  s_cbranch_execz .Lf\n  s_mov_b32 s20, 1\n.Lf:\n  s_add_u32 s20, s20, 2"),
        ("", "  s_cbranch_execnz .Lg\n  s_mov_b32 s20, 1\n.Lg:\n  s_add_u32 s20, s20, 2"),
        # A loop, a call and a return.
        (
            "  s_mov_b32 s30, 5\n",
            ".Lh:\n  s_add_u32 s20, s20, s30\n  s_sub_u32 s30, s30, 1\n  s_cbranch_scc0 .Li\n"
            "  s_nop 0\n.Li:\n  s_cmp_lg_u32 s30, 0\n  s_cbranch_scc1 .Lh",
        ),
        (
            "",
            "  s_call_b64 s[30:31], .Lj\n  s_add_u32 s20, s20, 1\n  s_branch .Lk\n.Lj:\n  s_mov_b32 s20, 10\n"
            "  s_setpc_b64 s[30:31]\n.Lk:\n  s_nop 0",
        ),
        (
            "",
            "  s_getpc_b64 s[30:31]\n  s_add_u32 s30, s30, 28\n  s_addc_u32 s31, s31, 0\n"
            "  s_swappc_b64 s[32:33], s[30:31]\n  s_add_u32 s20, s20, 1\n  s_branch .Ln\n  s_nop 0\n  s_nop 0\n"
            "  s_mov_b32 s20, 30\n  s_setpc_b64 s[32:33]\n.Ln:\n  s_nop 0",
        ),
    ]
    values = [v for v, _ in run_scalars(cases)]
    assert values == [2, 3, 2, 2, 2, 3, 2, 15, 11, 31]


def test_mode_register():
    cases = [
        ("", "  s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 10)"),
        ("  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n  s_nop 2\n", "  s_getreg_b32 s20, hwreg(HW_REG_MODE, 23, 1)"),
        (literal(10, 0b1001) + "  s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s10\n  s_nop 2\n",
         "  s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 4)"),
        ("  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0\n  s_nop 2\n", "  s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 8)"),
    ]  # fmt: skip
    values = [v for v, _ in run_scalars(cases)]
    assert values[0] & 0xFF == 0xF0
    assert values[1:] == [1, 0b1001, 0xF0]


def test_relative_registers():
    cases = [
        (literal(34, 77) + "  s_mov_b32 m0, 4\n", "  s_movrels_b32 s20, s30"),
        (pair(36, 123 << 33) + "  s_mov_b32 m0, 6\n", "  s_movrels_b64 s[20:21], s[30:31]"),
        (literal(10, 5) + "  s_mov_b32 m0, 10\n", "  s_movreld_b32 s10, s10"),
    ]
    values = run_scalars(cases, before="  s_mov_b64 s[30:31], 0\n")
    assert [v for v, _ in values] == [77, 123 << 33, 5]


def test_vector_skip():
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b32 s20, 4
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  s_waitcnt lgkmcnt(0)
  s_setvskip s20, 2
  v_mov_b32 v2, 2
  global_store_dword v1, v1, s[4:5] offset:4
  s_add_u32 s20, s20, 1
  s_setvskip s20, 3
  v_mov_b32 v3, s20
  s_nop 4
  global_store_dword v1, v2, s[4:5]
  global_store_dword v1, v3, s[4:5] offset:8
"""
    out = np.full(3, 77, np.uint32)
    run_kernel(body, [out])
    assert out.tolist() == [1, 77, 5]


def test_refusals():
    for code, reason in {
        "  s_setreg_imm32_b32 hwreg(HW_REG_STATUS, 0, 1), 1": "read-only",
        "  s_trap 2": "no trap handler",
        "  s_sethalt 1": "debugger",
        "  s_mov_b32 m0, 200\n  s_movrels_b32 s20, s10": "relative SGPR",
        "  s_sendmsg sendmsg(MSG_INTERRUPT)": "does not implement",
    }.items():
        with pytest.raises(EmulationError, match=reason):
            run_kernel(code + "\n", [np.zeros(1, np.uint32)])
