"""A pytest plugin that puts another build of the emulator (module and HIP device) in place of the installed one.

PYTHONPATH=tests python -m pytest -p kernels.emulator.native_module --native build/sanitize/_native….so tests/kernels
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

PACKAGE = "zyfa_ort.kernels.emulator"
NAME = f"{PACKAGE}._native"
HIP_DEVICE = "libzyfa_emulated_hip.so"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--native", type=Path, required=True, help="the compiled module to test")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--native")
    spec = importlib.util.spec_from_file_location(NAME, file)
    if NAME in sys.modules or spec is None or spec.loader is None or not file.is_file():
        raise pytest.UsageError(f"--native {file}: no such module, or the installed one is already loaded")
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    device = file.resolve().with_name(HIP_DEVICE)
    importlib.import_module(PACKAGE).hip_library_path = lambda: str(device)


def pytest_report_header(config: pytest.Config) -> str:
    return f"emulator: {config.getoption('--native')}"
