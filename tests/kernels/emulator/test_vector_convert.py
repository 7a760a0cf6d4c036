"""Conversions against rational numbers, NumPy and ml_dtypes."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from kernels.emulator.exact_floats import BF16, F16, F32, F64
from kernels.emulator.wave_kernel import run_lanes
from zyfa_ort.kernels.errors import EmulationError

from kernels.emulator import exact_floats as exact

FP8, BF8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
FP6, BF6, FP4 = ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn, ml_dtypes.float4_e2m1fn
LARGEST = {FP8: 448.0, BF8: 57344.0, FP6: 7.5, BF6: 28.0, FP4: 6.0}


def bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def floats(seed: int, rows: int, scale: float = 1.0, specials: bool = True) -> np.ndarray:
    """Around the small formats: every power of two from 2^-22 to 2^18, ties, specials."""
    rng = np.random.default_rng(seed)
    size = rows * 64
    x = rng.uniform(1, 2, size) * np.exp2(rng.integers(-22, 18, size)) * rng.choice([-1, 1], size)
    ties = rng.integers(0, 1 << 10, size) * 2.0 ** rng.integers(-20, 8, size)
    x = np.where(rng.random(size) < 0.4, ties, x)
    if specials:
        corners = [
            0.0,
            -0.0,
            np.inf,
            -np.inf,
            np.nan,
            448,
            464,
            463.9,
            465,
            -480,
            57344,
            61440,
            61439,
            65504,
            65520,
            1e-40,
        ]
        x = np.where(rng.random(size) < 0.3, rng.choice(corners, size), x)
    return (x * scale).astype(np.float32).reshape(rows, 64)


def small_codes(x: np.ndarray, dtype: type, overflow: int = 0) -> np.ndarray:
    """The bytes of a conversion: ml_dtypes rounds to nearest even; beyond the largest number AMD's rules apply."""
    with np.errstate(all="ignore"):
        codes = x.astype(dtype).view(np.uint8).astype(np.uint32)
    sign = np.signbit(x).astype(np.uint32) << 7
    top = {FP8: 0x7E, BF8: 0x7B}[dtype]
    beyond = {FP8: 0x7F, BF8: 0x7C}[dtype]
    finite_overflow = (codes & 0x7F) > top
    codes = np.where(finite_overflow, sign | (top if overflow else beyond), codes)
    return np.where(np.isnan(x), sign | 0x7F, codes)


@pytest.mark.parametrize("overflow", [0, 1])
@pytest.mark.parametrize(("name", "dtype"), [("fp8", FP8), ("bf8", BF8)])
def test_pack_8_bits(name, dtype, overflow):
    rows = 6
    a, b = floats(1, rows), floats(2, rows)
    body = "".join(f"  v_mov_b32 v{40 + r}, 0x12345678\n" for r in range(rows))
    body += "".join(
        f"  v_cvt_pk_{name}_f32 v{40 + r}, v{10 + r}, -v{16 + r}{' op_sel:[0,0,1]' if r % 2 else ''}\n"
        for r in range(rows)
    )
    got = run_lanes(body, [bits(a), bits(b)], rows, overflow=overflow)
    pair = small_codes(a, dtype, overflow) | small_codes(-b, dtype, overflow) << 8
    for r in range(rows):
        expected = 0x5678 | pair[r] << 16 if r % 2 else 0x12340000 | pair[r]
        np.testing.assert_array_equal(got[r], expected)


@pytest.mark.parametrize(("name", "dtype"), [("fp8", FP8), ("bf8", BF8)])
def test_unpack_8_bits(name, dtype):
    codes = np.arange(256, dtype=np.uint8).reshape(64, 4).view(np.uint32).reshape(1, 64)
    body = "".join(f"  v_cvt_f32_{name}_sdwa v{40 + i}, v10 src0_sel:BYTE_{i}\n" for i in range(4))
    body += f"  v_cvt_f32_{name} v44, v10\n  v_cvt_pk_f32_{name} v[46:47], v10\n"
    body += f"  v_cvt_pk_f32_{name}_sdwa v[48:49], v10 src0_sel:WORD_1\n"
    got = run_lanes(body + "  v_mov_b32 v45, 0\n", [codes], 10).view(np.float32)
    expected = codes.view(np.uint8).reshape(64, 4).T.view(dtype).astype(np.float32)
    for row, byte in ((0, 0), (1, 1), (2, 2), (3, 3), (4, 0), (6, 0), (7, 1), (8, 2), (9, 3)):
        np.testing.assert_array_equal(got[row], expected[byte])


