"""LDS instructions against NumPy: reads, writes, two-address forms, lane exchange, transposed reads, atomics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_lanes
from zyfa_ort.kernels.errors import EmulationError

LDS = 2048
PRESET = 0x5A5A5A5A
LANE = np.arange(64, dtype=np.uint32)
ALL, SOME = ~np.uint64(0), np.uint64(0xC0FF_EE00_1234_5671)
RNG = np.random.default_rng(20)
IMAGE = RNG.integers(0, 2**32, 256, dtype=np.uint32)  # 1,024 bytes


def active(exec_mask: np.uint64) -> np.ndarray:
    return (exec_mask >> LANE.astype(np.uint64) & np.uint64(1)).astype(bool)


def kernel(body: str, rows: list[np.ndarray], outputs: int, exec_mask: np.uint64 = ALL) -> np.ndarray:
    """LDS holds IMAGE; row i is in v14+i; v40... are preset; `body` runs under `exec_mask`."""
    image = IMAGE.reshape(64, 4).T.copy()
    fill = "  v_lshlrev_b32 v2, 2, v1\n  ds_write_b128 v2, v[10:13]\n  s_waitcnt lgkmcnt(0)\n"
    presets = "".join(f"  v_mov_b32 v{40 + i}, {PRESET:#x}\n" for i in range(outputs))
    low, high = int(exec_mask) & 0xFFFFFFFF, int(exec_mask) >> 32
    mask = f"  s_mov_b32 exec_lo, {low:#x}\n  s_mov_b32 exec_hi, {high:#x}\n"
    return run_lanes(
        fill + presets + mask + body + "\n  s_waitcnt lgkmcnt(0)\n",
        [image, *[r.astype(np.uint32) for r in rows]],
        outputs,
        lds=LDS,
    )


def gather(addresses: np.ndarray, size: int) -> np.ndarray:
    """(64, size) bytes of IMAGE."""
    return IMAGE.view(np.uint8)[addresses[:, None].astype(np.int64) + np.arange(size)]


def expect(values: np.ndarray, exec_mask: np.uint64) -> np.ndarray:
    return np.where(active(exec_mask), values, np.uint32(PRESET))


@pytest.mark.parametrize("exec_mask", [ALL, SOME])
def test_reads_of_dwords(exec_mask: np.uint64) -> None:
    at = [RNG.integers(0, (1024 - 16) // n, 64) * n for n in (4, 8, 16, 16)]
    body = """
  ds_read_b32 v40, v14
  ds_read_b64 v[42:43], v15 offset:16
  ds_read_b96 v[44:46], v16
  ds_read_b128 v[48:51], v17
  ds_read2_b32 v[52:53], v14 offset0:1 offset1:3
  ds_read2_b64 v[54:57], v18 offset0:2 offset1:0
  ds_read2st64_b32 v[58:59], v18 offset0:1 offset1:2
  ds_read2st64_b64 v[60:63], v18 offset0:1 offset1:0
