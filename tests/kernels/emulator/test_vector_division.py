"""Exact division built from v_div_*, exponents, dot products of floats, cube maps."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from kernels.emulator.exact_floats import BF16, F16, F32, F64
from kernels.emulator.wave_kernel import run_lanes

from kernels.emulator import exact_floats as exact

# LLVM's expansion of a correctly rounded a / b: v10 or v[10:11] by v12 or v[12:13].
DIVIDE_32 = """
  v_div_scale_f32 v20, s[20:21], v11, v11, v10
  v_div_scale_f32 v21, vcc, v10, v11, v10
  v_rcp_f32 v22, v20
  s_nop 0
  v_fma_f32 v23, -v20, v22, 1.0
  v_fma_f32 v22, v23, v22, v22
  v_mul_f32 v24, v21, v22
  v_fma_f32 v25, -v20, v24, v21
  v_fma_f32 v24, v25, v22, v24
  v_fma_f32 v20, -v20, v24, v21
  s_nop 1
  v_div_fmas_f32 v20, v20, v22, v24
  v_div_fixup_f32 v40, v20, v11, v10
"""
DIVIDE_64 = """
  v_div_scale_f64 v[20:21], s[20:21], v[12:13], v[12:13], v[10:11]
  v_rcp_f64 v[22:23], v[20:21]
  v_div_scale_f64 v[24:25], vcc, v[10:11], v[12:13], v[10:11]
  v_fma_f64 v[26:27], -v[20:21], v[22:23], 1.0
  v_fma_f64 v[22:23], v[22:23], v[26:27], v[22:23]
  v_fma_f64 v[26:27], -v[20:21], v[22:23], 1.0
  v_fma_f64 v[22:23], v[22:23], v[26:27], v[22:23]
  v_mul_f64 v[26:27], v[24:25], v[22:23]
  v_fma_f64 v[20:21], -v[20:21], v[26:27], v[24:25]
  s_nop 1
  v_div_fmas_f64 v[20:21], v[20:21], v[22:23], v[26:27]
  v_div_fixup_f64 v[40:41], v[20:21], v[12:13], v[10:11]
"""


def divide(f: exact.Format, a: int, b: int) -> int:
    if (nan := exact.first_nan(f, a, b)) is not None:
        return nan
    sign, zero_a, zero_b = (a ^ b) & f.sign, a & ~f.sign == 0, b & ~f.sign == 0
    if (zero_a and zero_b) or (f.is_infinite(a) and f.is_infinite(b)):
        return f.sign | f.nan  # the documented NaN of v_div_fixup
    if zero_b or f.is_infinite(a):
        return sign | f.infinity
    if zero_a or f.is_infinite(b):
        return sign
    return f.round(f.value(a) / f.value(b), zero_sign=bool(sign))


@pytest.mark.parametrize("seed", range(12))
def test_division_f32(seed):
    a, b = exact.samples(F32, 64, 2 * seed), exact.samples(F32, 64, 2 * seed + 1)
    got = run_lanes(DIVIDE_32, [a, b], 1)[0]
    for x, y, r in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert r == divide(F32, x, y), f"{x:#x} / {y:#x} gave {r:#x}, expected {divide(F32, x, y):#x}"


@pytest.mark.parametrize("seed", range(6))
def test_division_f64(seed):
    raw = [exact.samples(F64, 64, 50 + 2 * seed + i) for i in range(2)]
    halves = [np.stack([x.astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)]) for x in raw]
    got = run_lanes(DIVIDE_64, halves, 2).astype(np.uint64)
    for x, y, r in zip(*(v.tolist() for v in (*raw, got[0] | got[1] << np.uint64(32))), strict=True):
        assert r == divide(F64, x, y), f"{x:#x} / {y:#x} gave {r:#x}, expected {divide(F64, x, y):#x}"


def quieted(f: exact.Format, x: int) -> int:
    return x | f.quiet if f.is_nan(x) else x


def test_exponents():
    rng = np.random.default_rng(1)
    n = rng.integers(-300, 300, 64).astype(np.int32)
    n[:4] = [2**31 - 1, -(2**31), 0, -1]
    a, wide, half = (
        exact.samples(F32, 64, 2),
        exact.samples(F64, 64, 3),
        exact.samples(F16, 64, 4).astype(np.uint32),
    )
    body = """
  v_ldexp_f32 v40, v10, v14
  v_frexp_exp_i32_f32 v41, v10
  v_frexp_mant_f32 v42, v10
  v_ldexp_f64 v[44:45], v[12:13], v14
  v_frexp_exp_i32_f64 v46, v[12:13]
  v_frexp_mant_f64 v[48:49], v[12:13]
  v_ldexp_f16 v50, v11, v14
  v_frexp_exp_i16_f16 v51, v11
  v_frexp_mant_f16 v52, v11
  v_mov_b32 v43, 0
  v_mov_b32 v47, 0
