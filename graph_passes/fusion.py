"""Deciding one site: which tensors the fused node reads and writes, and what its attributes say.

Nothing is changed here; the answer is a `Fusion` that the rewrite carries out, or the reason why not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import onnx_ir as ir

from .formula import Formula, formula_of
from .kv_cache import Cache, cache_of
from .layouts import BHSD, PREFERENCE, Candidate, Form, Outlet, candidates, chain, lead_lengths, outlets, view_down
from .masks import FULL, KeyMask, Meaning, Structure, Unexplained, explain
from .products import Product
from .scenarios import ProbeSet
from .sites import Declined, Obstacle, Site, Step
from .values import is_op, source
from .views import merged

TYPES: Final = (ir.DataType.BFLOAT16, ir.DataType.FLOAT16, ir.DataType.FLOAT)  # narrowest first
# Default scale: 1/sqrt(head_dim) up to the rounding of the constants it was built from, at least this much.
MIN_SLACK: Final = 2.0**-22


@dataclass(frozen=True)
class Side:
    """Keys or values: the tensor to read, and the cache it is appended to."""

    new: Candidate
    cache: Cache | None = None


@dataclass(frozen=True)
class Masking:
    """What hides keys: structure and key masks as attributes and input, the rest as a bias."""

    structure: Structure = FULL
    key_masks: tuple[KeyMask, ...] = ()
    biases: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fusion:
    """A site that can be fused, completely described.

    scale  None: 1/sqrt(head_dim)
    """

    site: Site
    query: Candidate
    key: Side
    value: Side
    outlet: Outlet
    masking: Masking
    scale: float | None
    softcap: float
    sinks: ir.Value | None

    @property
    def kv_heads(self) -> int:
        return self.key.new.heads

    @property
    def has_past(self) -> bool:
        return self.key.cache is not None


def decide(site: Site, probes: ProbeSet) -> Fusion | Declined:
    """How to fuse `site`, or why not."""

    def decline(at: ir.Node, reason: str) -> Declined:
        return Declined(site.softmax, at, reason, site.where)

    formula = formula_of(site.scores)
    if isinstance(formula, Obstacle):
        return decline(formula.node, formula.reason)
    operands = _operands(site, probes)
    if isinstance(operands, Obstacle):
        return decline(operands.node, operands.reason)
    query, key, value, outlet = operands
    masking = _masking(formula, probes)
    if isinstance(masking, Obstacle):
        return decline(masking.node, masking.reason)
    for step in masking.biases:
        problem = _bias_problem(step, query, probes)
        if problem is not None:
            return decline(step.node, problem)
    sinks = None
    if site.scores.sinks is not None:
        sinks = _sinks(site.scores.sinks, query.heads, site.scores.product, probes)
        if sinks is None:
            return decline(site.softmax, "the sink column is not one number per query head")
    scale = _scale(formula, query, key.new)
    return Fusion(site, query, key, value, outlet, masking, scale, formula.softcap, sinks)


def _scale(formula: Formula, query: Candidate, key: Candidate) -> float | None:
    scale = formula.scale * query.scale * key.scale
    slack = max(MIN_SLACK, formula.slack + query.slack + key.slack)
    usual = 1.0 / math.sqrt(query.head_dim)
    return None if abs(scale - usual) <= slack * usual else scale


Operands = tuple[Candidate, Side, Side, Outlet]


def _operands(site: Site, probes: ProbeSet) -> Operands | Obstacle:
    """Query, key, value and outlet in one common form and type; the form that leaves fewest nodes behind."""
    scores, values = site.scores.product, site.values
    swapped = (*values.rhs_axes[:-2], values.rhs_axes[-1], values.rhs_axes[-2])
    queries = candidates(scores.lhs, scores.lhs_axes, lead_lengths(scores), probes, scales=True)
    keys = candidates(scores.rhs, scores.rhs_axes, lead_lengths(scores), probes, scales=True)
    contents = candidates(values.rhs, swapped, lead_lengths(values), probes, scales=False)
    for name, found, value in (("query", queries, scores.lhs), ("key", keys, scores.rhs), ("value", contents, values.rhs)):
        if not found:
            at = source(value) or scores.node
            return Obstacle(at, f"the {name} tensor is not a (batch, heads, length, head_dim) reading of any value")
    caches = _caches(keys, contents, probes)
    for form in PREFERENCE:
        for dtype in TYPES:
            for query in _last(one for one in queries if one.repeat == 1 and _is(one, form, dtype)):
                sides = _sides(query, keys, contents, caches, form, dtype)
                if sides is None:
                    continue
                outlet = _outlet(values, query, form, probes)
                if outlet is not None:
                    return query, *sides, outlet
    return Obstacle(scores.node, "query, key and value have no layout, head count and type in common")


def _is(one: Candidate, form: Form, dtype: ir.DataType) -> bool:
    return one.form == form and one.dtype == dtype


def _last(found: Iterator[Candidate]) -> list[Candidate]:
    """The candidate farthest from the product, which leaves the fewest nodes behind."""
    return list(found)[-1:]


Caches = tuple[tuple[Candidate, Cache], tuple[Candidate, Cache]]


def _caches(keys: Sequence[Candidate], contents: Sequence[Candidate], probes: ProbeSet) -> Caches | None:
    """The caches of keys and values, if both have one."""
    for key in keys:
        key_cache = cache_of(key, probes)
        for content in contents if key_cache is not None else ():
            content_cache = cache_of(content, probes)
            if content_cache is not None and key_cache is not None and content.heads == key.heads:
                return (key, key_cache), (content, content_cache)
    return None


def _sides(
    query: Candidate,
    keys: Sequence[Candidate],
    contents: Sequence[Candidate],
    caches: Caches | None,
    form: Form,
    dtype: ir.DataType,
) -> tuple[Side, Side] | None:
    if caches is not None:
        found: list[Side] = []
        for whole, cache in caches:
            new = _last(one for one in cache.new if _is(one, form, dtype))
            if not new or not _belongs(whole, query):
                break
            scaled = Candidate(**{**vars(new[0]), "scale": whole.scale, "slack": whole.slack})
            found.append(Side(scaled, cache))
        if len(found) == 2 and query.head_dim == found[0].new.head_dim:
            return found[0], found[1]
    fitting = [one for one in keys if _is(one, form, dtype) and _belongs(one, query) and one.head_dim == query.head_dim]
    for heads in sorted({one.heads for one in fitting}):
        key = _last(one for one in fitting if one.heads == heads)
        content = _last(one for one in contents if _is(one, form, dtype) and _belongs(one, query) and one.heads == heads)
        if key and content:
            return Side(key[0]), Side(content[0])
    return None


def _belongs(one: Candidate, query: Candidate) -> bool:
    """Same batch in every run, and its heads repeat up to the query's."""
    same = all(left == right or 0 in (left, right) for left, right in zip(one.batches, query.batches, strict=True))
    return same and one.heads * one.repeat == query.heads


