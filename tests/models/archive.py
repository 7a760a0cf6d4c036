"""One compressed file for all graphs: exports of one model differ so little that together they take a twentieth."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path


def read(path: Path) -> dict[str, bytes]:
    """File name -> content."""
    with tarfile.open(path) as archive:
        streams = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: stream.read() for name, stream in streams.items() if stream is not None}


def write(path: Path, files: Mapping[str, bytes]) -> None:
    """Sorted by name, without times and owners: the same files give the same archive."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    path.write_bytes(lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME))
