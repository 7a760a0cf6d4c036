"""The decoder and disassembler against LLVM's assembler, which shares no table with them."""

from __future__ import annotations

import functools
import random
import re
from pathlib import Path

import pytest
from kernels.emulator.machine_code import Encoding, Row, encodings, scaled
from kernels.emulator.reassemble import assembled, differences, linear, text_section
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.emulator import _native

ROWS = [Row(*row) for row in _native.instructions()]
# Rows that LLVM's assembler does not know, and why they stand in the tables.
NOT_IN_LLVM = {
    "s_set_valu_coexec_mode": "in AMD's opcode list for CDNA4; LLVM 22 has no mnemonic",
    "v_mfma_ld_scale_b32": "first half of v_mfma_scale_*, never printed alone",
}


def decoded(encoding: Encoding) -> tuple[bytes, str] | None:
    try:
        size, text = _native.decode(encoding.code)
    except _native.DecodeError:
        return None
    return encoding.code[:size], text


def llvm_cannot(encoding: Encoding) -> bool:
    """Encodings of the chip that LLVM 22 does not write."""
    row, values = encoding.row, encoding.values
    if row.name in NOT_IN_LLVM:
        return True
    # It refuses global_atomic_add_f32 and _pk_add_f16 that return to AGPRs (the FLAT and MUBUF ones it takes), and
    # drops SC1 of f64 atomics that do.
    returns_agpr = bool(values.get("acc") and values.get("sc0"))
    if returns_agpr and row.name in ("global_atomic_add_f32", "global_atomic_pk_add_f16"):
        return True
    if returns_agpr and row.name.startswith(("flat_atomic", "global_atomic")) and row.name.endswith("_f64"):
        return True
    # A compare that names VCC as its SGPR pair is written in the form that implies it.
    return encoding.form == "sdwa" and bool(values.get("sd")) and values.get("sdst") == 106


def check_rows(seed: int, plain: int, changed: int) -> set[str]:
    """Round trip of drawn encodings of all rows. Returns the forms that were seen, as `name form`."""
    rng = random.Random(seed)
    items: list[tuple[bytes, str]] = []
    seen = set()
    for row in ROWS:
        for encoding in encodings(row, rng, plain, changed):
            item = decoded(encoding)
            if item is None:
                continue
            seen.add(f"{row.name} {encoding.form}")
            if llvm_cannot(encoding):
                continue
            items.append(item)
            if row.name.endswith("f8f6f4"):
                code = scaled(encoding, rng)
                items.append((code, _native.decode(code)[1]))
    assert differences(items) == []
    return seen


def test_every_row_round_trips() -> None:
    seen = {entry.split()[0] for entry in check_rows(1, plain=8, changed=4)}
    assert {row.name for row in ROWS} - seen == {"v_mfma_ld_scale_b32"}


def test_every_promoted_form_round_trips() -> None:
    """VOP1, VOP2 and VOPC have their 64-bit form, except these."""
    seen = check_rows(2, plain=8, changed=0)
    missing = {
        row.name for row in ROWS if row.format in ("VOP1", "VOP2", "VOPC") and f"{row.name} e64" not in seen
    }
    assert missing == {
        "v_accvgpr_mov_b32", "v_fmaak_f32", "v_fmamk_f32", "v_madak_f16", "v_madmk_f16", "v_readfirstlane_b32",
        "v_swap_b32",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 106))
def test_many_encodings_round_trip(seed: int) -> None:
    check_rows(seed, plain=3, changed=40)


# The same for texts.
LLVM_CANNOT = re.compile(
    r"s_set_valu_coexec_mode|global_atomic_(add_f32|pk_add_f16) a|(flat|global)_atomic_\w+_f64 a.* sc1"
)


def check_random(seed: int, count: int) -> None:
    """Random bytes are refused, or text that assembles to the same bytes."""
    rng = random.Random(seed)
    items = []
    for _ in range(count):
        code = rng.randbytes(16)[: rng.choice([1, 3, 4, 5, 8, 9, 12, 16, 16, 16])]
        try:
            size, text = _native.decode(code)
        except _native.DecodeError:
            continue
        assert size <= len(code)
        if LLVM_CANNOT.match(text) is None:
            items.append((code[:size], text))
    assert len(items) > count // 4
    assert differences(items) == []


def test_random_bytes() -> None:
    check_random(1, 20_000)


