"""The Attention operator of the ONNX standard (opset 23 and later).

Exporters hand it keys and values repeated to all query heads, the causal rule inside a boolean mask, and the past
joined outside; it is read like a decomposed site, and what it says itself (causal rule, window, softcap, its own past,
the number of valid keys) is added. Query row i stands at key past + i: without a past that is "top left", with one
"bottom right" as long as there are as many new keys as queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import onnx_ir as ir

from .fusion import Fusion, masking_obstacle, masking_of, usual_or
from .layouts import Candidate, Place, Result, candidates
from .masks import FULL, KeyMask, Structure
from .operands import Choices, Operands, choose
from .probes import Probe
from .scenarios import ProbeSet
from .shapes import Shape
from .sites import Declined, Obstacle, Step
from .values import attribute_float, attribute_int, operand
from .views import View

# What this reader knows; an attribute of a later version may change the answer.
ATTRIBUTES: Final = frozenset(
    (
        *("is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode"),
        *("right_window_size", "scale", "softcap", "softmax_precision"),
    )
)


def decide_attention(node: ir.Node, where: str, probes: ProbeSet) -> Fusion | Declined:
    """How to fuse a standard Attention node, or why not."""
    found = _decide(node, where, probes)
    return Declined(node, found.node, found.reason, where) if isinstance(found, Obstacle) else found


def _decide(node: ir.Node, where: str, probes: ProbeSet) -> Fusion | Obstacle:
    inputs = [operand(node, at) for at in range(3)]
    query, key, value = inputs
    past_key, past_value = operand(node, 4), operand(node, 5)
    if query is None or key is None or value is None or (past_key is None) != (past_value is None):
        return Obstacle(node, "query, key, value or one half of the past is missing")
    unknown = sorted(set(node.attributes) - ATTRIBUTES)
    if unknown:
        return Obstacle(node, f"its attribute {unknown[0]} is not understood")
    if len(node.outputs) > 3 and (list(node.outputs[3].uses()) or node.outputs[3].is_graph_output()):
        return Obstacle(node, "its fourth output, the scores, is used")
    heads = _heads(node, query, "q_num_heads", probes)
    kv_heads = _heads(node, key, "kv_num_heads", probes)
    if not heads or not kv_heads or heads % kv_heads:
        return Obstacle(
            node, f"head counts: expected key heads that divide query heads, got {kv_heads} and {heads}"
        )
    ways = [
        _ways(one, own, heads, probes)
        for one, own in zip((query, key, value), (heads, kv_heads, kv_heads), strict=True)
    ]
    if past_key is not None:  # the past has the node's own key heads
        ways[1:] = [[one for one in found if one.heads == kv_heads] for found in ways[1:]]
    output = node.outputs[0]
    packed = len(probes.first_shape(output) or ()) == 3
    result = Result(output, packed_heads=heads) if packed else Result(output, (0, 1, 2, 3))
    operands = choose(Choices(ways[0], ways[1], ways[2], result), probes)
    if operands is None:
        return Obstacle(node, "query, key and value have no layout, head count and type in common")

    def scores(probe: Probe) -> Shape | None:
        return _scores(probe, operands, past_key)

    given = _structure(node, operands, past_key is not None, probes)
    if isinstance(given, Obstacle):
        return given
    masking = masking_of(_mask_steps(node, probes), given, probes, at=lambda step: scores)
    if isinstance(masking, Obstacle):
        return masking
    counts = operand(node, 6)
    if counts is not None:
        masking = replace(masking, key_masks=(*masking.key_masks, KeyMask(counts, counts=True)))
    problem = masking_obstacle(masking, lambda step: scores, node, operands.query, probes)
    if problem is not None:
        return problem
    scale = None
    if "scale" in node.attributes:
        scale = usual_or(attribute_float(node, "scale", 0.0), 0.0, operands.query.head_dim)
    past, presents = _past(node, operands, past_key, past_value)
    softcap = attribute_float(node, "softcap", 0.0)
    return Fusion(node, node, where, operands, masking, scores, scale, softcap, None, past, presents)


def _structure(node: ir.Node, operands: Operands, has_past: bool, probes: ProbeSet) -> Structure | Obstacle:
    """What the node's own attributes say about positions."""
    left, right = (attribute_int(node, f"{side}_window_size", -1) for side in ("left", "right"))
    is_causal = bool(attribute_int(node, "is_causal", 0)) or right == 0
    if not is_causal and right > 0:
        return Obstacle(node, f"right_window_size {right}: a window to the right is not an attribute of ours")
    if not is_causal and left < 0:
        return FULL
    if operand(node, 6) is not None:
        return Obstacle(
            node, "nonpad_kv_seqlen moves its causal rule or window by another length in each batch row"
        )
    if not has_past:
        return Structure(is_causal, "top_left", max(left, -1))
    for probe in probes.probes:
        if _length(probe, operands.query) != _length(probe, operands.key.new):
            return Obstacle(node, "with a past its causal rule or window needs as many new keys as queries")
    return Structure(is_causal, "bottom_right", max(left, -1))


def _heads(node: ir.Node, value: ir.Value, attribute: str, probes: ProbeSet) -> int:
    """Heads of an input: the second length of a 4-D one, else the attribute; 0 when not told."""
    shapes = {
        shape[1] for probe in probes.probes if (shape := probe.shape(value)) is not None and len(shape) == 4
    }
    if shapes:
        return shapes.pop() if len(shapes) == 1 else 0
    return attribute_int(node, attribute, 0)


def _ways(value: ir.Value, own_heads: int, query_heads: int, probes: ProbeSet) -> list[Candidate]:
    """Candidates for an input with `own_heads` heads, each of which serves a block of query heads."""

    def lead(probe: Probe) -> Shape | None:
        shape = probe.shape(value)
        return None if shape is None else (shape[0], own_heads)

    found = candidates(value, _place(own_heads), lead, probes, scales=False)
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


def _length(probe: Probe, one: Candidate) -> int | None:
    shape = probe.shape(one.value)
    return None if shape is None else shape[2 if one.form.layout == "BHSD" else 1]


def _scores(probe: Probe, operands: Operands, past_key: ir.Value | None) -> Shape | None:
    """(B, Hq, Sq, past + new keys) of one run."""
    query = operands.query
    shape, rows = probe.shape(query.value), _length(probe, query)
    keys = _length(probe, operands.key.new)
    cache = operands.key.cache
    earlier = past_key if past_key is not None else cache.past if cache is not None else None
    before = probe.shape(earlier) if earlier is not None else (0, 0, 0, 0)
    if shape is None or rows is None or keys is None or before is None:
        return None
    return shape[0], query.heads, rows, before[2] + keys


def _mask_steps(node: ir.Node, probes: ProbeSet) -> Sequence[Step]:
    mask = operand(node, 3)
    if mask is None:
        return ()
    if probes.first.dtype(mask) == ir.DataType.BOOL:
        return (Step("where", node, mask, number=float("-inf"), hides_when=False),)
    return (Step("add", node, mask),)


def _past(
    node: ir.Node, operands: Operands, past_key: ir.Value | None, past_value: ir.Value | None
) -> tuple[tuple[ir.Value, ir.Value] | None, tuple[ir.Value, ...]]:
    """Past inputs and present outputs: the node's own, or the Concats before it."""
    if past_key is not None and past_value is not None:
        return (past_key, past_value), tuple(node.outputs[1:3])
    key, value = operands.key.cache, operands.value.cache
    if key is None or value is None:
        return None, ()
    return (key.past, value.past), (key.present, value.present)
