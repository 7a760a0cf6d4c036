"""Global, flat, scratch, buffer and scalar memory instructions, and loads to LDS, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_kernel
from zyfa_ort.kernels.emulator import Result
from zyfa_ort.kernels.errors import EmulationError

LANE = np.arange(64)
ALL, SOME = 2**64 - 1, 0xC0FF_EE00_1234_5671
PRESET = 0x5A5A5A5A
RNG = np.random.default_rng(21)


def active(exec_mask: int) -> np.ndarray:
    return np.array([bool(exec_mask >> lane & 1) for lane in range(64)])


def run(
    body: str,
    data: np.ndarray,
    rows: list[np.ndarray] | None = None,
    outputs: int = 4,
    exec_mask: int = ALL,
    *,
    report_only: bool = False,
    **settings: object,
) -> tuple[np.ndarray, Result]:
    """s[4:5] is `data` (changed in place), rows are in v10..., v1 is 4 * lane, results are v40... (preset)."""
    given = np.ascontiguousarray(
        np.stack([r.astype(np.uint32) for r in rows]) if rows else np.zeros((1, 64), np.uint32)
    )
    out = np.zeros((outputs, 64), np.uint32)
    text = "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  s_load_dwordx2 s[8:9], s[0:1], 0x10\n"
    text += "  v_and_b32 v1, 0x3ff, v0\n  v_lshlrev_b32 v1, 2, v1\n  s_waitcnt lgkmcnt(0)\n"
    text += "".join(
        f"  global_load_dword v{10 + i}, v1, s[6:7] offset:{256 * i}\n" for i in range(len(given))
    )
    text += "".join(f"  v_mov_b32 v{40 + i}, {PRESET:#x}\n" for i in range(outputs))
    text += f"  s_waitcnt vmcnt(0)\n  s_mov_b32 exec_lo, {exec_mask & 0xFFFFFFFF:#x}\n"
    text += f"  s_mov_b32 exec_hi, {exec_mask >> 32:#x}\n{body}\n"
    text += "  s_waitcnt vmcnt(0) lgkmcnt(0)\n  s_mov_b64 exec, -1\n"
    for i in range(outputs):
        text += (
            f"  global_store_dword v1, v{40 + i}, s[8:9]\n  s_add_u32 s8, s8, 256\n  s_addc_u32 s9, s9, 0\n"
        )
    result = run_kernel(text, [data, given, out], report_only=report_only, **settings)  # type: ignore[arg-type]
    return out, result


def random_dwords(count: int) -> np.ndarray:
    return RNG.integers(0, 2**32, count, dtype=np.uint32)


def gather(data: np.ndarray, at: np.ndarray, size: int) -> np.ndarray:
    return np.ascontiguousarray(data.view(np.uint8)[at[:, None] + np.arange(size)])


def resource(records: int, stride: int = 0) -> str:
    """s[12:15]: a buffer over s[4:5]."""
    return (
        f"  s_mov_b32 s12, s4\n  s_or_b32 s13, s5, {stride << 16:#x}\n  s_mov_b32 s14, {records:#x}\n"
        "  s_mov_b32 s15, 0x20000\n"
    )


# Family -> how lane offsets in v10 address the data in s[4:5].
FAMILIES = {
    "global_saddr": ("", "global_{op} {reg}, v10, s[4:5] offset:{offset}", "global_{op} v10, {reg}, s[4:5] offset:{offset}"),
    "global": (
        "  v_add_u32 v2, s4, v10\n  v_mov_b32 v3, s5\n",
        "global_{op} {reg}, v[2:3], off offset:{offset}",
        "global_{op} v[2:3], {reg}, off offset:{offset}",
    ),
    "flat": (
        "  v_add_u32 v2, s4, v10\n  v_mov_b32 v3, s5\n",
        "flat_{op} {reg}, v[2:3] offset:{offset}",
        "flat_{op} v[2:3], {reg} offset:{offset}",
    ),
    "buffer": (
        resource(1 << 20) + "  s_mov_b32 s16, 0\n",
        "buffer_{op} {reg}, v10, s[12:15], 0 offen offset:{offset}",
        "buffer_{op} {reg}, v10, s[12:15], s16 offen offset:{offset}",
    ),
}  # fmt: skip


def register(first: int, dwords: int, file: str = "v") -> str:
    return f"{file}{first}" if dwords == 1 else f"{file}[{first}:{first + dwords - 1}]"


@pytest.mark.parametrize("exec_mask", [ALL, SOME])
@pytest.mark.parametrize("family", FAMILIES)
def test_loads(family: str, exec_mask: int) -> None:
    setup, load, _ = FAMILIES[family]
    data = random_dwords(1024)
    at = RNG.permutation(64) * 16
    body, wanted = setup, []

    def one(op: str, dwords: int, values: np.ndarray, offset: int) -> None:
        nonlocal body
        first = 40 + len(wanted)
        body += f"  {load.format(op='load_' + op, reg=register(first, dwords), offset=offset)}\n"
        wanted.extend(np.ascontiguousarray(values).view(np.uint32).reshape(64, -1).T)

    for dwords, name in ((4, "dwordx4"), (2, "dwordx2"), (1, "dword"), (1, "dword")):
        one(name, dwords, gather(data, at + 4 * dwords, 4 * dwords), 4 * dwords)
    one("dwordx3", 3, gather(data, at + 2048, 12), 2048)
    wanted.append(np.full(64, PRESET, np.uint32))
    byte, half = gather(data, at + 7, 1), gather(data, at + 6, 2).view(np.uint16)
    one("ubyte", 1, byte.astype(np.uint32), 7)
    one("sbyte", 1, byte.view(np.int8).astype(np.int32), 7)
    one("ushort", 1, half.astype(np.uint32), 6)
    one("sshort", 1, half.view(np.int16).astype(np.int32), 6)
    old = np.uint32(PRESET)
    one("short_d16", 1, old & 0xFFFF0000 | half, 6)
    one("short_d16_hi", 1, old & 0xFFFF | half.astype(np.uint32) << 16, 6)
    one("ubyte_d16", 1, old & 0xFFFF0000 | byte, 7)
    signed = byte.view(np.int8).astype(np.int16).view(np.uint16)
    one("sbyte_d16", 1, old & 0xFFFF0000 | signed, 7)
    one("sbyte_d16_hi", 1, old & 0xFFFF | signed.astype(np.uint32) << 16, 7)
    out, _ = run(body, data, [at], len(wanted), exec_mask)
    for row, values in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(row, np.where(active(exec_mask), values, old))


@pytest.mark.parametrize("exec_mask", [ALL, SOME])
@pytest.mark.parametrize("family", FAMILIES)
def test_stores(family: str, exec_mask: int) -> None:
    setup, _, store = FAMILIES[family]
    data = random_dwords(2048)
    wanted = data.copy().view(np.uint8)
    at = RNG.permutation(64) * 96
    rows = [random_dwords(64) for _ in range(4)]
    raw = np.ascontiguousarray(np.stack(rows, 1)).view(np.uint8)
    body, where = setup, 0
    for op, dwords, size, begin in (
        ("dwordx4", 4, 16, 0), ("dwordx3", 3, 12, 0), ("dwordx2", 2, 8, 0), ("dword", 1, 4, 0),
        ("byte", 1, 1, 0), ("byte_d16_hi", 1, 1, 2), ("short", 1, 2, 0), ("short_d16_hi", 1, 2, 2),
    ):  # fmt: skip
        file = "a" if op == "dwordx3" else "v"
        if file == "a":
            body += "".join(f"  v_accvgpr_write_b32 a{12 + i}, v{12 + i}\n" for i in range(4))
        body += f"  {store.format(op='store_' + op, reg=register(12, dwords, file), offset=where)}\n"
        for lane in np.flatnonzero(active(exec_mask)):
            wanted[at[lane] + where :][:size] = raw[lane, begin : begin + size]
        where += 16 if size == 16 else size + -size % 4
    body = body.replace("v_accvgpr", "s_nop 1\n  v_accvgpr", 1)
    run(body, data, [at, at, *rows], 1, exec_mask)
    np.testing.assert_array_equal(data.view(np.uint8), wanted)


def test_loads_into_accumulation_registers() -> None:
    data = random_dwords(256)
    body = "  global_load_dwordx4 a[4:7], v10, s[4:5]\n  s_waitcnt vmcnt(0)\n"
    body += "".join(f"  v_accvgpr_read_b32 v{40 + i}, a{4 + i}\n" for i in range(4))
    out, _ = run(body, data, [LANE * 16])
    np.testing.assert_array_equal(out.T.reshape(-1), data)


def test_negative_offsets_and_far_buffers() -> None:
    data = random_dwords(128)
    out, _ = run("  global_load_dword v40, v10, s[4:5] offset:-4096", data, [LANE * 4 + 4096], 1)
    np.testing.assert_array_equal(out[0], data[:64])
    # Lanes of one instruction in two allocations.
    body = "  v_mov_b32 v2, s4\n  v_mov_b32 v3, s5\n  s_mov_b32 exec_lo, 0xffff0000\n  v_mov_b32 v2, s6\n"
    body += "  v_mov_b32 v3, s7\n  s_mov_b32 exec_lo, -1\n  v_add_u32 v2, v2, v1\n  global_load_dword v40, v[2:3], off"
    row = random_dwords(64)
    out, _ = run(body, data, [row], 1)
    other = active(ALL ^ 0xFFFF)
    np.testing.assert_array_equal(out[0], np.where(other, row, data[:64]))


def test_buffer_addressing() -> None:
    """base + soffset + index * stride + voffset + offset; the register pair is index, then offset."""
    data = random_dwords(1024)
    body = resource(4096, stride=20) + "  s_mov_b32 s16, 12\n"
    body += "  buffer_load_dword v40, v[10:11], s[12:15], s16 idxen offen offset:8\n"
    body += "  buffer_load_dword v41, v10, s[12:15], 4 idxen offset:4\n  buffer_load_dword v42, off, s[12:15], s16\n"
    body += resource(4096) + "  buffer_load_dword v43, v11, s[12:15], s16 offen offset:4095\n"
    index, offset = RNG.permutation(64), LANE * 4
    out, _ = run(body.replace("offset:4095", "offset:1020"), data, [index, offset], 4)
    np.testing.assert_array_equal(out[0], data[(12 + index * 20 + offset + 8) // 4])
    np.testing.assert_array_equal(out[1], data[(4 + index * 20 + 4) // 4])
    np.testing.assert_array_equal(out[2], np.full(64, data[3]))
    np.testing.assert_array_equal(out[3], data[(12 + offset + 1020) // 4])


def test_buffer_range_is_checked_per_dword() -> None:
    """Loads beyond num_records bring 0, stores there are dropped; dwords in range are accessed."""
    data = random_dwords(256)
    before = data.copy()
    records = 16 * 40 + 8
    body = resource(records) + "  s_mov_b32 s16, 16\n"
    body += "  buffer_load_dwordx4 v[40:43], v10, s[12:15], 0 offen\n"
    body += "  buffer_load_dwordx4 v[44:47], v10, s[12:15], s16 offen\n"
    body += "  buffer_load_ushort v48, v10, s[12:15], 0 offen offset:6\n"
    body += "  buffer_store_dwordx4 v[12:15], v10, s[12:15], 0 offen\n"
    rows = [LANE * 16, LANE, *(random_dwords(64) for _ in range(4))]
    out, _ = run(body, data, rows, 9)
    dwords = before.copy()
    dwords[records // 4 :] = 0
    np.testing.assert_array_equal(out[:4].T.reshape(-1), dwords)
    # soffset counts against num_records, too.
    moved = np.append(before[4:], np.zeros(4, np.uint32))
    moved[(records - 16) // 4 :] = 0
    shifted = moved.copy()
    shifted[(records - 32) // 4 + 4 :] = 0
    np.testing.assert_array_equal(out[4:8].T.reshape(-1), shifted)
    np.testing.assert_array_equal(out[8], np.where(records >= LANE * 16 + 8, dwords[LANE * 4 + 1] >> 16, 0))
    wanted = np.stack(rows[2:], 1).astype(np.uint32).reshape(-1)
    wanted[records // 4 :] = before[records // 4 :]
    np.testing.assert_array_equal(data, wanted)


@pytest.mark.parametrize("exec_mask", [ALL, SOME])
@pytest.mark.parametrize(
    ("op", "size"),
    [
        ("dword", 4),
        ("dwordx3", 12),
        ("dwordx4", 16),
        ("ubyte", 1),
        ("sbyte", 1),
        ("ushort", 2),
        ("sshort", 2),
    ],
)
@pytest.mark.parametrize("kind", ["buffer", "global"])
def test_loads_to_lds(kind: str, op: str, size: int, exec_mask: int) -> None:
    """Lane i lands at M0 + offset + i * size; the offset moves the memory address, too."""
    data = random_dwords(512)
    at = RNG.permutation(64) * 16
    load = f"buffer_load_{op} v10, s[12:15], 0 offen offset:32 lds"
    if kind == "global":
        load = f"global_load_lds_{op} v10, s[4:5] offset:32"
    body = resource(2048) + "  s_mov_b64 s[20:21], exec\n  s_mov_b64 exec, -1\n  v_lshlrev_b32 v6, 2, v1\n"
    body += "".join(f"  v_mov_b32 v{i}, 0x77\n" for i in range(2, 6))
    body += "  ds_write_b128 v6, v[2:5] offset:64\n  s_waitcnt lgkmcnt(0)\n  s_mov_b64 exec, s[20:21]\n"
    body += f"  s_mov_b32 m0, 0x20\n  s_nop 0\n  {load}\n  s_waitcnt vmcnt(0)\n  s_mov_b64 exec, -1\n"
    body += "  ds_read_b128 v[40:43], v6 offset:64\n"
    out, _ = run(body, data, [at], 4, exec_mask, lds=4096)
    raw = gather(data, at + 32, size)
    wanted = np.full((64, max(size, 4) // 4), 0x77, np.uint32)
    if size == 1:
        values = (raw.view(np.int8) if op[0] == "s" else raw).astype(np.int32)
    elif size == 2:
        values = raw.view(np.int16 if op[0] == "s" else np.uint16).astype(np.int32)
    else:
        values = raw
    on = active(exec_mask)
    wanted[on] = np.ascontiguousarray(values).view(np.uint32)[on]
    image = np.full(256, 0x77, np.uint32)
    image[: wanted.size] = wanted.reshape(-1)
    np.testing.assert_array_equal(out.T.reshape(-1), image)


def test_loads_to_lds_write_zeros_out_of_range() -> None:
    data = random_dwords(256)
    body = resource(40) + "  s_mov_b32 m0, 0\n  s_nop 0\n  buffer_load_dwordx4 v10, s[12:15], 0 offen lds\n"
    body += "  s_waitcnt vmcnt(0)\n  ds_read_b128 v[40:43], v10\n"
    out, _ = run(body, data, [LANE * 16], 4, lds=1024)
    wanted = np.zeros(256, np.uint32)
    wanted[:10] = data[:10]
    np.testing.assert_array_equal(out.T.reshape(-1), wanted)


def test_flat_reaches_lds_and_private_memory() -> None:
    data = random_dwords(64)
    body = """
  v_mov_b32 v3, 0x10000
  v_mov_b32 v2, v1
  flat_store_dword v[2:3], v10 offset:64
  s_waitcnt vmcnt(0) lgkmcnt(0)
  ds_read_b32 v40, v1 offset:64
  flat_load_dword v41, v[2:3] offset:64
  flat_atomic_add v42, v[2:3], v10 offset:64 sc0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  ds_read_b32 v43, v1 offset:64
  v_mov_b32 v3, 0x20000
  v_mov_b32 v2, 8
  flat_store_dword v[2:3], v10
  scratch_load_dword v44, off, off offset:8
