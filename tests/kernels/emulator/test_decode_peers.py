"""The decoder against tinygrad's, which was made from AMD's XML description of the instruction set."""

from __future__ import annotations

import random

import pytest
from kernels.emulator.machine_code import Encoding, Row, encodings
from zyfa_ort.kernels.emulator import _native

ROWS = [Row(*row) for row in _native.instructions()]
# tinygrad has AMD's old names; the operations are fused (LLVM: FeatureFmaMixInsts).
OTHER_NAMES = {
    name: name.replace("fma", "mad") for name in ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")
}
# tinygrad knows no MTBUF for CDNA, and reads the scaled pair as two instructions.
UNKNOWN_FORMATS = ("MTBUF",)
# Field there -> operand here.
PLACES = {
    "vdst": "dst", "sdst": "sdst", "addr": "addr", "vaddr": "addr", "data": "data", "data0": "data", "data1": "data1",
    "saddr": "base", "sbase": "base", "srsrc": "base",
}  # fmt: skip
SOURCES = {"src0": 0, "ssrc0": 0, "vsrc0": 0, "src1": 1, "vsrc1": 1, "ssrc1": 1, "src2": 2}


def number_of(operand: dict) -> int:
    """Registers as the encoding counts them: SGPRs from 0, VGPRs and AGPRs from 256."""
    return 256 + operand["reg"] % 256 if operand["kind"] == "vgpr" else operand["reg"]


def differing(encoding: Encoding, theirs: object) -> tuple[list[str], int]:
    """What differs, and how many operands were compared."""
    ours = _native.fields(encoding.code)
    found, compared = [], 0
    name = theirs.op.name.lower().removesuffix("_e32").removesuffix("_e64")
    if name != OTHER_NAMES.get(ours["name"], ours["name"]):
        found.append(f"name {name}")
    if theirs.size() != ours["bytes"]:
        found.append(f"{theirs.size()} bytes")
    for field, _ in theirs._fields:
        place = ours["src"][SOURCES[field]] if field in SOURCES else ours.get(PLACES.get(field, ""))
        if field == "src0" and ours["encoding"] in ("sdwa", "dpp"):
            continue  # the number that announces the form; the register is VSRC0
        if not place or place["implicit"] or place["kind"] not in ("sgpr", "vgpr"):
            continue
        value = getattr(theirs, field)
        if not hasattr(value, "offset"):
            continue
        compared += 1
        # Their VDST and SRSRC fields know no file: 8 bits of a register number, SGPR or VGPR.
        if value.offset % 256 != number_of(place) % 256:
            found.append(f"{field} is {value}, here {place['kind']} {place['reg']}")
    return found, compared


def test_tinygrad_reads_the_same() -> None:
    amd = pytest.importorskip("tinygrad.renderer.amd")
    rng = random.Random(4)
    formats, found, operands = set(), [], 0
    for row in ROWS:
        if row.format in UNKNOWN_FORMATS:
            continue
        for encoding in encodings(row, rng, 3, 1):
            try:
                size, text = _native.decode(encoding.code)
            except _native.DecodeError:
                continue
            theirs = amd.decode_inst(encoding.code[:size], "cdna")
            differences, count = differing(encoding, theirs)
            found += [f"{encoding.code.hex()} '{text}': {what}" for what in differences]
            operands += count
            formats.add(row.format)
    assert found == []
    assert formats == {row.format for row in ROWS} - set(UNKNOWN_FORMATS)
    assert operands > 10_000