def test_bf16():
    rows = 6
    a = exact.samples(F32, rows * 64, 3).reshape(rows, 64)
    b = exact.samples(F32, rows * 64, 4).reshape(rows, 64)
    body = "".join(f"  v_cvt_pk_bf16_f32 v{40 + r}, v{10 + r}, v{16 + r}\n" for r in range(rows))
    got = run_lanes(body, [a, b], rows)

    def narrow(x: int) -> int:
        if F32.is_nan(x):
            return x >> 16 | 0x40
        if F32.is_infinite(x):
            return x >> 16
        return BF16.round(F32.value(x), zero_sign=bool(x & F32.sign))

    for x, y, r in zip(a.ravel().tolist(), b.ravel().tolist(), got.ravel().tolist(), strict=True):
        assert r == narrow(x) | narrow(y) << 16, f"{x:#x} {y:#x} gave {r:#x}"
    got = run_lanes("  v_cvt_f32_bf16 v40, v10", [a[:1]], 1)
    low = a[0] << 16
    np.testing.assert_array_equal(got[0], np.where((low & 0x7FFFFFFF) > 0x7F800000, low | 0x400000, low))


@pytest.mark.parametrize("rounding", range(4))
def test_f16_and_back(rounding):
    rows = 6
    a = exact.samples(F32, rows * 64, 5).reshape(rows, 64)
    near = floats(6, rows).view(np.uint32)
    a = np.concatenate([a[:3], near[:3]])
    mode = f"  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 2, 2), {rounding}\n  s_nop 2\n"
    body = "".join(f"  v_cvt_f16_f32 v{40 + r}, v{10 + r}\n" for r in range(rows))
    body += "".join(f"  v_cvt_pkrtz_f16_f32 v{46 + r}, v{10 + r}, v{10 + r}\n" for r in range(rows))
    body += "".join(f"  v_cvt_pk_f16_f32 v{52 + r}, v{10 + r}, v{10 + r}\n" for r in range(rows))
    got = run_lanes(mode + body, [a], 18)

    def narrow(x: int, how: int) -> int:
        sign = x >> 16 & 0x8000
        if F32.is_nan(x):
            return sign | 0x7E00 | (x >> 13 & 0x3FF)
        return sign | 0x7C00 if F32.is_infinite(x) else F16.round(F32.value(x), how, bool(sign))

    for r in range(rows):
        for lane, x in enumerate(a[r].tolist()):
            assert got[r][lane] == narrow(x, rounding), f"{x:#x}"
            assert got[6 + r][lane] == narrow(x, exact.ZERO) * 0x10001
            assert got[12 + r][lane] == narrow(x, exact.NEAREST) * 0x10001
    every = np.arange(0, 1 << 16, 17, dtype=np.uint32)[: 64 * 28].reshape(28, 64)
    got = run_lanes("".join(f"  v_cvt_f32_f16 v{40 + r}, v{10 + r}\n" for r in range(28)), [every], 28)
    for x, r in zip(every.ravel().tolist(), got.ravel().tolist(), strict=True):
        if F16.is_nan(x):
            assert r == (x & 0x8000) << 16 | 0x7FC00000 | (x & 0x3FF) << 13
        elif F16.is_infinite(x):
            assert r == (x & 0x8000) << 16 | 0x7F800000
        else:
            assert r == F32.round(F16.value(x), zero_sign=bool(x & 0x8000))


def saturate(value: float, low: int, high: int) -> int:
    if math.isnan(value):
        return 0
    return low if value <= low else high if value >= high else math.trunc(value)


