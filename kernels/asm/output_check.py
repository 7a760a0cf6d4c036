"""Looks into a code object just made: a toolchain that ends well may still have written too little.

Reads the ELF file with its own few lines. The emulator's reader is another witness and stays unknown here.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

from zyfa_ort.kernels.errors import ToolchainError

_MACHINE_AMDGPU, _MACH_GFX950, _SHARED = 224, 0x4F, 3
_NOTE, _DYNAMIC_SYMBOLS = 7, 11  # section types
_METADATA = 32  # note type NT_AMDGPU_METADATA
_DESCRIPTOR_BYTES = 64
_DIRECTIVE = re.compile(r"^[ \t]*\.amdhsa_kernel[ \t]+(\"[^\"]+\"|[^\s;/]+)", re.MULTILINE)


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def kernels_of(code: bytes) -> list[str]:
    """The kernels that the metadata of a code object lists. Raises ToolchainError when it is none for gfx950."""
    try:
        return [str(row[".name"]) for row in _metadata(code)]
    except (struct.error, IndexError, KeyError, TypeError, UnicodeDecodeError, ValueError) as error:
        raise ToolchainError(f"code object of {len(code)} bytes: truncated or damaged ({error})") from None


def check(code: bytes, text: str, name: str) -> None:
    """Holds a linked code object against the assembly text it was made from.

    Raises:
        ToolchainError: no ELF file for gfx950, or a kernel of the text lacks metadata, descriptor or instructions.
    """
    try:
        listed = kernels_of(code)
    except ToolchainError as error:
        raise ToolchainError(f"{name}: {error}") from None
    symbols = _symbols(code)
    wanted = [found.strip('"') for found in _DIRECTIVE.findall(text)]
    if not wanted:
        raise ToolchainError(f"{name}: the text declares no kernel; expected an .amdhsa_kernel directive")
    for kernel in wanted:
        if kernel not in listed:
            raise ToolchainError(
                f"{name}: kernel '{kernel}' is missing in the metadata, which lists {listed or 'none'};"
                " add it to .amdgpu_metadata"
            )
    for kernel in listed:
        if symbols.get(f"{kernel}.kd", 0) != _DESCRIPTOR_BYTES:
            raise ToolchainError(
                f"{name}: kernel '{kernel}' of the metadata has no exported descriptor '{kernel}.kd' of"
                f" {_DESCRIPTOR_BYTES} bytes; it needs .globl {kernel} and an .amdhsa_kernel directive"
            )
        if symbols.get(kernel, 0) == 0:
            raise ToolchainError(
                f"{name}: kernel '{kernel}' has no instructions: its symbol is missing or 0 bytes long;"
                f" expected code and a .size {kernel} directive behind it"
            )


def _header(code: bytes) -> list[_Section]:
    if code[:4] != b"\x7fELF":
        raise ToolchainError(f"the linker wrote {len(code)} bytes and no ELF file")
    kind, machine = struct.unpack_from("<HH", code, 16)
    flags = struct.unpack_from("<I", code, 48)[0]
    if (kind, machine, flags & 0xFF) != (_SHARED, _MACHINE_AMDGPU, _MACH_GFX950):
        raise ToolchainError(
            f"ELF file of type {kind}, machine {machine}, processor {flags & 0xFF:#x}; expected type {_SHARED},"
            f" machine {_MACHINE_AMDGPU}, processor {_MACH_GFX950:#x} (a linked gfx950 code object)"
        )
    table = struct.unpack_from("<Q", code, 40)[0]
    size, count = struct.unpack_from("<HH", code, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", code, table + i * size) for i in range(count)]
    return [_Section(row[1], row[4], row[5], row[6]) for row in rows]


def _metadata(code: bytes) -> list[dict[str, Any]]:
    for section in _header(code):
        if section.kind != _NOTE:
            continue
        name_size, size, kind = struct.unpack_from("<III", code, section.offset)
        if kind == _METADATA:
            begin = section.offset + 12 + (name_size + 3) // 4 * 4
            found = _unpack(code[begin : begin + size], 0)[0].get("amdhsa.kernels", [])
            return list(found)
    raise ToolchainError(
        "code object without AMDGPU metadata; expected an .amdgpu_metadata block in the text"
    )


def _symbols(code: bytes) -> dict[str, int]:
    """Size of each exported symbol that is defined."""
    sections = _header(code)
    sizes = {}
    for section in sections:
        if section.kind != _DYNAMIC_SYMBOLS:
            continue
        strings = sections[section.link]
        for at in range(section.offset, section.offset + section.size, 24):
            name, _, _, where, _, size = struct.unpack_from("<IBBHQQ", code, at)
            begin = strings.offset + name
            if where != 0:
                sizes[code[begin : code.index(0, begin)].decode()] = size
    return sizes


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    """The MessagePack value at `at` and where it ends; only what AMDGPU metadata is made of."""
    tag = data[at]
    at += 1
    if tag < 0x80 or tag >= 0xE0:
        return (tag if tag < 0x80 else tag - 256), at
    if tag < 0x90:
        return _unpack_map(data, at, tag & 15)
    if tag < 0xA0:
        return _unpack_list(data, at, tag & 15)
    if tag < 0xC0:
        return data[at : at + (tag & 31)].decode(), at + (tag & 31)
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    numbers = {0xCC: "B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: "b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    sizes = {0xD9: "B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}
    if tag in numbers:
        return struct.unpack_from(numbers[tag], data, at)[0], at + struct.calcsize(numbers[tag])
    if tag not in sizes:
        raise ValueError(f"MessagePack tag {tag:#x} in the metadata")
    count = struct.unpack_from(sizes[tag], data, at)[0]
    at += struct.calcsize(sizes[tag])
    if tag <= 0xDB:
        return data[at : at + count].decode(), at + count
    return _unpack_list(data, at, count) if tag <= 0xDD else _unpack_map(data, at, count)


def _unpack_list(data: bytes, at: int, count: int) -> tuple[list[Any], int]:
    items = []
    for _ in range(count):
        item, at = _unpack(data, at)
        items.append(item)
    return items, at


def _unpack_map(data: bytes, at: int, count: int) -> tuple[dict[Any, Any], int]:
    made = {}
    for _ in range(count):
        key, at = _unpack(data, at)
        made[key], at = _unpack(data, at)
    return made, at
