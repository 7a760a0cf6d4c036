"""Builds gfx950 machine code bit by bit, from the field positions of the ISA document and nothing of the emulator's."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

# Field: (lowest bit, width), bits counted over the whole instruction, little endian.
Fields = dict[str, tuple[int, int]]

VOP3_SOURCES: Fields = {"src0": (32, 9), "src1": (41, 9), "src2": (50, 9)}
LAYOUTS: dict[str, tuple[int, int, Fields]] = {
    # form: (bytes, bits that are always set, fields)
    "SOP1": (4, 0x17D << 23, {"ssrc0": (0, 8), "op": (8, 8), "sdst": (16, 7)}),
    "SOP2": (4, 0x2 << 30, {"ssrc0": (0, 8), "ssrc1": (8, 8), "sdst": (16, 7), "op": (23, 7)}),
    "SOPC": (4, 0x17E << 23, {"ssrc0": (0, 8), "ssrc1": (8, 8), "op": (16, 7)}),
    "SOPK": (4, 0xB << 28, {"simm16": (0, 16), "sdst": (16, 7), "op": (23, 5)}),
    "SOPP": (4, 0x17F << 23, {"simm16": (0, 16), "op": (16, 7)}),
    "SMEM": (
        8,
        0x30 << 26,
        {
            "sbase": (0, 6), "sdata": (6, 7), "soffset_en": (14, 1), "glc": (16, 1), "imm": (17, 1), "op": (18, 8),
            "offset": (32, 21), "soffset": (57, 7),
        },
    ),
    "VOP1": (4, 0x3F << 25, {"src0": (0, 9), "op": (9, 8), "vdst": (17, 8)}),
    "VOP2": (4, 0, {"src0": (0, 9), "vsrc1": (9, 8), "vdst": (17, 8), "op": (25, 6)}),
    "VOPC": (4, 0x3E << 25, {"src0": (0, 9), "vsrc1": (9, 8), "op": (17, 8)}),
    "VOP3": (
        8,
        0x34 << 26,
        {"vdst": (0, 8), "abs": (8, 3), "op_sel": (11, 4), "clamp": (15, 1), "op": (16, 10)}
        | VOP3_SOURCES
        | {"omod": (59, 2), "neg": (61, 3)},
    ),
    "VOP3SD": (
        8,
        0x34 << 26,
        {"vdst": (0, 8), "sdst": (8, 7), "clamp": (15, 1), "op": (16, 10)}
        | VOP3_SOURCES
        | {"omod": (59, 2), "neg": (61, 3)},
    ),
    "VOP3P": (
        8,
        0x1A7 << 23,
        {"vdst": (0, 8), "neg_hi": (8, 3), "op_sel": (11, 3), "op_sel_hi2": (14, 1), "clamp": (15, 1), "op": (16, 7)}
        | VOP3_SOURCES
        | {"op_sel_hi": (59, 2), "neg": (61, 3)},
    ),
    "MAI": (
        8,
        0x1A7 << 23,
        {"vdst": (0, 8), "cbsz": (8, 3), "abid": (11, 4), "acc_cd": (15, 1), "op": (16, 7)}
        | VOP3_SOURCES
        | {"acc": (59, 2), "blgp": (61, 3)},
    ),
    "DS": (
        8,
        0x36 << 26,
        {
            "offset0": (0, 8), "offset1": (8, 8), "gds": (16, 1), "op": (17, 8), "acc": (25, 1), "addr": (32, 8),
            "data0": (40, 8), "data1": (48, 8), "vdst": (56, 8),
        },
    ),
    "FLAT": (
        8,
        0x37 << 26,
        {
            "offset": (0, 13), "sve": (13, 1), "seg": (14, 2), "sc0": (16, 1), "nt": (17, 1), "op": (18, 7),
            "sc1": (25, 1), "addr": (32, 8), "data": (40, 8), "saddr": (48, 7), "acc": (55, 1), "vdst": (56, 8),
        },
    ),
    "MUBUF": (
        8,
        0x38 << 26,
        {
            "offset": (0, 12), "offen": (12, 1), "idxen": (13, 1), "sc0": (14, 1), "sc1": (15, 1), "lds": (16, 1),
            "nt": (17, 1), "op": (18, 7), "vaddr": (32, 8), "vdata": (40, 8), "srsrc": (48, 5), "acc": (55, 1),
            "soffset": (56, 8),
        },
    ),
    "MTBUF": (
        8,
        0x3A << 26,
        {
            "offset": (0, 12), "offen": (12, 1), "idxen": (13, 1), "sc0": (14, 1), "op": (15, 4), "dfmt": (19, 4),
            "nfmt": (23, 3), "vaddr": (32, 8), "vdata": (40, 8), "srsrc": (48, 5), "sc1": (53, 1), "nt": (54, 1),
            "acc": (55, 1), "soffset": (56, 8),
        },
    ),
}  # fmt: skip
SDWA: Fields = {
    "sdwa_src0": (32, 8), "dst_sel": (40, 3), "dst_unused": (43, 2), "clamp": (45, 1), "omod": (46, 2),
    "src0_sel": (48, 3), "src0_mod": (51, 3), "s0": (55, 1), "src1_sel": (56, 3), "src1_mod": (59, 3), "s1": (63, 1),
}  # fmt: skip
SDWA_COMPARE: Fields = {
    "sdwa_src0": (32, 8), "sdst": (40, 7), "sd": (47, 1),
    "src0_sel": (48, 3), "src0_mod": (51, 3), "s0": (55, 1), "src1_sel": (56, 3), "src1_mod": (59, 3), "s1": (63, 1),
}  # fmt: skip
DPP: Fields = {
    "dpp_src0": (32, 8), "dpp_ctrl": (40, 9), "bound_ctrl": (51, 1), "src0_mod": (52, 2), "src1_mod": (54, 2),
    "bank_mask": (56, 4), "row_mask": (60, 4),
}  # fmt: skip
SEGMENTS = {"FLAT": 0, "SCRATCH": 1, "GLOBAL": 2}
PROMOTED = {"VOPC": 0, "VOP2": 0x100, "VOP1": 0x140}
SDWA_CODE, DPP_CODE, LITERAL_CODE, VGPR = 249, 250, 255, 256
CARRY = range(0x119, 0x11F)


@dataclass
class Row:
    """One instruction of the emulator's tables."""

    format: str
    opcode: int
    name: str
    operands: list[tuple[str, str, int]]

    def accepts(self, name: str) -> str | None:
        return next((kind for place, kind, _ in self.operands if place == name), None)

    def bits(self, name: str) -> int:
        return next((bits for place, _, bits in self.operands if place == name), 0)

    @property
    def is_matrix(self) -> bool:
        return self.name.startswith(("v_mfma", "v_smfmac"))


