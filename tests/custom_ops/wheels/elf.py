"""What a shared library asks of others: libraries by soname, undefined symbols with the version they want."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_DYNSYM, _DYNAMIC, _VERNEED, _VERSYM = 11, 6, 0x6FFFFFFE, 0x6FFFFFFF
_DT_NEEDED = 1


@dataclass(frozen=True)
class Wanted:
    """An undefined symbol. Without a version nobody knows which library it comes from."""

    name: str
    soname: str | None
    version: str | None


@dataclass(frozen=True)
class Needs:
    sonames: tuple[str, ...]
    symbols: tuple[Wanted, ...]


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def needs_of(path: Path) -> Needs:
    """Of a 64-bit little-endian ELF file."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        assert data[:6] == b"\x7fELF\x02\x01", f"{path}: expected a 64-bit little-endian ELF file"
        (table,) = struct.unpack_from("<Q", data, 40)
        (count,) = struct.unpack_from("<H", data, 60)
        sections = [_section(data, table + 64 * i) for i in range(count)]
        by_kind = {section.kind: section for section in sections}
        versions = _versions(data, by_kind[_VERNEED], sections)
        return Needs(
            tuple(_needed(data, by_kind[_DYNAMIC], sections)),
            tuple(_undefined(data, by_kind[_DYNSYM], by_kind[_VERSYM], sections, versions)),
        )


def _section(data: mmap.mmap, at: int) -> _Section:
    _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", data, at)
    return _Section(kind, offset, size, link)


def _text(data: mmap.mmap, strings: _Section, at: int) -> str:
    start = strings.offset + at
    return data[start : data.find(b"\0", start)].decode()


def _needed(data: mmap.mmap, dynamic: _Section, sections: list[_Section]) -> list[str]:
    entries = [struct.unpack_from("<QQ", data, dynamic.offset + at) for at in range(0, dynamic.size, 16)]
    return [_text(data, sections[dynamic.link], value) for tag, value in entries if tag == _DT_NEEDED]


def _versions(data: mmap.mmap, section: _Section, sections: list[_Section]) -> dict[int, tuple[str, str]]:
    """Index -> (soname, version)."""
    found: dict[int, tuple[str, str]] = {}
    strings, at = sections[section.link], section.offset
    while True:
        _, count, file, first, following = struct.unpack_from("<HHIII", data, at)
        inner = at + first
        for _ in range(count):
            _, _, index, name, step = struct.unpack_from("<IHHII", data, inner)
            found[index] = (_text(data, strings, file), _text(data, strings, name))
            inner += step
        if following == 0:
            return found
        at += following


def _undefined(
    data: mmap.mmap,
    symbols: _Section,
    indices: _Section,
    sections: list[_Section],
    versions: dict[int, tuple[str, str]],
) -> list[Wanted]:
    found = []
    for i in range(1, symbols.size // 24):
        name, _, _, place = struct.unpack_from("<IBBH", data, symbols.offset + 24 * i)
        if place != 0:
            continue
        (index,) = struct.unpack_from("<H", data, indices.offset + 2 * i)
        soname, version = versions.get(index & 0x7FFF, (None, None))
        found.append(Wanted(_text(data, sections[symbols.link], name), soname, version))
    return found