@pytest.mark.slow
def test_many_random_bytes() -> None:
    check_random(2, 300_000)


def test_a_cut_instruction_is_refused() -> None:
    rng = random.Random(3)
    for row in ROWS:
        for encoding in encodings(row, rng, 1, 0):
            item = decoded(encoding)
            if item is None:
                continue
            for size in range(0, len(item[0]), 4):
                with pytest.raises(_native.DecodeError, match="the code ends inside the instruction"):
                    _native.decode(item[0][:size])


def test_compiled_kernels_round_trip() -> None:
    """A HIP source with many kinds of instructions, as clang compiles it: all of its code, byte for byte."""
    code = text_section(compile_hip(Path(__file__).with_name("instruction_kinds.hip")))
    items = list(linear(code))
    assert len({text.split()[0] for _, text in items}) > 200
    assert differences(items) == []


LD_SCALE_UNUSED = 3 << 13  # OP_SEL and OP_SEL_HI of a third scale that does not exist; some kernels set them


@pytest.mark.slow
@pytest.mark.peers
def test_shipped_objects_round_trip(aiter_objects: Path) -> None:
    """Every distinct instruction of AMD's gfx950 code objects."""
    seen: dict[bytes, str] = {}
    for file in sorted(aiter_objects.rglob("*.co")):
        code = text_section(file.read_bytes())
        at = 0
        while at < len(code):
            size = next((n for n in (4, 8, 12, 16) if code[at : at + n] in seen), 0)
            if size == 0:
                size, text = _native.decode(code[at : at + 16])
                seen[code[at : at + size]] = text
            at += size
    assert len(seen) > 10_000
    items = []
    for code, text in seen.items():
        first = int.from_bytes(code[:4], "little")
        if len(code) == 16:
            first &= ~LD_SCALE_UNUSED
        items.append((first.to_bytes(4, "little") + code[4:], text))
    assert differences(items) == []


@functools.cache
def machine_code() -> dict[str, bytes]:
    """Every text of the tables below, assembled at once."""
    texts = list(
        dict.fromkeys([row[0] for table in (IMPLICIT, CONSTANTS, REFUSED) for row in table] + MODIFIED)
    )
    return dict(zip(texts, (code for code, _ in linear(assembled(texts))), strict=False))


def fields(text: str) -> dict:
    return _native.fields(machine_code()[text])


def reg(operand: dict | None) -> tuple | None:
    """(kind, number, dwords, implicit) of an operand."""
    return operand and (operand["kind"], operand["reg"], operand["dwords"], operand["implicit"])


