"""What a mask means, decided by its values.

The names of a mask's operators say little: BERT's padding mask and a causal one are built from the same Range,
compare, And and Where. So the mask is computed on every run of the graph (lengths 1 to 20 with and without past,
padding left, right and with gaps, and beyond any window length found in it), and a meaning is accepted only when it
explains every element of every run:

  visible(b, q, k) = structure(q, k) and key(b, k)
  structure  full | k <= p(q), and k >= p(q) - window_left, with p(q) = q + keys - queries or p(q) = q
  key        a value of the graph with one element per batch row and key, nonzero (or zero) where the key is visible

Rows without a visible key are not compared: exporters disagree on them and our operator gives zeros. A mask without
such a meaning stays what it is, a bias added to the scores.
"""

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
from .schema import Alignment
from .sites import Step
from .values import constant, is_op, label, tensor

Bools = npt.NDArray[np.bool_]
MAX_CONE: Final = 4096
# A mask of 5,800 x 5,800 is the largest that is computed (33 million elements). Longer windows can only be seen with
# a past, where few queries meet many keys.
MAX_PLANE: Final = 1 << 25
MARGIN: Final = 8
MAX_BATCH: Final = 4096
USUAL: Final = 256  # a length that is looked at whatever is written in the mask
MAX_NAMED: Final = 4
COMPARES: Final = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
SLICE_BY_INPUTS: Final = 10  # the opset from which a Slice can end at a computed length
WIDE: Final[tuple[Wide, ...]] = ("numbers", "named", "positions")
UNKNOWN_VALUES: Final = "its values depend on weights or activations"
ADDS: Final = "it adds numbers to the scores of visible keys"


@dataclass(frozen=True)
class Structure:
    """Which keys a query row may see by position alone."""

    is_causal: bool = False
    alignment: Alignment = "bottom_right"
    window_left: int = -1

    def visible(self, queries: int, keys: int) -> Bools:
        """(queries, keys), True where visible."""
        row, key = np.arange(queries)[:, None], np.arange(keys)[None, :]
        position = row + (keys - queries if self.alignment == "bottom_right" else 0)
        result = np.ones((queries, keys), np.bool_)
        if self.is_causal:
            result &= key <= position
        if self.window_left >= 0:
            result &= key >= position - self.window_left
        return result


FULL: Final = Structure()


@dataclass(frozen=True)
class KeyMask:
    """A value with B * keys elements that tells which keys exist: the nonzero ones, or with `inverted` the zeros.

    With `cut` it may have more elements per batch row; the first ones count. With `ones` only those that are 1 tell of a
    key, with `positive` only those above 0. With `counts` it is not a mask but (B) numbers: so many keys exist, from the
    first on.
    """

    value: ir.Value
    inverted: bool = False
    cut: bool = False
    ones: bool = False
    counts: bool = False
    positive: bool = False


@dataclass(frozen=True)
class Meaning:
    """A mask explained; `key_mask` None means that every key exists.

    ends_at: the number of keys that a stored mask has, in a model of free lengths; 0 for a computed mask.
    """

    structure: Structure
    key_mask: KeyMask | None = None
    ends_at: int = 0


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


