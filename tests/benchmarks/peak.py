"""The machine's own limits: peak.cc, compiled with the C++ compiler at hand and called."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.prepared import Unavailable

SOURCE = Path(__file__).with_name("peak.cc")
SECONDS = 0.02  # of one measurement
# In peak.cc's order, the better one of a type last.
UNITS = ("fp32 avx2", "fp32 avx512", "bf16 avx512", "bf16 amx")


@cache
def _library() -> ctypes.CDLL:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise Unavailable(f"no C++ compiler: expected {compiler} on PATH; set CXX")
    folder = tempfile.TemporaryDirectory()
    built = Path(folder.name) / "libpeak.so"
    flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden"]
    done = subprocess.run(
        [compiler, *flags, SOURCE, "-o", built], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"{compiler} cannot compile {SOURCE.name}: {done.stderr.strip().splitlines()[0]}")
    library = ctypes.CDLL(str(built))
    folder.cleanup()  # the mapping stays
    library.zyfa_unit_name.restype = ctypes.c_char_p
    library.zyfa_unit_rate.restype = library.zyfa_copy_rate.restype = ctypes.c_double
    return library


def units() -> dict[str, int]:
    """Arithmetic units that this machine has, by name ("fp32 avx512")."""
    library = _library()
    return {
        library.zyfa_unit_name(unit).decode(): unit
        for unit in range(library.zyfa_unit_count())
        if library.zyfa_unit_supported(unit)
    }


def best_units(precision: str, present: set[str]) -> list[str]:
    """What a precision is measured against: the best FP32 unit, and for narrow types the best BF16 unit too."""
    types = ["fp32"] if precision == "fp32" else ["fp32", "bf16"]
    ranked = [unit for unit in reversed(UNITS) if unit in present]
    best = (next((unit for unit in ranked if unit.startswith(kind)), None) for kind in types)
    return [unit for unit in best if unit is not None]


def flops_per_second(unit: str, cpus: tuple[int, ...], seconds: float = SECONDS) -> float:
    """Of one thread on each of `cpus` together."""
    return float(_library().zyfa_unit_rate(units()[unit], _array(cpus), len(cpus), ctypes.c_double(seconds)))


def copied_bytes_per_second(size: int, cpus: tuple[int, ...], seconds: float = 5 * SECONDS) -> float:
    """Read plus written, of copying `size` bytes on each of `cpus`."""
    rate = _library().zyfa_copy_rate
    return float(rate(ctypes.c_int64(size), _array(cpus), len(cpus), ctypes.c_double(seconds)))


def _array(cpus: tuple[int, ...]) -> ctypes.Array[ctypes.c_int]:
    return (ctypes.c_int * len(cpus))(*cpus)
