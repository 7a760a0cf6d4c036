"""Many short instruction sequences in one assembled file, and what the emulator's static view says of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernels.emulator.wave_kernel import kernel_text
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.emulator import Finding, _native, lint


def wait(states: int) -> str:
    """Wait states between two instructions."""
    lines = [f"s_nop {min(states - at, 16) - 1}" for at in range(0, states, 16)]
    return "\n".join(lines)


def encode(instructions: Sequence[str]) -> list[bytes]:
    """The machine code of each instruction."""
    (code,) = _native.code_of(assemble(kernel_text("\n".join(instructions), pointers=0)))
    made = []
    for _ in instructions:
        size, _text = _native.decode(code)
        made.append(code[:size])
        code = code[size:]
    return made


def effects_of(instructions: Sequence[str]) -> list[dict[str, Any]]:
    """Registers, unit and flags of each instruction."""
    return [_native.effects(code) for code in encode(instructions)]


def findings_of(sequences: Sequence[str]) -> list[list[Finding]]:
    """Hazards of each sequence by itself: s_endpgm between them ends every history."""
    marked = "\n".join(f"{sequence}\ns_endpgm" for sequence in sequences)
    code_object = assemble(kernel_text(marked, pointers=0))
    (code,) = _native.code_of(code_object)
    ends = []
    at = 0
    while at < len(code):
        size, text = _native.decode(code[at : at + 16], at)
        if text.strip() == "s_endpgm":
            ends.append(at)
        at += size
    found: list[list[Finding]] = [[] for _ in sequences]
    for finding in lint(code_object):
        found[sum(finding.offset > end for end in ends)].append(finding)
    return found