def explain(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> Meaning | Unexplained:
    """The meaning of one mask step; `scores_of` is the shape of the scores that it is applied to, per run."""
    assert step.value is not None
    planes = _planes(step, scores_of, probes.probes)
    if isinstance(planes, Unexplained):
        return planes
    far = _far_planes(step, scores_of, probes)
    if isinstance(far, Unexplained):
        return far
    planes += far
    usual = probes.long(USUAL)
    more = [] if usual is None else _planes(step, scores_of, [usual])
    if isinstance(more, Unexplained) and more.reason != UNKNOWN_VALUES:
        return more
    planes += [] if isinstance(more, Unexplained) else more
    if not probes.is_flipped and not any(plane.visible[0].any() for plane in planes if plane.plain):
        return explain(step, scores_of, probes.flipped)  # an input of ones hides everything: 1 is padding
    structure = _structure([plane for plane in planes if plane.plain])
    if isinstance(structure, Unexplained):
        return structure
    wide = _wide_planes(step, scores_of, probes)
    if isinstance(wide, Unexplained):
        return wide
    planes += wide
    fixed = all(kind == "batch" for kind in probes.lengths.kinds.values())
    ends_at = 0 if fixed else _table_keys(step.value)
    if all(_explains(structure, plane, None) for plane in planes):
        unseen = _unseen_input(step.value, None, probes)
        return unseen or Meaning(structure, None, ends_at)
    planes += _longer_planes(step, scores_of, probes)
    for key_mask in _key_masks(step.value, planes[0], cut=probes.opset >= SLICE_BY_INPUTS):
        if all(_explains(structure, plane, key_mask) for plane in planes):
            unseen = _unseen_input(step.value, key_mask.value, probes)
            return unseen or Meaning(structure, key_mask, ends_at)
    return Unexplained("no value of shape (batch, keys) explains which keys it hides")


def _unseen_input(mask: ir.Value, key_mask: ir.Value | None, probes: ProbeSet) -> Unexplained | None:
    """An input whose content goes into the mask and that made no difference in any run: it may in longer ones."""
    seen = set() if key_mask is None else {value for value in cone(key_mask) if value.is_graph_input()}
    for value in cone(mask):
        if value.is_graph_input() and value not in seen and probes.first.fact(value).filled:
            return Unexplained(f"no run shows what {value.name} does to it")
    return None


def _longer_planes(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> list[Plane]:
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


def _structure(planes: Sequence[Plane]) -> Structure | Unexplained:
    """The simplest structure that explains the unpadded batch row of every run."""
    rows = [plane.visible[0] for plane in planes]
    tried: list[Structure] = []
    for row in sorted(rows, key=lambda one: -one.shape[-1]):
        tried.extend(one for one in _hypotheses(row) if one not in tried)
    for structure in tried:
        expected = [structure.visible(*row.shape) for row in rows]
        if all(_agree(row, want, want) for row, want in zip(rows, expected, strict=True)):
            return structure
    return Unexplained("it is neither full, causal nor a sliding window")


def _hypotheses(row: Bools) -> Iterator[Structure]:
    """Structures that one (queries, keys) plane could have; a window is read off its last first-visible key."""
    queries, keys = row.shape
    yield FULL
    firsts = [(int(np.argmax(row[q])), q) for q in range(queries) if row[q].any()]
    first, query = max(firsts, default=(0, 0))
    alignments: tuple[Alignment, ...] = ("bottom_right", "top_left")
    for alignment in alignments:
        yield Structure(True, alignment)
        left = query + (keys - queries if alignment == "bottom_right" else 0) - first
        if first > 0 and left >= 0:
            yield Structure(True, alignment, left)
            yield Structure(False, alignment, left)


def _agree(row: Bools, expected: Bools, structure: Bools) -> bool:
    """(queries, keys) of the original and as explained. Rows that only padding leaves without a key mean nothing: the
    original may hide all keys there or show all of them."""
    meaningless = structure.any(axis=-1) & ~expected.any(axis=-1)
    means_nothing = meaningless & (row.all(axis=-1) | ~row.any(axis=-1))
    return bool(np.array_equal(row[~means_nothing], expected[~means_nothing]))


def _explains(structure: Structure, plane: Plane, key_mask: KeyMask | None) -> bool:
    by_position = structure.visible(*plane.visible.shape[1:])
    expected = np.broadcast_to(by_position, plane.visible.shape)
    if key_mask is not None:
        keys = _keys(key_mask, plane)
        if keys is None:
            return False
        expected = expected & keys[:, None, :]
    return all(_agree(row, want, by_position) for row, want in zip(plane.visible, expected, strict=True))


def _keys(key_mask: KeyMask, plane: Plane) -> Bools | None:
    batch, _, keys = plane.visible.shape
    data = plane.probe.resolve(key_mask.value)
    if data is not None and key_mask.cut:
        data = data[..., :keys]
    if data is None or not _one_per_key(data.shape, batch, keys):
        return None
    exists = data.reshape(batch, keys) == 1 if key_mask.ones else data.reshape(batch, keys) != 0
    return np.asarray(~exists if key_mask.inverted else exists)


def _one_per_key(shape: Shape, batch: int, keys: int) -> bool:
    """(B, keys), or the same with lengths of 1 in between."""
    return len(shape) > 1 and shape[0] == batch and shape[-1] == keys and all(one == 1 for one in shape[1:-1])


def _key_masks(mask: ir.Value, plane: Plane, cut: bool) -> Iterator[KeyMask]:
    """Values the mask is made from that have one element per key, nearest to the graph inputs first; with `cut` also, at
    the end, those that have at least that many."""
    batch, _, keys = plane.visible.shape
    longer: list[ir.Value] = []
    for value in reversed(list(cone(mask))):
        shape = plane.probe.shape(value)
        if shape is None or value.is_initializer():
            continue
        if _one_per_key((*shape[:-1], keys), batch, keys) and shape[-1] >= keys:
            longer.append(value)
        if _one_per_key(shape, batch, keys):
            yield KeyMask(value)
            yield KeyMask(value, inverted=True)
    for value in longer if cut else ():
        yield KeyMask(value, cut=True)
        yield KeyMask(value, inverted=True, cut=True)
    for value in longer:  # where(1 - mask, hidden, 1 - mask): only 1 lets a key through
        dtype = plane.probe.dtype(value)
        if value.is_graph_input() and dtype in (ir.DataType.INT64, ir.DataType.INT32):
            yield KeyMask(value, ones=True)


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


def _far_planes(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> list[Plane] | Unexplained:
    """The mask in runs beyond everything that is written into it, where a window or a chunk would show."""
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
    return _planes(step, scores_of, runs)


def _far_run(step: Step, scores_of: ScoresOf, probes: ProbeSet, bound: Bound, kind: Kind) -> Probe | None:
    """A run with more keys (or queries) than the bound of the mask. A mask that is cut from a stored table cannot go
    beyond it; there the run goes to the table's end."""
    assert step.value is not None
    table = _table_keys(step.value)
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


def _wide_planes(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> list[Plane] | Unexplained:
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


def _table_keys(mask: ir.Value) -> int:
    """Columns of the largest stored table, (.., rows, keys), that a mask is made from; 0 without one."""
    tables = [held for value in cone(mask) if (held := tensor(value)) is not None and len(held.shape) > 1]
    shapes = [tuple(int(length) for length in held.shape.numpy()) for held in tables]
    return max((shape[-1] for shape in shapes if shape[-2] > 1), default=0)
