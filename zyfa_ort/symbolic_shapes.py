"""Our operators for ``onnxruntime.tools.symbolic_shape_infer``, which otherwise stops at the first one."""

from __future__ import annotations

import functools
from typing import Any

from onnx import NodeProto, TensorProto, helper

from zyfa_ort.graph_passes import schema
from zyfa_ort.op_shapes import Dim, Shape, attention_shapes, scale_shape

_MARK = "_zyfa_ort_handlers"


def register() -> None:
    """Adds handlers to every ``SymbolicShapeInference`` made from now on; calling it again does nothing.

    The tool has no public way to add one: its table is filled in the constructor, so that is what gets wrapped.
    """
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    original = SymbolicShapeInference.__init__
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def constructed(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.dispatcher_.update(
            {
                schema.PREFILL_ATTENTION: functools.partial(_attention, self),
                schema.QUANTIZE_FP8: functools.partial(_quantize, self),
                schema.HADAMARD: functools.partial(_hadamard, self),
            }
        )

    setattr(constructed, _MARK, True)
    SymbolicShapeInference.__init__ = constructed


def _shape(inference: Any, node: NodeProto, at: int) -> Shape | None:
    if at >= len(node.input) or not node.input[at]:
        return None
    found = inference._try_get_shape(node, at)
    return None if found is None else tuple(found)


def _element_type(inference: Any, node: NodeProto) -> int:
    return int(inference.known_vi_[node.input[0]].type.tensor_type.elem_type)


def _attribute(node: NodeProto, name: str) -> Any:
    for held in node.attribute:
        if held.name == name:
            value = helper.get_attribute_value(held)
            return value.decode() if isinstance(value, bytes) else value
    return schema.ATTRIBUTES_OF[node.op_type][name].default


def _set(inference: Any, node: NodeProto, at: int, element_type: int, shape: Shape | None) -> None:
    if at >= len(node.output) or not node.output[at]:
        return
    dims: list[Dim] | None = None
    if shape is not None:
        # The tool wants a symbol for every unknown length; its own ones are unique per node, output and axis.
        dims = [
            str(inference._new_symbolic_dim_from_output(node, at, axis)) if dim is None else dim
            for axis, dim in enumerate(shape)
        ]
    value = helper.make_tensor_value_info(node.output[at], element_type, dims)
    inference.known_vi_[node.output[at]].CopyFrom(value)


def _attention(inference: Any, node: NodeProto) -> None:
    shapes = attention_shapes(
        _shape(inference, node, 0),
        _shape(inference, node, 1),
        _shape(inference, node, 2),
        _shape(inference, node, 3),
        has_past=len(node.input) > 3 and bool(node.input[3]),
        layout=_attribute(node, "layout"),
        num_heads=_attribute(node, "num_heads"),
        kv_num_heads=_attribute(node, "kv_num_heads"),
    )
    element_type = _element_type(inference, node)
    _set(inference, node, 0, _attribute(node, "out_dtype") or element_type, shapes.output)
    _set(inference, node, 1, element_type, shapes.present_key)
    _set(inference, node, 2, element_type, shapes.present_value)
    _set(inference, node, 3, TensorProto.FLOAT, shapes.lse)


def _quantize(inference: Any, node: NodeProto) -> None:
    x = _shape(inference, node, 0)
    _set(inference, node, 0, TensorProto.FLOAT8E4M3FN, x)
    scale = scale_shape(x, _attribute(node, "granularity"), _attribute(node, "layout"))
    _set(inference, node, 1, TensorProto.FLOAT, scale)


def _hadamard(inference: Any, node: NodeProto) -> None:
    _set(inference, node, 0, _element_type(inference, node), _shape(inference, node, 0))
