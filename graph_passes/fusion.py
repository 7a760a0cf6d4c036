"""Deciding one site: which tensors the fused node reads and writes, and what its attributes say.

Nothing is changed here; the answer is a `Fusion` that the rewrite carries out, or the reason why not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import onnx_ir as ir

from .facts import Shape
from .formula import formula_of
from .guards import HIDDEN
from .layouts import Candidate, chain, view_down
from .mask_planes import Unexplained
from .masks import FULL, KeyMask, Meaning, Structure, explain
from .operands import Operands, of_products
from .probes import Probe
from .products import Product
from .readings import Finish, Prelude
from .scenarios import ProbeSet
from .sites import Declined, Obstacle, Site, Step
from .values import is_op, source
from .views import merged

# Default scale: 1/sqrt(head_dim) up to the rounding of the constants it was built from, at least this much.
MIN_SLACK: Final = 2.0**-22
ENDS_AT: Final = "the original ends at {} keys, where its stored mask ends; the fused node goes on"


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

    head    the Softmax or attention node that the fused node is named after
    last    the node that makes the result; the fused node is put before it
    scores  shape of the scores per run (the biases broadcast to it)
    scale   None: 1/sqrt(head_dim)
    prelude, finish  nodes to be made before and after, see readings.py
    """

    head: ir.Node
    last: ir.Node
    where: str
    operands: Operands
    masking: Masking
    scores: Callable[[Probe], Shape | None]
    scale: float | None
    softcap: float = 0.0
    sinks: ir.Value | None = None
    past: tuple[ir.Value, ir.Value] | None = None
    presents: tuple[ir.Value, ...] = ()
    prelude: Prelude | None = None
    finish: Finish | None = None

    @property
    def query(self) -> Candidate:
        return self.operands.query

    @property
    def kv_heads(self) -> int:
        return self.operands.key.new.heads

    @property
    def has_past(self) -> bool:
        return self.past is not None


def decide(site: Site, probes: ProbeSet) -> Fusion | Declined:
    """How to fuse `site`, or why not."""

    def decline(obstacle: Obstacle) -> Declined:
        return Declined(site.softmax, obstacle.node, obstacle.reason, site.where)

    formula = formula_of(site.scores)
    if isinstance(formula, Obstacle):
        return decline(formula)
    operands = of_products(site.scores.product, site.values, probes)
    if isinstance(operands, Obstacle):
        return decline(operands)
    masking = masking_of(formula.masks, FULL, probes, formula.late_scale)
    if isinstance(masking, Obstacle):
        return decline(masking)
    query = operands.query
    problem = masking_obstacle(masking, scores_at, site.softmax, query, probes)
    if problem is not None:
        return decline(problem)
    sinks = None
    if site.scores.sinks is not None:
        sinks = _sinks(site.scores.sinks, query.heads, site.scores.product, probes)
        if sinks is None:
            return decline(Obstacle(site.softmax, "the sink column is not one number per query head"))
    return Fusion(
        site.softmax,
        site.values.node,
        site.where,
        operands,
        masking,
        _scores_of(site.scores.product),
        scale_or_usual(formula.scale, formula.slack, operands),
        formula.softcap,
        sinks,
        operands.past,
        operands.presents,
    )


def scale_or_usual(scale: float | None, slack: float, operands: Operands) -> float | None:
    """`scale` (None: 1/sqrt(head_dim)) with the factors on the way to query and key; None when that is 1/sqrt(head_dim) up
    to the rounding of the constants it came from."""
    query, key = operands.query, operands.key.new
    usual = 1.0 / math.sqrt(query.head_dim)
    whole = (usual if scale is None else scale) * query.scale * key.scale
    allowed = max(MIN_SLACK, slack + query.slack + key.slack)
    return None if abs(whole - usual) <= allowed * usual else whole


ScoresAt = Callable[[Step], Callable[[Probe], Shape | None]]


def scores_at(step: Step) -> Callable[[Probe], Shape | None]:
    """Shape of the scores where a mask step is applied."""
    return lambda probe: probe.shape(step.node.outputs[0])


def _scores_of(product: Product) -> Callable[[Probe], Shape | None]:
    return lambda probe: probe.shape(product.output)


