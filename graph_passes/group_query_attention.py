"""GroupQueryAttention of ONNX Runtime (com.microsoft), as its model builder writes decoders.

Before                                                     After
  GroupQueryAttention(packed q k v, past, seqlens_k,         Split -> [norm] -> RotaryEmbedding of query and key
    total, cos, sin, bias, sinks, q/k norm weights)          -> ZyfaPrefillAttention(..., past, key_mask, sinks)

The nodes around the operator are made in group_query_nodes.py.
"""

from __future__ import annotations

from typing import Final

import onnx_ir as ir

from . import group_query_nodes
from .build import Builder
from .facts import Shape
from .group_query_nodes import GroupQuery, StandIns
from .masks import FULL, KeyMask, Structure
from .probes import Probe
from .readings import (
    Finish,
    Prelude,
    Reading,
    ShapeOf,
    Sizes,
    packed,
    read_outputs,
    same_shape,
    stand_in,
)
from .scenarios import ProbeSet
from .sites import SHAPELESS, Obstacle, Step
from .values import attribute_float, operand

INPUTS: Final = (
    *("query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length", "cos_cache"),
    *("sin_cache", "position_ids", "attention_bias", "head_sink", "k_scale", "v_scale", "q_norm_weight"),
    *("k_norm_weight", "query_seqlens"),
)
NOT_READ: Final = ("position_ids", "k_scale", "v_scale", "query_seqlens")
ATTRIBUTES: Final = frozenset(
    (
        *("causal", "do_rotary", "k_norm_epsilon", "k_quant_type", "kv_cache_bit_width", "kv_num_heads"),
        *("local_window_size", "num_heads", "q_norm_epsilon", "qk_norm_epsilon", "qk_output"),
        *("rotary_interleaved", "scale", "sliding_window_cache", "smooth_softmax", "softcap", "v_quant_type"),
    )
)
PADDING_NOTE: Final = (
    "right padding of a batch is taken in a first prompt only; later runs with it are refused"
)


def read(node: ir.Node, probes: ProbeSet) -> Reading | Obstacle:
    """What the node says; an Obstacle where it asks for something the operator does not have."""
    inputs = {name: value for at, name in enumerate(INPUTS) if (value := operand(node, at)) is not None}
    query = inputs.get("query")
    gqa = GroupQuery(node, inputs, tuple(probe.shape(query) for probe in probes.probes))
    heads, kv_heads = gqa.number("num_heads"), gqa.number("kv_num_heads")
    problem = _problem(gqa)
    if problem is not None:
        return problem
    width = gqa.sizes[0]
    if width is None or len(width) != 3 or not heads or not kv_heads:
        return Obstacle(node, SHAPELESS)
    head_dim, rest = divmod(width[2], heads if "key" in inputs else heads + 2 * kv_heads)
    if rest:
        return Obstacle(node, f"a query of width {width[2]} does not hold {heads} and 2 x {kv_heads} heads")

    def sizes(probe: Probe) -> tuple[int, int, int] | None:
        shape = probe.shape(query)
        return None if shape is None else (shape[0], shape[1], shape[1])

    made = _stand_ins(gqa, (heads, kv_heads, kv_heads), head_dim, sizes, probes)
    own = (inputs["past_key"], inputs["past_value"]) if "past_key" in inputs else None
    bias = inputs.get("attention_bias")
    window_left = gqa.window - 1 if gqa.window > 0 else -1
    return Reading(
        *made.tensors,
        heads,
        kv_heads,
        sizes,
        () if bias is None else (Step("add", node, bias),),
        Structure(True, window_left=window_left) if gqa.number("causal", 1) else FULL,
        (KeyMask(made.mask),),
        attribute_float(node, "scale", 0.0) or None,
        attribute_float(node, "softcap", 0.0),
        inputs.get("head_sink", made.sinks),
        made.past or own,
        tuple(node.outputs[1:3]),
        (PADDING_NOTE,) if own is not None else (),
        _prelude(gqa, made),
        _finish(gqa, made) if made.past is not None else None,
    )


