"""The runs that decisions are made on: which lengths they use, and questions asked of all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import onnx_ir as ir

from .evaluate import Evaluator
from .facts import Conflict, Shape
from .lengths import IMAGE_PROBE, Kind, LengthModel, length_model
from .probes import Probe, Wide, run_probe

MAX_ROUNDS: Final = 12
MAX_LEADS: Final = 4
OTHER_LEAD: Final = 7  # no multiple of the batch, so that no Reshape hides it
LONGER_BY: Final = 3
# Lengths at which a number that is computed from lengths must still be the same.
FAR: Final = (200, 1 << 16)
# Relative error of a constant that was rounded to the type: 2^-24 (float), 2^-11 (half), 2^-8 (bfloat16). Four
# roundings are allowed for float, where exporters compute the constant in the graph; a scale that is off by 1 % must not
# pass for the usual one in a narrow type.
ROUNDING: Final = {
    ir.DataType.DOUBLE: 2.0**-22,
    ir.DataType.FLOAT: 2.0**-22,
    ir.DataType.FLOAT16: 2.0**-11,
    ir.DataType.BFLOAT16: 2.0**-8,
}


@dataclass(frozen=True)
class Scenario:
    """One choice of lengths: `batch`, then `tokens` and `past` for the first, second, ... length of that kind."""

    batch: int
    tokens: tuple[int, ...]
    past: tuple[int, ...]


# No past; one token and more past than tokens; more tokens than past; many sequences. Several lengths of a kind always
# differ.
SCENARIOS: Final = (
    Scenario(1, (9, 6, 5, 8), (0, 0, 0, 0)),
    Scenario(2, (1, 3, 2, 4), (8, 5, 12, 7)),
    Scenario(2, (6, 10, 9, 12), (3, 2, 5, 4)),
    Scenario(70, (12, 10, 9, 11), (2, 6, 8, 1)),
)


@dataclass(frozen=True)
class Number:
    """A constant; `slack` is the relative error its type may have given it."""

    value: float
    slack: float


@dataclass
class ProbeSet:
    """The runs every decision is made on, and the means to make more of them."""

    graph: ir.Graph
    opset: int
    lengths: LengthModel
    evaluator: Evaluator
    probes: tuple[Probe, ...]
    is_flipped: bool = False
    _long: dict[tuple[int, Kind], Probe | None] = field(default_factory=dict)
    _wide: dict[tuple[str, Wide, int, tuple[int, ...]], Probe] = field(default_factory=dict)
    _longer: dict[ir.Value, Probe | None] = field(default_factory=dict)

    @property
    def first(self) -> Probe:
        return self.probes[0]

    def first_shape(self, value: ir.Value | None) -> Shape | None:
        """The shape in the first run (all lengths different)."""
        return self.first.shape(value)

    def knows(self, value: ir.Value) -> bool:
        fact = self.first.fact(value)
        return fact.data is not None or fact.knowable

    def is_weight(self, value: ir.Value) -> bool:
        """True for constants and what is computed from constants only."""
        return self.first.fact(value).constant

    def scalar(self, value: ir.Value | None) -> Number | None:
        """The number in a one-element value, when it is the same in all runs."""
        number = self.first.scalar(value)
        if number is None or value is None:
            return None
        if any(probe.scalar(value) not in (number, None) for probe in self.probes):
            return None
        if not self.is_weight(value) and any(
            probe is not None and probe.scalar(value) not in (number, None) for probe in self._far_runs()
        ):
            return None
        dtype = self.first.dtype(value)
        return Number(number, ROUNDING.get(dtype, 0.0) if dtype is not None else 0.0)

    def _far_runs(self) -> tuple[Probe | None, ...]:
        return tuple(self.long(length, "tokens") for length in FAR)

    def reach(self, value: ir.Value) -> int:
        """The largest last length `value` has in any run."""
        return max((shape[-1] for probe in self.probes if (shape := probe.shape(value))), default=0)

    @cached_property
    def flipped(self) -> ProbeSet:
        """The same runs with 0 for 1 in the inputs: what shows when an input's 1 hides a key."""
        probes = tuple(
            run_probe(self.graph, self.lengths, one.free, self.evaluator, one.phase, flipped=True)
            for one in self.probes
        )
        return ProbeSet(self.graph, self.opset, self.lengths, self.evaluator, probes, is_flipped=True)

    def _everywhere(self, value: ir.Value, test: Callable[[Shape], bool]) -> bool:
        shapes = [probe.shape(value) for probe in self.probes]
        known = [shape for shape in shapes if shape is not None]
        return shapes[0] is not None and all(test(shape) for shape in known)

    def one_element(self, value: ir.Value) -> bool:
        return self._everywhere(value, lambda shape: all(length == 1 for length in shape))

    def last_length_is_one(self, value: ir.Value) -> bool:
        return self._everywhere(value, lambda shape: len(shape) > 0 and shape[-1] == 1)

    def _pairs(self, before: ir.Value, after: ir.Value, test: Callable[[Shape, Shape], bool]) -> bool:
        pairs = [(probe.shape(before), probe.shape(after)) for probe in self.probes]
        known = [(one, other) for one, other in pairs if one is not None and other is not None]
        return bool(known) and known[0] == pairs[0] and all(test(one, other) for one, other in known)

    def same_tail(self, before: ir.Value, after: ir.Value) -> bool:
        """The last two lengths of two tensors agree in all runs."""
        return self._pairs(before, after, lambda one, other: len(one) > 1 and one[-2:] == other[-2:])

    def cuts_last_by_one(self, before: ir.Value, after: ir.Value) -> bool:
        """`after` lacks one element of the last axis of `before` and nothing else."""
        return self._pairs(before, after, lambda one, other: other == (*one[:-1], one[-1] - 1))

    def long(self, length: int, grown: Kind = "past") -> Probe | None:
        """A run whose lengths of one kind exceed `length`; of the other where a model has lengths of one kind only; None
        when it has none.

        With "past" there are more keys than that, and few queries where the model has a past.
        """
        kinds = {self.lengths.kinds[name] for name in self.lengths.free}
        other: Kind = "past" if grown == "tokens" else "tokens"
        kind = grown if grown in kinds or grown == "batch" else other
        if (length, kind) not in self._long:
            self._long[length, kind] = self._run_long(length, kind)
        return self._long[length, kind]

    def wide(self, name: str, kind: Wide, far: int, more: tuple[int, ...] = ()) -> Probe:
        """The first run with other numbers than 0 and 1 in the input `name`, `more` among them."""
        key = name, kind, far, more
        if key not in self._wide:
            self._wide[key] = run_probe(
                self.graph, self.lengths, self.first.free, self.evaluator, wide={name: (kind, far, more)}
            )
        return self._wide[key]

    def with_longer(self, value: ir.Value) -> Probe | None:
        """The first run with a (batch, length) input that is longer than the others need; None when nodes fail on it.

        Decoders gather or slice their attention mask to the keys, and callers hand them one for the whole buffer.
        """
        if value not in self._longer:
            self._longer[value] = self._run_longer(value)
        return self._longer[value]

    def _run_longer(self, value: ir.Value) -> Probe | None:
        if (
            value.name is None
            or value.shape is None
            or len(value.shape) != 2
            or isinstance(value.shape[1], int)
        ):
            return None
        first = self.first
        longer = {value.name: LONGER_BY}
        probe = run_probe(
            self.graph, self.lengths, first.free, self.evaluator, longer=longer, flipped=self.is_flipped
        )
        return probe if _fits(probe, first) else None

    def _run_long(self, length: int, kind: Kind) -> Probe | None:
        kinds = self.lengths.kinds
        free = self.lengths.free
        grown = [name for name in free if kinds[name] == kind]
        if not grown:
            return None
        numbers = {name: 1 if kinds[name] == "batch" else 3 + at for at, name in enumerate(free)}
        numbers.update(
            (name, IMAGE_PROBE * step) for name, step in self.lengths.patches.items() if name in free
        )
        numbers.update((name, length + 1 + at) for at, name in enumerate(grown))
        return run_probe(self.graph, self.lengths, numbers, self.evaluator, flipped=self.is_flipped)