def _outlet(values: Product, query: Candidate, form: Form, probes: ProbeSet) -> Outlet | None:
    """The last place the output fits, of the query's type if there is one."""
    found = [one for one in outlets(values, query.heads, query.batches, probes) if one.form == form]
    same = [one for one in found if one.dtype == query.dtype]
    return (same or found or [None])[-1]


def _masking(formula: Formula, probes: ProbeSet) -> Masking | Obstacle:
    structure, key_masks, biases, notes = FULL, list[KeyMask](), list[Step](), list[str]()
    for mask in formula.masks:
        meanings = [(mask, explain(mask, mask.node.outputs[0], probes))]
        if isinstance(meanings[0][1], Unexplained):
            parts = [(part, explain(part, mask.node.outputs[0], probes)) for part in _addends(mask)]
            # Taking a sum apart pays only when a part of it is a mask that the operator knows.
            meanings = parts if any(isinstance(meaning, Meaning) for _, meaning in parts) else meanings
        for step, meaning in meanings:
            joined = None if isinstance(meaning, Unexplained) else _joined(structure, meaning.structure)
            if isinstance(meaning, Meaning) and joined is not None:
                structure = joined
                if meaning.key_mask is not None and meaning.key_mask not in key_masks:
                    key_masks.append(meaning.key_mask)
                continue
            reason = meaning.reason if isinstance(meaning, Unexplained) else "its causal rule differs from another's"
            if formula.late_scale is not None:
                return Obstacle(formula.late_scale.node, "the scores are scaled after a bias was added")
            biases.append(step)
            name = step.value.name if step.value is not None else ""
            notes.append(f"{name} is passed as attn_bias: {reason}")
    return Masking(structure, tuple(key_masks), tuple(biases), tuple(notes))


def _addends(mask: Step) -> Iterator[Step]:
    """The terms of a sum of masks: position bias + causal mask, say."""
    node = source(mask.value)
    if mask.kind == "add" and is_op(node, "Add") and node is not None:
        for part in node.inputs:
            yield from _addends(Step("add", mask.node, part, sign=mask.sign))
        return
    yield mask


def _joined(left: Structure, right: Structure) -> Structure | None:
    """Both structures at once."""
    if left == FULL or left == right:
        return right
    if right == FULL:
        return left
    if left.alignment != right.alignment:
        return None
    windows = [one.window_left for one in (left, right) if one.window_left >= 0]
    return Structure(left.is_causal or right.is_causal, left.alignment, min(windows, default=-1))


def _bias_problem(step: Step, query: Candidate, probes: ProbeSet) -> str | None:
    """Why a bias cannot be an input of the operator: it has to broadcast to (B, Hq, Sq, keys)."""
    for probe, batch in zip(probes.probes, query.batches, strict=True):
        bias, scores = probe.shape(step.value), probe.shape(step.node.outputs[0])
        if scores is None or batch == 0:
            continue
        if bias is None:
            return "the shape of the mask is not known"
        if len(scores) == 4 and scores[:2] == (batch, query.heads) and len(bias) <= 4:
            continue
        flat = len(scores) == 3 and scores[0] == batch * query.heads
        if not flat or (len(bias) == 3 and bias[0] not in (1, scores[0])):
            return f"a mask of shape {list(bias)} does not broadcast to (batch, heads, queries, keys)"
    return None


def _sinks(value: ir.Value, heads: int, product: Product, probes: ProbeSet) -> ir.Value | None:
    """The (Hq) tensor behind a sink column, one element per query head."""
    links = chain(value, probes, scales=False)
    for at in range(len(links) - 1, -1, -1):
        fits: list[bool] = []
        for probe in probes.probes:
            scores, shape = probe.shape(product.output), probe.shape(links[at].value)
            if scores is None or shape is None or 0 in scores:
                continue
            view = view_down(links, at, probe)
            whole = None if view is None else view.expand((*scores[:-1], 1))
            lead = [] if whole is None else [atom for atoms in whole.dims[:-2] for atom in atoms]
            rows = () if whole is None else merged(whole.dims[-2])
            batch = math.prod(scores[:-2]) // heads
            wanted = merged([(batch, 0), (heads, 1)])
            fits.append(math.prod(shape) == heads and merged(lead) == wanted and all(one[1] == 0 for one in rows))
        if fits and all(fits):
            return links[at].value
    return None


def form_name(form: Form) -> str:
    """How reports name a form."""
    return "BHSD" if form == BHSD else "BSHD (packed)" if form.packed else "BSHD"
