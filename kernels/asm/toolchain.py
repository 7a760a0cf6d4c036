"""The device toolchain: ROCm's clang and linker, or those in the ziglang wheel; and how they are run."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from zyfa_ort.kernels.asm import rocm
from zyfa_ort.kernels.errors import ToolchainError

# The slowest kernels take clang about a minute; beyond this it hangs.
TIMEOUT_SECONDS = 600.0
INSTALL = "install ROCm 7 or the ziglang wheel: pip install 'ziglang>=0.15'"
# Variables by which clang silently takes up other headers or options: they would change the result.
_FOREIGN = (
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "CCC_OVERRIDE_OPTIONS",
    "CLANG_CONFIG_FILE_SYSTEM_DIR",
)


@dataclass(frozen=True)
class Toolchain:
    """The two commands that make a code object."""

    name: str
    clang: tuple[str, ...]
    lld: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    returncode: int
    stderr: str


def toolchain() -> Toolchain:
    """ROCm's clang (below ROCM_PATH, else /opt/rocm) when it knows gfx950, else the ziglang wheel's.

    Raises:
        ToolchainError: neither is installed, or what is installed is too old for gfx950.
    """
    return _toolchain(os.environ.get("ROCM_PATH") or "/opt/rocm")


@functools.lru_cache(maxsize=8)
def _toolchain(_rocm_path: str) -> Toolchain:
    too_old = []
    for candidate in _candidates():
        why = rocm.refusal(candidate.clang)
        if why is None:
            return candidate
        too_old.append(f"{candidate.name} cannot make gfx950 code ({why})")
    if too_old:
        raise ToolchainError(f"device toolchain: {'; '.join(too_old)}; LLVM 20 or later knows it: {INSTALL}")
    raise ToolchainError(f"device toolchain: found no ROCm clang and no ziglang wheel; {INSTALL}")


def _candidates() -> list[Toolchain]:
    found = []
    if (commands := rocm.commands()) is not None:
        clang, lld = commands
        found.append(Toolchain(f"ROCm clang {clang}", (str(clang),), (str(lld),)))
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        zig = Path(folder) / "zig"
        if zig.is_file():
            found.append(Toolchain("ziglang wheel", (str(zig), "clang"), (str(zig), "ld.lld")))
    return found


def run(command: Sequence[str], folder: Path, what: str) -> Outcome:
    """Runs one command of the toolchain in `folder`, with messages in English and no outside options.

    Raises:
        ToolchainError: it does not start, was ended by a signal, or takes longer than TIMEOUT_SECONDS.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN} | {"LC_ALL": "C"}
    program = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise ToolchainError(f"{what}: {program} does not start: {error.strerror}; {INSTALL}") from error
    except subprocess.TimeoutExpired:
        raise ToolchainError(f"{what}: {program} did not finish within {TIMEOUT_SECONDS:g} seconds") from None
    if done.returncode < 0:
        raise ToolchainError(f"{what}: {program} was ended by signal {-done.returncode}")
    return Outcome(done.returncode, done.stderr)
