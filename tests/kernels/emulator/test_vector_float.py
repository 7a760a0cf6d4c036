"""f32, f16 and f64 arithmetic bit by bit against rational numbers, in every rounding and denormal mode."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernels.emulator.exact_floats import F16, F32, F64
from kernels.emulator.wave_kernel import run_lanes

from kernels.emulator import exact_floats as exact

ROWS = 8


def set_mode(round32: int = 0, round16: int = 0, denorm32: int = 3, denorm16: int = 3) -> str:
    """DX10_CLAMP on, IEEE off."""
    value = round32 | round16 << 2 | denorm32 << 4 | denorm16 << 6 | 1 << 8
    return f"  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 10), {value:#x}\n  s_nop 2\n"


def f32_rows(seed: int, rows: int = ROWS) -> np.ndarray:
    return exact.samples(F32, rows * 64, seed).reshape(rows, 64)


def repeat(code: str, rows: int, sources: int = 3, width: int = 1) -> str:
    """`code` once per row: {d}, {a}, {b}, {c} are the registers (v40…, v10…)."""
    lines = []
    for row in range(rows):
        names = {name: f"v{10 + (s * rows + row) * width}" for s, name in enumerate("abc"[:sources])}
        if width == 2:
            names = {k: f"v[{v[1:]}:{int(v[1:]) + 1}]" for k, v in names.items()}
        d = f"v{40 + row}" if width == 1 else f"v[{40 + 2 * row}:{41 + 2 * row}]"
        lines.append("  " + code.format(d=d, **names))
    return "\n".join(lines)


def flush_all(f: exact.Format, keep: bool, *values: int) -> list[int]:
    return [f.flush(v, keep) for v in values]


THREE = {
    "v_fma_f32 {d}, {a}, {b}, {c}": exact.fma,
    "v_add_f32 {d}, {a}, {b}": lambda f, a, b, c, m: exact.add(f, a, b, m),
    "v_sub_f32 {d}, {a}, {b}": lambda f, a, b, c, m: subtract(f, a, b, m),
    "v_subrev_f32 {d}, {a}, {b}": lambda f, a, b, c, m: subtract(f, b, a, m, reverse=True),
    "v_mul_f32 {d}, {a}, {b}": lambda f, a, b, c, m: exact.mul(f, a, b, m),
}


def subtract(f, a, b, mode, reverse=False):
    nan = exact.first_nan(f, b, a) if reverse else exact.first_nan(f, a, b)
    return nan if nan is not None else exact.add(f, a, b ^ f.sign, mode)


MODES = [(r, d) for r in range(4) for d in range(4)]


@pytest.mark.parametrize(("rounding", "denormals"), MODES)
@pytest.mark.parametrize("code", THREE)
def test_f32_arithmetic(code, rounding, denormals):
    rows = 8
    a, b, c = (f32_rows(seed, rows) for seed in (1, 2, 3))
    got = run_lanes(set_mode(rounding, 0, denormals) + repeat(code, rows), [a, b, c], rows)
    keep_in, keep_out = bool(denormals & 1), bool(denormals & 2)
    for values in zip(*(x.ravel().tolist() for x in (a, b, c, got)), strict=True):
        sources = flush_all(F32, keep_in, *values[:3])
        expected = F32.flush(THREE[code](F32, *sources, rounding), keep_out)
        assert values[3] == expected, [f"{v:#x}" for v in (*values, expected)]


@pytest.mark.parametrize("rounding", range(4))
@pytest.mark.parametrize("name", ["fma", "mul", "add"])
def test_packed_f32(name, rounding):
    rows = 4
    a, b, c = (f32_rows(seed, 2 * rows) for seed in (4, 5, 6))
    sources = "{a}, {b}, {c}" if name == "fma" else "{a}, {b}"
    code = repeat(f"v_pk_{name}_f32 {{d}}, {sources} op_sel:[0,1{',0' if name == 'fma' else ''}] "
                  f"op_sel_hi:[1,0{',1' if name == 'fma' else ''}] neg_lo:[1,0{',0' if name == 'fma' else ''}]",
                  rows, width=2)  # fmt: skip
    got = run_lanes(set_mode(rounding) + code, [a, b, c], 2 * rows)
    for row, half, lane in itertools.product(range(rows), range(2), range(64)):
        x, z = int(a[2 * row + half][lane]), int(c[2 * row + half][lane])
        y = int(b[2 * row + 1 - half][lane])
        x ^= 0 if half else F32.sign
        expected = {
            "fma": lambda: exact.fma(F32, x, y, z, rounding),  # noqa: B023
            "mul": lambda: exact.mul(F32, x, y, rounding),  # noqa: B023
            "add": lambda: exact.add(F32, x, y, rounding),  # noqa: B023
        }[name]()
        assert got[2 * row + half][lane] == expected, f"{x:#x} {y:#x} {z:#x}"


def choose(f: exact.Format, a: int, b: int, larger: bool, ieee: bool) -> int:
    if ieee:
        for s in (a, b):
            if f.is_nan(s) and not s & f.quiet:
                return s | f.quiet
    if f.is_nan(a):
        return b
    if f.is_nan(b):
        return a

    def key(x: int) -> tuple[float, int]:
        size = float("inf") if f.is_infinite(x) else f.value(x & ~f.sign)
        return (-size if x & f.sign else size, -(x >> (f.bits - 1)))

    return max(a, b, key=key) if larger else min(a, b, key=key)


def median(f: exact.Format, a: int, b: int, c: int, ieee: bool) -> int:
    if any(f.is_nan(x) for x in (a, b, c)):
        return choose(f, choose(f, a, b, False, ieee), c, False, ieee)
    return choose(
        f, choose(f, a, b, False, ieee), choose(f, choose(f, a, b, True, ieee), c, False, ieee), True, ieee
    )


@pytest.mark.parametrize("ieee", [False, True])
@pytest.mark.parametrize("width", ["f32", "f16"])
def test_minimum_maximum_median(width, ieee):
    f = {"f32": F32, "f16": F16}[width]
    rows = 6
    a, b, c = (exact.samples(f, rows * 64, s).reshape(rows, 64).astype(np.uint32) for s in (7, 8, 9))
    mode = f"  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), {int(ieee)}\n  s_nop 2\n"
    cases = {
        f"v_max_{width} {{d}}, {{a}}, {{b}}": lambda a, b, c: choose(f, a, b, True, ieee),
        f"v_min_{width} {{d}}, {{a}}, {{b}}": lambda a, b, c: choose(f, a, b, False, ieee),
        f"v_max3_{width} {{d}}, {{a}}, {{b}}, {{c}}": lambda a, b, c: choose(
            f, choose(f, a, b, True, ieee), c, True, ieee
        ),
        f"v_min3_{width} {{d}}, {{a}}, {{b}}, {{c}}": lambda a, b, c: choose(
            f, choose(f, a, b, False, ieee), c, False, ieee
        ),
        f"v_med3_{width} {{d}}, {{a}}, {{b}}, {{c}}": lambda a, b, c: median(f, a, b, c, ieee),
    }
    for code, reference in cases.items():
        body = "\n".join(f"  v_mov_b32 v{40 + r}, 0" for r in range(rows)) + "\n" + repeat(code, rows)
        got = run_lanes(mode + body, [a, b, c], rows)
        for x, y, z, r in zip(*(v.ravel().tolist() for v in (a, b, c, got)), strict=True):
            assert r == reference(x, y, z), f"{code}: {x:#x} {y:#x} {z:#x} gave {r:#x}"


def test_maximum3_and_minimum3_keep_nan():
    a, b, c = (f32_rows(seed) for seed in (10, 11, 12))
    for name, larger in (("maximum3", True), ("minimum3", False)):
        got = run_lanes(
            set_mode() + repeat(f"v_{name}_f32 {{d}}, {{a}}, {{b}}, {{c}}", ROWS), [a, b, c], ROWS
        )
        for x, y, z, r in zip(*(v.ravel().tolist() for v in (a, b, c, got)), strict=True):
            nan = exact.first_nan(F32, x, y, z)
            expected = (
                nan if nan is not None else choose(F32, choose(F32, x, y, larger, False), z, larger, False)
            )
            assert r == expected


def test_rounding_to_integers():
    a = np.concatenate(
        [f32_rows(13, 8), np.linspace(-4, 4, 256, dtype=np.float32).view(np.uint32).reshape(4, 64)]
    )
    names = {"v_trunc_f32": np.trunc, "v_ceil_f32": np.ceil, "v_floor_f32": np.floor, "v_rndne_f32": np.rint}
    for name, reference in names.items():
        # MODE's rounding has no say.
        got = run_lanes(set_mode(2) + repeat(f"{name} {{d}}, {{a}}", 12, 1), [a], 12)
        with np.errstate(invalid="ignore"):
            expected = reference(a.view(np.float32)).view(np.uint32)
        nans = np.isnan(a.view(np.float32))
        np.testing.assert_array_equal(np.where(nans, a | 0x400000, expected), got, name)
    got = run_lanes(repeat("v_fract_f32 {d}, {a}", 12, 1), [a], 12).view(np.float32)
    with np.errstate(invalid="ignore"):
        expected = a.view(np.float32) - np.floor(a.view(np.float32))
    np.testing.assert_array_equal(got, expected)


def test_modifiers_clamp_and_omod():
    x = np.array([0.25, -0.25, 0.75, 3.0, -3.0, np.inf, -np.inf, 0.0, -0.0, np.nan, 1e-40, 0.6], np.float32)
    a = np.resize(x, 64).view(np.uint32)
    body = (
        set_mode(denorm32=0)
        + """
  v_add_f32 v40, -v10, |v10|
  v_mul_f32 v41, 1.0, v10 clamp
  v_mul_f32 v42, 1.0, v10 mul:2
  v_mul_f32 v43, 1.0, v10 mul:4
  v_mul_f32 v44, 1.0, v10 div:2
  v_max_f32 v45, -|v10|, -|v10|
  v_mul_f32 v46, 1.0, v10 clamp div:2
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 1), 0
  s_nop 2
  v_mul_f32 v47, 1.0, v10 clamp