"""
    rows = [
        a,
        half,
        np.stack([wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)]),
        n.view(np.uint32),
    ]
    got = run_lanes(body, rows, 13).astype(object)
    for lane in range(64):
        step = int(n[lane])
        for f, x, scaled, exponent, mantissa, by in (
            (F32, int(a[lane]), got[0][lane], got[1][lane], got[2][lane], step),
            (F64, int(wide[lane]), got[4][lane] | got[5][lane] << 32, got[6][lane], got[8][lane] | got[9][lane] << 32, step),
            (F16, int(half[lane]), got[10][lane], got[11][lane], got[12][lane], (step & 0xFFFF ^ 0x8000) - 0x8000),
        ):  # fmt: skip
            if f.is_nan(x) or f.is_infinite(x):
                assert (scaled, exponent, mantissa) == (quieted(f, x), 0, quieted(f, x))
                continue
            value = f.value(x)
            by = max(min(by, 5000), -5000)
            assert scaled == f.round(value * Fraction(2) ** by, zero_sign=bool(x & f.sign)), f"{x:#x} {by}"
            power = math.frexp(float(value))[1] if value else 0
            if value and abs(value) < Fraction(1, 2**1070):
                power = exact._log2(abs(value)) + 1
            assert exponent == power & (0xFFFF if f is F16 else 0xFFFFFFFF)
            assert mantissa == f.round(value / Fraction(2) ** power, zero_sign=bool(x & f.sign))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_dot_products_of_floats(kind):
    f = {"f16": F16, "bf16": BF16}[kind]
    a, b = (exact.samples(f, 128, s).view(np.uint32) for s in (6, 7))
    c = exact.samples(F32, 64, 8)
    got = run_lanes(
        f"  v_dot2_f32_{kind} v40, v10, v11, v12\n  v_mov_b32 v41, v12\n  v_dot2c_f32_{kind} v41, v10, v11",
        [a, b, c],
        2,
    )
    for x, y, z, r, t in zip(a.tolist(), b.tolist(), c.tolist(), *got.tolist(), strict=True):
        parts = [x & 0xFFFF, x >> 16, y & 0xFFFF, y >> 16]
        special = any(f.is_nan(p) or f.is_infinite(p) for p in parts) or F32.is_nan(z) or F32.is_infinite(z)
        if special:
            assert (r & 0x7FFFFFFF) >= 0x7F800000 and r == t
            continue
        total = f.value(parts[0]) * f.value(parts[2]) + f.value(parts[1]) * f.value(parts[3]) + F32.value(z)
        if total:
            assert r == t == F32.round(total), f"{x:#x} {y:#x} {z:#x}"


def test_cube_maps():
    rng = np.random.default_rng(9)
    xyz = rng.uniform(-2, 2, (3, 64)).astype(np.float32)
    body = "".join(
        f"  v_cube{n}_f32 v{40 + i}, v10, v11, v12\n" for i, n in enumerate(("id", "sc", "tc", "ma"))
    )
    got = run_lanes(body, [xyz.view(np.uint32)], 4).view(np.float32)
    for lane in range(64):
        x, y, z = xyz[:, lane]
        if abs(z) >= max(abs(x), abs(y)):
            expected = (5, -x, -y, 2 * z) if z < 0 else (4, x, -y, 2 * z)
        elif abs(y) >= abs(x):
            expected = (3, x, -z, 2 * y) if y < 0 else (2, x, z, 2 * y)
        else:
            expected = (1, z, -y, 2 * x) if x < 0 else (0, -z, -y, 2 * x)
        assert tuple(got[:, lane]) == tuple(np.float32(v) for v in expected)