def masking_of(
    masks: Sequence[Step],
    given: Structure,
    probes: ProbeSet,
    late_scale: Step | None = None,
    at: ScoresAt = scores_at,
) -> Masking | Obstacle:
    """The meaning of all masks together with the structure `given` by attributes."""
    structure, key_masks, biases, notes = given, list[KeyMask](), list[Step](), list[str]()
    for mask in masks:
        meanings = [(mask, explain(mask, at(mask), probes))]
        if isinstance(meanings[0][1], Unexplained):
            parts = [(part, explain(part, at(mask), probes)) for part in _addends(mask, probes)]
            # Taking a sum apart pays only when a part of it is a mask that the operator knows.
            meanings = parts if any(isinstance(meaning, Meaning) for _, meaning in parts) else meanings
        for step, meaning in meanings:
            joined = None
            if isinstance(meaning, Meaning):
                joined = _joined(structure, meaning.structure, _square(at(mask), probes))
            if isinstance(meaning, Meaning) and joined is not None:
                structure = joined
                if meaning.ends_at:
                    notes.append(ENDS_AT.format(meaning.ends_at))
                if meaning.key_mask is not None and meaning.key_mask not in key_masks:
                    key_masks.append(meaning.key_mask)
                continue
            reason = (
                meaning.reason
                if isinstance(meaning, Unexplained)
                else "its causal rule differs from another's"
            )
            if late_scale is not None:
                return Obstacle(late_scale.node, "the scores are scaled after a bias was added")
            biases.append(step)
            name = step.value.name if step.value is not None else ""
            notes.append(f"{name} is passed as attn_bias: {reason}")
    return Masking(structure, tuple(key_masks), tuple(biases), tuple(notes))


def _addends(mask: Step, probes: ProbeSet) -> Iterator[Step]:
    """The terms of a sum of masks, position bias + causal mask, say; Where(visible, bias, -inf) is one too."""
    node = source(mask.value)
    if mask.kind == "add" and is_op(node, "Add") and node is not None:
        for part in node.inputs:
            yield from _addends(replace(mask, value=part), probes)
        return
    if mask.kind == "add" and mask.sign > 0 and is_op(node, "Where") and node is not None:
        condition, taken, otherwise = node.inputs
        for fill, rest, hides_when in ((taken, otherwise, True), (otherwise, taken, False)):
            number = probes.scalar(fill)
            if number is not None and number.value <= HIDDEN:
                number_step = replace(mask, kind="where", value=condition, number=number.value)
                yield replace(number_step, hides_when=hides_when)
                yield from _addends(replace(mask, value=rest), probes)
                return
    yield mask


def _square(scores: Callable[[Probe], Shape | None], probes: ProbeSet) -> bool:
    """As many keys as queries in every run: both alignments are the same."""
    shapes = [shape for probe in probes.probes if (shape := scores(probe)) is not None]
    return bool(shapes) and all(shape[-1] == shape[-2] for shape in shapes)


def _joined(left: Structure, right: Structure, square: bool) -> Structure | None:
    """Both structures at once."""
    if left in (FULL, right):
        return right
    if right == FULL:
        return left
    if left.alignment != right.alignment and not square:
        return None
    windows = [one.window_left for one in (left, right) if one.window_left >= 0]
    return Structure(left.is_causal or right.is_causal, left.alignment, min(windows, default=-1))


def masking_obstacle(
    masking: Masking, at: ScoresAt, node: ir.Node, query: Candidate, probes: ProbeSet
) -> Obstacle | None:
    """Why masks cannot be inputs of the operator: a key mask has one row per batch row of `query`, a bias broadcasts
    to (B, Hq, Sq, keys)."""
    for mask in masking.key_masks:
        for probe, batch in zip(probes.probes, query.batches, strict=True):
            shape = probe.shape(mask.value)
            if batch and shape is not None and shape[0] != batch:
                return Obstacle(node, f"the key mask has {shape[0]} rows where the batch is {batch}")
    for step in masking.biases:
        for probe, batch in zip(probes.probes, query.batches, strict=True):
            bias, scores = probe.shape(step.value), at(step)(probe)
            if scores is None or batch == 0:
                continue
            if bias is None:
                return Obstacle(step.node, "the shape of the mask is not known")
            whole = len(scores) == 4 and scores[:2] == (batch, query.heads)
            flat = len(scores) == 3 and scores[0] == batch * query.heads
            if (whole and _broadcasts(bias, scores)) or (flat and _broadcasts(bias, scores)):
                continue
            reason = f"a mask of shape {list(bias)} does not broadcast to (batch, heads, queries, keys)"
            return Obstacle(step.node, reason)
    return None


def _broadcasts(bias: Shape, scores: Shape) -> bool:
    pairs = zip(reversed(bias), reversed(scores), strict=False)
    return len(bias) <= len(scores) and all(one in (1, other) for one, other in pairs)


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
            fits.append(
                math.prod(shape) == heads and merged(lead) == wanted and all(one[1] == 0 for one in rows)
            )
        if fits and all(fits):
            return links[at].value
    return None
