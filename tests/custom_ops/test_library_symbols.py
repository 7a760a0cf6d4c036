"""What the shared library shows the world: its entry points, and no need of ONNX Runtime or libstdc++."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import zyfa_ort

ROOT = Path(__file__).parents[2]
ENTRY_POINTS = {"RegisterCustomOps", "CreateEpFactories", "ReleaseEpFactory", "zyfa_last_refusal"}
DIRECT = set(
    re.findall(r"\b(zyfa_\w+)\(", (ROOT / "custom_ops/direct/direct_abi.h").read_text(encoding="utf-8"))
)
ALLOWED_LIBRARIES = ("libm.so", "libc.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux")


def tool(*command: str) -> list[str]:
    """Lines of a binutils command on the library."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(
        [*command, zyfa_ort.library_path()], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def test_exports_exactly_its_entry_points() -> None:
    exported = {line.split()[-1].split("@")[0] for line in tool("nm", "-D", "--defined-only")}
    assert len(DIRECT) == 11
    assert exported == ENTRY_POINTS | DIRECT


def test_entry_point_is_found_unmangled() -> None:
    assert ctypes.CDLL(zyfa_ort.library_path()).RegisterCustomOps


def test_needs_only_the_c_library() -> None:
    """It loads beside any ONNX Runtime build and on machines without a GPU."""
    needed = [line.split("[")[1].rstrip("]") for line in tool("readelf", "-d") if "(NEEDED)" in line]
    assert [name for name in needed if not name.startswith(ALLOWED_LIBRARIES)] == []
