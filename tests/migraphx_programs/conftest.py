"""One worker per target, and a skip with the reason where MIGraphX cannot be had."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migraphx_programs import debian
from migraphx_programs.remote import Remote


def worker(target: str) -> Iterator[Remote]:
    try:
        made = Remote(target)
    except debian.Unavailable as reason:
        pytest.skip(str(reason))
    yield made
    assert made.close() == 0, made.errors()


@pytest.fixture(scope="session")
def ref() -> Iterator[Remote]:
    yield from worker("ref")


@pytest.fixture(scope="session")
def gpu() -> Iterator[Remote]:
    yield from worker("gpu")