def test_integers_of_f32():
    special = [
        np.nan,
        np.inf,
        -np.inf,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        4294967296.0,
        4294967040.0,
        2147483648.0,
        -2147483648.0,
    ]
    a = np.concatenate([floats(7, 3), np.resize(np.array(special, np.float32), (1, 64))])
    names = ["u32", "i32", "rpi_i32", "flr_i32"]
    body = "".join(
        f"  v_cvt_{n}_f32 v{40 + 4 * i + r}, v{10 + r}\n" for i, n in enumerate(names) for r in range(4)
    )
    got = run_lanes(body, [bits(a)], 16).reshape(4, 4, 64)
    low, high = -(1 << 31), (1 << 31) - 1
    for r in range(4):
        for lane, x in enumerate(a[r].astype(float).tolist()):
            finite = math.isfinite(x)
            expected = [
                saturate(x, 0, (1 << 32) - 1),
                saturate(x, low, high),
                saturate(math.floor(x + 0.5) if finite else x, low, high),
                saturate(math.floor(x) if finite else x, low, high),
            ]
            assert [int(v) for v in got[:, r, lane]] == [e & 0xFFFFFFFF for e in expected], x


@pytest.mark.parametrize("rounding", range(4))
def test_f32_of_integers(rounding):
    rng = np.random.default_rng(8)
    a = rng.integers(0, 1 << 32, 256, dtype=np.uint64).astype(np.uint32).reshape(4, 64) >> np.uint32(rounding)
    a[0, :6] = [0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x01000001]
    body = f"  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {rounding}\n  s_nop 2\n"
    body += "".join(
        f"  v_cvt_f32_u32 v{40 + r}, v{10 + r}\n  v_cvt_f32_i32 v{44 + r}, v{10 + r}\n" for r in range(4)
    )
    body += (
        "".join(f"  v_cvt_f32_ubyte{r} v{48 + r}, v10\n" for r in range(4)) + "  v_cvt_off_f32_i4 v52, v10\n"
    )
    got = run_lanes(body, [a], 13)
    for r in range(4):
        for lane, x in enumerate(a[r].tolist()):
            assert got[r][lane] == F32.round(Fraction(x), rounding)
            assert got[4 + r][lane] == F32.round(Fraction(x - (1 << 32) if x >> 31 else x), rounding)
        np.testing.assert_array_equal(got[8 + r].view(np.float32), (a[0] >> 8 * r & 255).astype(np.float32))
    four = (a[0] & 15).astype(np.int64)
    np.testing.assert_array_equal(
        got[12].view(np.float32), np.where(four > 7, four - 16, four) / np.float32(16)
    )


def test_f64():
    raw = exact.samples(F64, 64, 9)
    raw[:6] = np.array([2.5, -2.5, 1e300, -1e300, 4294967295.5, np.nan]).view(np.uint64)
    halves = np.stack([raw.astype(np.uint32), (raw >> np.uint64(32)).astype(np.uint32)])
    single = exact.samples(F32, 64, 10)
    body = """
  v_cvt_i32_f64 v40, v[10:11]
  v_cvt_u32_f64 v41, v[10:11]
  v_cvt_f32_f64 v42, v[10:11]
  v_cvt_f64_f32 v[44:45], v12
  v_cvt_f64_i32 v[46:47], v12
  v_cvt_f64_u32 v[48:49], v12
  v_mov_b32 v43, 0
"""
    got = run_lanes(body, [halves, single], 10)
    wide = got[4::2].astype(np.uint64) | got[5::2].astype(np.uint64) << np.uint64(32)
    for lane in range(64):
        x, y = float(raw.view(np.float64)[lane]), int(single[lane])
        assert got[0][lane] == saturate(x, -(1 << 31), (1 << 31) - 1) & 0xFFFFFFFF
        assert got[1][lane] == saturate(x, 0, (1 << 32) - 1)
        b = int(raw[lane])
        sign = b >> 32 & 0x80000000
        if F64.is_nan(b):
            assert got[2][lane] == sign | 0x7FC00000 | (b >> 29 & 0x3FFFFF)
        elif F64.is_infinite(b):
            assert got[2][lane] == sign | 0x7F800000
        else:
            assert got[2][lane] == F32.round(F64.value(b), zero_sign=bool(sign))
        if not F32.is_nan(y) and not F32.is_infinite(y):
            assert int(wide[0][lane]) == F64.round(F32.value(y), zero_sign=bool(y >> 31))
        assert wide[1].view(np.float64)[lane] == np.int32(y - (1 << 32) if y >> 31 else y)
        assert wide[2].view(np.float64)[lane] == y


