"""Programs in the environment of a wheel, on stand-ins for the ROCm libraries and on the emulated device."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from custom_ops.test_runtimes import python_with
from custom_ops.wheels.stand_ins import make_stand_ins
from zyfa_ort.kernels.emulator import hip_library_path

import zyfa_ort
from zyfa_ort import env, graph_passes, kernels

TESTS = Path(__file__).parents[2]
WHEELS = {"rocm": "onnxruntime-rocm==1.22.2.post3", "migraphx": "onnxruntime-migraphx==1.27.1"}
# What zyfa_ort needs besides a runtime.
_PACKAGES = ("ml_dtypes", "onnx", "onnx_ir", "rich", "typer")
_START = "from custom_ops.wheels.sessions import *\n"


# Gone with the process.
_folders = ExitStack()
atexit.register(_folders.close)


def _folder() -> Path:
    return Path(_folders.enter_context(tempfile.TemporaryDirectory(prefix="zyfa-wheels-")))


@functools.cache
def _environment(wheel: str) -> tuple[Path, Path]:
    """Its interpreter, and the folder with the stand-ins for what its provider is linked to."""
    python = python_with(WHEELS[wheel], *_PACKAGES)
    (provider,) = python.parents[1].glob(
        f"lib/python*/site-packages/onnxruntime/capi/libonnxruntime_providers_{wheel}.so"
    )
    return python, make_stand_ins(provider, _folder())


@functools.cache
def _package_folder() -> Path:
    """With the package of this environment in it and nothing else of it. An editable install has it in several folders."""
    folder = _folder()
    package = folder / "zyfa_ort"
    package.mkdir()
    parts = [
        *Path(zyfa_ort.__file__).parent.iterdir(),
        *(Path(part.__file__).parent for part in (graph_passes, kernels)),
    ]
    for part in parts:
        if not (package / part.name).exists():
            (package / part.name).symlink_to(part)
    return folder


def run_in(wheel: str, program: str, *, stand_ins: bool = True, **environment: str) -> Any:
    """What the program gave to `answer`. Names of sessions.py are there."""
    python, folder = _environment(wheel)
    done = subprocess.run(
        [python, "-P", "-c", _START + program],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (_package_folder(), TESTS))),
            "LD_LIBRARY_PATH": str(folder) if stand_ins else "",
            env.HIP_LIBRARY.name: hip_library_path(),
            env.LIBRARY.name: zyfa_ort.library_path(),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-1000:]}{done.stderr[-3000:]}"
    return json.loads(done.stdout.splitlines()[-1])
