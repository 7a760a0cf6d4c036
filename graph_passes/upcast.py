"""bfloat16 -> float, for hosts whose runtime has no bfloat16 kernels: the same model, every type one size up.

Before: MatMul(bfloat16, bfloat16), Cast(to=BFLOAT16), bfloat16 weights, inputs and outputs.
After:  the same nodes on float; weights keep their bfloat16 values, so that only the rounding between nodes is gone.
Fused attention keeps its precision: it is written down where it followed from the type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from . import schema
from .data_files import external_tensors, follow_link

_FROM, _TO = ir.DataType.BFLOAT16, ir.DataType.FLOAT
# Attributes that hold an element type, by name, in any operator.
_TYPE_ATTRIBUTES = ("to", "dtype", "out_dtype", "output_dtype", "stash_type")


def upcast_bfloat16(model: ir.Model) -> bool:
    """Rewrites `model` in place; false when it holds no bfloat16. Weights are converted when they are written, which has to
    be with data files of their own (onnx_ir.save with `external_data`)."""
    changed = False
    external = list(external_tensors(model))
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        changed |= _upcast_graph(graph)
    for held in external if changed else ():
        follow_link(held)
    return changed


def _upcast_graph(graph: ir.Graph) -> bool:
    changed = False
    for value in (*graph.inputs, *graph.initializers.values()):
        changed |= _upcast_value(value)
    for node in graph:
        changed |= _upcast_node(node)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                changed |= _upcast_graph(attribute.as_graph())
            elif attribute.type == ir.AttributeType.GRAPHS:
                changed |= any([_upcast_graph(body) for body in attribute.as_graphs()])
    return changed


def _upcast_value(value: ir.Value) -> bool:
    if value.dtype != _FROM:
        return False
    if value.const_value is not None:
        value.const_value = _upcast_tensor(value.const_value)
    value.dtype = _TO
    return True


def _upcast_tensor(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    def convert() -> ir.TensorProtocol:
        return ir.tensor(tensor.numpy().astype(np.float32), name=tensor.name)

    shape = ir.Shape([int(length) for length in tensor.shape.numpy()])
    return ir.LazyTensor(convert, dtype=_TO, shape=shape, name=tensor.name)


def _upcast_node(node: ir.Node) -> bool:
    attention = node.domain == schema.DOMAIN and node.op_type == schema.PREFILL_ATTENTION
    if attention and "precision" not in node.attributes and node.outputs[0].dtype == _FROM:
        node.attributes["precision"] = ir.AttrString("precision", "bf16")
    changed = False
    for value in node.outputs:
        changed |= _upcast_value(value)
    for name, attribute in list(node.attributes.items()):
        replaced = _upcast_attribute(name, attribute)
        if replaced is not None:
            node.attributes[name] = replaced
            changed = True
    return changed


def _upcast_attribute(name: str, attribute: ir.Attr) -> ir.Attr | None:
    value: Any = attribute.value
    if attribute.type == ir.AttributeType.INT and name in _TYPE_ATTRIBUTES and value == _FROM:
        return ir.AttrInt64(name, int(_TO))
    if attribute.type == ir.AttributeType.TENSOR and value.dtype == _FROM:
        return ir.AttrTensor(name, ir.tensor(value.numpy().astype(np.float32), name=value.name))
    return None