def _stand_ins(
    gqa: GroupQuery, heads: tuple[int, int, int], head_dim: int, sizes: Sizes, probes: ProbeSet
) -> StandIns:
    dtype = probes.first.dtype(gqa["query"])
    query, key, value = (
        stand_in(name, dtype, packed(sizes, count * head_dim), probes)
        for name, count in zip(("query", "key", "value"), heads, strict=True)
    )
    past = None
    if gqa.cache_is_windowed:
        names = ("past_key", "past_value")
        of_key, of_value = (stand_in(one, dtype, same_shape(gqa[one]), probes) for one in names)
        past = (of_key, of_value)
    sinks = None
    if gqa.number("smooth_softmax") and "head_sink" not in gqa.inputs:
        sinks = stand_in("sinks", ir.DataType.FLOAT, lambda probe: (heads[0],), probes)
    mask = stand_in("key_mask", ir.DataType.BOOL, _visible(sizes, gqa.inputs.get("past_key")), probes)
    return StandIns((query, key, value), head_dim, dtype, mask, past, sinks)


def _prelude(gqa: GroupQuery, made: StandIns) -> Prelude:
    def prelude(before: ir.Node, builder: Builder, scope: str) -> None:
        group_query_nodes.make(gqa, made, before, builder, scope)

    return prelude


def _finish(gqa: GroupQuery, made: StandIns) -> Finish:
    def finish(present: ir.Value, before: ir.Node, builder: Builder, scope: str) -> ir.Value:
        return group_query_nodes.finish(gqa, present, made.dtype, before, builder, scope)

    return finish


def _problem(gqa: GroupQuery) -> Obstacle | None:
    node = gqa.node
    unknown = sorted(set(node.attributes) - ATTRIBUTES)
    if unknown:
        return Obstacle(node, f"its attribute {unknown[0]} is not understood")
    lacking = [one for one in ("query", "seqlens_k", "total_sequence_length") if one not in gqa.inputs]
    if lacking or ("past_key" in gqa.inputs) != ("past_value" in gqa.inputs):
        return Obstacle(node, f"its input {lacking[0] if lacking else 'past_key or past_value'} is missing")
    if ("key" in gqa.inputs) != ("value" in gqa.inputs):
        return Obstacle(node, "one of key and value is missing")
    not_read = [one for one in NOT_READ if one in gqa.inputs]
    if not_read:
        return Obstacle(node, f"its input {not_read[0]} is not read by this version")
    if gqa.number("do_rotary") and not ("cos_cache" in gqa.inputs and "sin_cache" in gqa.inputs):
        return Obstacle(node, "do_rotary without cos_cache and sin_cache")
    if ("q_norm_weight" in gqa.inputs) != ("k_norm_weight" in gqa.inputs):
        return Obstacle(node, "one of q_norm_weight and k_norm_weight is missing")
    quantised = [one for one in ("k_quant_type", "v_quant_type") if _word(node, one) not in ("", "NONE")]
    if quantised:
        return Obstacle(node, f"{quantised[0]} {_word(node, quantised[0])}: a quantised cache is not read")
    cos = gqa.inputs.get("cos_cache")
    if gqa.number("do_rotary") and (cos is None or cos.shape is None or not isinstance(cos.shape[1], int)):
        return Obstacle(node, "the width of cos_cache is not known")
    if gqa.number("qk_output") or read_outputs(node.outputs[3:]):
        return Obstacle(node, "its output 3, the scores, is used")
    if gqa.window == 0:
        return Obstacle(node, "local_window_size: expected -1 or at least 1, got 0")
    if gqa.cache_is_windowed and (
        gqa.window <= 0 or "attention_bias" in gqa.inputs or "past_key" not in gqa.inputs
    ):
        return Obstacle(node, "a windowed cache needs a window, a past and no attention_bias")
    return None


def _word(node: ir.Node, name: str) -> str:
    attribute = node.attributes.get(name)
    return "" if attribute is None else attribute.as_string()


def _visible(sizes: Sizes, past_key: ir.Value | None) -> ShapeOf:
    """(B, keys)"""

    def shape(probe: Probe) -> Shape | None:
        found = sizes(probe)
        before = (0, 0, 0, 0) if past_key is None else probe.shape(past_key)
        return None if found is None or before is None else (found[0], before[2] + found[2])

    return shape
