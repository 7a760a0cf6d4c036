"""Our operators for the Python tools of onnx and ONNX Runtime: the checker, shape inference, symbolic shapes.

Without this ``onnx.checker`` knows nothing of the domain ``ai.zyfa`` and takes any attribute, and shape inference ends at
the first fused node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
from onnx import TensorProto, TypeProto
from onnx.defs import OpSchema

from zyfa_ort.graph_passes import schema
from zyfa_ort.op_shapes import Shape, attention_shapes, scale_shape

if TYPE_CHECKING:
    from onnx.shape_inference import InferenceContext

_FLOATS = ["tensor(float)", "tensor(float16)", "tensor(bfloat16)"]
_FP8 = "tensor(float8e4m3fn)"
_OPTIONAL = OpSchema.FormalParameterOption.Optional
_KINDS = {"int": OpSchema.AttrType.INT, "float": OpSchema.AttrType.FLOAT, "string": OpSchema.AttrType.STRING}


def register() -> None:
    """Makes the operators of ``ai.zyfa`` known to the onnx package of this process. Calling it again does nothing."""
    for op_schema in _schemas():
        if not onnx.defs.has(op_schema.name, op_schema.since_version, op_schema.domain):
            onnx.defs.register_schema(op_schema)


def attention_schema(outputs: int = len(schema.OUTPUTS)) -> OpSchema:
    """The attention operator with its first `outputs` outputs; exporters make all that a schema has."""
    made = OpSchema(
        schema.PREFILL_ATTENTION,
        schema.DOMAIN,
        schema.VERSION,
        "Attention with a mask by rule, in FP32, BF16 or FP8 (docs/operators.md).",
        inputs=[_attention_input(name) for name in schema.INPUTS],
        outputs=[
            OpSchema.FormalParameter("output", "TOut"),
            OpSchema.FormalParameter("present_key", "T", param_option=_OPTIONAL),
            OpSchema.FormalParameter("present_value", "T", param_option=_OPTIONAL),
            OpSchema.FormalParameter("lse", "tensor(float)", param_option=_OPTIONAL),
        ][:outputs],
        type_constraints=[
            ("T", [*_FLOATS, _FP8], "query, key, value, past and bias"),
            ("TOut", _FLOATS, "T, or out_dtype when T is float8e4m3fn"),
            ("M", ["tensor(bool)", "tensor(int32)", "tensor(int64)"], "nonzero is visible"),
        ],
        attributes=_attributes(schema.PREFILL_ATTENTION),
    )
    made.set_type_and_shape_inference_function(_infer_attention)
    return made


def _schemas() -> list[OpSchema]:
    quantize = OpSchema(
        schema.QUANTIZE_FP8,
        schema.DOMAIN,
        schema.VERSION,
        "x / scale on the float8e4m3fn grid, and the scale.",
        inputs=[OpSchema.FormalParameter("x", "T")],
        outputs=[OpSchema.FormalParameter("y", _FP8), OpSchema.FormalParameter("scale", "tensor(float)")],
        type_constraints=[("T", _FLOATS, "")],
        attributes=_attributes(schema.QUANTIZE_FP8),
    )
    quantize.set_type_and_shape_inference_function(_infer_quantize)
    hadamard = OpSchema(
        schema.HADAMARD,
        schema.DOMAIN,
        schema.VERSION,
        "x * H / sqrt(n) over the last dimension.",
        inputs=[OpSchema.FormalParameter("x", "T")],
        outputs=[OpSchema.FormalParameter("y", "T")],
        type_constraints=[("T", _FLOATS, "")],
    )
    hadamard.set_type_and_shape_inference_function(_infer_hadamard)
    return [attention_schema(), quantize, hadamard]


def _attention_input(name: str) -> OpSchema.FormalParameter:
    kinds = {"key_mask": "M", **dict.fromkeys(("q_scale", "k_scale", "v_scale", "sinks"), "tensor(float)")}
    required = name in ("query", "key", "value")
    option = OpSchema.FormalParameterOption.Single if required else _OPTIONAL
    return OpSchema.FormalParameter(name, kinds.get(name, "T"), param_option=option)


def _attributes(op_type: str) -> list[OpSchema.Attribute]:
    made = []
    for name, spec in schema.ATTRIBUTES_OF[op_type].items():
        # Exporters write declared defaults into the node, and these two are refused beside another precision.
        if spec.default is None or (
            op_type == schema.PREFILL_ATTENTION and name in schema.FP8_ONLY_ATTRIBUTES
        ):
            made.append(OpSchema.Attribute(name, _KINDS[spec.kind], required=False))
        else:
            made.append(OpSchema.Attribute(name, onnx.helper.make_attribute(name, spec.default)))
    return made


def _shape(context: InferenceContext, at: int) -> Shape | None:
    if at >= context.get_num_inputs() or not context.has_input(at):
        return None
    held = context.get_input_type(at)
    if held is None or not held.HasField("tensor_type") or not held.tensor_type.HasField("shape"):
        return None
    dims = held.tensor_type.shape.dim
    return tuple(dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or None) for dim in dims)


def _element_type(context: InferenceContext, at: int) -> int:
    return int(context.get_input_type(at).tensor_type.elem_type)


def _set(context: InferenceContext, at: int, element_type: int, shape: Shape | None) -> None:
    if at >= context.get_num_outputs() or not context.has_output(at):
        return
    made = TypeProto()
    made.tensor_type.elem_type = element_type
    if shape is not None:
        made.tensor_type.shape.SetInParent()
        for dim in shape:
            added = made.tensor_type.shape.dim.add()
            if isinstance(dim, int):
                added.dim_value = dim
            elif dim is not None:
                added.dim_param = dim
    context.set_output_type(at, made)


def _attribute(context: InferenceContext, op_type: str, name: str) -> Any:
    held = context.get_attribute(name)
    if held is None or not held.type:
        return schema.ATTRIBUTES_OF[op_type][name].default
    value = onnx.helper.get_attribute_value(held)
    return value.decode() if isinstance(value, bytes) else value


def _infer_attention(context: InferenceContext) -> None:
    def attribute(name: str) -> Any:
        return _attribute(context, schema.PREFILL_ATTENTION, name)

    shapes = attention_shapes(
        _shape(context, 0),
        _shape(context, 1),
        _shape(context, 2),
        _shape(context, 3),
        has_past=context.get_num_inputs() > 3 and context.has_input(3),
        layout=attribute("layout"),
        num_heads=attribute("num_heads"),
        kv_num_heads=attribute("kv_num_heads"),
    )
    element_type = _element_type(context, 0)
    out_type = attribute("out_dtype") or element_type
    _set(context, 0, out_type, shapes.output)
    _set(context, 1, element_type, shapes.present_key)
    _set(context, 2, element_type, shapes.present_value)
    _set(context, 3, TensorProto.FLOAT, shapes.lse)


def _infer_quantize(context: InferenceContext) -> None:
    x = _shape(context, 0)
    words = (_attribute(context, schema.QUANTIZE_FP8, name) for name in ("granularity", "layout"))
    _set(context, 0, TensorProto.FLOAT8E4M3FN, x)
    _set(context, 1, TensorProto.FLOAT, scale_shape(x, *words))


def _infer_hadamard(context: InferenceContext) -> None:
    _set(context, 0, _element_type(context, 0), _shape(context, 0))
