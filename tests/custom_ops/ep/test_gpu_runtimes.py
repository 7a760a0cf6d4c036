"""The provider in other builds of ONNX Runtime, each in an environment of its own, on the emulated device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from custom_ops.test_runtimes import python_with
from zyfa_ort.kernels.emulator import hip_library_path

import zyfa_ort

pytestmark = pytest.mark.runtimes
PROBE = Path(__file__).with_name("gpu_probe.py")
VERSIONS = {"onnxruntime==1.24.1": "1.24.1", "onnxruntime-migraphx==1.27.1": "1.27.1"}


def probe(python: Path) -> dict[str, str]:
    """What the probe found, one "name: answer" per line."""
    done = subprocess.run(
        [python, PROBE, zyfa_ort.library_path()],
        env=os.environ | {"ZYFA_HIP_LIBRARY": hip_library_path()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


def expect_everything_works(found: dict[str, str], version: str) -> None:
    assert found.pop("version") == version
    assert found == dict.fromkeys(found, "right")
    assert len(found) == 4


def test_the_runtime_of_this_environment() -> None:
    import onnxruntime

    expect_everything_works(probe(Path(sys.executable)), onnxruntime.__version__)


@pytest.mark.parametrize("requirement", VERSIONS)
def test_other_builds(requirement: str) -> None:
    expect_everything_works(probe(python_with(requirement)), VERSIONS[requirement])


def test_a_runtime_that_is_too_old_is_refused_in_words() -> None:
    found = probe(python_with("onnxruntime==1.23.2"))
    wanted = "ZyfaExecutionProvider: needs ONNX Runtime 1.24 or later, this is 1.23.2; upgrade onnxruntime"
    assert wanted in found["registration"]