"""
    )
    got = run_lanes(body, [a], 8).view(np.float32)
    f = np.where(
        np.abs(np.resize(x, 64)) < 1e-38, np.copysign(np.float32(0), np.resize(x, 64)), np.resize(x, 64)
    )
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got[0], -f + np.abs(f))
        clamped = np.where(np.isnan(f), 0, np.clip(f, 0, 1)) + np.float32(0)
        np.testing.assert_array_equal(got[1], clamped)
        for row, factor in ((2, 2), (3, 4), (4, 0.5)):
            np.testing.assert_array_equal(got[row], f * np.float32(factor) + np.float32(0))
            assert not np.signbit(got[row][np.resize(x, 64) == 0]).any()
        np.testing.assert_array_equal(got[5], -np.abs(f))
        np.testing.assert_array_equal(got[6], np.where(np.isnan(f), 0, np.clip(f / 2, 0, 1)))
        np.testing.assert_array_equal(got[7], np.where(np.isnan(f), f, np.clip(f, 0, 1)))


def test_lanes_off_keep_their_contents():
    a, b = f32_rows(14, 1), f32_rows(15, 1)
    body = """
  v_mov_b32 v40, 7
  s_mov_b32 exec_lo, 0x0f0f00ff
  s_mov_b32 exec_hi, 0x80000001
  v_add_f32 v40, v10, v11
