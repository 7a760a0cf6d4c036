"""Integer and bit instructions against Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_lanes

M32 = (1 << 32) - 1
CORNERS = [
    0,
    1,
    2,
    31,
    32,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFF,
    0x800000,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0xFFFF8000,
    0x01020304,
]


def numbers(seed: int, rows: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 32, rows * 64, dtype=np.uint64)
    values = np.where(rng.random(rows * 64) < 0.4, rng.choice(CORNERS, rows * 64), values)
    return values.astype(np.uint32).reshape(rows, 64)


def s(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def u(value: int, bits: int = 32) -> int:
    return value & ((1 << bits) - 1)


def bound(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def data(a: int, b: int) -> list[int]:
    return list((a << 32 | b).to_bytes(8, "little"))


def permute(a: int, b: int, selectors: int) -> int:
    pool = data(a, b)
    out = []
    for sel in selectors.to_bytes(4, "little"):
        if sel < 8:
            out.append(pool[sel])
        elif sel < 12:
            out.append(255 if pool[2 * (sel - 8) + 1] & 0x80 else 0)
        else:
            out.append(0 if sel == 12 else 255)
    return int.from_bytes(bytes(out), "little")


def bytes_of(a: int) -> bytes:
    return a.to_bytes(4, "little")


def sad(a: int, b: int, masked: bool = False) -> int:
    return sum(abs(x - y) for x, y in zip(bytes_of(a), bytes_of(b), strict=True) if not (masked and y == 0))


def first(a: int, order: range) -> int:
    return next((n for n, i in enumerate(order) if a >> i & 1), -1)


def table(imm: int, a: int, b: int, c: int) -> int:
    return sum((imm >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


def halves(f: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda a, b, c: u(f(a & 0xFFFF, b & 0xFFFF), 16) | u(f(a >> 16, b >> 16), 16) << 16


def halves3(f: Callable[[int, int, int], int]) -> Callable[[int, int, int], int]:
    return lambda a, b, c: (
        u(f(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF), 16) | u(f(a >> 16, b >> 16, c >> 16), 16) << 16
    )


def dot(bits: int, signed: bool, a: int, b: int, c: int) -> int:
    view = s if signed else u
    total = sum(view(a >> i, bits) * view(b >> i, bits) for i in range(0, 32, bits))
    return total + view(c)


def median(a: int, b: int, c: int) -> int:
    return sorted((a, b, c))[1]


REFERENCES: dict[str, Callable[[int, int, int], int]] = {
    "v_add_u32 {d}, {a}, {b}": lambda a, b, c: a + b,
    "v_add_u32 {d}, {a}, {b} clamp": lambda a, b, c: min(a + b, M32),
    "v_sub_u32 {d}, {a}, {b}": lambda a, b, c: a - b,
    "v_sub_u32 {d}, {a}, {b} clamp": lambda a, b, c: max(a - b, 0),
    "v_subrev_u32 {d}, {a}, {b}": lambda a, b, c: b - a,
    "v_add_i32 {d}, {a}, {b} clamp": lambda a, b, c: bound(s(a) + s(b), -(1 << 31), (1 << 31) - 1),
    "v_sub_i32 {d}, {a}, {b} clamp": lambda a, b, c: bound(s(a) - s(b), -(1 << 31), (1 << 31) - 1),
    "v_mul_lo_u32 {d}, {a}, {b}": lambda a, b, c: a * b,
    "v_mul_hi_u32 {d}, {a}, {b}": lambda a, b, c: a * b >> 32,
    "v_mul_hi_i32 {d}, {a}, {b}": lambda a, b, c: s(a) * s(b) >> 32,
    "v_mul_i32_i24 {d}, {a}, {b}": lambda a, b, c: s(a, 24) * s(b, 24),
    "v_mul_u32_u24 {d}, {a}, {b}": lambda a, b, c: u(a, 24) * u(b, 24),
    "v_mul_hi_i32_i24 {d}, {a}, {b}": lambda a, b, c: s(a, 24) * s(b, 24) >> 32,
    "v_mul_hi_u32_u24 {d}, {a}, {b}": lambda a, b, c: u(a, 24) * u(b, 24) >> 32,
    "v_mad_i32_i24 {d}, {a}, {b}, {c}": lambda a, b, c: s(a, 24) * s(b, 24) + c,
    "v_mad_u32_u24 {d}, {a}, {b}, {c}": lambda a, b, c: u(a, 24) * u(b, 24) + c,
    "v_mad_u32_u16 {d}, {a}, {b}, {c}": lambda a, b, c: u(a, 16) * u(b, 16) + c,
    "v_mad_i32_i16 {d}, {a}, {b}, {c}": lambda a, b, c: s(a, 16) * s(b, 16) + c,
    "v_and_b32 {d}, {a}, {b}": lambda a, b, c: a & b,
    "v_or_b32 {d}, {a}, {b}": lambda a, b, c: a | b,
    "v_xor_b32 {d}, {a}, {b}": lambda a, b, c: a ^ b,
    "v_xnor_b32 {d}, {a}, {b}": lambda a, b, c: ~(a ^ b),
    "v_not_b32 {d}, {a}": lambda a, b, c: ~a,
    "v_lshlrev_b32 {d}, {a}, {b}": lambda a, b, c: b << (a & 31),
    "v_lshrrev_b32 {d}, {a}, {b}": lambda a, b, c: b >> (a & 31),
    "v_ashrrev_i32 {d}, {a}, {b}": lambda a, b, c: s(b) >> (a & 31),
    "v_min_i32 {d}, {a}, {b}": lambda a, b, c: min(s(a), s(b)),
    "v_max_i32 {d}, {a}, {b}": lambda a, b, c: max(s(a), s(b)),
    "v_min_u32 {d}, {a}, {b}": lambda a, b, c: min(a, b),
    "v_max_u32 {d}, {a}, {b}": lambda a, b, c: max(a, b),
    "v_min3_i32 {d}, {a}, {b}, {c}": lambda a, b, c: min(s(a), s(b), s(c)),
    "v_max3_i32 {d}, {a}, {b}, {c}": lambda a, b, c: max(s(a), s(b), s(c)),
    "v_med3_i32 {d}, {a}, {b}, {c}": lambda a, b, c: median(s(a), s(b), s(c)),
    "v_min3_u32 {d}, {a}, {b}, {c}": lambda a, b, c: min(a, b, c),
    "v_max3_u32 {d}, {a}, {b}, {c}": lambda a, b, c: max(a, b, c),
    "v_med3_u32 {d}, {a}, {b}, {c}": median,
    "v_bfrev_b32 {d}, {a}": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32 {d}, {a}": lambda a, b, c: first(a, range(31, -1, -1)),
    "v_ffbl_b32 {d}, {a}": lambda a, b, c: first(a, range(32)),
    "v_ffbh_i32 {d}, {a}": lambda a, b, c: first(a ^ (M32 if a >> 31 else 0), range(31, -1, -1)),
    "v_bcnt_u32_b32 {d}, {a}, {b}": lambda a, b, c: a.bit_count() + b,
    "v_bfm_b32 {d}, {a}, {b}": lambda a, b, c: ((1 << (a & 31)) - 1) << (b & 31),
    "v_bfe_u32 {d}, {a}, {b}, {c}": lambda a, b, c: a >> (b & 31) & ((1 << (c & 31)) - 1),
    "v_bfe_i32 {d}, {a}, {b}, {c}": lambda a, b, c: s(s(a) >> (b & 31), c & 31) if c & 31 else 0,
    "v_bfi_b32 {d}, {a}, {b}, {c}": lambda a, b, c: (a & b) | (~a & c),
    "v_alignbit_b32 {d}, {a}, {b}, {c}": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32 {d}, {a}, {b}, {c}": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_lerp_u8 {d}, {a}, {b}, {c}": lambda a, b, c: int.from_bytes(
        bytes((x + y + (z & 1)) >> 1 for x, y, z in zip(bytes_of(a), bytes_of(b), bytes_of(c), strict=True)),
        "little",
    ),
    "v_sad_u8 {d}, {a}, {b}, {c}": lambda a, b, c: sad(a, b) + c,
    "v_sad_hi_u8 {d}, {a}, {b}, {c}": lambda a, b, c: (sad(a, b) << 16) + c,
    "v_msad_u8 {d}, {a}, {b}, {c}": lambda a, b, c: sad(a, b, True) + c,
    "v_sad_u16 {d}, {a}, {b}, {c}": lambda a, b, c: abs(u(a, 16) - u(b, 16)) + abs((a >> 16) - (b >> 16)) + c,
    "v_sad_u32 {d}, {a}, {b}, {c}": lambda a, b, c: abs(a - b) + c,
    "v_lshl_add_u32 {d}, {a}, {b}, {c}": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32 {d}, {a}, {b}, {c}": lambda a, b, c: u(a + b) << (c & 31),
    "v_add3_u32 {d}, {a}, {b}, {c}": lambda a, b, c: a + b + c,
    "v_lshl_or_b32 {d}, {a}, {b}, {c}": lambda a, b, c: a << (b & 31) | c,
    "v_and_or_b32 {d}, {a}, {b}, {c}": lambda a, b, c: (a & b) | c,
    "v_or3_b32 {d}, {a}, {b}, {c}": lambda a, b, c: a | b | c,
    "v_xad_u32 {d}, {a}, {b}, {c}": lambda a, b, c: (a ^ b) + c,
    "v_prng_b32 {d}, {a}": lambda a, b, c: a << 1 ^ (197 if a >> 31 else 0),
    "v_bitop3_b32 {d}, {a}, {b}, {c} bitop3:0x6c": lambda a, b, c: table(0x6C, a, b, c),
    "v_bitop3_b32 {d}, {a}, {b}, {c} bitop3:0x1b": lambda a, b, c: table(0x1B, a, b, c),
    "v_sat_pk_u8_i16 {d}, {a}": lambda a, b, c: bound(s(a, 16), 0, 255) | bound(s(a >> 16, 16), 0, 255) << 8,
    "v_cvt_pk_u16_u32 {d}, {a}, {b}": lambda a, b, c: min(a, 0xFFFF) | min(b, 0xFFFF) << 16,
    "v_cvt_pk_i16_i32 {d}, {a}, {b}": lambda a, b, c: (
        u(bound(s(a), -0x8000, 0x7FFF), 16) | u(bound(s(b), -0x8000, 0x7FFF), 16) << 16
    ),
    "v_pack_b32_f16 {d}, {a}, {b} op_sel:[1,0,0]": lambda a, b, c: a >> 16 | u(b, 16) << 16,
    "v_pack_b32_f16 {d}, |{a}|, -{b}": lambda a, b, c: a & 0x7FFF | (u(b, 16) ^ 0x8000) << 16,
    "v_pk_add_u16 {d}, {a}, {b}": halves(lambda a, b: a + b),
    "v_pk_add_u16 {d}, {a}, {b} clamp": halves(lambda a, b: min(a + b, 0xFFFF)),
    "v_pk_sub_i16 {d}, {a}, {b} clamp": halves(lambda a, b: bound(s(a, 16) - s(b, 16), -0x8000, 0x7FFF)),
    "v_pk_sub_u16 {d}, {a}, {b}": halves(lambda a, b: a - b),
    "v_pk_mul_lo_u16 {d}, {a}, {b}": halves(lambda a, b: a * b),
    "v_pk_mad_i16 {d}, {a}, {b}, {c}": halves3(lambda a, b, c: a * b + c),
    "v_pk_mad_u16 {d}, {a}, {b}, {c} clamp": halves3(lambda a, b, c: min(a * b + c, 0xFFFF)),
    "v_pk_lshlrev_b16 {d}, {a}, {b}": halves(lambda a, b: b << (a & 15)),
    "v_pk_lshrrev_b16 {d}, {a}, {b}": halves(lambda a, b: b >> (a & 15)),
    "v_pk_ashrrev_i16 {d}, {a}, {b}": halves(lambda a, b: s(b, 16) >> (a & 15)),
    "v_pk_max_i16 {d}, {a}, {b}": halves(lambda a, b: max(s(a, 16), s(b, 16))),
    "v_pk_min_i16 {d}, {a}, {b}": halves(lambda a, b: min(s(a, 16), s(b, 16))),
    "v_pk_max_u16 {d}, {a}, {b}": halves(max),
    "v_pk_min_u16 {d}, {a}, {b}": halves(min),
    "v_dot4_i32_i8 {d}, {a}, {b}, {c}": lambda a, b, c: dot(8, True, a, b, c),
    "v_dot4_u32_u8 {d}, {a}, {b}, {c} clamp": lambda a, b, c: min(dot(8, False, a, b, c), M32),
    "v_dot8_i32_i4 {d}, {a}, {b}, {c}": lambda a, b, c: dot(4, True, a, b, c),
    "v_dot8_u32_u4 {d}, {a}, {b}, {c}": lambda a, b, c: dot(4, False, a, b, c),
    "v_dot2_i32_i16 {d}, {a}, {b}, {c} clamp": lambda a, b, c: bound(
        dot(16, True, a, b, c), -(1 << 31), (1 << 31) - 1
    ),
    "v_dot2_u32_u16 {d}, {a}, {b}, {c}": lambda a, b, c: dot(16, False, a, b, c),
}
SIXTEEN: dict[
    str, tuple[bool, Callable[[int, int, int], int]]
] = {  # whether the other half stays; low halves
    "v_add_u16 {d}, {a}, {b}": (False, lambda a, b, c: a + b),
    "v_sub_u16 {d}, {a}, {b}": (False, lambda a, b, c: a - b),
    "v_subrev_u16 {d}, {a}, {b}": (False, lambda a, b, c: b - a),
    "v_mul_lo_u16 {d}, {a}, {b}": (False, lambda a, b, c: a * b),
    "v_lshlrev_b16 {d}, {a}, {b}": (False, lambda a, b, c: b << (a & 15)),
    "v_lshrrev_b16 {d}, {a}, {b}": (False, lambda a, b, c: b >> (a & 15)),
    "v_ashrrev_i16 {d}, {a}, {b}": (False, lambda a, b, c: s(b, 16) >> (a & 15)),
    "v_max_u16 {d}, {a}, {b}": (False, lambda a, b, c: max(a, b)),
    "v_min_i16 {d}, {a}, {b}": (False, lambda a, b, c: min(s(a, 16), s(b, 16))),
    "v_mad_u16 {d}, {a}, {b}, {c}": (True, lambda a, b, c: a * b + c),
    "v_max3_i16 {d}, {a}, {b}, {c}": (True, lambda a, b, c: max(s(a, 16), s(b, 16), s(c, 16))),
    "v_med3_u16 {d}, {a}, {b}, {c}": (True, median),
    "v_add_i16 {d}, {a}, {b} clamp": (True, lambda a, b, c: bound(s(a, 16) + s(b, 16), -0x8000, 0x7FFF)),
    "v_ashr_pk_u8_i32 {d}, {a}, {b}, {c}": (True, lambda a, b, c: 0),
}
GROUPS = [list(REFERENCES)[i : i + 12] for i in range(0, len(REFERENCES), 12)]


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_integers(group):
    codes = GROUPS[group]
    a, b, c = (numbers(seed, 2) for seed in (1, 2, 3))
    if group % 2:
        c = c % 40  # shift amounts and selectors that mean something
    lines = []
    for index, code in enumerate(codes):
        for row in range(2):
            lines.append(
                "  "
                + code.format(
                    d=f"v{40 + 2 * index + row}", a=f"v{10 + row}", b=f"v{12 + row}", c=f"v{14 + row}"
                )
            )
    got = run_lanes("\n".join(lines), [a, b, c], 2 * len(codes))
    for index, code in enumerate(codes):
        result = got[2 * index : 2 * index + 2]
        for x, y, z, r in zip(*(v.ravel().tolist() for v in (a, b, c, result)), strict=True):
            assert r == u(REFERENCES[code](x, y, z)), f"{code}: {x:#x} {y:#x} {z:#x} gave {r:#x}"


def test_16_bit_results():
    a, b, c = (numbers(seed, 1) for seed in (4, 5, 6))
    codes = [k for k in SIXTEEN if "ashr_pk" not in k]
    lines = [f"  v_mov_b32 v{40 + i}, 0xabcd1234" for i in range(len(codes))]
    lines += ["  " + code.format(d=f"v{40 + i}", a="v10", b="v11", c="v12") for i, code in enumerate(codes)]
    got = run_lanes("\n".join(lines), [a, b, c], len(codes))
    for i, code in enumerate(codes):
        keeps, reference = SIXTEEN[code]
        for x, y, z, r in zip(*(v[0].tolist() for v in (a, b, c)), got[i].tolist(), strict=True):
            low = u(reference(x & 0xFFFF, y & 0xFFFF, z & 0xFFFF), 16)
            assert r == (0xABCD0000 if keeps else 0) | low, f"{code}: {x:#x} {y:#x} {z:#x} gave {r:#x}"


def test_op_sel_chooses_halves():
    a, b = numbers(7, 1), numbers(8, 1)
    body = """
  v_mov_b32 v40, 0x11112222
  v_add_i16 v40, v10, v11 op_sel:[1,0,1]
  v_mov_b32 v41, 0x11112222
  v_mad_u16 v41, v10, v11, 3 op_sel:[0,1,0,0]
  v_mov_b32 v42, 0x11112222
  v_bitop3_b16 v42, v10, v11, v10 bitop3:0xc0 op_sel:[1,1,0,1]
