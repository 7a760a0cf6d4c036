"""The Attention operator of the ONNX standard (opset 23 and later).

Query row i stands at key past + i: without a past that is "top left", with one "bottom right" as long as there are as many
new keys as queries.
"""

from __future__ import annotations

from typing import Final

import onnx_ir as ir

from .masks import FULL, KeyMask, Structure
from .probes import Probe
from .readings import Reading, read_outputs
from .scenarios import ProbeSet
from .sites import Obstacle, Step
from .values import attribute_float, attribute_int, operand

# What this reader knows; an attribute of a later version may change the answer.
ATTRIBUTES: Final = frozenset(
    (
        *("is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode"),
        *("right_window_size", "scale", "softcap", "softmax_precision"),
    )
)


def read(node: ir.Node, probes: ProbeSet) -> Reading | Obstacle:
    """What the node says; an Obstacle where it asks for something the operator does not have."""
    query, key, value = (operand(node, at) for at in range(3))
    past_key, past_value = operand(node, 4), operand(node, 5)
    if query is None or key is None or value is None or (past_key is None) != (past_value is None):
        return Obstacle(node, "query, key, value or one half of the past is missing")
    unknown = sorted(set(node.attributes) - ATTRIBUTES)
    if unknown:
        return Obstacle(node, f"its attribute {unknown[0]} is not understood")
    if read_outputs(node.outputs[3:]):
        return Obstacle(node, "its fourth output, the scores, is used")
    past = None if past_key is None or past_value is None else (past_key, past_value)

    def sizes(probe: Probe) -> tuple[int, int, int] | None:
        queries, keys = probe.shape(query), probe.shape(key)
        return None if queries is None or keys is None else (queries[0], queries[-2], keys[-2])

    lengths = [found for probe in probes.probes if (found := sizes(probe)) is not None]
    same_lengths = all(queries == keys for _, queries, keys in lengths)
    structure = _structure(node, past is not None, same_lengths)
    if isinstance(structure, Obstacle):
        return structure
    counts = operand(node, 6)
    return Reading(
        query,
        key,
        value,
        _heads(node, query, "q_num_heads", probes),
        _heads(node, key, "kv_num_heads", probes),
        sizes,
        _masks(node, probes),
        structure,
        () if counts is None else (KeyMask(counts, counts=True),),
        attribute_float(node, "scale", 0.0) if "scale" in node.attributes else None,
        attribute_float(node, "softcap", 0.0),
        past=past,
        presents=tuple(node.outputs[1:3]) if past is not None else (),
    )


def _structure(node: ir.Node, has_past: bool, same_lengths: bool) -> Structure | Obstacle:
    """What the node's own attributes say about positions."""
    left, right = (attribute_int(node, f"{side}_window_size", -1) for side in ("left", "right"))
    is_causal = bool(attribute_int(node, "is_causal", 0)) or right == 0
    if not is_causal and right > 0:
        return Obstacle(node, f"right_window_size {right}: a window to the right is not an attribute of ours")
    if not is_causal and left < 0:
        return FULL
    if operand(node, 6) is not None:
        reason = "nonpad_kv_seqlen moves its causal rule or window by another length in each batch row"
        return Obstacle(node, reason)
    if not has_past:
        return Structure(is_causal, "top_left", max(left, -1))
    if not same_lengths:
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


def _masks(node: ir.Node, probes: ProbeSet) -> tuple[Step, ...]:
    mask = operand(node, 3)
    if mask is None:
        return ()
    if probes.first.dtype(mask) == ir.DataType.BOOL:
        return (Step("where", node, mask, number=float("-inf"), hides_when=False),)
    return (Step("add", node, mask),)