"""
    got = run_lanes(body, [a, b], 1)[0]
    mask = 0x80000001_0F0F00FF
    for lane in range(64):
        expected = exact.add(F32, int(a[0][lane]), int(b[0][lane])) if mask >> lane & 1 else 7
        assert got[lane] == expected


def test_literal_forms_and_accumulators():
    a, b = f32_rows(16, 1), f32_rows(17, 1)
    body = """
  v_fmamk_f32 v40, v10, 0x40490fdb, v11
  v_fmaak_f32 v41, v10, v11, 0x40490fdb
  v_mov_b32 v42, v11
  v_fmac_f32 v42, 2.0, v10
  v_mul_legacy_f32 v43, v10, v11
"""
    got = run_lanes(body, [a, b], 4)
    pi, two = 0x40490FDB, 0x40000000
    for lane in range(64):
        x, y = int(a[0][lane]), int(b[0][lane])
        assert got[0][lane] == exact.fma(F32, x, pi, y)
        assert got[1][lane] == exact.fma(F32, x, y, pi)
        assert got[2][lane] == exact.fma(F32, two, x, y)
        zero = x & ~F32.sign == 0 or y & ~F32.sign == 0
        assert got[3][lane] == (0 if zero else exact.mul(F32, x, y))


# ---- f16 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounding", "denormals"), [(0, 3), (0, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, 3), (3, 0)]
)
def test_f16_arithmetic(rounding, denormals):
    rows = 8
    a, b, c = (exact.samples(F16, rows * 64, s).reshape(rows, 64).astype(np.uint32) for s in (20, 21, 22))
    keep_in, keep_out = bool(denormals & 1), bool(denormals & 2)
    cases = {
        "v_add_f16 {d}, {a}, {b}": lambda a, b, c: exact.add(F16, a, b, rounding),
        "v_sub_f16 {d}, {a}, {b}": lambda a, b, c: subtract(F16, a, b, rounding),
        "v_mul_f16 {d}, {a}, {b}": lambda a, b, c: exact.mul(F16, a, b, rounding),
        "v_fma_f16 {d}, {a}, {b}, {c}": lambda a, b, c: exact.fma(F16, a, b, c, rounding),
    }
    for code, reference in cases.items():
        clear = "\n".join(f"  v_mov_b32 v{40 + r}, 0" for r in range(rows)) + "\n"
        got = run_lanes(set_mode(0, rounding, 3, denormals) + clear + repeat(code, rows), [a, b, c], rows)
        for x, y, z, r in zip(*(v.ravel().tolist() for v in (a, b, c, got)), strict=True):
            expected = F16.flush(reference(*flush_all(F16, keep_in, x, y, z)), keep_out)
            assert r == expected, f"{code}: {x:#x} {y:#x} {z:#x} gave {r:#x}, expected {expected:#x}"


def test_f16_overflow_mode():
    a = np.full((1, 64), 0x7BFF, np.uint32)
    body = """
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1
  s_nop 2
  v_add_f16 v40, v10, v10
  v_mov_b32 v2, 0x7c00
  v_add_f16 v41, v10, v2
