"""Times one shape: who may run, whose answer is right, and how long everyone takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from benchmarks import peak
from benchmarks.contenders import Contender
from benchmarks.pinning import caller_pinned, workers_pinned
from benchmarks.prepared import Prepared, Unavailable
from benchmarks.problem import Problem
from benchmarks.rounds import Gauge, Round, median_ratio, median_seconds, seconds_of, timed_rounds
from benchmarks.shapes import Shape


@dataclass(frozen=True)
class Result:
    """Seconds of every contender and flops of every arithmetic unit, round by round; why others are missing."""

    shape: Shape
    rounds: Sequence[Round]
    missing: Mapping[str, str] = field(default_factory=dict)

    def timed(self, contender: str) -> bool:
        return contender in self.rounds[0].seconds

    def seconds(self, contender: str) -> float | None:
        return median_seconds(self.rounds, contender) if self.timed(contender) else None

    def gflops(self, contender: str) -> float | None:
        seconds = self.seconds(contender)
        return None if seconds is None else self.shape.flops / seconds / 1e9

    def ratio(self, contender: str, ours: str) -> float | None:
        """Their time over ours: above 1 we are faster."""
        if not (self.timed(contender) and self.timed(ours)):
            return None
        return median_ratio(self.rounds, contender, ours)

    def share_of_peak(self, contender: str, unit: str) -> float | None:
        """Of the flops that the unit did in the same round."""
        if not self.timed(contender) or unit not in self.rounds[0].gauges:
            return None
        return median(self.shape.flops / r.seconds[contender] / r.gauges[unit] for r in self.rounds)

    def peak(self, unit: str) -> float:
        """Median flops per second of an arithmetic unit."""
        return median(r.gauges[unit] for r in self.rounds)


def measure(
    shape: Shape, contenders: Sequence[Contender], cpus: tuple[int, ...], rounds: int, limit: float
) -> Result:
    """One shape. Contenders that are wrong are left out, and others' that take more than `limit` seconds a call."""
    ready: dict[str, Prepared] = {}
    missing: dict[str, str] = {}
    problems = {precision: Problem(shape, precision) for precision in {c.precision for c in contenders}}
    with caller_pinned(cpus):
        for contender in contenders:
            try:
                ready[contender.name] = _checked(contender, problems[contender.precision], cpus, limit)
            except Unavailable as reason:
                missing[contender.name] = str(reason)
        runs = {name: prepared.run for name, prepared in ready.items()}
        return Result(shape, timed_rounds(runs, rounds, peak_gauges(cpus, missing)), missing)


def peak_gauges(cpus: tuple[int, ...], missing: dict[str, str]) -> dict[str, Gauge]:
    """One gauge per arithmetic unit, in flops per second; the reason in `missing` when there are none."""
    try:
        return {unit: partial(peak.flops_per_second, unit, cpus) for unit in peak.units()}
    except Unavailable as reason:
        missing["peak"] = str(reason)
        return {}


def _checked(contender: Contender, problem: Problem, cpus: tuple[int, ...], limit: float) -> Prepared:
    """A contender whose first answer was right and in time."""
    with workers_pinned(cpus):
        prepared = contender.ready(problem, len(cpus))
        seconds = seconds_of(prepared.run)
    wrong = contender.wrong(problem, prepared.output())
    if wrong:
        raise Unavailable(f"is not this attention: {'; '.join(wrong)}")
    if limit < seconds < 2 * limit:
        seconds = seconds_of(prepared.run)  # the first call may have allocated
    if seconds > limit and not contender.ours:
        raise Unavailable(f"takes {seconds:.0f} s a call (limit {limit:g} s)")
    return prepared
