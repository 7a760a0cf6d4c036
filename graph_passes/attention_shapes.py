"""Output shapes of operators that are an attention by themselves, and which of their lengths must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import onnx_ir as ir

from .facts import Conflict, Conflicts, Fact, Rule, Shape
from .schema import DOMAIN, PREFILL_ATTENTION
from .values import CONTRIB_DOMAIN, attribute_int


def _note_batches(node: ir.Node, query: Shape, key: Shape, conflicts: Conflicts) -> None:
    if query[0] != key[0]:
        conflicts.append(Conflict(node, *sorted((query[0], key[0]))))


def _note_lengths(
    node: ir.Node, facts: Sequence[Fact], new: int, past: int, masks: Sequence[int], conflicts: Conflicts
) -> None:
    """Masks of two or more axes end with the keys: past (of input `past`) and new ones."""
    shapes = {at: facts[at].shape or () for at in (past, *masks) if at < len(facts)}
    before = shapes.get(past, ())
    keys = new + (before[2] if len(before) == 4 else 0)
    for at in masks:
        length = shapes[at][-1] if len(shapes.get(at, ())) > 1 else keys
        if length not in (1, keys):
            conflicts.append(Conflict(node, *sorted((length, keys))))


def _multi_head(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    query, value = facts[0].shape, facts[2].shape if len(facts) > 2 else None
    if query is None or value is None or len(query) != 3:
        return [None]  # Q, K and V packed in one tensor of rank 5 are left out
    _note_batches(node, query, value, conflicts)
    _note_lengths(node, facts, value[-2], 6, (4, 5), conflicts)
    return [(*query[:2], value[2] if len(value) == 3 else value[1] * value[3])]


def _group_query(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    query, heads, kv_heads = (
        facts[0].shape,
        attribute_int(node, "num_heads", 0),
        attribute_int(node, "kv_num_heads", 0),
    )
    if query is None or len(query) != 3 or not heads or not kv_heads:
        return [None]
    _note_lengths(node, facts, query[1], 3, (10,), conflicts)
    packed = len(node.inputs) < 2 or node.inputs[1] is None
    return [(*query[:2], query[2] // (heads + 2 * kv_heads) * heads if packed else query[2])]


def _embed(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    ids, words = facts[0].shape, facts[2].shape
    return [None if ids is None or words is None else (*ids, words[-1])]


def _projecting_attention(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    source, weights = facts[0].shape, facts[1].shape
    if source is None or weights is None:
        return [None]
    given = node.attributes.get("qkv_hidden_sizes")
    return [(*source[:2], int(given.as_ints()[2]) if given is not None else weights[-1] // 3)]


def _attention(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    query, key, value = (facts[at].shape for at in range(3))
    mask = facts[3].shape if len(facts) > 3 else None
    past = facts[4].shape if len(facts) > 4 else None
    if query is None or key is None or value is None:
        return [None]
    _note_batches(node, query, key, conflicts)
    keys = key[-2] + (past[-2] if past else 0)
    if mask and mask[-1] not in (1, keys):
        conflicts.append(Conflict(node, *sorted((mask[-1], keys))))
    if len(query) == 4:
        return [(*query[:3], value[3])]
    heads, kv_heads = attribute_int(node, "q_num_heads", 1), attribute_int(node, "kv_num_heads", 1)
    return [(*query[:2], value[2] // kv_heads * heads)]


def _zyfa_attention(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    query, value = facts[0].shape, facts[2].shape
    if query is None or value is None:
        return [None]
    if len(query) == 4:
        return [(*query[:3], value[3])]
    heads, kv_heads = attribute_int(node, "num_heads", 1), attribute_int(node, "kv_num_heads", 1)
    return [(*query[:2], value[2] // kv_heads * heads)]


ATTENTION_RULES: Final[dict[tuple[str, str], Rule]] = {
    ("", "Attention"): _attention,
    (CONTRIB_DOMAIN, "Attention"): _projecting_attention,
    (CONTRIB_DOMAIN, "EmbedLayerNormalization"): _embed,
    (CONTRIB_DOMAIN, "MultiHeadAttention"): _multi_head,
    (CONTRIB_DOMAIN, "GroupQueryAttention"): _group_query,
    (DOMAIN, PREFILL_ATTENTION): _zyfa_attention,
}
