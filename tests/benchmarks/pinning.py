"""Threads stay on their processor: the caller on the first, the workers that a library starts on the others."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def processors(threads: int) -> tuple[int, ...]:
    """The first `threads` processors this process may use.

    Raises:
        ValueError: there are fewer.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        raise ValueError(f"threads: expected at most {len(allowed)} on this machine, got {threads}")
    return tuple(allowed[:threads])


_unsettled = 0  # blocks of workers_pinned that are open


@contextmanager
def workers_pinned(cpus: tuple[int, ...]) -> Iterator[None]:
    """Threads that start inside are pinned to `cpus[1:]` in turn when the block ends. Until then they have the affinity of
    who started them, so that nothing may be timed inside."""
    global _unsettled
    before = _threads()
    _unsettled += 1
    try:
        yield
    finally:
        _unsettled -= 1
    started = sorted(_threads() - before)
    for thread, cpu in zip(started, itertools.cycle(cpus[1:] or cpus), strict=False):
        os.sched_setaffinity(thread, {cpu})


def expect_settled() -> None:
    """Before timing.

    Raises:
        RuntimeError: inside `workers_pinned`, where all threads may still share a processor.
    """
    if _unsettled:
        raise RuntimeError("timed inside workers_pinned: the workers are not on their processors yet")


def _threads() -> set[int]:
    return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}


@contextmanager
def caller_pinned(cpus: tuple[int, ...]) -> Iterator[None]:
    """The calling thread runs on `cpus[0]` inside."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
