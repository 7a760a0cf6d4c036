"""Text or HIP C++ to a gfx950 code object, with ROCm's clang or the ziglang wheel."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from zyfa_ort.kernels.errors import ToolchainError

TARGET = ("--target=amdgcn-amd-amdhsa", "-mcpu=gfx950")
HIP = (
    *("-x", "hip", "--cuda-device-only", "--offload-arch=gfx950", "-nogpulib", "-nogpuinc"),
    *("-std=c++17", "-O3", "-ffp-contract=off", "-S"),
)


@dataclass(frozen=True)
class Toolchain:
    """The two commands that make a code object."""

    name: str
    clang: tuple[str, ...]
    lld: tuple[str, ...]


@functools.cache
def toolchain() -> Toolchain:
    """ROCm's clang when there is one (ROCM_PATH, else /opt/rocm), else the ziglang wheel.

    Raises ToolchainError when neither is installed.
    """
    llvm = Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "llvm" / "bin"
    if (llvm / "clang").is_file() and (llvm / "ld.lld").is_file():
        return Toolchain("ROCm", (str(llvm / "clang"),), (str(llvm / "ld.lld"),))
    found = importlib.util.find_spec("ziglang")
    if found is not None and found.submodule_search_locations:
        zig = str(Path(found.submodule_search_locations[0]) / "zig")
        return Toolchain("ziglang", (zig, "clang"), (zig, "ld.lld"))
    raise ToolchainError(
        "device toolchain: no ROCm clang and no ziglang wheel; install one: pip install ziglang"
    )


def assemble(text: str, name: str = "kernel") -> bytes:
    """The code object of one assembly text (LLVM syntax). Raises ToolchainError with the line that was refused."""
    with tempfile.TemporaryDirectory(prefix="zyfa-asm-") as folder:
        source = Path(folder) / f"{name}.s"
        source.write_text(text, encoding="utf-8")
        return _link(_assembled(source, text))


def compile_hip(source: Path | str, name: str = "kernel", include: tuple[Path, ...] = ()) -> bytes:
    """The code object of one HIP C++ source (a path, or the text itself); it must not include ROCm's headers."""
    with tempfile.TemporaryDirectory(prefix="zyfa-hip-") as folder:
        if isinstance(source, Path):
            path = source
        else:
            path = Path(folder) / f"{name}.hip"
            path.write_text(source, encoding="utf-8")
        target = Path(folder) / f"{path.stem}.s"
        includes = [f"-I{where}" for where in include]
        _run([*toolchain().clang, *HIP, *includes, str(path), "-o", str(target)], path.name)
        text = target.read_text(encoding="utf-8")
        return _link(_assembled(target, text))


def _assembled(source: Path, text: str) -> Path:
    target = source.with_suffix(".o")
    _run([*toolchain().clang, *TARGET, "-c", str(source), "-o", str(target)], source.name, text.splitlines())
    return target


def _link(obj: Path) -> bytes:
    target = obj.with_suffix(".co")
    _run([*toolchain().lld, "-shared", str(obj), "-o", str(target)], obj.name)
    linked = target.read_bytes() if target.is_file() else b""
    if linked[:4] != b"\x7fELF":
        raise ToolchainError(f"{obj.name}: the linker wrote {len(linked)} bytes and no ELF file")
    return linked


def _run(command: list[str], name: str, lines: list[str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    first = re.search(rf"{re.escape(name)}:(\d+):\d+: error: (.*)", done.stderr)
    if first is None:
        raise ToolchainError(f"{name}: {' '.join(command[:2])} failed: {done.stderr.strip()[-400:]}")
    at = int(first[1])
    quoted = f": {lines[at - 1].strip()!r}" if lines and at <= len(lines) else ""
    raise ToolchainError(f"{name} line {at}{quoted}: {first[2]}")
