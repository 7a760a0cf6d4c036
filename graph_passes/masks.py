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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx_ir as ir

from .facts import Shape
from .mask_planes import (
    Bools,
    Plane,
    ScoresOf,
    Unexplained,
    cone,
    longer_planes,
    planes_of,
    table_keys,
    wide_planes,
)
from .scenarios import ProbeSet
from .schema import Alignment
from .sites import Step

SLICE_BY_INPUTS: Final = 10  # the opset from which a Slice can end at a computed length


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


def explain(step: Step, scores_of: ScoresOf, probes: ProbeSet) -> Meaning | Unexplained:
    """The meaning of one mask step; `scores_of` is the shape of the scores that it is applied to, per run."""
    assert step.value is not None
    planes = planes_of(step, scores_of, probes)
    if isinstance(planes, Unexplained):
        return planes
    if not probes.is_flipped and not any(plane.visible[0].any() for plane in planes if plane.plain):
        return explain(step, scores_of, probes.flipped)  # an input of ones hides everything: 1 is padding
    structure = _structure([plane for plane in planes if plane.plain])
    if isinstance(structure, Unexplained):
        return structure
    wide = wide_planes(step, scores_of, probes)
    if isinstance(wide, Unexplained):
        return wide
    planes += wide
    fixed = all(kind == "batch" for kind in probes.lengths.kinds.values())
    ends_at = 0 if fixed else table_keys(step.value)
    if all(_explains(structure, plane, None) for plane in planes):
        unseen = _unseen_input(step.value, None, probes)
        return unseen or Meaning(structure, None, ends_at)
    planes += longer_planes(step, scores_of, probes)
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