def make_probes(graph: ir.Graph, opset: int) -> ProbeSet:
    """Learn how the lengths of `graph` hang together, then run it on every scenario."""
    model, evaluator = length_model(graph), Evaluator(opset)
    probe = _settle(graph, model, evaluator)
    if probe.conflicts:
        model, probe = _guess_images(graph, model, evaluator, probe)
    if probe.failures:
        model, probe = _guess_totals(graph, model, evaluator, probe)
    probes = [probe, *(run_probe(graph, model, probe.free, evaluator, phase) for phase in (1, 2))]
    # Padding that all batch rows have in common: what is reduced over the batch shows only then.
    alone = {name: 1 if model.kinds[name] == "batch" else number for name, number in probe.free.items()}
    probes.append(run_probe(graph, model, alone, evaluator, phase=1))
    for scenario in SCENARIOS:
        free = _assign(model, scenario)
        if all(free != other.free for other in probes):
            probes.append(run_probe(graph, model, free, evaluator))
    probes += _other_leads(graph, model, evaluator, probe)
    return ProbeSet(graph, opset, model, evaluator, tuple(probes))


def _other_leads(graph: ir.Graph, model: LengthModel, evaluator: Evaluator, first: Probe) -> list[Probe]:
    """Runs in which one symbol of first axes is no batch length, as far as the graph takes that: torch's own attention
    has (S, B, E) inputs, with the lengths of queries and keys in front."""
    runs: list[Probe] = []
    symbols = [symbol for symbol, name in model.symbols.items() if name == "batch"]
    for symbol in symbols[:MAX_LEADS] if len(symbols) > 1 else ():
        run = run_probe(graph, model, first.free, evaluator, leads={symbol: OTHER_LEAD})
        if _fits(run, first) and _knows(run, first):
            runs.append(run)
    return runs