"""
    small = LANE * 8 % 128
    out = kernel(body, [at[0] % 1000 // 4 * 4, at[1] % 1000 // 8 * 8, at[2], at[3], small], 24, exec_mask)
    first, second = at[0] % 1000 // 4 * 4, at[1] % 1000 // 8 * 8
    wanted = {
        40: gather(first, 4),
        42: gather(second + 16, 8),
        44: gather(at[2], 12),
        48: gather(at[3], 16),
        52: np.concatenate([gather(first + 4, 4), gather(first + 12, 4)], 1),
        54: np.concatenate([gather(small + 16, 8), gather(small, 8)], 1),
        58: np.concatenate([gather(small + 256, 4), gather(small + 512, 4)], 1),
        60: np.concatenate([gather(small + 512, 8), gather(small, 8)], 1),
    }
    for register, data in wanted.items():
        dwords = np.ascontiguousarray(data).view(np.uint32)
        for i in range(dwords.shape[1]):
            np.testing.assert_array_equal(out[register - 40 + i], expect(dwords[:, i], exec_mask))


@pytest.mark.parametrize("exec_mask", [ALL, SOME])
def test_reads_of_parts(exec_mask: np.uint64) -> None:
    byte, half = RNG.integers(0, 1000, 64), RNG.integers(0, 500, 64) * 2
    names = {
        "u8": lambda: gather(byte, 1)[:, 0].astype(np.uint32),
        "i8": lambda: gather(byte, 1)[:, 0].astype(np.int8).astype(np.int32).view(np.uint32),
        "u16": lambda: np.ascontiguousarray(gather(half, 2)).view(np.uint16)[:, 0].astype(np.uint32),
        "i16": lambda: (
            np.ascontiguousarray(gather(half, 2)).view(np.int16)[:, 0].astype(np.int32).view(np.uint32)
        ),
    }
    body, wanted = "", []
    for name, value in names.items():
        body += f"  ds_read_{name} v{40 + len(wanted)}, v{14 if '8' in name else 15}\n"
        wanted.append(value())
    for name in ("u8", "i8", "u16"):
        value = names[name]() & 0xFFFF
        for half_name, result in (
            ("d16", (PRESET & 0xFFFF0000) | value),
            ("d16_hi", value << np.uint32(16) | np.uint32(PRESET & 0xFFFF)),
        ):
            body += f"  ds_read_{name}_{half_name} v{40 + len(wanted)}, v{14 if '8' in name else 15}\n"
            wanted.append(result)
    out = kernel(body, [byte, half], len(wanted), exec_mask)
    for row, result in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(row, expect(result, exec_mask))


def read_back(count: int = 4) -> str:
    """The image again, whatever was written into it."""
    return "  s_waitcnt lgkmcnt(0)\n  s_mov_b64 exec, -1\n  ds_read_b128 v[40:43], v2\n"


@pytest.mark.parametrize("exec_mask", [ALL, SOME])
@pytest.mark.parametrize(
    ("text", "bytes_", "step", "source"),
    [
        ("ds_write_b8 v14, v15", 1, 1, lambda d: d[:, 0:1]),
        ("ds_write_b8_d16_hi v14, v15", 1, 1, lambda d: d[:, 2:3]),
        ("ds_write_b16 v14, v15", 2, 2, lambda d: d[:, 0:2]),
        ("ds_write_b16_d16_hi v14, v15", 2, 2, lambda d: d[:, 2:4]),
        ("ds_write_b32 v14, v15", 4, 4, lambda d: d[:, 0:4]),
        ("ds_write_b64 v14, v[16:17]", 8, 8, lambda d: d[:, 4:12]),
        ("ds_write_b96 v14, v[16:18]", 12, 16, lambda d: d[:, 4:16]),
        ("ds_write_b128 v14, v[16:19]", 16, 16, lambda d: d[:, 4:20]),
    ],
    ids=lambda v: v.split()[0] if isinstance(v, str) else "",
)
def test_writes(
    text: str, bytes_: int, step: int, source: Callable[[np.ndarray], np.ndarray], exec_mask: np.uint64
) -> None:
    at = RNG.permutation(64) * step
    data = [RNG.integers(0, 2**32, 64, dtype=np.uint32) for _ in range(5)]
    out = kernel(f"  {text}\n" + read_back(), [at, *data], 4, exec_mask)
    wanted = IMAGE.view(np.uint8).copy()
    raw = source(np.ascontiguousarray(np.stack(data, 1)).view(np.uint8))
    for lane in np.flatnonzero(active(exec_mask)):
        wanted[at[lane] : at[lane] + bytes_] = raw[lane]
    np.testing.assert_array_equal(out.T.reshape(-1).view(np.uint8), wanted)


def test_two_address_writes() -> None:
    at = LANE * 4 % 64 * 4
    data = [RNG.integers(0, 2**32, 64, dtype=np.uint32) for _ in range(4)]
    body = "  ds_write2_b64 v14, v[16:17], v[18:19] offset0:0 offset1:64\n"
    body += "  s_waitcnt lgkmcnt(0)\n  ds_read_b64 v[40:41], v14\n  ds_read_b64 v[42:43], v14 offset:512\n"
    body += "  ds_write2st64_b32 v14, v16, v17 offset0:2 offset1:1\n"
    body += "  ds_read_b32 v44, v14 offset:512\n  ds_read_b32 v45, v14 offset:256\n"
    out = kernel(body, [at, at, *data], 6)
    winner = np.array([np.flatnonzero(at == a)[-1] for a in at])  # lanes in order: the last one stays
    for row, wanted in zip(out, [*data, data[0], data[1]], strict=True):
        np.testing.assert_array_equal(row, wanted[winner])


def test_lane_number_addresses_and_counts() -> None:
    body = """
  s_mov_b32 m0, 0x40
  s_nop 0
  ds_write_addtid_b32 v14 offset:16
  ds_read_addtid_b32 v40 offset:20
  s_mov_b32 m0, 8
  s_nop 0
  ds_append v41 offset:4
  ds_consume v42 offset:4
  ds_append v43
