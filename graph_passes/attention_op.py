"""Attention that is one operator already: of the ONNX standard or of ONNX Runtime (com.microsoft).

Exporters hand it keys and values repeated to all query heads, the causal rule inside a mask, and the past joined outside;
it is read like a decomposed site, and what the node says itself (causal rule, window, softcap, its own past) is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import onnx_ir as ir

from . import contrib_attention, group_query_attention, standard_attention
from .facts import Shape
from .fusion import Fusion, masking_obstacle, masking_of, scale_or_usual
from .layouts import Candidate, Place, candidates
from .operands import Choices, choose
from .outlets import Result
from .probes import Probe
from .readings import Reading
from .scenarios import ProbeSet
from .sites import Declined, Obstacle
from .values import CONTRIB_DOMAIN, standard
from .views import View

Reader = Callable[[ir.Node, ProbeSet], Reading | Obstacle]
READERS: Final[dict[tuple[str, str], Reader]] = {
    ("", "Attention"): standard_attention.read,
    (CONTRIB_DOMAIN, "Attention"): contrib_attention.read_attention,
    (CONTRIB_DOMAIN, "MultiHeadAttention"): contrib_attention.read_multi_head,
    (CONTRIB_DOMAIN, "GroupQueryAttention"): group_query_attention.read,
}


def decide_attention(node: ir.Node, where: str, probes: ProbeSet) -> Fusion | Declined:
    """How to fuse an attention node, or why not."""
    reading = READERS["" if standard(node) else node.domain, node.op_type](node, probes)
    found = reading if isinstance(reading, Obstacle) else _decide(node, reading, where, probes)
    return Declined(node, found.node, found.reason, where) if isinstance(found, Obstacle) else found


def _decide(node: ir.Node, reading: Reading, where: str, probes: ProbeSet) -> Fusion | Obstacle:
    heads, kv_heads = reading.heads, reading.kv_heads
    if not heads or not kv_heads or heads % kv_heads:
        return Obstacle(
            node, f"head counts: expected key heads that divide query heads, got {kv_heads} and {heads}"
        )
    has_past = reading.past is not None  # new keys go into the cache as they come
    tensors = (
        (reading.query, heads, True),
        (reading.key, kv_heads, not has_past),
        (reading.value, kv_heads, False),
    )
    ways = [_ways(value, own, heads, probes, scales) for value, own, scales in tensors]
    if has_past:  # the past has the node's own key heads
        ways[1:] = [[one for one in found if one.heads == kv_heads] for found in ways[1:]]
    output = node.outputs[0]
    packed = len(probes.first_shape(output) or ()) == 3
    result = Result(output, packed_heads=heads) if packed else Result(output, (0, 1, 2, 3))
    operands = choose(Choices(ways[0], ways[1], ways[2], result), probes)
    if operands is None:
        return Obstacle(node, "query, key and value have no layout, head count and type in common")

    def scores(probe: Probe) -> Shape | None:
        return _scores(probe, reading)

    masking = masking_of(reading.masks, reading.structure, probes, at=lambda step: scores)
    if isinstance(masking, Obstacle):
        return masking
    masking = replace(
        masking,
        key_masks=(*masking.key_masks, *reading.key_masks),
        notes=(*masking.notes, *reading.notes),
    )
    problem = masking_obstacle(masking, lambda step: scores, node, operands.query, probes)
    if problem is not None:
        return problem
    joined_outside = reading.past is None and operands.past is not None  # by Concats before the node
    return Fusion(
        node,
        node,
        where,
        operands,
        masking,
        scores,
        scale_or_usual(reading.scale, 0.0, operands),
        reading.softcap,
        reading.sinks,
        operands.past if joined_outside else reading.past,
        operands.presents if joined_outside else reading.presents,
        reading.prelude,
        reading.finish,
    )


def _ways(
    value: ir.Value, own_heads: int, query_heads: int, probes: ProbeSet, scales: bool
) -> list[Candidate]:
    """Candidates for an input with `own_heads` heads, each of which serves a block of query heads."""

    def lead(probe: Probe) -> Shape | None:
        shape = probe.shape(value)
        return None if shape is None else (shape[0], own_heads)

    found = candidates(value, _place(own_heads), lead, probes, scales)
    return [replace(one, repeat=query_heads // one.heads) for one in found]


def _place(heads: int) -> Place:
    """(B,H,S,D) as it is, (B,S,H*D) split and transposed."""

    def place(view: View) -> View | None:
        shape = view.shape
        if len(shape) == 4:
            return view
        if len(shape) != 3 or shape[2] % heads:
            return None
        split = view.reshape((shape[0], shape[1], heads, shape[2] // heads))
        return None if split is None else split.transpose((0, 2, 1, 3))

    return place


def _scores(probe: Probe, reading: Reading) -> Shape | None:
    """(B, Hq, Sq, past + new keys) of one run; a past joined outside is part of the node's keys."""
    sizes = reading.sizes(probe)
    past = (0, 0, 0, 0) if reading.past is None else probe.shape(reading.past[0])
    return None if sizes is None or past is None else (sizes[0], reading.heads, sizes[1], past[2] + sizes[2])
