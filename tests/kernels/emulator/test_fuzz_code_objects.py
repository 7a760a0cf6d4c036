"""Damaged code objects: always a clean error or a clean run, never a crash, a hang or another exception."""

from __future__ import annotations

import faulthandler
import functools
import struct

import numpy as np
import pytest
from kernels.emulator.wave_kernel import kernel_text
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.emulator import _native

# A bit of every unit, so that damaged text stays near real instructions.
BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_and_b32_e32 v1, 0x3ff, v0
  v_lshlrev_b32_e32 v2, 2, v1
  s_mov_b32 m0, 0x1000
  s_movk_i32 s8, 3
  s_waitcnt lgkmcnt(0)
  global_load_dword v3, v2, s[4:5]
  s_mov_b32 s12, s4
  s_and_b32 s13, s5, 0xffff
  s_movk_i32 s14, 0x400
  s_mov_b32 s15, 0x20000
  buffer_load_dwordx4 v[4:7], v2, s[12:15], 0 offen
.Lloop:
  s_waitcnt vmcnt(0)
  v_fma_f32 v8, v3, v4, v5
  v_pk_fma_f32 v[10:11], v[4:5], v[6:7], v[4:5]
  v_exp_f32_e32 v9, v8
  v_cmp_lt_f32_e32 vcc, v8, v9
  s_nop 3
  v_cndmask_b32_e32 v12, v8, v9, vcc
  v_add_u32_dpp v13, v12, v12 row_shr:1 row_mask:0xf bank_mask:0xf
  ds_write_b64 v2, v[10:11]
  s_waitcnt lgkmcnt(0)
  s_barrier
  ds_read_b64_tr_b8 v[14:15], v2
  ds_read_b128 v[16:19], v2 offset:1024
  buffer_load_dwordx4 v2, s[12:15], 0 offen lds
  v_cvt_pk_fp8_f32 v20, v8, v9
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_mfma_f32_32x32x16_bf16 v[32:47], v[4:7], v[16:19], 0
  v_mfma_f32_16x16x128_f8f6f4 a[0:3], v[4:11], v[12:19], a[0:3]
  v_permlane32_swap_b32_e32 v8, v9
  v_readfirstlane_b32 s9, v8
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lloop
  s_nop 15
  s_nop 7
  global_store_dword v2, v32, s[6:7]
