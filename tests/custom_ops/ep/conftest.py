"""Every test here ends with an emulated device that has nothing to complain about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from custom_ops.gpu_session import emulated_device, report


@pytest.fixture(autouse=True)
def no_findings() -> Iterator[None]:
    emulated_device()
    before = report()
    yield
    assert report() == before