def test_16_bit_integers_and_norms():
    rng = np.random.default_rng(11)
    a = rng.integers(0, 1 << 16, 64, dtype=np.uint32)
    halves = rng.uniform(-65000, 65000, 64).astype(np.float16)
    halves[:8] = [np.nan, np.inf, -np.inf, 0.5, -0.5, 1.0, -1.0, 0.3]
    halves[8:24] = rng.uniform(-1.2, 1.2, 16)
    h = halves.view(np.uint16).astype(np.uint32)
    f = rng.uniform(-1.3, 1.3, 64).astype(np.float32)
    f[:3] = [np.nan, np.inf, -np.inf]
    body = """
  v_cvt_f16_u16 v40, v10
  v_cvt_f16_i16 v41, v10
  v_cvt_u16_f16 v42, v11
  v_cvt_i16_f16 v43, v11
  v_cvt_norm_i16_f16 v44, v11
  v_cvt_norm_u16_f16 v45, v11
  v_cvt_pknorm_i16_f32 v46, v12, -v12
  v_cvt_pknorm_u16_f32 v47, v12, -v12
"""
    got = run_lanes(body, [a, h, bits(f)], 8)

    def norm(x: float, low: int, scale: int) -> int:
        return 0 if math.isnan(x) else round(min(max(x, low), 1) * scale) & 0xFFFF

    for lane in range(64):
        n = int(a[lane])
        assert got[0][lane] == F16.round(Fraction(n))
        assert got[1][lane] == F16.round(Fraction(n - 65536 if n >> 15 else n))
        x, y = float(halves[lane]), float(f[lane])
        assert got[2][lane] == saturate(x, 0, 65535)
        assert got[3][lane] == saturate(x, -32768, 32767) & 0xFFFF
        assert got[4][lane] == norm(x, -1, 32767) and got[5][lane] == norm(x, 0, 65535)
        assert got[6][lane] == norm(y, -1, 32767) | norm(-y, -1, 32767) << 16
        assert got[7][lane] == norm(y, 0, 65535) | norm(-y, 0, 65535) << 16


@pytest.mark.parametrize("rounding", ["nearest_even", "truncate"])
def test_one_byte(rounding):
    x = np.concatenate(
        [
            np.arange(0, 32, dtype=np.float32) / 2,
            np.array([254.4, 254.5, 255, 256, 1e9, -1, -0.0, np.nan, np.inf, -np.inf, 1e-40]),
        ]
    )
    a = np.resize(x.astype(np.float32), 64)
    body = "  v_mov_b32 v2, 0x11223344\n" + "".join(
        f"  v_cvt_pk_u8_f32 v{40 + i}, v10, {i}, v2\n" for i in range(4)
    )
    got = run_lanes(body, [bits(a)], 4, options={"byte_rounding": rounding})
    whole = np.rint if rounding == "nearest_even" else np.trunc
    byte = whole(np.clip(np.where(np.isnan(a), 0, a), 0, 255)).astype(np.uint32)
    for i in range(4):
        np.testing.assert_array_equal(got[i], (0x11223344 & ~(255 << 8 * i)) | byte << np.uint32(8 * i))