VCC, EXEC = ("sgpr", 106, 2, True), ("sgpr", 126, 2, True)
IMPLICIT = [
    ("v_cndmask_b32_e32 v0, v1, v2, vcc", "src2", VCC),
    ("v_cndmask_b32_e64 v0, v1, v2, s[4:5]", "src2", ("sgpr", 4, 2, False)),
    ("v_addc_co_u32_e32 v0, vcc, v1, v2, vcc", "src2", VCC),
    ("v_addc_co_u32_e32 v0, vcc, v1, v2, vcc", "sdst", VCC),
    ("v_add_co_u32_e64 v0, s[6:7], v1, v2", "sdst", ("sgpr", 6, 2, False)),
    ("v_fmac_f32 v7, v1, v2", "src2", ("vgpr", 7, 1, True)),
    ("v_fmac_f64 v[8:9], v[2:3], v[4:5]", "src2", ("vgpr", 8, 2, True)),
    ("v_dot2c_f32_f16 v7, v1, v2", "src2", ("vgpr", 7, 1, True)),
    ("v_pk_fmac_f16 v7, v1, v2", "src2", ("vgpr", 7, 1, True)),
    ("v_fmac_f32_dpp v7, v1, v2 row_shr:1", "src2", ("vgpr", 7, 1, True)),
    ("v_fmaak_f32 v0, v1, v2, 0x40490fdb", "src1", ("vgpr", 2, 1, False)),
    ("v_fmamk_f32 v0, v1, 0x40490fdb, v2", "src2", ("vgpr", 2, 1, False)),
    ("v_cmp_lt_f32_e32 vcc, v0, v1", "dst", VCC),
    ("v_cmp_lt_f32_e64 s[8:9], v0, v1", "dst", ("sgpr", 8, 2, False)),
    ("v_cmpx_lt_f32_e32 vcc, v0, v1", "sdst", EXEC),
    ("v_cmpx_lt_f32_e64 s[8:9], v0, v1", "sdst", EXEC),
    ("v_readfirstlane_b32 s5, v3", "dst", ("sgpr", 5, 1, False)),
    ("v_readlane_b32 s5, v3, 2", "dst", ("sgpr", 5, 1, False)),
    ("v_writelane_b32 v5, s3, 2", "src2", ("vgpr", 5, 1, True)),
    ("v_div_fmas_f32 v0, v1, v2, v3", "mask", VCC),
    ("s_and_saveexec_b64 s[0:1], s[2:3]", "sdst", EXEC),
    ("s_and_saveexec_b64 s[0:1], s[2:3]", "src1", EXEC),
    ("s_addk_i32 s4, 5", "src0", ("sgpr", 4, 1, True)),
    ("s_bitset1_b32 s4, s5", "src1", ("sgpr", 4, 1, True)),
    ("s_cmpk_eq_i32 s4, 5", "src0", ("sgpr", 4, 1, False)),
    ("s_cbranch_vccnz 5", "src0", VCC),
    ("s_cbranch_execz 5", "src0", EXEC),
    ("v_accvgpr_read_b32 v1, a2", "src0", ("vgpr", 258, 1, False)),
    ("v_accvgpr_mov_b32 a1, a2", "dst", ("vgpr", 257, 1, False)),
    ("v_mfma_f32_32x32x16_bf16 a[0:15], v[0:3], a[4:7], a[16:31]", "src1", ("vgpr", 260, 4, False)),
    ("v_mfma_f32_32x32x16_bf16 a[0:15], v[0:3], a[4:7], a[16:31]", "src2", ("vgpr", 272, 16, False)),
    ("v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[4:7], v[8:15], v16", "src2", ("vgpr", 16, 1, False)),
    ("v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:21], v[24:27], 0 cbsz:2 blgp:4", "src0", ("vgpr", 16, 6, False)),
    ("v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:21], v[24:27], 0 cbsz:2 blgp:4", "src1", ("vgpr", 24, 4, False)),
    ("buffer_load_dword v0, off, s[4:7], 0", "addr", None),
    ("buffer_load_dword v0, v1, s[4:7], 0 idxen", "addr", ("vgpr", 1, 1, False)),
    ("buffer_load_dword v0, v[2:3], s[4:7], 0 idxen offen", "addr", ("vgpr", 2, 2, False)),
    ("buffer_load_dwordx4 v1, s[4:7], s3 offen lds", "dst", None),
    ("buffer_load_dwordx4 v1, s[4:7], s3 offen lds", "base", ("sgpr", 4, 4, False)),
    ("buffer_store_dwordx3 v[2:4], v1, s[4:7], 0 offen", "data", ("vgpr", 2, 3, False)),
    ("buffer_store_dword v2, v1, s[4:7], 0 offen", "dst", None),
    ("buffer_atomic_add v2, v1, s[4:7], 0 offen", "dst", None),
    ("buffer_atomic_add v2, v1, s[4:7], 0 offen sc0", "dst", ("vgpr", 2, 1, False)),
    ("buffer_atomic_cmpswap v[2:3], v1, s[4:7], 0 offen sc0", "dst", ("vgpr", 2, 1, False)),
    ("buffer_atomic_cmpswap v[2:3], v1, s[4:7], 0 offen sc0", "data", ("vgpr", 2, 2, False)),
    ("global_load_dword v0, v[2:3], off", "addr", ("vgpr", 2, 2, False)),
    ("global_load_dword v0, v2, s[4:5]", "addr", ("vgpr", 2, 1, False)),
    ("global_load_dword v0, v2, s[4:5]", "base", ("sgpr", 4, 2, False)),
    ("global_load_lds_dwordx4 v[2:3], off", "dst", None),
    ("global_atomic_add v[2:3], v4, off", "dst", None),
    ("global_atomic_cmpswap v1, v[2:3], v[4:5], off sc0", "dst", ("vgpr", 1, 1, False)),
    ("scratch_load_dword v0, off, off", "addr", None),
    ("scratch_store_dword v3, a0, s4", "data", ("vgpr", 256, 1, False)),
    ("ds_write2_b64 v0, v[2:3], v[4:5] offset0:1 offset1:2", "data1", ("vgpr", 4, 2, False)),
    ("ds_read2_b32 a[0:1], v2", "dst", ("vgpr", 256, 2, False)),
    ("s_load_dwordx8 s[8:15], s[2:3], s5", "soffset", ("sgpr", 5, 1, False)),
    ("s_buffer_load_dword s0, s[4:7], 16", "base", ("sgpr", 4, 4, False)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "expected"), IMPLICIT)