"""
    got = run_lanes(body, [a], 2)
    assert (got[0] == 0x7BFF).all() and (got[1] == 0x7C00).all()


def test_packed_f16():
    rows = 6
    a, b, c = (exact.samples(F16, rows * 128, s).view(np.uint32).reshape(rows, 64) for s in (23, 24, 25))
    body = repeat("v_pk_fma_f16 {d}, {a}, {b}, {c} op_sel:[0,1,0] op_sel_hi:[1,0,1] neg_hi:[0,0,1]", rows)
    got = run_lanes(body, [a, b, c], rows)
    for x, y, z, r in zip(*(v.ravel().tolist() for v in (a, b, c, got)), strict=True):
        low = exact.fma(F16, x & 0xFFFF, y >> 16, z & 0xFFFF)
        high = exact.fma(F16, x >> 16, y & 0xFFFF, z >> 16 ^ 0x8000)
        assert r == low | high << 16
    for name in ("max", "min"):
        got = run_lanes(set_mode() + repeat(f"v_pk_{name}_f16 {{d}}, {{a}}, {{b}}", rows), [a, b, c], rows)
        for x, y, r in zip(*(v.ravel().tolist() for v in (a, b, got)), strict=True):
            halves = [choose(F16, x >> s & 0xFFFF, y >> s & 0xFFFF, name == "max", False) for s in (0, 16)]
            assert r == halves[0] | halves[1] << 16


def test_mixed_precision():
    rows = 4
    a = exact.samples(F16, rows * 128, 26).view(np.uint32).reshape(rows, 64)
    b, c = f32_rows(27, rows), f32_rows(28, rows)
    got = run_lanes(
        repeat("v_fma_mix_f32 {d}, {a}, {b}, -{c} op_sel:[1,0,0] op_sel_hi:[1,0,0]", rows), [a, b, c], rows
    )
    for x, y, z, r in zip(*(v.ravel().tolist() for v in (a, b, c, got)), strict=True):
        wide = int(np.uint16(x >> 16).view(np.float16).astype(np.float32).view(np.uint32))
        if F16.is_nan(x >> 16):
            wide = (x >> 16 & 0x8000) << 16 | 0x7F800000 | (x >> 16 & 0x3FF) << 13
        assert r == exact.fma(F32, wide, y, z ^ F32.sign), f"{x:#x} {y:#x} {z:#x}"
    body = "\n".join(f"  v_mov_b32 v{40 + r}, 0x1234" for r in range(rows))
    body += "\n" + repeat("v_fma_mixhi_f16 {d}, {a}, 1.0, 0 op_sel_hi:[1,0,0]", rows)
    got = run_lanes(body, [a, b, c], rows)
    for x, r in zip(a.ravel().tolist(), got.ravel().tolist(), strict=True):
        half = x & 0xFFFF
        expected = half | F16.quiet if F16.is_nan(half) else 0 if half == 0x8000 else half
        assert r == 0x1234 | expected << 16


# ---- f64 ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", range(4))
def test_f64_arithmetic(rounding):
    rows = 3
    raw = [exact.samples(F64, rows * 64, s).reshape(rows, 64) for s in (30, 31, 32)]
    halves = [
        np.stack([x.astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)], 1).reshape(2 * rows, 64)
        for x in raw
    ]
    cases = {
        "v_add_f64 {d}, {a}, {b}": lambda a, b, c: exact.add(F64, a, b, rounding),
        "v_mul_f64 {d}, {a}, -{b}": lambda a, b, c: exact.mul(F64, a, b ^ F64.sign, rounding),
        "v_fma_f64 {d}, {a}, {b}, {c}": lambda a, b, c: exact.fma(F64, a, b, c, rounding),
        "v_max_f64 {d}, {a}, {b}": lambda a, b, c: choose(F64, a, b, True, False),
        "v_min_f64 {d}, {a}, {b}": lambda a, b, c: choose(F64, a, b, False, False),
    }
    for code, reference in cases.items():
        got = run_lanes(set_mode(0, rounding) + repeat(code, rows, width=2), halves, 2 * rows).reshape(
            rows, 2, 64
        )
        values = got[:, 0].astype(np.uint64) | got[:, 1].astype(np.uint64) << np.uint64(32)
        for x, y, z, r in zip(*(v.ravel().tolist() for v in (*raw, values)), strict=True):
            assert r == reference(x, y, z), f"{code}: {x:#x} {y:#x} {z:#x} gave {r:#x}"
