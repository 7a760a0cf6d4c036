"""Every instruction set that this machine has keeps the promises of the operators; others are refused.

A set is chosen when the library is loaded, so each needs a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from custom_ops.trace_library import library_path

TESTS = Path(__file__).parents[1]
NAMES = ("baseline", "neon", "avx2", "avx512", "avx512_bf16", "amx_bf16")
REFUSAL = re.compile(r"ZYFA_CPU_ISA: expected one of (.*) on this machine, got (\w+)")


def run(name: str, *command: str) -> subprocess.CompletedProcess[str]:
    """`python -m command` under this set; skips where the machine has no such set."""
    environment = {**os.environ, "ZYFA_CPU_ISA": name, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", *command],
        env=environment,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    refused = REFUSAL.search(done.stdout + done.stderr)
    if refused and name not in refused[1].split(", ") and name in NAMES:
        pytest.skip(f"this machine has {refused[1]}")
    return done


@pytest.mark.skipif(not library_path().exists(), reason="built without the trace library (ZYFA_BUILD_TESTS)")
@pytest.mark.parametrize("name", NAMES)
def test_attention_stays_within_its_tolerances(name: str) -> None:
    done = run(name, "custom_ops.instruction_sets")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == name


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("avx512_bf16", "amx_bf16")])
def test_quantising_and_rotating_keep_their_bits(name: str) -> None:
    """The other sets have the same loops as avx512."""
    files = [str(TESTS / "custom_ops" / file) for file in ("test_hadamard.py", "test_quantize_fp8.py")]
    done = run(name, "pytest", "-q", *files)
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\d{3} passed", done.stdout)


def test_an_unknown_set_is_refused() -> None:
    done = run("sse9", "custom_ops.instruction_sets")
    refused = REFUSAL.search(done.stderr)
    assert done.returncode != 0
    assert refused and refused[2] == "sse9" and ("baseline" in refused[1] or "neon" in refused[1])