"""
    data = RNG.integers(0, 2**32, 64, dtype=np.uint32)
    out = kernel(body, [data], 4, np.uint64(0x7FFF_FFFF_FFFF_FFFF))
    np.testing.assert_array_equal(out[0][:63], np.append(data[1:63], IMAGE[36 + 47]))
    assert set(out[1][:63]) == {IMAGE[3]}
    assert set(out[2][:63]) == {IMAGE[3] + 63}
    assert set(out[3][:63]) == {IMAGE[2]}


@pytest.mark.parametrize("exec_mask", [ALL, SOME])
def test_lane_exchange(exec_mask: np.uint64) -> None:
    index, data = RNG.integers(0, 64, 64), RNG.integers(0, 2**32, 64, dtype=np.uint32)
    patterns = [0x8000 | 0b00_01_10_11, 0x001F | 0x10 << 10, 0x0018 | 3 << 5 | 5 << 10]
    body = "  ds_bpermute_b32 v40, v14, v15\n  ds_permute_b32 v41, v14, v15 offset:8\n"
    body += "".join(f"  ds_swizzle_b32 v{42 + i}, v15 offset:{p:#x}\n" for i, p in enumerate(patterns))
    out = kernel(body, [index * 4 + 1024 + 3, data], 5, exec_mask)
    on = active(exec_mask)
    np.testing.assert_array_equal(out[0], expect(np.where(on[index], data[index], 0), exec_mask))
    pushed = np.zeros(64, np.uint32)
    for lane in np.flatnonzero(on):
        pushed[(index[lane] * 4 + 3 + 8) // 4 % 64] = data[lane]
    np.testing.assert_array_equal(out[1], expect(pushed, exec_mask))
    lane = LANE.astype(int)
    sources = [lane & ~3 | np.array([3, 2, 1, 0])[lane & 3], lane ^ 16, lane & 32 | ((lane & 0x18 | 3) ^ 5)]
    for row, source in zip(out[2:], sources, strict=True):
        np.testing.assert_array_equal(row, expect(np.where(on[source], data[source], 0), exec_mask))


@pytest.mark.parametrize(
    ("name", "bits", "size", "lanes_per_row"),
    [("b64_tr_b4", 4, 8, 1), ("b64_tr_b8", 8, 8, 2), ("b64_tr_b16", 16, 8, 4), ("b96_tr_b6", 6, 12, 1)],
)
def test_transposed_reads(name: str, bits: int, size: int, lanes_per_row: int) -> None:
    """Sixteen lanes fetch a matrix of 16 columns; lane i receives column i, rows in ascending order."""
    at = RNG.permutation(64) * 16
    out = kernel(f"  ds_read_{name} v[40:{39 + size // 4}], v14\n", [at], size // 4)
    raw = np.unpackbits(gather(at, size), axis=1, bitorder="little").reshape(64, -1, bits)
    rows = raw.reshape(4, -1, lanes_per_row, raw.shape[1], bits).reshape(4, -1, 16, bits)
    columns = np.ascontiguousarray(rows.transpose(0, 2, 1, 3)).reshape(64, -1)
    wanted = np.packbits(columns, axis=1, bitorder="little").view(np.uint32)
    np.testing.assert_array_equal(out.T, wanted)


def f32(bits: np.ndarray) -> np.ndarray:
    return bits.view(np.float32)


def halves(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return (a.view(np.float16) + b.view(np.float16)).view(np.uint32)


WORDS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add_rtn_u32": lambda m, d: m + d,
    "sub_rtn_u32": lambda m, d: m - d,
    "rsub_rtn_u32": lambda m, d: d - m,
    "inc_rtn_u32": lambda m, d: np.where(m >= d, 0, m + 1),
    "dec_rtn_u32": lambda m, d: np.where((m == 0) | (m > d), d, m - 1),
    "min_rtn_i32": lambda m, d: np.minimum(m.view(np.int32), d.view(np.int32)).view(np.uint32),
    "max_rtn_i32": lambda m, d: np.maximum(m.view(np.int32), d.view(np.int32)).view(np.uint32),
    "min_rtn_u32": np.minimum,
    "max_rtn_u32": np.maximum,
    "and_rtn_b32": lambda m, d: m & d,
    "or_rtn_b32": lambda m, d: m | d,
    "xor_rtn_b32": lambda m, d: m ^ d,
    "wrxchg_rtn_b32": lambda m, d: d,
    "add_rtn_f32": lambda m, d: (f32(m) + f32(d)).view(np.uint32),
    "min_rtn_f32": lambda m, d: np.where(f32(d) < f32(m), d, m),
    "max_rtn_f32": lambda m, d: np.where(f32(d) > f32(m), d, m),
    "pk_add_rtn_f16": halves,
}


def float_rows() -> tuple[np.ndarray, np.ndarray]:
    """Pairs of dwords that are ordinary, special and denormal floats; no NaN pairs with open payloads."""
    special = np.array(
        [0, 0x80000000, 1, 0x007FFFFF, 0x7F800000, 0x3F800000, 0xBF800001, 0x7F7FFFFF], np.uint32
    )
    a = np.concatenate([np.repeat(special, 8)])
    b = np.tile(special, 8).copy()
    return a, b


def is_nan(bits: np.ndarray, name: str) -> np.ndarray:
    if "f32" in name:
        return np.isnan(f32(bits))
    return (
        np.isnan(bits.view(np.float16)).reshape(-1, 2).any(1) if "f16" in name else np.zeros(len(bits), bool)
    )


@pytest.mark.parametrize("group", [list(WORDS)[:9], list(WORDS)[9:]], ids=["integer", "bits and floats"])
def test_word_atomics(group: list[str]) -> None:
    """Each on its own dwords, four rounds of data."""
    memory, data = float_rows()
    more = RNG.integers(0, 2**32, (2, 64), dtype=np.uint32)
    more[1, :8] = more[0, :8]
    for m, d in ((memory, data), (more[0], more[1])):
        body, wanted = "", []
        for i, name in enumerate(group):
            body += f"  ds_write_b32 v1, v14\n  ds_{name} v{40 + 2 * i}, v1, v15\n  ds_read_b32 v{41 + 2 * i}, v1\n"
            with np.errstate(all="ignore"):
                wanted += [m, WORDS[name](m, d).astype(np.uint32)]
        out = kernel(body, [m, d], len(wanted))
        for i, name in enumerate(group):
            np.testing.assert_array_equal(out[2 * i], m, err_msg=name)
            nan = is_nan(wanted[2 * i + 1], name)
            np.testing.assert_array_equal(nan, is_nan(out[2 * i + 1], name), err_msg=name)
            np.testing.assert_array_equal(out[2 * i + 1][~nan], wanted[2 * i + 1][~nan], err_msg=name)


def test_atomics_with_two_operands_and_without_return() -> None:
    m, d, e = (RNG.integers(0, 2**32, 64, dtype=np.uint32) for _ in range(3))
    d[::2] = m[::2]
    d[1::4] &= 0x7FFFFFFF
    body = ""
    for i, name in enumerate(["cmpst", "mskor", "wrap"]):
        body += (
            f"  ds_write_b32 v1, v14\n  ds_{name}_rtn_b32 v40, v1, v15, v16\n  ds_read_b32 v{41 + i}, v1\n"
        )
    body += "  ds_write_b32 v1, v14\n  ds_add_u32 v1, v15\n  ds_pk_add_bf16 v1, v16\n  ds_read_b32 v44, v1\n"
    body += (
        "  s_waitcnt lgkmcnt(0)\n  ds_write_b32 v1, v17\n  ds_pk_add_bf16 v1, v18\n  ds_read_b32 v45, v1\n"
    )
    a, b = (RNG.normal(0, 8, 128).astype(np.float32) for _ in range(2))
    bf = [(x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b)]
    out = kernel(body, [m, d, e, bf[0].view(np.uint32), bf[1].view(np.uint32)], 6)
    np.testing.assert_array_equal(out[1], np.where(m == d, e, m))
    np.testing.assert_array_equal(out[2], m & ~d | e)
    np.testing.assert_array_equal(out[3], np.where(m >= d, m - d, m + e))
    total = sum((x.astype(np.uint32) << np.uint32(16)).view(np.float32) for x in bf).view(np.uint32)
    rounded = (total + 0x7FFF + (total >> np.uint32(16) & 1)) >> np.uint32(16)
    np.testing.assert_array_equal(out[5].view(np.uint16), rounded.astype(np.uint16))


def test_wide_atomics() -> None:
    m, d = RNG.integers(0, 2**64, (2, 64), dtype=np.uint64)
    x, y = RNG.normal(0, 1, (2, 64))
    wide: dict[str, np.ndarray] = {
        "add_rtn_u64": m + d,
        "min_rtn_i64": np.minimum(m.view(np.int64), d.view(np.int64)).view(np.uint64),
        "max_rtn_u64": np.maximum(m, d),
        "xor_rtn_b64": m ^ d,
        "add_rtn_f64": (x + y).view(np.uint64),
        "max_rtn_f64": np.maximum(x, y).view(np.uint64),
    }
    body = "  v_lshlrev_b32 v3, 1, v1\n"
    for i, name in enumerate(wide):
        a, b = ("v[18:19]", "v[20:21]") if "f64" in name else ("v[14:15]", "v[16:17]")
        body += f"  ds_write_b64 v3, {a}\n  ds_{name} v[{40 + 4 * i}:{41 + 4 * i}], v3, {b}\n"
        body += f"  ds_read_b64 v[{42 + 4 * i}:{43 + 4 * i}], v3\n"
    rows = [
        r for w in (m, d, x.view(np.uint64), y.view(np.uint64)) for r in w.view(np.uint32).reshape(64, 2).T
    ]
    out = kernel(body, rows, 24)
    for i, (name, wanted) in enumerate(wide.items()):
        before = x.view(np.uint64) if "f64" in name else m
        pair = [np.ascontiguousarray(out[4 * i + k : 4 * i + k + 2].T).view(np.uint64)[:, 0] for k in (0, 2)]
        np.testing.assert_array_equal(pair[0], before, err_msg=name)
        np.testing.assert_array_equal(pair[1], wanted, err_msg=name)


def test_atomic_lanes_take_turns() -> None:
    body = "  v_mov_b32 v3, 8\n  v_mov_b32 v4, 3\n  ds_add_rtn_u32 v40, v3, v4\n"
    out = kernel(body, [LANE], 1)
    np.testing.assert_array_equal(out[0], IMAGE[2] + 3 * LANE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "  v_mov_b32 v3, 2045\n  ds_read_b32 v40, v3",
            "LDS access of 4 bytes at 0x7fd in lane 0; the workgroup has 2048",
        ),
        ("  ds_write_b32 v1, v14 offset:0xfff0", "LDS access of 4 bytes at 0xfff0 in lane 0"),
        ("  s_mov_b32 exec_lo, 0\n  ds_read_b64_tr_b8 v[40:41], v1", "need all 64 lanes"),
        (
            "  v_mov_b32 v3, 4\n  ds_read_b64 v[40:41], v3",
            "misaligned.*address 0x4 of lane 0 is no multiple of 8",
        ),
        ("  v_mov_b32 v3, 8\n  ds_read_b128 v[40:43], v3", "misaligned.*no multiple of 16"),
        ("  v_mov_b32 v3, 8\n  ds_write_b96 v3, v[10:12]", "misaligned.*no multiple of 16"),
        ("  v_mov_b32 v3, 2\n  ds_add_u32 v3, v3", "misaligned.*no multiple of 4"),
        ("  ds_swizzle_b32 v40, v1 offset:0xc020", "does not implement"),
        ("  v_mov_b32 v3, 1040\n  ds_read_b32 v40, v3", "undefined_lds.*LDS 0x410 was never written"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        kernel(text + "\n  s_waitcnt lgkmcnt(0)\n  s_mov_b64 exec, -1", [LANE], 1)
