"""Quantising and rotating give the same bits with every instruction set of this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NEEDED = {
    "baseline": set(),
    "avx2": {"avx2", "fma"},
    "avx512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"},
}
HERE = Path(__file__).parent
FILES = ("test_hadamard.py", "test_quantize_fp8.py")


def features() -> set[str]:
    found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return set(found.group(1).split()) if found else set()


@pytest.mark.parametrize("isa", NEEDED)
def test_operators_keep_their_tests_with_each(isa: str) -> None:
    """The set is chosen when the library is loaded, so in a process of its own."""
    if not NEEDED[isa] <= features():
        pytest.skip(f"this machine has no {isa}")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", *(str(HERE / name) for name in FILES)],
        cwd=HERE.parents[1],
        env=os.environ | {"ZYFA_CPU_ISA": isa},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\d{3} passed", done.stdout)


def test_an_unknown_set_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-q", f"{HERE / FILES[0]}::test_nan_spoils_its_own_row_only"],
        cwd=HERE.parents[1],
        env=os.environ | {"ZYFA_CPU_ISA": "sse9"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"ZYFA_CPU_ISA: expected one of .*baseline on this machine, got sse9", done.stdout)