def test_operands_are_explicit(text: str, place: str, expected: tuple | None) -> None:
    one = fields(text)
    operand = one["src"][int(place[3])] if place.startswith("src") else one[place]
    assert reg(operand) == expected


CONSTANTS = [
    ("s_mov_b32 s0, -16", 0, 0xFFFFFFF0),
    ("s_mov_b32 s0, 64", 0, 64),
    ("s_mov_b32 s0, 0.5", 0, 0x3F000000),
    ("s_mov_b64 s[0:1], -1", 0, 0xFFFFFFFFFFFFFFFF),
    ("s_mov_b64 s[0:1], 1.0", 0, 0x3FF0000000000000),
    ("s_mov_b64 s[0:1], 0x92345678", 0, 0x92345678),
    ("s_ashr_i64 s[0:1], 0x92345678, 1", 0, 0xFFFFFFFF92345678),
    ("v_add_f32_e32 v0, 0.15915494, v1", 0, 0x3E22F983),
    ("v_add_f32_e32 v0, 1, v1", 0, 1),
    ("v_add_f16_e32 v0, 1.0, v1", 0, 0x3C00),
    ("v_add_f16_e32 v0, -4.0, v1", 0, 0xC400),
    ("v_add_f16_e32 v0, -1, v1", 0, 0xFFFF),
    ("v_add_f16_e32 v0, 0x1234, v1", 0, 0x1234),
    ("v_add_u16_e32 v0, -2, v1", 0, 0xFFFE),
    ("v_cvt_f32_bf16_e32 v0, 1.0", 0, 0x3F80),
    ("v_cvt_f32_f64_e32 v0, 0x40091234", 0, 0x4009123400000000),
    ("v_cvt_f32_f64_e32 v0, -2.0", 0, 0xC000000000000000),
    ("v_add_f64 v[0:1], v[2:3], 0.15915494309189532", 1, 0x3FC45F306DC9C882),
    ("v_add_f64 v[0:1], v[2:3], 3", 1, 3),
    ("v_pk_add_f16 v0, v1, 1.0", 1, 0x00003C00),
    ("v_pk_add_u16 v0, v1, -1", 1, 0xFFFFFFFF),
    ("v_dot2_f32_bf16 v0, v1, 2.0, v3", 1, 0x4000),
    ("v_pk_mul_f32 v[0:1], v[2:3], 2.0 op_sel_hi:[1,0]", 1, 0x40000000),
    ("v_fma_mix_f32 v0, v1, v2, 1.0", 2, 0x3F800000),
    ("v_mfma_f32_32x32x16_bf16 v[0:15], v[0:3], v[4:7], 1.0", 2, 0x3F800000),
    ("v_mfma_f64_16x16x4_f64 v[0:7], v[0:1], v[2:3], 1.0", 2, 0x3FF0000000000000),
    ("v_fmamk_f32 v0, v1, 0x40490fdb, v2", 1, 0x40490FDB),
    ("v_fmaak_f32 v0, v1, v2, 0x40490fdb", 2, 0x40490FDB),
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1", 0, 1),
]


@pytest.mark.parametrize(("text", "index", "value"), CONSTANTS)
def test_constants_are_the_bits_the_type_reads(text: str, index: int, value: int) -> None:
    operand = fields(text)["src"][index]
    assert (operand["kind"], operand["value"]) == ("constant", value)


MODIFIED = [
    "v_add_f32_e64 v0, -|v1|, v2 clamp mul:4",
    "v_mul_f16_sdwa v0, v1, -v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_2 src1_sel:WORD_1",
    "v_mov_b32_dpp v0, v1 row_bcast:31 row_mask:0xa bank_mask:0x3 bound_ctrl:0",
    "v_pk_fma_f16 v0, v1, v2, v3 op_sel:[1,0,1] op_sel_hi:[0,1,0] neg_lo:[0,1,0] neg_hi:[1,0,0]",
    "v_bitop3_b32 v0, v1, v2, v3 bitop3:0xe4",
    "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[4:11], a[12:15], 0, v40, v41 op_sel:[1,0,0] op_sel_hi:[0,1,0] blgp:4",
    "global_load_dword v0, v[2:3], off offset:-4096 sc0 nt sc1",
    "ds_read2st64_b32 v[0:1], v2 offset0:3 offset1:255",
    "ds_read_b32 v0, v2 offset:65535",
    "s_load_dword s0, s[2:3], -8",
    "s_movk_i32 s0, -5",
    "s_cmpk_eq_u32 s0, 0xfffb",
    "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], 0, v40, v41",
]