"""

# How many leading bits say which encoding it is, and those bits.
ENCODINGS = [
    *(
        (9, 0b101111101),
        (9, 0b101111110),
        (9, 0b101111111),
        (4, 0b1011),
        (2, 0b10),
    ),  # SOP1, SOPC, SOPP, SOPK, SOP2
    *((6, 0b110000), (7, 0b0111111), (7, 0b0111110), (1, 0)),  # SMEM, VOP1, VOPC, VOP2
    *((6, 0b110100), (7, 0b1101000), (9, 0b110100111), (9, 0b110100111)),  # VOP3 twice, VOP3P twice
    *((6, 0b110110), (6, 0b110111), (6, 0b111000), (6, 0b111010)),  # DS, FLAT, MUBUF, MTBUF
]

MUTANTS = 10_000
BY_DEFAULT = 300
CHUNK = 50
SECONDS = 120  # a chunk takes about one; beyond this the emulator hangs


@functools.cache
def original() -> bytes:
    return assemble(kernel_text(BODY, lds=8192))


@functools.cache
def regions() -> dict[str, tuple[int, int]]:
    """Byte ranges of the file by what they hold."""
    code = original()
    table = struct.unpack_from("<Q", code, 40)[0]
    count, strings_at = struct.unpack_from("<HH", code, 60)
    rows = [struct.unpack_from("<IIQQQQ", code, table + 64 * i) for i in range(count)]
    strings = rows[strings_at][4]
    found = {"header": (0, 64 + 56 * struct.unpack_from("<H", code, 56)[0])}
    for name, _, _, _, offset, size in rows:
        label = code[strings + name : code.index(0, strings + name)].decode()
        found[label] = (offset, offset + size)
    return found


def overwrite(data: bytearray, begin: int, end: int, rng: np.random.Generator) -> None:
    """A few bytes of a range: random, one bit flipped, or the values that break sizes and counts."""
    for _ in range(int(rng.integers(1, 9))):
        at = int(rng.integers(begin, end))
        data[at] = int(
            rng.choice([rng.integers(256), data[at] ^ (1 << rng.integers(8)), 0, 0xFF, 0x7F, 0x80])
        )


def random_instruction(rng: np.random.Generator) -> bytes:
    """An instruction that decodes, of any encoding; rarely, after many attempts, one that does not."""
    for _ in range(200):
        bits, fixed = ENCODINGS[rng.integers(len(ENCODINGS))]
        drawn = struct.pack("<I", fixed << (32 - bits) | int(rng.integers(1 << (32 - bits)))) + rng.bytes(4)
        try:
            return drawn[: _native.decode(drawn)[0]]
        except _native.DecodeError:
            continue
    return drawn


def mutant(number: int) -> bytes:
    """The damaged code object with this number: each kind of damage in its turn."""
    rng = np.random.default_rng(number)
    data = bytearray(original())
    where = regions()
    kind = number % 8
    begin, end = where[".text"]
    if kind == 0:  # another instruction with random operands
        at = int(rng.integers(begin, end - 8)) // 4 * 4
        instruction = random_instruction(rng)
        data[at : at + len(instruction)] = instruction
    elif kind == 1:
        overwrite(data, begin, end, rng)
    elif kind == 2:  # one dword of the text, keeping its encoding
        at = int(rng.integers(begin, end - 4)) // 4 * 4
        data[at : at + 3] = rng.bytes(3)
    elif kind == 3:
        del data[int(rng.integers(len(data))) :]
    elif kind == 4:
        overwrite(data, *where["header"], rng)
    elif kind == 5:
        overwrite(data, *where[".note"], rng)
    elif kind == 6:
        overwrite(
            data, *where[str(rng.choice([".rodata", ".dynamic", ".dynsym", ".dynstr", ".gnu.hash"]))], rng
        )
    else:
        overwrite(data, 0, len(data), rng)
    return bytes(data)


def run(code: bytes, seed: int) -> str:
    """How loading and launching ended: "ran", or the class of the emulator's error."""
    inputs, output = np.arange(512, dtype=np.uint32), np.zeros(512, np.uint32)
    device = _native.Device()
    try:
        names = device.load(code)
        kernarg = struct.pack("<QQ", device.borrow(inputs, "in"), device.borrow(output, "out"))
        kernarg += bytes(1 << 12)
        for name in names or ["kernel"]:
            device.launch(0, name, [1, 1, 1], [128, 1, 1], kernarg, order_seed=seed, max_instructions=2000)
    except _native.EmulatorError as error:
        assert "\n" not in str(error)
        assert str(error).isprintable()
        return type(error).__name__
    return "ran"


@pytest.fixture(autouse=True)
def no_hang():
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def test_the_undamaged_code_object_runs():
    assert run(original(), 0) == "ran"


@pytest.mark.parametrize("first", range(0, BY_DEFAULT, CHUNK))
def test_damaged_code_objects(first):
    endings = [run(mutant(number), number % 3) for number in range(first, first + CHUNK)]
    assert len(set(endings)) > 1  # some are refused, some run or fail later


@pytest.mark.slow
@pytest.mark.parametrize("first", range(BY_DEFAULT, MUTANTS, CHUNK))
def test_many_damaged_code_objects(first):
    for number in range(first, first + CHUNK):
        run(mutant(number), number % 3)


@pytest.mark.parametrize("kept", [0, 1, 4, 16, 63, 64, 100, 120, 500, 1000])
def test_truncated_files(kept):
    assert run(original()[:kept], 0) == "CodeObjectError"