"""
    got = run_lanes(body, [a, b], 3)
    for x, y, r, t, w in zip(a[0].tolist(), b[0].tolist(), *got.tolist(), strict=True):
        assert r == 0x2222 | u((x >> 16) + y, 16) << 16
        assert t == 0x11110000 | u((x & 0xFFFF) * (y >> 16) + 3, 16)
        assert w == 0x2222 | (x >> 16 & y >> 16) << 16


def test_byte_packing_shifts():
    a, b = numbers(9, 1), numbers(10, 1)
    got = run_lanes("  v_mov_b32 v40, -1\n  v_mov_b32 v41, 0\n  v_ashr_pk_u8_i32 v40, v10, v11, 7\n"
                    "  v_ashr_pk_i8_i32 v41, v10, v11, 23 op_sel:[0,0,0,1]", [a, b], 2)  # fmt: skip
    for x, y, r, t in zip(a[0].tolist(), b[0].tolist(), *got.tolist(), strict=True):
        assert r == 0xFFFF0000 | bound(s(x) >> 7, 0, 255) | bound(s(y) >> 7, 0, 255) << 8
        low, high = (bound(s(v) >> 23, -128, 127) & 255 for v in (x, y))
        assert t == (low | high << 8) << 16


def test_permute_bytes():
    rng = np.random.default_rng(11)
    a, b = numbers(12, 2), numbers(13, 2)
    selectors = rng.integers(0, 16, (2, 64, 4), dtype=np.uint8).view(np.uint32).reshape(2, 64)
    selectors[0, 0] = 0xFF0D0C0B
    got = run_lanes("  v_perm_b32 v40, v10, v12, v14\n  v_perm_b32 v41, v11, v13, v15", [a, b, selectors], 2)
    for x, y, z, r in zip(*(v.ravel().tolist() for v in (a, b, selectors, got)), strict=True):
        assert r == permute(x, y, z), f"{x:#x} {y:#x} {z:#x}"


def test_carries_and_64_bits():
    a, b = numbers(14, 2), numbers(15, 2)
    body = """
  v_add_co_u32 v40, vcc, v10, v12
  s_nop 1
  v_addc_co_u32 v41, vcc, v11, v13, vcc
  v_sub_co_u32 v42, s[10:11], v10, v12
  s_nop 1
  v_subb_co_u32 v43, s[10:11], v11, v13, s[10:11]
  v_mov_b32 v2, 37
  v_lshlrev_b64 v[44:45], v2, v[10:11]
  v_lshrrev_b64 v[46:47], v12, v[10:11]
  v_ashrrev_i64 v[48:49], v12, v[10:11]
  v_mad_u64_u32 v[50:51], s[12:13], v10, v12, v[10:11]
  v_mad_i64_i32 v[52:53], s[14:15], v10, v12, v[10:11]
  v_lshl_add_u64 v[54:55], v[10:11], 3, v[12:13]
  s_nop 1
  v_cndmask_b32 v56, 0, 1, vcc
  v_cndmask_b32 v57, 0, 1, s[10:11]
  v_cndmask_b32 v58, 0, 1, s[12:13]
  v_cndmask_b32 v59, 0, 1, s[14:15]
