"""Where ROCm keeps its compiler. Only the standard library: the build backend asks before anything is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def commands() -> tuple[Path, Path] | None:
    """clang and ld.lld below ROCM_PATH (else /opt/rocm), or None when they are not both there."""
    folder = Path(os.environ.get("ROCM_PATH") or "/opt/rocm") / "llvm" / "bin"
    clang, lld = folder / "clang", folder / "ld.lld"
    return (clang, lld) if clang.is_file() and lld.is_file() else None


def refusal(clang: tuple[str, ...]) -> str | None:
    """Why this clang cannot assemble for gfx950 (its own first error), or None when it can."""
    command = [
        *clang,
        "--target=amdgcn-amd-amdhsa",
        "-mcpu=gfx950",
        "-x",
        "assembler",
        "-c",
        "-",
        "-o",
        os.devnull,
    ]
    try:
        done = subprocess.run(
            command, input="s_endpgm\n", capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return " ".join(str(error).split())
    said = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in said if "error" in line] or said
    if done.returncode == 0 and not any("not a recognized processor" in line for line in said):
        return None
    return errors[0].strip() if errors else f"ended with status {done.returncode} and no message"
