"""Every instruction set that this machine has computes attention within the same tolerances; others are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from custom_ops.trace_library import library_path

TESTS = Path(__file__).parents[1]
NAMES = ("baseline", "neon", "avx2", "avx512", "avx512_bf16", "amx_bf16")


def run(name: str) -> subprocess.CompletedProcess[str]:
    """The checks of instruction_sets.py under this set."""
    environment = {**os.environ, "ZYFA_CPU_ISA": name, "PYTHONPATH": str(TESTS), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "custom_ops.instruction_sets"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=TESTS, check=False)


@pytest.mark.skipif(not library_path().exists(), reason="built without the trace library (ZYFA_BUILD_TESTS)")
@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_set(name: str) -> None:
    done = run(name)
    if done.returncode != 0 and "ZYFA_CPU_ISA: expected one of" in done.stderr:
        pytest.skip(f"not on this machine: {done.stderr.strip().splitlines()[-1][-120:]}")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == name


def test_an_unknown_one_is_refused() -> None:
    done = run("mmx")
    assert done.returncode != 0
    assert "ZYFA_CPU_ISA: expected one of " in done.stderr and " on this machine, got mmx" in done.stderr
