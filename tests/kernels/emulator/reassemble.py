"""Compares machine code with what LLVM's assembler makes of the decoder's text."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from kernels.emulator.wave_kernel import HEADER, kernel_text
from zyfa_ort.kernels.asm.assemble import assemble
from zyfa_ort.kernels.emulator import _native
from zyfa_ort.kernels.errors import ToolchainError

REFUSED = re.compile(r"line (\d+)")
FIRST_LINE = HEADER.count("\n") + 1
MAX_REFUSED = 20


def text_section(code_object: bytes) -> bytes:
    """The bytes of `.text` of an ELF file."""
    (at,) = struct.unpack_from("<Q", code_object, 0x28)
    count, names = struct.unpack_from("<HH", code_object, 0x3C)
    sections = [struct.unpack_from("<IIQQQQ", code_object, at + 64 * n) for n in range(count)]
    for name, _, _, _, offset, size in sections:
        begin = sections[names][4] + name
        if code_object[begin : code_object.index(b"\0", begin)] == b".text":
            return code_object[offset : offset + size]
    raise ValueError("ELF file without .text")


def assembled(lines: list[str]) -> bytes:
    """The machine code of a few lines, and what stands behind them in a kernel."""
    return text_section(assemble(kernel_text("\n".join(lines))))


def linear(code: bytes) -> Iterator[tuple[bytes, str]]:
    """Every instruction of straight code as (bytes, text)."""
    at = 0
    while at < len(code):
        size, text = _native.decode(code[at : at + 16])
        yield code[at : at + size], text
        at += size


def differences(items: list[tuple[bytes, str]]) -> list[str]:
    """Texts that LLVM refuses or turns into other bytes, one line each; empty when all come back."""
    found: list[str] = []
    rest = list(items)
    while rest:
        try:
            code = assembled([text for _, text in rest])
            break
        except ToolchainError as error:
            refused = REFUSED.search(str(error))
            if refused is None:
                raise
            code, _ = rest.pop(int(refused[1]) - FIRST_LINE)
            found.append(f"{code.hex()}: {error}")
            if len(found) >= MAX_REFUSED:
                return found
    at = 0
    for expected, text in rest:
        size = _native.decode(code[at : at + 16])[0]
        if code[at : at + size] != expected:
            found.append(f"{expected.hex()} '{text}': assembles to {code[at : at + size].hex()}")
        at += size
    return found