@dataclass
class Encoding:
    """Bytes of one instruction and the form they have: plain, e64, sdwa, dpp, or a format with one form."""

    row: Row
    form: str
    code: bytes
    values: dict[str, int] = field(default_factory=dict)


class Builder:
    """Draws operands that fit a row, then changes a few other fields."""

    def __init__(self, row: Row, form: str, rng: random.Random) -> None:
        self.row, self.form, self.rng = row, form, rng
        self.literal: int | None = None
        self.values: dict[str, int] = {}
        layout = row.format
        if form == "e64":
            layout = "VOP3SD" if PROMOTED[row.format] + row.opcode in CARRY else "VOP3"
        elif row.format in SEGMENTS:
            layout = "FLAT"
        elif row.is_matrix:
            layout = "MAI"
        self.size, self.base, fields = LAYOUTS[layout]
        self.fields = dict(fields)
        if form in ("sdwa", "dpp"):
            self.size = 8
            self.fields |= DPP if form == "dpp" else SDWA_COMPARE if row.format == "VOPC" else SDWA

    def vgpr(self, bits: int) -> int:
        dwords = max(1, (bits + 31) // 32)
        number = self.rng.randrange(0, 257 - dwords)
        return number if dwords == 1 else number & ~1

    def sgpr(self, bits: int) -> int:
        dwords = max(1, (bits + 31) // 32)
        choices = [self.rng.randrange(0, 103 - dwords)]
        if dwords <= 2:
            choices += [106, 108 + 2 * self.rng.randrange(8), 126]
        align = min(dwords, 4)
        return self.rng.choice(choices) // align * align

    def source(self, bits: int, kinds: str) -> int:
        kind = self.rng.choice(kinds)
        if kind == "v":
            return VGPR + self.vgpr(bits)
        if kind == "s":
            return self.sgpr(bits)
        if kind == "l":
            self.literal = self.rng.choice([1, 0x3C00, 0x3F800000, 0x12345678, 0xFFFFFFF0, 0x1234])
            return LITERAL_CODE
        if kind == "x":
            return self.rng.choice([235, 236, 237, 238, 251, 252, 253])
        return self.rng.choice([*range(128, 209), *range(240, 249)])

    def operand(self, name: str, accepts: str, bits: int) -> None:
        wide = self.form == "e64" or self.row.format in ("VOP3", "VOP3SD", "VOP3P")
        place = {"vsrc1": "src1"}.get(name, name) if self.form == "e64" else name
        if self.form in ("sdwa", "dpp") and name == "src0":
            self.values["src0"] = SDWA_CODE if self.form == "sdwa" else DPP_CODE
            self.values[f"{self.form}_src0"] = self.vgpr(bits)
            return
        if name == "vsrc1" and self.form == "e64":
            accepts = "src"
        if accepts in ("imm", "label", "hwreg", "wait", "msg"):
            value = self.rng.randrange(1 << (4 if "gpr_idx" in self.row.name else 16))
            if accepts == "hwreg":
                value = self.rng.randrange(32) << 11 | 1
            elif accepts == "msg":
                value = self.rng.choice([1, 3])
        elif accepts == "src":
            value = self.source(bits, "vvvsix" if wide else "vvsilx")
        elif accepts == "ssrc":
            value = self.source(bits, "ssi" if wide or name == "soffset" else "ssilx")
        elif accepts in ("v", "va", "vac", "a"):
            value = self.vgpr(bits) + (VGPR if self.fields[place][1] == 9 else 0)
        elif accepts == "soff":
            value = self.sgpr(32)
        else:
            value = self.sgpr(bits)
        self.values[place] = value

    def settle(self) -> None:
        """What belongs together in a format."""
        v, row = self.values, self.row
        v["op"] = row.opcode + (PROMOTED[row.format] if self.form == "e64" else 0)
        if row.format in SEGMENTS:
            v["seg"] = SEGMENTS[row.format]
            v["saddr"] = 0 if row.format == "FLAT" else 127 if self.rng.random() < 0.5 else v["saddr"]
            v["sve"] = int(row.format == "SCRATCH" and self.rng.random() < 0.7)
            if row.format == "SCRATCH" and not v["sve"]:
                v["addr"] = 0
            if "_atomic_" in row.name:
                v["sc0"] = self.rng.randrange(2)
                if not v["sc0"]:
                    v["vdst"] = 0
            if "_lds_" in row.name:
                v["vdst"] = 0
        if row.format in ("MUBUF", "MTBUF") and row.operands:
            v["srsrc"] //= 4
            v["offen"], v["idxen"] = self.rng.randrange(2), self.rng.randrange(2)
            v["vaddr"] = v["vaddr"] if v["offen"] or v["idxen"] else 0
        if row.format == "SMEM" and "sbase" in v:
            v["sbase"] //= 2
            form = self.rng.randrange(3)
            v["imm"], v["soffset_en"] = int(form > 0), int(form == 2)
            offset = self.rng.randrange(1 << 20)
            v["offset"] = v["soffset"] if form == 0 else offset
            if form < 2:
                v["soffset"] = 0
        if row.format == "VOP3P" and not row.is_matrix:
            v["op_sel_hi"], v["op_sel_hi2"] = 3, 1
        if row.name.startswith("v_fma_mix"):
            v["op_sel_hi"], v["op_sel_hi2"] = 0, 0
        if row.name.startswith("ds_gws"):
            v["gds"] = 1
        if self.form == "dpp":
            v["bank_mask"], v["row_mask"] = 15, 15
            v["dpp_ctrl"] = self.rng.choice(
                [0xE4, 0x1B, 0x101, 0x11F, 0x121, 0x130, 0x13C, 0x140, 0x142, 0x143, 0x155]
            )
        if self.form == "sdwa":
            v["src0_sel"], v["src1_sel"] = 6, 6 if row.accepts("vsrc1") else 0
            if row.format != "VOPC":
                v["dst_sel"] = 6
        if self.form == "e64":
            if row.name == "v_cndmask_b32" or row.name in (
                "v_addc_co_u32",
                "v_subb_co_u32",
                "v_subbrev_co_u32",
            ):
                v["src2"] = self.sgpr(64)
            if "sdst" in self.fields:
                v["sdst"] = self.sgpr(64)
            if row.format == "VOPC":
                v["vdst"] = self.sgpr(64)
        if row.name in ("v_fmamk_f32", "v_fmaak_f32", "v_madmk_f16", "v_madak_f16", "s_setreg_imm32_b32"):
            self.literal = self.rng.choice([0x1234, 0x3C01, 1])

    def mutate(self, count: int) -> None:
        taken = {
            *(name for name, _, _ in self.row.operands),
            "op",
            "seg",
            "src1",
            "sdwa_src0",
            "dpp_src0",
            "saddr",
        }
        free = [name for name in self.fields if name not in taken]
        for name in self.rng.sample(free, min(count, len(free))):
            self.values[name] = self.rng.randrange(1 << self.fields[name][1])

    def build(self, mutations: int) -> Encoding:
        for operand in self.row.operands:
            self.operand(*operand)
        self.settle()
        self.mutate(mutations)
        word = self.base
        for name, value in self.values.items():
            if name not in self.fields:
                continue
            low, width = self.fields[name]
            word |= (value & ((1 << width) - 1)) << low
        code = word.to_bytes(self.size, "little")
        if self.literal is not None:
            code += struct.pack("<I", self.literal)
        return Encoding(self.row, self.form, code, dict(self.values))


def forms(row: Row) -> list[str]:
    """The forms to try; the decoder refuses those an instruction does not have."""
    return ["plain", "e64", "sdwa", "dpp"] if row.format in PROMOTED else [row.format]


def scaled(first: Encoding, rng: random.Random) -> bytes:
    """The block-scaled pair around a v_mfma_*_f8f6f4: the load of the scales, then the instruction with ABID 1."""
    size, base, fields = LAYOUTS["VOP3P"]
    word = base
    values = {
        "op": 0x2C, "src0": VGPR + rng.randrange(256), "src1": VGPR + rng.randrange(256), "op_sel": rng.randrange(4),
        "op_sel_hi": rng.randrange(4),
    }  # fmt: skip
    for name, value in values.items():
        word |= value << fields[name][0]
    second = int.from_bytes(first.code, "little") & ~(0xF << 11) | 1 << 11
    return word.to_bytes(size, "little") + second.to_bytes(8, "little")


def encodings(row: Row, rng: random.Random, plain: int = 1, changed: int = 2) -> Iterator[Encoding]:
    """`plain` encodings of each form without modifiers, `changed` ones with one to three other fields drawn freely."""
    for form in forms(row):
        for n in range(plain + changed):
            yield Builder(row, form, rng).build(0 if n < plain else rng.randrange(1, 4))
