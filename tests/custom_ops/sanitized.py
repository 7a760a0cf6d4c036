"""A pytest plugin that puts another build of the emulated device in place of the installed one.

ZYFA_LIBRARY does the same for the operator library. See `make sanitize-ops`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from zyfa_ort.kernels import emulator


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--hip-device", type=Path, required=True, help="libzyfa_emulated_hip.so to test with")


def pytest_configure(config: pytest.Config) -> None:
    device = config.getoption("--hip-device").resolve()
    if not device.is_file():
        raise pytest.UsageError(f"--hip-device {device}: no such library")
    emulator.hip_library_path = lambda: str(device)


def pytest_report_header(config: pytest.Config) -> str:
    return f"emulated device: {config.getoption('--hip-device')}"
