"""Interleaved timing: every round runs everyone once, so that a slow moment of the machine hits all of them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.pinning import expect_settled

SAMPLE_SECONDS = 0.02  # short calls are repeated until a sample lasts this long
# libgomp's workers spin for about 15 ms after a call; nobody is timed against another's spinning.
REST_SECONDS = 0.02

# Faster calls are run once more before they are timed: whoever ran before left other data in the caches, and processors
# slow down while they rest.
WARM_SECONDS = 0.5

Run = Callable[[], object]
Gauge = Callable[[], float]


@dataclass(frozen=True)
class Round:
    """Seconds per call of everyone, and what the gauges showed."""

    seconds: Mapping[str, float]
    gauges: Mapping[str, float]


def seconds_of(run: Run) -> float:
    """One call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def timed_rounds(
    runs: Mapping[str, Run], rounds: int, gauges: Mapping[str, Gauge] | None = None
) -> list[Round]:
    """Everyone ran before; `gauges` are read once a round."""
    expect_settled()
    once = {name: seconds_of(run) for name, run in runs.items()}
    return [_one_round(runs, once, gauges or {}) for _ in range(rounds)]


def _one_round(runs: Mapping[str, Run], once: Mapping[str, float], gauges: Mapping[str, Gauge]) -> Round:
    seconds = {}
    for name, run in runs.items():
        time.sleep(REST_SECONDS)
        if once[name] < WARM_SECONDS:
            run()
        repeats = max(1, math.ceil(SAMPLE_SECONDS / max(once[name], 1e-7)))
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        seconds[name] = (time.perf_counter() - start) / repeats
    time.sleep(REST_SECONDS)
    return Round(seconds, {name: gauge() for name, gauge in gauges.items()})


def median_seconds(rounds: Sequence[Round], name: str) -> float:
    """Of one contender."""
    return statistics.median(found.seconds[name] for found in rounds)


def median_ratio(rounds: Sequence[Round], over: str, under: str) -> float:
    """Median of the ratio within each round."""
    return statistics.median(found.seconds[over] / found.seconds[under] for found in rounds)
