"""Where the emulated HIP device is, for ZYFA_HIP_LIBRARY."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from zyfa_ort.kernels.errors import EmulationError

NAME = "libzyfa_emulated_hip.so"


def hip_library_path() -> str:
    """Path of the shared library with HIP's entry points over an emulated gfx950. Raises EmulationError: not built."""
    package = importlib.resources.files("zyfa_ort").joinpath("lib", NAME)
    # Beside this file after a build of the emulator alone.
    candidates = [Path(str(package)), Path(__file__).with_name(NAME)]
    for path in candidates:
        if path.is_file():
            return str(path)
    raise EmulationError(
        f"{candidates[0]}: the emulated HIP device is missing, reinstall with 'pip install .'"
    )
