"""Text or HIP C++ to a gfx950 code object.

python -m zyfa_ort.kernels.asm.assemble kernel.s kernel.co
python -m zyfa_ort.kernels.asm.assemble --hip kernel.hip kernel.co
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from zyfa_ort.kernels.asm import output_check
from zyfa_ort.kernels.asm.diagnostics import explain
from zyfa_ort.kernels.asm.toolchain import run, toolchain
from zyfa_ort.kernels.errors import ToolchainError

# No warnings pass: what the assembler or the linker doubts is a mistake of the generator.
ASSEMBLER = ("--target=amdgcn-amd-amdhsa", "-mcpu=gfx950", "-Wa,--fatal-warnings", "-c")
# -fuse-cuid=none: the default puts a hash of the source's path into the code object.
HIP = (
    *("-x", "hip", "--cuda-device-only", "--offload-arch=gfx950", "-nogpulib", "-nogpuinc"),
    *("-std=c++17", "-O3", "-ffp-contract=off", "-mcode-object-version=5", "-fuse-cuid=none"),
    *("-nostdinc", "-fomit-frame-pointer", "-Wall", "-Wextra", "-Werror", "-S"),
)
LINKER = ("-shared", "--no-undefined", "--fatal-warnings")


def assemble(text: str, name: str = "kernel", *, origins: Sequence[str] = ()) -> bytes:
    """The code object of one assembly text in LLVM's syntax. The same text always gives the same bytes.

    `origins` says of each line where the generator made it ("fp8.py:88"); a comment `// from: fp8.py:88` in the text
    does the same for its own line and those below it, up to an empty line. Error messages name the origin.

    Raises:
        ToolchainError: the text was refused (the message quotes the line), or a kernel of it is missing in the output.
    """
    with tempfile.TemporaryDirectory(prefix="zyfa-asm-") as folder:
        return _assembled(text, file_stem(name), Path(folder), origins)


def compile_hip(source: Path | str, name: str = "", include: Sequence[Path] = ()) -> bytes:
    """The code object of one HIP C++ source (a path, or the text itself); it must not include ROCm's headers.

    Raises:
        ToolchainError: clang refused it, warned, or left out a kernel.
    """
    stem = file_stem(name or (source.stem if isinstance(source, Path) else "kernel"))
    with tempfile.TemporaryDirectory(prefix="zyfa-hip-") as folder:
        return _assembled(_hip_text(source, stem, Path(folder), include), stem, Path(folder), ())


def hip_assembly(source: Path | str, name: str = "", include: Sequence[Path] = ()) -> str:
    """The assembly text clang makes of a HIP source, to look at. Raises like `compile_hip`."""
    stem = file_stem(name or (source.stem if isinstance(source, Path) else "kernel"))
    with tempfile.TemporaryDirectory(prefix="zyfa-hip-") as folder:
        return _hip_text(source, stem, Path(folder), include)


def file_stem(name: str) -> str:
    """A name that is safe as a file name and on a command line."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name)[:80] or "kernel"


def _hip_text(source: Path | str, stem: str, folder: Path, include: Sequence[Path]) -> str:
    if isinstance(source, Path):
        if not source.is_file():
            raise ToolchainError(f"{source}: expected a HIP source, found no file")
        path = source.absolute()
    else:
        path = folder / f"{stem}.hip"
        path.write_text(source, encoding="utf-8")
    includes = [f"-I{Path(where).absolute()}" for where in include]
    target = folder / f"{stem}.compiled.s"
    command = [
        *toolchain().clang,
        *HIP,
        f"-ffile-prefix-map={path.parent}/=",
        *includes,
        str(path),
        "-o",
        target.name,
    ]
    outcome = run(command, folder, path.name)
    if outcome.returncode != 0:
        raise ToolchainError(
            explain(outcome.stderr, path, path.read_text(encoding="utf-8", errors="replace"))
        )
    text = target.read_text(encoding="utf-8") if target.is_file() else ""
    if not text.strip():
        raise ToolchainError(f"{path.name}: clang ended well but wrote no assembly")
    return text


def _assembled(text: str, stem: str, folder: Path, origins: Sequence[str]) -> bytes:
    tools = toolchain()
    source, obj, target = (folder / f"{stem}{suffix}" for suffix in (".s", ".o", ".co"))
    source.write_text(text, encoding="utf-8")
    outcome = run([*tools.clang, *ASSEMBLER, source.name, "-o", obj.name], folder, source.name)
    if outcome.returncode != 0:
        raise ToolchainError(explain(outcome.stderr, source, text, origins))
    outcome = run([*tools.lld, *LINKER, obj.name, "-o", target.name], folder, source.name)
    if outcome.returncode != 0 or outcome.stderr.strip():
        raise ToolchainError(
            f"{source.name}: the linker refuses it: {' '.join(outcome.stderr.split())[:400]}"
        )
    code = target.read_bytes() if target.is_file() else b""
    output_check.check(code, text, source.name)
    return code


def write_atomically(path: Path, data: bytes) -> None:
    """Another process sees the old file or the new one, never a part."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0 when OUT was written."""
    parser = argparse.ArgumentParser(
        prog="python -m zyfa_ort.kernels.asm.assemble", description="gfx950 code objects"
    )
    parser.add_argument("source", metavar="IN", type=Path, help="assembly text, or HIP C++ with --hip")
    parser.add_argument("target", metavar="OUT", type=Path, help="code object to write")
    parser.add_argument("--hip", action="store_true", help="IN is HIP C++")
    parser.add_argument("--include", metavar="DIR", type=Path, action="append", default=[], help="with --hip")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.hip:
            code = compile_hip(chosen.source, include=chosen.include)
        else:
            code = assemble(chosen.source.read_text(encoding="utf-8"), chosen.source.stem)
        write_atomically(chosen.target, code)
    except (ToolchainError, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