def test_modifiers() -> None:
    add, mul, mov, fma, bitop, mfma, load, read2, read, s_load, movk, cmpk, _ = map(fields, MODIFIED)
    assert (add["src"][0]["neg"], add["src"][0]["abs"], add["clamp"], add["omod"]) == (True, True, True, 2)
    assert (mul["dst_sel"], mul["dst_unused"], mul["src"][0]["sel"], mul["src"][1]["sel"]) == (5, 2, 2, 5)
    assert mul["src"][1]["neg"]
    assert (mov["dpp_ctrl"], mov["row_mask"], mov["bank_mask"], mov["bound_ctrl"]) == (0x143, 10, 3, True)
    assert (fma["op_sel"], fma["op_sel_hi"]) == (0b101, 0b010)
    assert [(s["neg"], s["abs"]) for s in fma["src"]] == [(False, True), (True, False), (False, False)]
    assert (bitop["imm"], bitop["omod"], any(s["neg"] or s["abs"] for s in bitop["src"])) == (0xE4, 0, False)
    assert (mfma["bytes"], mfma["op_sel"], mfma["op_sel_hi"], mfma["cbsz"], mfma["blgp"]) == (16, 1, 2, 0, 4)
    assert [reg(s) for s in mfma["scale"]] == [("vgpr", 40, 1, False), ("vgpr", 41, 1, False)]
    assert (load["offset"], load["sc0"], load["nt"], load["sc1"]) == (-4096, True, True, True)
    assert (read2["offset0"], read2["offset1"], read2["offset"]) == (3, 255, 0)
    assert (read["offset"], s_load["offset"], movk["imm"], cmpk["imm"]) == (65535, -8, -5, 0xFFFB)


