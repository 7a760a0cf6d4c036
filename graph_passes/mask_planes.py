"""A mask as it looks in the runs of a graph: which key each query sees, element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from .facts import Shape
from .guards import HIDDEN, STILL_HIDDEN
from .lengths import Kind
from .probes import Probe, Wide
from .reach import MAX_LENGTH, Bound, bound_of
from .scenarios import ProbeSet
from .sites import Step
from .values import constant, is_op, label, tensor

Bools = npt.NDArray[np.bool_]
MAX_CONE: Final = 4096
# A mask of 5,800 x 5,800 is the largest that is computed (33 million elements). Longer windows can only be seen with
# a past, where few queries meet many keys.
MAX_PLANE: Final = 1 << 25
MARGIN: Final = 8
MAX_BATCH: Final = 4096
ANYWAY: Final = 256  # a length that is looked at whatever is written in the mask
MAX_NAMED: Final = 4
COMPARES: Final = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
WIDE: Final[tuple[Wide, ...]] = ("numbers", "named", "positions")
UNKNOWN_VALUES: Final = "its values depend on weights or activations"
ADDS: Final = "it adds numbers to the scores of visible keys"


@dataclass(frozen=True)
class Unexplained:
    """Why a mask has no meaning in these terms."""

    reason: str


@dataclass(frozen=True)
class Plane:
    """A mask in one run: (B, queries, keys), True where visible. `plain`: batch row 0 is not padded."""

    probe: Probe
    visible: Bools

    @property
    def plain(self) -> bool:
        return self.probe.phase == 0


ScoresOf = Callable[[Probe], Shape | None]


def cone(value: ir.Value) -> Iterator[ir.Value]:
    """`value` and everything its content is made from, nearest first. What only gives its shape is left out."""
    seen = {value}
    queue = [value]
    for current in queue:
        yield current
        node = current.producer()
        if node is None or is_op(node, "Shape", "Size") or len(seen) > MAX_CONE:
            continue
        for one in node.inputs:
            if one is not None and one not in seen:
                seen.add(one)
                queue.append(one)


def planes_of(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> list[Plane] | Unexplained:
    """The mask in the usual runs, in those beyond everything that is written into it, and in one that is long anyway."""
    usual = _planes(step, scores_of, probes.probes)
    if isinstance(usual, Unexplained):
        return usual
    runs = _far_runs(step, scores_of, probes)
    far = runs if isinstance(runs, Unexplained) else _planes(step, scores_of, runs)
    if isinstance(far, Unexplained):
        return far
    run = probes.long(ANYWAY)
    long = [] if run is None else _planes(step, scores_of, [run])
    if isinstance(long, Unexplained):
        return usual + far if long.reason == UNKNOWN_VALUES else long
    return usual + far + long


def _far_runs(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> list[Probe] | Unexplained:
    """Runs beyond everything that is written into the mask, where a window or a chunk would show."""
    assert step.value is not None
    bound = bound_of(step.value, probes)
    kinds = set(probes.lengths.kinds[name] for name in probes.lengths.free)
    if kinds <= {"batch"}:
        return []
    if bound.node is not None:
        return Unexplained(f"its positions go through {label(bound.node)}, so a run cannot show its rule")
    squares = [min(scores[-2:]) for probe in probes.probes if (scores := scores_of(probe))]
    runs: list[Probe] = []
    if bound.length + 2 > max(squares, default=0):
        many_keys = _far_run(step, scores_of, probes, bound, "past")
        if many_keys is None:
            return Unexplained(f"it contains the length {int(bound.length)}, too long to be tried")
        # A rule for that many queries is not looked for when their mask would be larger than MAX_PLANE.
        many_queries = _far_run(step, scores_of, probes, bound, "tokens")
        runs.append(many_keys)
        if many_queries is not None and many_queries is not many_keys:
            runs.append(many_queries)
    shape = probes.first_shape(step.value) or ()
    if "batch" in kinds and len(shape) > 2 and shape[0] > 1 and bound.length >= shape[0]:
        probe = probes.long(min(int(bound.length) + MARGIN, MAX_BATCH), "batch")
        runs += [] if probe is None else [probe]
    return runs


def _far_run(step: Step, scores_of: ScoresOf, probes: ProbeSet, bound: Bound, kind: Kind) -> Probe | None:
    """A run with more keys (or queries) than the bound of the mask. A mask that is cut from a stored table cannot go
    beyond it; there the run goes to the table's end."""
    assert step.value is not None
    table = table_keys(step.value)
    lengths = [int(bound.length) + MARGIN]
    if table > MARGIN:
        lengths += range(table, max(1, table - 2 * MARGIN), -1)
    for length in lengths:
        probe = probes.long(length, kind)
        shape = None if probe is None or scores_of(probe) is None else probe.shape(step.value)
        if probe is None or shape is None:
            continue
        return None if len(shape) > 1 and shape[-1] * shape[-2] > MAX_PLANE else probe
    return None