"""
    got = run_lanes(body, [a, b], 20).astype(np.uint64)
    wide = [int(got[i][lane]) | int(got[i + 1][lane]) << 32 for lane in range(64) for i in range(0, 16, 2)]
    for lane in range(64):
        x = int(a[0][lane]) | int(a[1][lane]) << 32
        y = int(b[0][lane]) | int(b[1][lane]) << 32
        low_x, low_y = x & M32, y & M32
        shift = low_y & 63
        unsigned, signed = low_x * low_y + x, s(low_x) * s(low_y) + s(x, 64)
        expected = [x + y, x - y, x << 37, x >> shift, s(x, 64) >> shift, unsigned, signed, (x << 3) + y]
        assert wide[8 * lane : 8 * lane + 8] == [u(v, 64) for v in expected]
        flags = [x + y >> 64, int(y > x), unsigned >> 64, u(signed, 65) >> 64]
        assert [int(got[16 + i][lane]) for i in range(4)] == flags


def test_mask_counts():
    body = """
  v_mov_b32 v2, -1
  v_mbcnt_lo_u32_b32 v40, v2, 0
  v_mbcnt_hi_u32_b32 v40, v2, v40
  v_mbcnt_lo_u32_b32 v41, 0xf0, 5
"""
    got = run_lanes(body.replace("0xf0", "v10"), [np.full(64, 0xF0, np.uint32)], 2)
    assert got[0].tolist() == list(range(64))
    assert got[1].tolist() == [5 + (0xF0 & ((1 << min(lane, 32)) - 1)).bit_count() for lane in range(64)]


def test_quad_distances():
    a, b = numbers(16, 2), numbers(17, 4)
    body = """
  v_mov_b32 v20, v12
  v_mov_b32 v21, v13
  v_mov_b32 v22, v14
  v_mov_b32 v23, v15
  v_qsad_pk_u16_u8 v[40:41], v[10:11], v12, v[14:15]
  v_mqsad_pk_u16_u8 v[42:43], v[10:11], v12, v[14:15]
  v_mqsad_u32_u8 v[44:47], v[10:11], v12, v[20:23]
"""
    got = run_lanes(body, [a, b], 8)
    for lane in range(64):
        window = int(a[0][lane]) | int(a[1][lane]) << 32
        reference = int(b[0][lane])
        sums = [int(b[2 + k // 2][lane]) >> 16 * (k % 2) & 0xFFFF for k in range(4)]
        parts = [window >> 8 * k & M32 for k in range(4)]
        for row, masked in ((0, False), (2, True)):
            expected = [u(sad(p, reference, masked) + t, 16) for p, t in zip(parts, sums, strict=True)]
            assert got[row][lane] == expected[0] | expected[1] << 16
            assert got[row + 1][lane] == expected[2] | expected[3] << 16
        assert [int(got[4 + k][lane]) for k in range(4)] == [
            u(sad(parts[k], reference, True) + int(b[k][lane])) for k in range(4)
        ]
