"""Choosing query, key, value and output for one fused node: one layout, one type, matching head counts.

Preferred is the layout that leaves the fewest nodes in the graph. Where the graph has no common layout, Transposes (and
for products of rank 3 a split of the first axis) make one; the site is fused either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import onnx_ir as ir

from .kv_cache import Cache, cache_of
from .layouts import (
    BHSD,
    BSHD,
    PACKED,
    PREFERENCE,
    Candidate,
    Form,
    candidates,
    flat_heads,
    lead_lengths,
    placed_by,
    raw_candidate,
)
from .outlets import Outlet, Result, outlets
from .products import Product
from .scenarios import ProbeSet
from .sites import Obstacle
from .values import source

# Where no outlet has the operands' own form: the form that a Reshape (behind a Transpose for BHSD) makes of the output.
RESHAPED: Final = {PACKED: BSHD, BSHD: PACKED, BHSD: PACKED}
TYPES: Final = (ir.DataType.BFLOAT16, ir.DataType.FLOAT16, ir.DataType.FLOAT)  # narrowest first


@dataclass(frozen=True)
class Side:
    """Keys or values: the tensor to read, and the cache it is appended to."""

    new: Candidate
    cache: Cache | None = None


@dataclass(frozen=True)
class Operands:
    """What one fused node reads and where its output goes."""

    query: Candidate
    key: Side
    value: Side
    outlet: Outlet

    @property
    def past(self) -> tuple[ir.Value, ir.Value] | None:
        """Past keys and values, where both are appended to a cache in the graph."""
        key, value = self.key.cache, self.value.cache
        return None if key is None or value is None else (key.past, value.past)

    @property
    def presents(self) -> tuple[ir.Value, ...]:
        """Past and new keys, past and new values."""
        key, value = self.key.cache, self.value.cache
        return () if key is None or value is None else (key.present, value.present)


@dataclass(frozen=True)
class Choices:
    """All ways to read each operand, nearest first."""

    queries: Sequence[Candidate]
    keys: Sequence[Candidate]
    values: Sequence[Candidate]
    result: Result

    def lacking(self) -> str:
        pairs = (("query", self.queries), ("key", self.keys), ("value", self.values))
        return next((name for name, found in pairs if not found), "")


def of_products(scores: Product, values: Product, probes: ProbeSet) -> Operands | Obstacle:
    """Operands of Q x K^T and P x V."""
    swapped = (*values.rhs_axes[:-2], values.rhs_axes[-1], values.rhs_axes[-2])
    raw = (
        (scores.lhs, scores.lhs_axes, lead_lengths(scores), True),
        (scores.rhs, scores.rhs_axes, lead_lengths(scores), True),
        (values.rhs, swapped, lead_lengths(values), False),
    )
    found = [candidates(value, placed_by(axes), lead, probes, scales) for value, axes, lead, scales in raw]
    result = Result(values.output, values.out_axes)
    direct = choose(Choices(found[0], found[1], found[2], result), probes)
    if direct is not None:
        return direct
    batches = _batches(found, probes)
    made: list[list[Candidate]] = []
    for (value, axes, lead, _), have in zip(raw, found, strict=True):
        ways = [one for one in have if one.form == BHSD] + [
            one.transposed() for one in have if one.form == BSHD
        ]
        one = raw_candidate(value, axes, lead, batches, probes)
        made.append(ways + ([one] if one is not None and not ways else []))
    choices = Choices(made[0], made[1], made[2], result)
    flat = len(values.out_axes) == 3
    outlet = _flat_outlet(values, made[0], batches, probes) if flat else None
    indirect = choose(choices, probes, outlet)
    if indirect is not None:
        return indirect
    lacking = choices.lacking()
    if lacking:
        value = {"query": scores.lhs, "key": scores.rhs, "value": values.rhs}[lacking]
        return Obstacle(
            source(value) or scores.node,
            f"the {lacking} tensor is not a (batch, heads, length, head_dim) reading of any value",
        )
    return Obstacle(scores.node, "query, key and value have no layout, head count and type in common")


def _batches(found: Sequence[Sequence[Candidate]], probes: ProbeSet) -> tuple[int, ...]:
    """Batch length per run: from an operand that tells it, else the batch of the model's inputs."""
    for ways in found:
        for one in ways:
            if one.heads > 1 or one.repeat > 1:
                return one.batches
    return tuple(probe.lengths.get("batch", 0) for probe in probes.probes)