def test_stochastic_rounding_lies_between_neighbours():
    rng = np.random.default_rng(12)
    x = (rng.uniform(1, 2, 64) * np.exp2(rng.integers(-5, 8, 64)) * rng.choice([-1, 1], 64)).astype(
        np.float32
    )
    x[:2] = [np.nan, 3.25]
    random = rng.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    body = """
  v_mov_b32 v40, 0
  v_mov_b32 v2, 0
  v_mov_b32 v3, -1
  v_cvt_sr_fp8_f32 v40, v10, v11 op_sel:[0,0,0,0]
  s_nop 1
  v_cvt_sr_fp8_f32 v40, v10, v2 op_sel:[0,0,1,0]
  s_nop 1
  v_cvt_sr_fp8_f32 v40, v10, v3 op_sel:[0,0,0,1]
  v_mov_b32 v41, 0
  v_cvt_sr_bf8_f32 v41, v10, v11
  v_mov_b32 v42, 0
  v_cvt_sr_bf16_f32 v42, v10, v11
  v_mov_b32 v43, 0
  v_cvt_sr_f16_f32 v43, v10, v11
"""
    got = run_lanes(body, [bits(x), random], 4)
    u = bits(x)
    for lane in range(1, 64):
        size, sign = int(u[lane]) & 0x7FFFFFFF, int(u[lane]) >> 31
        for row, mantissa, bias, width, where in (
            (0, 3, 7, 8, 0),
            (1, 2, 15, 8, 0),
            (2, 7, 127, 16, 0),
            (3, 10, 15, 16, 0),
        ):
            dropped = 23 - mantissa
            code = (size + (int(random[lane]) >> (32 - dropped)) >> dropped) - ((127 - bias) << mantissa)
            assert int(got[row][lane]) >> where & ((1 << width) - 1) == sign << (width - 1) | code
        down = (size >> 20) - (120 << 3)
        up = (size + 0xFFFFF >> 20) - (120 << 3)
        assert int(got[0][lane]) >> 8 & 0x7F == down and int(got[0][lane]) >> 16 & 0x7F == up
    assert got[0][0] & 0x7F == 0x7F and got[2][0] & 0x7FFF > 0x7F80


# ---- block-scaled conversions ---------------------------------------------------------------------------------------------

SMALL = {"fp8": FP8, "bf8": BF8, "fp6": FP6, "bf6": BF6, "fp4": FP4}
BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}


def scaled_codes(x: np.ndarray, scale: np.ndarray, name: str) -> np.ndarray:
    dtype = SMALL[name]
    y = x.astype(np.float64) / scale
    if name in ("fp8", "bf8"):
        return small_codes(y.astype(np.float32), dtype)
    y = np.clip(y, -LARGEST[dtype], LARGEST[dtype])
    return y.astype(dtype).view(np.uint8).astype(np.uint32) & ((1 << BITS[name]) - 1)


def scales(seed: int) -> np.ndarray:
    return np.exp2(np.random.default_rng(seed).integers(-6, 7, 64)).astype(np.float32)


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_scaled_pairs(name, source):
    a, b = floats(13, 1, specials=name != "fp4")[0], floats(14, 1, specials=name != "fp4")[0]
    scale = scales(15)
    if source == "f32":
        inputs, operands = [bits(a), bits(b)], "v10, v11, v12"
    else:
        dtype = np.float16 if source == "f16" else ml_dtypes.bfloat16
        with np.errstate(over="ignore"):
            a, b = a.astype(dtype), b.astype(dtype)
        inputs, operands = (
            [
                a.view(np.uint16).astype(np.uint32) | b.view(np.uint16).astype(np.uint32) << 16,
                np.zeros(64, np.uint32),
            ],
            "v10, v12",
        )
        a, b = a.astype(np.float32), b.astype(np.float32)
    place = "op_sel:[0,0,0,1]" if name != "fp4" else "op_sel:[0,0,1,1]"
    if source != "f32" and name != "fp4":
        place = "op_sel:[0,0,1]"
    body = f"  v_mov_b32 v40, 0x12345678\n  v_mov_b32 v41, 0x12345678\n  v_cvt_scalef32_pk_{name}_{source} v40, {operands}\n"
    body += f"  s_nop 1\n  v_cvt_scalef32_pk_{name}_{source} v41, {operands} {place}\n"
    got = run_lanes(body, [*inputs, bits(scale)], 2, report_only=True)
    x, y = scaled_codes(a, scale, name), scaled_codes(b, scale, name)
    if name == "fp4":
        byte = x | y << 4
        np.testing.assert_array_equal(got[0], 0x12345600 | byte)
        np.testing.assert_array_equal(got[1], 0x345678 | byte << 24)
    else:
        pair = x | y << 8
        np.testing.assert_array_equal(got[0], 0x12340000 | pair)
        np.testing.assert_array_equal(got[1], 0x5678 | pair << 16)


