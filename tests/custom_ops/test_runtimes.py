"""The same library file in other builds of ONNX Runtime, each in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

import zyfa_ort

pytestmark = pytest.mark.runtimes

ENVIRONMENTS = Path(__file__).parents[2] / ".cache" / "runtimes"
RUNTIMES = {
    "onnxruntime-rocm==1.22.2.post3": "1.22.2",
    "onnxruntime-migraphx==1.27.1": "1.27.1",
}
# The oldest that the library takes, one before it, and the two around the shape-inference faults that op.hpp tells of.
OLDER = {"onnxruntime==1.23.2": "1.23.2", "onnxruntime==1.24.1": "1.24.1"}
PROBE = Path(__file__).with_name("runtime_probe.py")


def python_with(requirement: str) -> Path:
    """An interpreter in whose environment `requirement` is installed; kept between test runs."""
    folder = ENVIRONMENTS / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        packages = [requirement, "ml_dtypes", "onnx"]
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        (folder / "complete").touch()
    return python


def probe(python: Path) -> dict[str, str]:
    """What the probe found, one "name: answer" per line."""
    done = subprocess.run(
        [python, PROBE, zyfa_ort.library_path()], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


def expect_everything_works(found: dict[str, str], version: str) -> None:
    assert found.pop("version") == version
    # float8e4m3fn inputs with a bfloat16 output need shape inference, which the library leaves off before 1.24.
    minor = int(version.split(".")[1])
    wide_output = found.pop("fp8 inputs, bfloat16 output")
    assert wide_output == "right" if minor >= 24 else "does not match expected type" in wide_output
    assert found == dict.fromkeys(found, "right")
    assert len(found) >= 8


def test_the_runtime_of_this_environment():
    import onnxruntime

    expect_everything_works(probe(Path(sys.executable)), onnxruntime.__version__)


@pytest.mark.parametrize("requirement", RUNTIMES)
def test_other_builds(requirement):
    expect_everything_works(probe(python_with(requirement)), RUNTIMES[requirement])


@pytest.mark.slow
@pytest.mark.parametrize("requirement", OLDER)
def test_versions_between(requirement):
    expect_everything_works(probe(python_with(requirement)), OLDER[requirement])


@pytest.mark.slow
def test_a_runtime_that_is_too_old_is_refused_in_words():
    """1.17 lacks what the library needs; the message says which versions it takes and which this is."""
    python = python_with("onnxruntime==1.17.3")
    subprocess.run([python, "-m", "pip", "install", "-q", "numpy<2"], check=True)
    done = subprocess.run(
        [python, PROBE, zyfa_ort.library_path()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "built for ONNX Runtime 1.18 to 1.27 and later, this is 1.17.3; upgrade onnxruntime" in done.stderr