"""
    row = random_dwords(64)
    out, _ = run(body, data, [row], 5, lds=512, private=16)
    for i, wanted in enumerate([row, row, row, row + row, row]):
        np.testing.assert_array_equal(out[i], wanted)


def test_scratch() -> None:
    """Every lane has its own bytes; the address is register, SGPR and offset, in any combination."""
    data = random_dwords(64)
    rows = [random_dwords(64) for _ in range(4)]
    body = """
  s_movk_i32 s16, 16
  v_mov_b32 v2, 32
  scratch_store_dwordx4 off, v[10:13], s16
  scratch_store_dwordx2 v2, v[10:11], s16 offset:4
  scratch_store_byte v2, v12, off
  s_waitcnt vmcnt(0)
  scratch_load_dwordx2 v[40:41], off, off offset:24
  scratch_load_dwordx2 v[42:43], v2, off offset:20
  scratch_load_ubyte v44, off, s16 offset:16
"""
    out, _ = run(body, data, rows, 5, private=64)
    wanted = [rows[2], rows[3], rows[0], rows[1], rows[2] & 255]
    np.testing.assert_array_equal(out, np.stack(wanted))


MEMORY_ATOMICS = {
    "swap": lambda m, d: d,
    "add": lambda m, d: m + d,
    "sub": lambda m, d: m - d,
    "smin": lambda m, d: np.minimum(m.view(np.int32), d.view(np.int32)).view(np.uint32),
    "umin": np.minimum,
    "smax": lambda m, d: np.maximum(m.view(np.int32), d.view(np.int32)).view(np.uint32),
    "umax": np.maximum,
    "and": lambda m, d: m & d,
    "or": lambda m, d: m | d,
    "xor": lambda m, d: m ^ d,
    "inc": lambda m, d: np.where(m >= d, 0, m + 1),
    "dec": lambda m, d: np.where((m == 0) | (m > d), d, m - 1),
    "add_f32": lambda m, d: (m.view(np.float32) + d.view(np.float32)).view(np.uint32),
    "pk_add_f16": lambda m, d: (m.view(np.float16) + d.view(np.float16)).view(np.uint32),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_atomics(family: str) -> None:
    """Operation i works on data[64 i ...]; odd ones return what was there."""
    setup, load, store = FAMILIES[family]
    count = len(MEMORY_ATOMICS)
    data = (random_dwords(64 * count) & 0x9FFF_DFFF).astype(np.uint32)  # finite as float16 and float32
    row = random_dwords(64) & np.uint32(0x9FFF_DFFF)
    before, body, outputs = data.copy(), setup, []
    for i, name in enumerate(MEMORY_ATOMICS):
        returns = i % 2 == 1
        register_ = f"v{40 + len(outputs)}"
        if family == "buffer":
            if returns:
                body += f"  v_mov_b32 {register_}, v11\n"
            text = load.format(op="atomic_" + name, reg=register_ if returns else "v11", offset=256 * i)
        elif returns:
            text = store.format(op="atomic_" + name, reg="v11", offset=256 * i)
            text = text.replace(f"atomic_{name} ", f"atomic_{name} {register_}, ")
        else:
            text = store.format(op="atomic_" + name, reg="v11", offset=256 * i)
        body += f"  {text}{' sc0' if returns else ''}\n"
        if returns:
            outputs.append(before[64 * i :][:64])
    out, _ = run(body, data, [LANE * 4, row], len(outputs))
    np.testing.assert_array_equal(out, np.stack(outputs))
    for i, (name, operation) in enumerate(MEMORY_ATOMICS.items()):
        wanted = operation(before[64 * i :][:64], row)
        np.testing.assert_array_equal(data[64 * i :][:64], wanted, err_msg=name)


def test_wide_and_comparing_atomics() -> None:
    data = random_dwords(64 * 6)
    before = data.copy()
    x, y = RNG.normal(0, 1, (2, 64))
    data[:128] = x.view(np.uint32)
    new, match = random_dwords(64), before[256:320].copy()
    match[::3] ^= 1
    rows = [LANE * 4, LANE * 8, *y.view(np.uint32).reshape(64, 2).T, new, match]
    body = "  global_atomic_add_f64 v11, v[12:13], s[4:5]\n"
    body += "  global_atomic_add_x2 v[40:41], v11, v[12:13], s[4:5] offset:512 sc0\n"
    body += "  global_atomic_cmpswap v42, v10, v[14:15], s[4:5] offset:1024 sc0\n"
    body += (
        resource(512)
        + "  v_mov_b32 v43, v14\n  buffer_atomic_add v43, v10, s[12:15], 0 offen offset:1280 sc0\n"
    )
    out, _ = run(body, data, rows, 4)
    np.testing.assert_array_equal(data[:128].view(np.float64), x + y)
    wide = before[128:256].view(np.uint64)
    np.testing.assert_array_equal(np.ascontiguousarray(out[:2].T).view(np.uint64)[:, 0], wide)
    np.testing.assert_array_equal(data[128:256].view(np.uint64), wide + y.view(np.uint64))
    np.testing.assert_array_equal(out[2], before[256:320])
    np.testing.assert_array_equal(data[256:320], np.where(match == before[256:320], new, before[256:320]))
    np.testing.assert_array_equal(out[3], np.zeros(64))  # out of the buffer's range: nothing happens
    np.testing.assert_array_equal(data[320:], before[320:])


def test_atomics_of_many_workgroups() -> None:
    data = np.zeros(64, np.uint32)
    body = "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  v_mov_b32 v2, 1\n  s_waitcnt lgkmcnt(0)\n"
    body += "  global_atomic_add v1, v2, s[4:5]\n"
    run_kernel(body, [data], grid=(50,), options={"threads": 3, "order_seed": 5})
    assert set(data) == {50}


def test_scalar_loads() -> None:
    data = random_dwords(64)
    body = resource(100) + "  s_movk_i32 s16, 8\n  s_load_dwordx8 s[24:31], s[4:5], 0x20\n"
    body += "  s_load_dword s20, s[4:5], s16 offset:0xc\n  s_load_dwordx2 s[22:23], s[4:5], s16\n"
    body += "  s_load_dwordx16 s[32:47], s[4:5], 0x40\n  s_buffer_load_dwordx4 s[48:51], s[12:15], 0x58\n"
    body += "  s_buffer_load_dword s21, s[12:15], s16\n  s_dcache_inv\n  s_waitcnt lgkmcnt(0)\n"
    registers = [*range(24, 32), 20, 22, 23, *range(32, 48), *range(48, 52), 21]
    body += "".join(f"  v_mov_b32 v{40 + i}, s{r}\n" for i, r in enumerate(registers))
    out, _ = run(body, data, None, len(registers))
    wanted = [*data[8:16], data[5], data[2], data[3], *data[16:32], data[22], data[23], data[24], 0, data[2]]
    np.testing.assert_array_equal(out[:, 0], np.array(wanted, np.uint32))


def test_clocks_count_instructions() -> None:
    body = "  s_memtime s[20:21]\n  s_waitcnt lgkmcnt(0)\n  s_nop 0\n  s_nop 0\n  s_memtime s[22:23]\n"
    body += "  s_memrealtime s[24:25]\n  s_waitcnt lgkmcnt(0)\n"
    body += "".join(f"  v_mov_b32 v{40 + i}, s{20 + i}\n" for i in range(6))
    first, _ = run(body, random_dwords(1), None, 6)
    again, _ = run(body, random_dwords(1), None, 6)
    np.testing.assert_array_equal(first, again)
    assert first[2, 0] - first[0, 0] == 4 * 4
    assert first[4, 0] <= first[2, 0] // 24 + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  global_load_dword v40, v10, s[4:5] offset:256", "lane 0: read of 4 bytes at .* past the end of 'argument 0'"),
        ("  global_store_dword v10, v10, s[4:5] offset:4", "lane 63: write of 4 bytes at .* 'argument 0' .*256 bytes"),
        ("  global_load_dword v40, v10, s[4:5] offset:-4", "lane 0: read of 4 bytes at .* before 'argument 0'"),
        ("  s_load_dwordx4 s[20:23], s[4:5], 0xf8", "scalar load of 16 bytes at .* 248 bytes into 'argument 0'"),
        ("  global_load_dword v40, v11, s[4:5] offset:2", "misaligned.*of lane 0 is no multiple of 4"),
        ("  global_load_ushort v40, v10, s[4:5] offset:1", "misaligned.*no multiple of 2"),
        ("  s_load_dword s20, s[4:5], 0x2", "misaligned.*no multiple of 4"),
        ("  global_atomic_add_x2 v11, v[10:11], s[4:5] offset:4", "atomic of 8 bytes at .* not a multiple of its size"),
        ("  scratch_load_dword v40, v10, off", "lane 0: access of 4 bytes at 0x0 of private memory; a work-item has 0"),
        (resource(0, stride=0x8000) + "  buffer_load_dword v40, v10, s[12:15], 0 offen", "swizzled"),
        ("  s_mov_b32 m0, 0\n  s_nop 0\n  global_load_lds_dword v10, s[4:5]", "LDS access of 4 bytes at 0x0 in lane 0"),
        (resource(1 << 20) + "  buffer_load_format_x v40, v10, s[12:15], 0 offen", "does not implement"),
    ],
)  # fmt: skip
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        run(text, random_dwords(64), [LANE * 4, LANE], 1)


def test_wrong_lanes_are_no_error_when_inactive() -> None:
    far = np.where(LANE == 7, 2**31, LANE * 4)
    out, _ = run("  global_load_dword v40, v10, s[4:5]", random_dwords(64), [far], 1, ALL ^ 1 << 7)
    assert out[0, 7] == PRESET