def _flat_outlet(
    values: Product, queries: Sequence[Candidate], batches: Sequence[int], probes: ProbeSet
) -> Outlet | None:
    """The product's own (B*H, S, D) output, when no value below it has one of the forms."""
    dtype = probes.first.dtype(values.output)
    ordered = values.out_axes == (0, 1, 2)
    heads = {one.heads for one in queries}
    if dtype is None or not ordered or flat_heads(values.output, 0, batches, probes) not in heads:
        return None
    return Outlet(values.output, BHSD, dtype, flat=True)


def choose(choices: Choices, probes: ProbeSet, fallback: Outlet | None = None) -> Operands | None:
    """The best combination, or None. `fallback` is used where the output has no outlet in the common form.

    Fewest key heads first: keys repeated to all query heads cost more than a Transpose of the output.
    """
    # (B*H, S, D) also reads as B*H batches of one head, which no mask of B rows fits: most heads first.
    for heads in sorted({one.heads for one in choices.queries}, reverse=True):
        found = _combinations(choices, heads, probes, fallback)
        best = min(found, key=lambda one: one.key.new.heads, default=None)
        if best is not None:
            return best
    return None


def _combinations(
    choices: Choices, heads: int, probes: ProbeSet, fallback: Outlet | None
) -> Iterator[Operands]:
    """All that fit together, those that leave the fewest nodes first."""
    caches = _caches(choices, probes)
    for reshaped, form, dtype in product((False, True), PREFERENCE, TYPES):
        fitting = (
            one for one in choices.queries if one.repeat == 1 and one.heads == heads and _is(one, form, dtype)
        )
        for query in _last(fitting):
            sides = _sides(query, choices, caches, form, dtype)
            if sides is None:
                continue
            outlet = _outlet(choices.result, query, RESHAPED[form] if reshaped else form, probes)
            outlet = outlet or (fallback if form == BHSD else None)
            if outlet is not None:
                yield Operands(query, *sides, outlet)


def _is(one: Candidate, form: Form, dtype: ir.DataType) -> bool:
    return one.form == form and one.dtype == dtype


def _last(found: Iterable[Candidate]) -> list[Candidate]:
    """The candidate farthest from the product, which leaves the fewest nodes behind."""
    return list(found)[-1:]


Caches = tuple[tuple[Candidate, Cache], tuple[Candidate, Cache]]


def _caches(choices: Choices, probes: ProbeSet) -> Caches | None:
    """The caches of keys and values, if both have one with the same heads."""
    pairs: list[list[tuple[Candidate, Cache]]] = []
    for ways in (choices.keys, choices.values):
        pairs.append(
            [(one, cache) for one in ways if one.prepare is None and (cache := cache_of(one, probes))]
        )
    for key in pairs[0]:
        for value in pairs[1]:
            if key[0].heads == value[0].heads:
                return key, value
    return None


def _sides(
    query: Candidate, choices: Choices, caches: Caches | None, form: Form, dtype: ir.DataType
) -> tuple[Side, Side] | None:
    if caches is not None:
        cached = list(_cached(query, caches, form, dtype))
        if len(cached) == 2 and query.head_dim == cached[0].new.head_dim:
            return cached[0], cached[1]
    keys = [one for one in choices.keys if _is(one, form, dtype) and _belongs(one, query)]
    values = [one for one in choices.values if _is(one, form, dtype) and _belongs(one, query)]
    for heads in sorted({one.heads for one in keys}):
        key = _last(one for one in keys if one.heads == heads and one.head_dim == query.head_dim)
        value = _last(one for one in values if one.heads == heads)
        if key and value:
            return Side(key[0]), Side(value[0])
    return None


def _cached(query: Candidate, caches: Caches, form: Form, dtype: ir.DataType) -> Iterator[Side]:
    for whole, cache in caches:
        new = _last(one for one in cache.new if _is(one, form, dtype))
        if new and _belongs(whole, query):
            # Factors between the cache and the product stay; those on the new keys are stored in the cache.
            yield Side(replace(new[0], scale=whole.scale, slack=whole.slack), cache)


def _belongs(one: Candidate, query: Candidate) -> bool:
    """Same batch in every run, and its heads repeat up to the query's."""
    same = all(
        left == right or 0 in (left, right) for left, right in zip(one.batches, query.batches, strict=True)
    )
    return same and one.heads * one.repeat == query.heads


def _outlet(result: Result, query: Candidate, form: Form, probes: ProbeSet) -> Outlet | None:
    """The last place the output fits, of the query's type if there is one."""
    found = [one for one in outlets(result, query.heads, query.batches, probes) if one.form == form]
    same = [one for one in found if one.dtype == query.dtype]
    best = same or found
    return best[-1] if best else None