# An instruction, a field of it (lowest bit, width) to overwrite, and the reason of the refusal.
REFUSED = [
    ("s_mov_b32 s0, s1", (8, 8), 0xFF, "SOP1 has no opcode 0xff"),
    ("s_mov_b32 s0, s1", (0, 8), 209, "source number 209 is reserved"),
    ("s_mov_b32 s0, s1", (0, 8), 125, "125 is no SGPR"),
    ("s_mov_b32 s0, s1", (0, 8), 239, "source number 239 is reserved"),
    ("s_mov_b64 s[0:1], s[2:3]", (0, 8), 3, "must begin at a multiple of 2"),
    ("s_load_dwordx4 s[0:3], s[4:5], 0", (6, 7), 100, "leave their block"),
    ("s_load_dwordx4 s[0:3], s[4:5], 0", (6, 7), 2, "must begin at a multiple of 4"),
    ("s_load_dword s0, s[4:5], 0", (6, 7), 124, "SDATA is neither M0 nor EXEC"),
    ("s_load_dword s0, s[4:5], 0", (57, 7), 1, "SOFFSET without SOFFSET_EN"),
    ("s_barrier", (0, 16), 1, "SIMM16 of an instruction without immediate must be 0"),
    ("v_mov_b32_e32 v0, v1", (0, 9), 254, "source number 254 is reserved"),
    ("v_add_f32_e64 v0, v1, v2", (32, 9), 255, "VOP3 takes no literal"),
    ("v_add_f32_e64 v0, s1, v2", (41, 9), 2, "more than one SGPR or literal"),
    ("v_add_f32_e64 v0, v1, v2", (11, 1), 1, "has no OP_SEL bits 0x1"),
    ("v_add_f32_e64 v0, v1, v2", (50, 9), 3, "absent VOP3 source"),
    ("v_and_b32_e64 v0, v1, v2", (61, 1), 1, "takes no neg or abs"),
    ("v_and_b32_e64 v0, v1, v2", (15, 1), 1, "takes no clamp"),
    ("v_and_b32_e64 v0, v1, v2", (59, 2), 1, "takes no omod"),
    ("v_add_f64 v[0:1], v[2:3], v[4:5]", (32, 9), 256 + 255, "ends past v255"),
    ("v_add_f64 v[0:1], v[2:3], v[4:5]", (32, 9), 256 + 3, "must begin at an even register"),
    ("v_readfirstlane_b32 s0, v1", (17, 8), 124, "does not write M0"),
    ("v_readfirstlane_b32 s0, v1", (0, 9), 1, "takes a VGPR"),
    ("v_mov_b32_dpp v0, v1 row_shr:1", (40, 9), 0x110, "DPP_CTRL 0x110 is reserved"),
    ("v_mov_b32_dpp v0, v1 row_shr:1", (50, 1), 1, "DPP bits 18:17"),
    ("v_mov_b32_sdwa v0, v1", (48, 3), 7, "SDWA select 7 is reserved"),
    ("v_mov_b32_sdwa v0, v1", (43, 2), 3, "DST_UNUSED 3 is reserved"),
    ("v_add_f32_sdwa v0, v1, v2", (25, 6), 0x3B, "v_fmac_f32 has no SDWA form"),
    ("v_add_u16 v0, 0x1234, v1", (48, 16), 1, "literal of a 16-bit operand"),
    ("v_pk_add_f32 v[0:1], v[2:3], v[4:5]", (41, 9), 242, "upper half of constant source 1"),
    ("v_pk_add_f16 v0, v1, v2", (60, 1), 0, None),
    ("v_pk_add_f16 v0, v1, v2", (14, 1), 0, "OP_SEL_HI bits that v_pk_add_f16 does not use must be 1"),
    ("v_dot2_f32_f16 v0, v1, v2, v3", (11, 1), 1, "has no such OP_SEL"),
    ("v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], 0", (8, 3), 5, "CBSZ 5 is no matrix format"),
    ("v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], 0", (11, 4), 1, "ABID"),
    (
        "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]",
        (50, 9),
        256 + 8,
        "overlaps the destination",
    ),
    ("v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[24:27], 0", (32, 9), 5, "must be a VGPR"),
    ("v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[24:27], 0", (50, 9), 5, "VGPR or an inline constant"),
    ("ds_read_b32 v0, v1", (16, 1), 1, "GDS of ds_read_b32 must be 0"),
    ("ds_read_b32 v0, v1", (40, 8), 1, "absent DS operand"),
    ("global_load_dword v0, v[2:3], off", (14, 2), 3, "SEG 3 is reserved"),
    ("global_load_dword v0, v[2:3], off", (40, 8), 1, "DATA of a load"),
    ("global_store_dword v[2:3], v0, off", (56, 8), 1, "VDST of an instruction that returns nothing"),
    ("flat_load_dword v0, v[2:3]", (12, 1), 1, "offset of a FLAT instruction is negative"),
    ("buffer_load_dwordx2 v[0:1], off, s[4:7], 0", (16, 1), 1, "has no LDS form"),
    ("buffer_load_dword v0, off, s[4:7], 0", (32, 8), 1, "VADDR without OFFEN or IDXEN"),
    ("buffer_load_dword v0, off, s[4:7], 0", (26, 6), 0x3F, "no format has the leading bits"),
]


@pytest.mark.parametrize(("text", "place", "value", "reason"), REFUSED)
def test_reserved_encodings_are_refused(
    text: str, place: tuple[int, int], value: int, reason: str | None
) -> None:
    code = machine_code()[text]
    low, width = place
    mask = ((1 << width) - 1) << low
    word = int.from_bytes(code, "little")
    changed = (word & ~mask | value << low).to_bytes(len(code), "little")
    assert changed != code
    if reason is None:
        _native.decode(changed)
    else:
        with pytest.raises(_native.DecodeError, match=reason):
            _native.decode(changed)


def test_a_scaled_pair_belongs_together() -> None:
    code = machine_code()[MODIFIED[-1]]
    assert _native.decode(code)[0] == 16
    with pytest.raises(_native.DecodeError, match="must be followed by"):
        _native.decode(code[:8] + bytes.fromhex("0000d1d3") + bytes(4))
    unscaled = bytearray(code)
    unscaled[9] &= ~0x08
    with pytest.raises(_native.DecodeError, match="ABID 1"):
        _native.decode(bytes(unscaled))