def _fits(run: Probe, first: Probe) -> bool:
    """Whether no more nodes fail and no more lengths clash than in `first`."""
    return run.failures <= first.failures and len(run.conflicts) <= len(first.conflicts)


def _knows(run: Probe, first: Probe) -> bool:
    """Whether every shape that is known in `first` is known in `run`: a Reshape that does not fit leaves it open."""
    return all(run.shape(value) is not None for value, fact in first.facts.items() if fact.shape is not None)


def _settle(graph: ir.Graph, model: LengthModel, evaluator: Evaluator) -> Probe:
    """Run on all-different lengths and learn from the first clash, until nothing clashes or nothing is learnt."""
    probe = run_probe(graph, model, model.distinct(), evaluator)
    for _ in range(MAX_ROUNDS):
        if not any(_learn(model, conflict, probe) for conflict in probe.conflicts):
            break
        probe = run_probe(graph, model, model.distinct(), evaluator)
    return probe


def _guess_images(
    graph: ir.Graph, model: LengthModel, evaluator: Evaluator, probe: Probe
) -> tuple[LengthModel, Probe]:
    """A table of positions has the patches of one image size only: try whether the clash ends with that size."""
    positions = {max(conflict.first, conflict.second) for conflict in probe.conflicts[:1]}
    for trial in model.with_images(*positions):
        settled = _settle(graph, trial, evaluator)
        if not settled.conflicts:
            return trial, settled
    return model, probe


def _guess_totals(
    graph: ir.Graph, model: LengthModel, evaluator: Evaluator, probe: Probe
) -> tuple[LengthModel, Probe]:
    """Indices beyond the end show up as failed nodes, not as clashes: try whether some input is as long as past and
    new tokens together (the attention mask of a decoder that takes past keys)."""
    for trial in model.with_totals():
        settled = _settle(graph, trial, evaluator)
        if settled.failures < probe.failures and len(settled.conflicts) <= len(probe.conflicts):
            model, probe = trial, settled
            if not probe.failures:
                break
    return model, probe


def _learn(model: LengthModel, conflict: Conflict, probe: Probe) -> bool:
    return model.learn(conflict.first, conflict.second, probe.free)


def _assign(model: LengthModel, scenario: Scenario) -> dict[str, int]:
    numbers: dict[str, int] = {}
    used = {"tokens": 0, "past": 0}
    for name in model.free:
        kind = model.kinds[name]
        if kind == "batch":
            numbers[name] = scenario.batch
            continue
        if kind == "image":
            numbers[name] = IMAGE_PROBE * model.patches[name]
            continue
        pool = scenario.tokens if kind == "tokens" else scenario.past
        numbers[name] = pool[used[kind] % len(pool)]
        used[kind] += 1
    return numbers