def _planes(step: Step, scores_of: ScoresOf, runs: Sequence[Probe]) -> list[Plane] | Unexplained:
    """The mask in all of `runs` that have scores."""
    planes: list[Plane] = []
    for probe in runs:
        scores = scores_of(probe)
        if scores is None or 0 in scores:
            continue
        found = _visible(step, probe, scores)
        if isinstance(found, Unexplained):
            return found
        planes.append(Plane(probe, found))
    return planes


def wide_planes(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> list[Plane] | Unexplained:
    """The mask with other integers than 0 and 1 in one of the inputs that it is made from.

    Where it is computed with an input of integers, as in (1 - mask) * -1e9, others than 0 and 1 have no meaning and
    these two are presumed; a float input may hide a key by half.
    """
    assert step.value is not None
    planes: list[Plane] = []
    far = int(min(bound_of(step.value, probes).length, MAX_LENGTH)) + MARGIN
    named = _named_numbers(step.value)
    for value in cone(step.value):
        if not value.is_graph_input() or value.is_initializer() or value.name is None:
            continue
        if value.dtype is None or value.dtype == ir.DataType.BOOL or len(value.shape or ()) != 2:
            continue
        presumed = () if value.dtype.is_floating_point() else (ADDS,)
        for kind in WIDE:
            probe = probes.wide(value.name, kind, far, named)
            scores = scores_of(probe)
            found = Unexplained("") if scores is None else _visible(step, probe, scores)
            if isinstance(found, Unexplained) and found.reason not in presumed:
                return found
            if not isinstance(found, Unexplained):
                planes.append(Plane(probe, found))
    return planes


def _named_numbers(mask: ir.Value) -> tuple[int, ...]:
    """Integers that a mask compares with, a token of images or the end of a document, say."""
    found: list[int] = []
    for value in cone(mask):
        node = value.producer()
        for one in node.inputs if node is not None and is_op(node, *COMPARES) else ():
            held = constant(one)
            if held is not None and held.size == 1 and held.dtype.kind in "iu":
                found.append(int(held.reshape(-1)[0]))
    return tuple(dict.fromkeys(found))[:MAX_NAMED]


def table_keys(mask: ir.Value) -> int:
    """Columns of the largest stored table, (.., rows, keys), that a mask is made from; 0 without one."""
    tables = [held for value in cone(mask) if (held := tensor(value)) is not None and len(held.shape) > 1]
    shapes = [tuple(int(length) for length in held.shape.numpy()) for held in tables]
    return max((shape[-1] for shape in shapes if shape[-2] > 1), default=0)


def longer_planes(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> list[Plane]:
    """The mask in runs where an input that it is made from is longer than the keys, as far as the graph takes that.

    What is cut to the keys is then the better key mask: the operator refuses one of another length.
    """
    planes: list[Plane] = []
    for value in cone(step.value) if step.value is not None else ():
        probe = probes.with_longer(value) if value.is_graph_input() and not value.is_initializer() else None
        scores = scores_of(probe) if probe is not None else None
        if probe is None or scores is None or 0 in scores:
            continue
        found = _visible(step, probe, scores)
        if not isinstance(found, Unexplained):
            planes.append(Plane(probe, found))
    return planes


def _visible(step: Step, probe: Probe, scores: Shape) -> Bools | Unexplained:
    """(B, queries, keys) of one run."""
    data = None if step.value is None else probe.resolve(step.value)
    if data is None:
        return Unexplained(UNKNOWN_VALUES)
    if step.kind == "where":
        if step.number * step.later > STILL_HIDDEN:
            return Unexplained("it fills in a number that a later scale brings back")
        hidden = data.astype(np.bool_) if step.hides_when else ~data.astype(np.bool_)
    else:
        numbers = step.sign * data.astype(np.float64)
        hidden = (numbers <= HIDDEN) & (numbers * step.later <= STILL_HIDDEN)
        if np.any(~hidden & (numbers != 0)):
            return Unexplained(ADDS)
    try:
        planes = np.broadcast_to(~hidden, scores)
    except ValueError:
        return Unexplained("it does not broadcast to the scores")
    batch = scores[0] if len(scores) > 2 else 1
    planes = planes.reshape(batch, -1, *scores[-2:])
    if not np.all(planes == planes[:, :1]):
        return Unexplained("it differs between heads")
    return np.asarray(planes[:, 0])
