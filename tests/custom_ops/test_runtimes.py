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
# The two around the shape-inference faults that op.hpp tells of.
OLDER = {"onnxruntime==1.23.2": "1.23.2", "onnxruntime==1.24.1": "1.24.1"}
PROBE = Path(__file__).with_name("runtime_probe.py")


def python_with(requirement: str, *others: str) -> Path:
    """An interpreter in whose environment `requirement` is installed; kept between test runs."""
    folder = ENVIRONMENTS / requirement.replace("==", "-")
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        venv.create(folder, with_pip=True, clear=True)
    installed = set(complete.read_text().split()) if complete.exists() else set()
    wanted = {requirement, *(others or ("ml_dtypes", "onnx"))}
    if not wanted <= installed:
        subprocess.run([python, "-m", "pip", "install", "-q", *sorted(wanted)], check=True)
        complete.write_text("\n".join(sorted(installed | wanted)))
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


def test_a_runtime_that_is_too_old_is_refused_in_words():
    python = python_with("onnxruntime==1.17.3", "numpy<2", "ml_dtypes<0.5", "onnx<1.18")
    done = subprocess.run(
        [python, PROBE, zyfa_ort.library_path()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    wanted = "zyfa_ort: needs ONNX Runtime 1.18 or later, this is 1.17.3; upgrade onnxruntime"
    assert all(wanted in line for line in done.stdout.splitlines()[1:])