@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_scaled_32_elements(name):
    rng = np.random.default_rng(16)
    x = floats(17, 32, specials=False)
    scale = scales(18)
    halves = rng.uniform(-30, 30, (32, 64)).astype(np.float16)
    packed = halves.view(np.uint16).astype(np.uint32)
    packed = packed[0::2] | packed[1::2] << 16
    body = f"""
  v_cvt_scalef32_2xpk16_{name}_f32 v[60:65], v[10:25], v[26:41], v58
  v_cvt_scalef32_pk32_{name}_f16 v[66:71], v[42:57], v58
  v_cvt_scalef32_pk32_f32_{name} v[80:111], v[66:71], v58
  v_cvt_scalef32_pk32_f16_{name} v[112:127], v[66:71], v58
""" + "".join(f"  v_mov_b32 v{40 + i}, v{60 + i}\n" for i in range(12)) + "".join(
        f"  v_mov_b32 v{52 + i}, v{80 + i}\n" for i in range(28)
    )  # fmt: skip
    inputs = np.concatenate([bits(x), packed, bits(scale).reshape(1, 64)])
    got = run_lanes("  s_nop 1\n" + body, [inputs], 40)

    def unpack(rows: np.ndarray) -> np.ndarray:
        bits192 = np.unpackbits(rows.T.copy().view(np.uint8), axis=1, bitorder="little").reshape(64, 32, 6)
        return (bits192 * (1 << np.arange(6))).sum(-1).T.astype(np.uint32)

    interleaved = np.stack([x[:16], x[16:]], 1).reshape(32, 64)
    np.testing.assert_array_equal(unpack(got[0:6]), scaled_codes(interleaved, scale, name))
    codes = scaled_codes(halves.astype(np.float32), scale, name)
    np.testing.assert_array_equal(unpack(got[6:12]), codes)
    decoded = codes.astype(np.uint8).view(SMALL[name]).astype(np.float32) * scale
    np.testing.assert_array_equal(got[12:40].view(np.float32), decoded[:28])


@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_scaled_unpacking(name):
    codes = np.random.default_rng(19).integers(0, 256, (64, 4), dtype=np.uint8)
    packed = codes.view(np.uint32).ravel()
    scale = scales(20)
    body = f"  v_cvt_scalef32_pk_f32_{name} v[40:41], v10, v11\n"
    body += f"  v_cvt_scalef32_pk_f32_{name} v[42:43], v10, v11 op_sel:[1,0,0]\n"
    body += f"  v_cvt_scalef32_pk_f16_{name} v44, v10, v11\n  v_cvt_scalef32_pk_bf16_{name} v45, v10, v11\n"
    got = run_lanes(body, [packed, bits(scale)], 6)
    if name == "fp4":
        values = [
            (codes[:, i // 2] >> 4 * (i % 2) & 15).astype(np.uint8).view(FP4).astype(np.float32)
            for i in range(4)
        ]
    else:
        values = [np.ascontiguousarray(codes[:, i]).view(SMALL[name]).astype(np.float32) for i in range(4)]
    for i in range(4):
        np.testing.assert_array_equal(got[i].view(np.float32), values[i] * scale)
    with np.errstate(over="ignore"):
        half = [(v * scale).astype(np.float16) for v in values[:2]]
        brain = [(v * scale).astype(ml_dtypes.bfloat16) for v in values[:2]]
    for part in range(2):
        np.testing.assert_array_equal((got[4] >> 16 * part).astype(np.uint16).view(np.float16), half[part])
        shown = (got[5] >> 16 * part).astype(np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
        np.testing.assert_array_equal(shown, brain[part].astype(np.float32))


def test_nan_has_no_place_in_fp4():
    x = bits(np.full(64, np.nan, np.float32))
    with pytest.raises(EmulationError, match="NaN in lane 0"):
        run_lanes("  v_mov_b32 v40, 0\n  v_cvt_scalef32_pk_fp4_f32 v40, v10, v10, 1.0", [x], 1)
