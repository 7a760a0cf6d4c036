"""Nodes of the domain ``ai.zyfa`` in a graph: attributes, and types and shapes of what they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from zyfa_ort.graph_passes import schema
from zyfa_ort.graph_passes.facts import UNKNOWN, Fact
from zyfa_ort.graph_passes.values import attribute_string
from zyfa_ort.op_shapes import Shape, attention_shapes, scale_shape

Attributes = dict[str, int | float | str]
_QUERY, _KEY, _VALUE, _PAST_KEY = (
    schema.INPUTS.index(name) for name in ("query", "key", "value", "past_key")
)


def is_ours(node: ir.Node) -> bool:
    return node.domain == schema.DOMAIN


def attributes(node: ir.Node) -> Attributes:
    return {name: _plain(attribute) for name, attribute in node.attributes.items()}


def _plain(attribute: ir.Attr) -> Any:
    if attribute.type == ir.AttributeType.INT:
        return attribute.as_int()
    return attribute.as_float() if attribute.type == ir.AttributeType.FLOAT else attribute.as_string()


def output_facts(node: ir.Node, facts: Sequence[Fact]) -> list[Fact]:
    """Types and shapes of the outputs, in the operator's order; UNKNOWN where the inputs do not tell."""
    if node.op_type == schema.PREFILL_ATTENTION:
        return _attention(node, facts)
    if node.op_type == schema.QUANTIZE_FP8:
        scale = scale_shape(
            facts[0].shape,
            attribute_string(node, "granularity", "batch_head"),
            attribute_string(node, "layout", "BSHD"),
        )
        return [Fact(facts[0].shape, ir.DataType.FLOAT8E4M3FN), _fact(scale, ir.DataType.FLOAT)]
    return [Fact(facts[0].shape, facts[0].dtype)]


def _attention(node: ir.Node, facts: Sequence[Fact]) -> list[Fact]:
    def shape(at: int) -> Shape | None:
        return facts[at].shape if at < len(facts) else None

    def number(name: str) -> int | None:
        attribute = node.attributes.get(name)
        return None if attribute is None else attribute.as_int()

    shapes = attention_shapes(
        shape(_QUERY),
        shape(_KEY),
        shape(_VALUE),
        shape(_PAST_KEY),
        has_past=len(node.inputs) > _PAST_KEY and node.inputs[_PAST_KEY] is not None,
        layout=attribute_string(node, "layout", "BSHD"),
        num_heads=number("num_heads"),
        kv_num_heads=number("kv_num_heads"),
    )
    held = facts[_QUERY].dtype
    out_dtype = number("out_dtype")
    return [
        _fact(shapes.output, ir.DataType(out_dtype) if out_dtype else held),
        _fact(shapes.present_key, held),
        _fact(shapes.present_value, held),
        _fact(shapes.lse, ir.DataType.FLOAT),
    ]


def _fact(shape: Shape | None, dtype: ir.DataType | None) -> Fact:
    """UNKNOWN when a length is not a number."""
    if shape is None:
        return UNKNOWN
    lengths = tuple(length for length in shape if isinstance(length, int))
    return Fact(lengths, dtype) if len(lengths) == len(shape) else UNKNOWN
