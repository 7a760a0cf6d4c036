"""bfloat16 -> float, for hosts whose runtime has no bfloat16 kernels: the same model, every type one size up.

Before: MatMul(bfloat16, bfloat16), Cast(to=BFLOAT16), bfloat16 weights, inputs and outputs.
After:  the same nodes on float; weights keep their bfloat16 values, so that only the rounding between nodes is gone.
Fused attention keeps its precision: it is written down where it followed from the type.
Refused: nodes that look at the bits of a bfloat16, and types that cannot be seen from where they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import onnx_ir as ir

from . import schema
from .data_files import external_tensors, follow_link
from .errors import GraphPassError
from .sites import bodies
from .values import attribute_int, is_op, label

_FROM, _TO = ir.DataType.BFLOAT16, ir.DataType.FLOAT
# Integer attributes that hold an element type: all of the standard (onnx 1.23), and ours.
TYPE_ATTRIBUTES: Final = frozenset(
    {
        "to",
        "dtype",
        "out_dtype",
        "output_dtype",
        "output_datatype",
        "stash_type",
        "softmax_precision",
        "precision",
    }
)

Nodes = ir.Graph | ir.Function


def upcast_bfloat16(model: ir.Model) -> bool:
    """Rewrites `model` in place; false when it holds no bfloat16. Weights are converted when they are written, which has to
    be with data files of their own (onnx_ir.save with `external_data`).

    Raises GraphPassError, before any change, for a node whose meaning would change or is not known.
    """
    graphs = [*_within(model.graph), *(one for held in model.functions.values() for one in _within(held))]
    if not any(_holds(graph) for graph in graphs):
        return False
    for graph in graphs:
        for node in graph:
            _check(node)
    external = list(external_tensors(model))
    for graph in graphs:  # before any value: bodies read types of values outside
        for node in graph:
            _upcast_node(node)
    for graph in graphs:
        for value in _values(graph):
            _upcast_value(value)
    for held in external:
        follow_link(held)
    return True


def _within(graph: Nodes) -> Iterator[Nodes]:
    yield graph
    for node in graph:
        for attribute in node.attributes.values():
            for body in bodies(attribute):
                yield from _within(body)


def _values(graph: Nodes) -> Iterator[ir.Value]:
    yield from graph.inputs
    if isinstance(graph, ir.Graph):
        yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


def _holds(graph: Nodes) -> bool:
    attributes = (one for node in graph for one in node.attributes.values())
    return any(value.dtype == _FROM or _is_from(value.const_value) for value in _values(graph)) or any(
        _names_type(one) or any(map(_is_from, _tensors(one))) for one in attributes
    )


def _is_from(tensor: ir.TensorProtocol | None) -> bool:
    return tensor is not None and tensor.dtype == _FROM


def _names_type(attribute: ir.Attr) -> bool:
    """Whether an attribute says bfloat16."""
    integer = not attribute.is_ref() and attribute.type == ir.AttributeType.INT
    return integer and attribute.name in TYPE_ATTRIBUTES and attribute.as_int() == _FROM


def _tensors(attribute: ir.Attr) -> Iterable[ir.TensorProtocol]:
    if attribute.is_ref():
        return ()
    if attribute.type == ir.AttributeType.TENSOR:
        return (attribute.as_tensor(),)
    return attribute.as_tensors() if attribute.type == ir.AttributeType.TENSORS else ()


def _check(node: ir.Node) -> None:
    """Refuse a node that cannot be moved to float."""
    for name, attribute in node.attributes.items():
        if attribute.is_ref() and name in TYPE_ATTRIBUTES:
            got = f"that of the function's attribute {attribute.ref_attr_name}"
            raise GraphPassError(
                f"{label(node)}: expected a type in {name}, got {got}; inline functions first"
            )
        if attribute.type in (ir.AttributeType.TYPE_PROTO, ir.AttributeType.TYPE_PROTOS):
            raise GraphPassError(
                f"{label(node)}: expected no element type in {name}, got one; it is not converted from bfloat16"
            )
    types = [value.dtype for value in (*node.inputs[:1], *node.outputs[:1]) if value is not None]
    bits = is_op(node, "BitCast") and (attribute_int(node, "to", 0) == _FROM or types[0] in (_FROM, None))
    if bits:
        raise GraphPassError(f"{label(node)}: expected no look at the bits of a bfloat16, got {node.op_type}")
    if _attention(node) and "precision" not in node.attributes and all(one is None for one in types):
        raise GraphPassError(
            f"{label(node)}: expected a precision or a declared type of its output, got neither; infer shapes first"
        )


def _attention(node: ir.Node) -> bool:
    return node.domain == schema.DOMAIN and node.op_type == schema.PREFILL_ATTENTION


def _upcast_node(node: ir.Node) -> None:
    query = node.inputs[0] if node.inputs else None
    types = {value.dtype for value in (query, *node.outputs[:1]) if value is not None}
    if _attention(node) and "precision" not in node.attributes and _FROM in types:
        node.attributes["precision"] = ir.AttrString("precision", "bf16")
    for name, attribute in list(node.attributes.items()):
        tensors = list(_tensors(attribute))
        if _names_type(attribute):
            node.attributes[name] = ir.AttrInt64(name, int(_TO))
        elif any(map(_is_from, tensors)) and attribute.type == ir.AttributeType.TENSOR:
            node.attributes[name] = ir.AttrTensor(name, _upcast_tensor(tensors[0]))
        elif any(map(_is_from, tensors)):
            node.attributes[name] = ir.AttrTensors(
                name, [_upcast_tensor(one) if _is_from(one) else one for one in tensors]
            )


def _upcast_value(value: ir.Value) -> None:
    if value.const_value is not None and _is_from(value.const_value):
        value.const_value = _upcast_tensor(value.const_value)
    if value.dtype == _FROM:
        value.dtype = _TO


def _upcast_tensor(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    def convert() -> ir.TensorProtocol:
        return ir.tensor(tensor.numpy().astype(np.float32), name=tensor.name)

    shape = ir.Shape([int(length) for length in tensor.shape.numpy()])
    return ir.LazyTensor(convert, dtype=_TO, shape=shape, name=tensor.name)
