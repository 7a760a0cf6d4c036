"""Concrete shapes through the graph: given the shapes (and, where known, the data) of a node's inputs, the shapes
and types of its outputs.

The operators that make up attention have rules here that also notice when two lengths should have been equal; every
other standard operator is left to onnx's own shape inference. Weights are never read: a rule sees shapes only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import onnx
import onnx_ir as ir
from onnx import shape_inference

from .attention_shapes import ATTENTION_RULES
from .facts import Conflict, Conflicts, Fact, Rule, Shape
from .values import CONTRIB_DOMAIN, attribute_int, standard

COMPARISONS: Final = frozenset(
    {"And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsNaN", "IsInf"}
)
BROADCAST: Final = COMPARISONS | frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Where", "PRelu", "BitwiseAnd", "BitwiseOr"}
)
SAME_AS_FIRST: Final = frozenset(
    {"Identity", "Neg", "Abs", "Sqrt", "Reciprocal", "Exp", "Log", "Erf", "Tanh", "Sigmoid", "Relu", "Gelu"}
    | {"Softmax", "LogSoftmax", "Cos", "Sin", "Clip", "Dropout", "LayerNormalization", "RMSNormalization"}
    | {
        "SimplifiedLayerNormalization",
        "CumSum",
        "Trilu",
        "Floor",
        "Ceil",
        "Round",
        "Sign",
        "Cast",
        "CastLike",
    }
    | {"ScatterND", "ScatterElements", "RotaryEmbedding", "LeakyRelu", "Elu", "HardSwish", "Softplus", "Not"}
    | {"IsNaN", "IsInf"}
)
# com.microsoft operators whose first output has the shape of the first input.
CONTRIB_SAME_AS_FIRST: Final = frozenset(
    {
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
        "BiasGelu",
        "QuickGelu",
        "FastGelu",
        "Gelu",
    }
    | {"RotaryEmbedding", "MoE", "QMoE", "SimplifiedLayerNormalization"}
)


def broadcast(node: ir.Node, shapes: Sequence[Shape | None], conflicts: Conflicts) -> Shape | None:
    """NumPy broadcasting; None when a shape is missing or two lengths disagree (which is then noted)."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return None
    rank = max(len(shape) for shape in known)
    result: list[int] = []
    for axis in range(-rank, 0):
        lengths = sorted({shape[axis] for shape in known if len(shape) >= -axis and shape[axis] != 1})
        if len(lengths) > 1:
            conflicts.append(Conflict(node, lengths[0], lengths[1]))
            return None
        result.append(lengths[0] if lengths else 1)
    return tuple(result)


def _broadcast_rule(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    return [broadcast(node, [fact.shape for fact in facts], conflicts)]


def _same_rule(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    return [facts[0].shape]


def _matmul(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    left, right = facts[0].shape, facts[1].shape
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return [None]
    if attribute_int(node, "transA", 0):
        left = (*left[:-2], left[-1], left[-2])
    if attribute_int(node, "transB", 0):
        right = (*right[:-2], right[-1], right[-2])
    if left[-1] != right[-2]:
        conflicts.append(Conflict(node, left[-1], right[-2]))
        return [None]
    lead = broadcast(node, [left[:-2], right[:-2]], conflicts)
    return [None if lead is None else (*lead, left[-2], right[-1])]


def _concat(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    shapes = [fact.shape for fact in facts]
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return [None]
    known = [shape for shape in shapes if shape is not None]
    axis = attribute_int(node, "axis", 0) % len(first)
    for shape in known[1:]:
        for at, (one, other) in enumerate(zip(first, shape, strict=True)):
            if at != axis and one != other:
                conflicts.append(Conflict(node, one, other))
                return [None]
    return [(*first[:axis], sum(shape[axis] for shape in known), *first[axis + 1 :])]


def _transpose(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    shape = facts[0].shape
    if shape is None:
        return [None]
    perm = permutation(node, len(shape))
    return [tuple(shape[axis] for axis in perm)]


def permutation(node: ir.Node, rank: int) -> tuple[int, ...]:
    """A Transpose's permutation; absent means all axes reversed."""
    attribute = node.attributes.get("perm")
    return tuple(reversed(range(rank))) if attribute is None else tuple(attribute.as_ints())


def _reshape(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    shape, target = facts[0].shape, facts[1].data
    if shape is None or target is None:
        return [None]
    keep_zero = attribute_int(node, "allowzero", 0) == 1
    wanted = [int(length) for length in target.reshape(-1)]
    for axis, length in enumerate(wanted):
        if length == 0 and not keep_zero:
            if axis >= len(shape):
                return [None]
            wanted[axis] = shape[axis]
    if -1 in wanted:
        rest = math.prod(length for length in wanted if length != -1)
        if rest == 0 or math.prod(shape) % rest:
            return [None]
        wanted[wanted.index(-1)] = math.prod(shape) // rest
    if math.prod(wanted) != math.prod(shape):
        conflicts.append(Conflict(node, math.prod(shape), math.prod(wanted)))
        return [None]
    return [tuple(wanted)]


def _gather(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    shape, indices = facts[0].shape, facts[1].shape
    if shape is None or indices is None or not shape:
        return [None]
    axis = attribute_int(node, "axis", 0) % len(shape)
    return [(*shape[:axis], *indices, *shape[axis + 1 :])]


def _shape(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    if facts[0].shape is None:
        return [None]
    return [(len(shape_slice(node, facts[0].shape)),)]


def shape_slice(node: ir.Node, shape: Shape) -> Shape:
    """What a Shape node answers for an input of `shape`."""
    end = node.attributes.get("end")
    return shape[slice(attribute_int(node, "start", 0), None if end is None else end.as_int())]


def _range(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    numbers = [
        None if fact.data is None or fact.data.size != 1 else float(fact.data.item()) for fact in facts
    ]
    start, limit, delta = numbers
    if start is None or limit is None or delta is None or delta == 0:
        return [None]
    return [(max(0, math.ceil((limit - start) / delta)),)]


def _nbits(node: ir.Node, facts: Sequence[Fact], conflicts: Conflicts) -> list[Shape | None]:
    shape = facts[0].shape
    return [None if shape is None else (*shape[:-1], attribute_int(node, "N", 0))]


RULES: Final[dict[tuple[str, str], Rule]] = {
    **{("", op): _broadcast_rule for op in BROADCAST},
    **{("", op): _same_rule for op in SAME_AS_FIRST},
    **{(CONTRIB_DOMAIN, op): _same_rule for op in CONTRIB_SAME_AS_FIRST},
    ("", "MatMul"): _matmul,
    (CONTRIB_DOMAIN, "FusedMatMul"): _matmul,
    (CONTRIB_DOMAIN, "MatMulNBits"): _nbits,
    ("", "Concat"): _concat,
    ("", "Transpose"): _transpose,
    ("", "Reshape"): _reshape,
    ("", "Gather"): _gather,
    ("", "Shape"): _shape,
    ("", "Range"): _range,
    **ATTENTION_RULES,
}


def output_dtype(node: ir.Node, facts: Sequence[Fact]) -> ir.DataType | None:
    """Type of the first output for the operators in RULES."""
    if node.op_type in COMPARISONS and standard(node):
        return ir.DataType.BOOL
    if node.op_type == "Shape":
        return ir.DataType.INT64
    if node.op_type == "Cast":
        return ir.DataType(attribute_int(node, "to", 0))
    if node.op_type in ("Where", "CastLike"):
        return facts[1].dtype
    if node.op_type == "EmbedLayerNormalization":
        return facts[2].dtype
    return facts[0].dtype if facts else None


@cache
def _schema(op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None


def anonymous_proto(node: ir.Node) -> onnx.NodeProto:
    """The node's protobuf with inputs i0, i1, ... and outputs o0, o1, ...: its behaviour without its names."""
    proto = ir.serde.serialize_node(node)
    del proto.input[:], proto.output[:]
    proto.input.extend("" if value is None else f"i{at}" for at, value in enumerate(node.inputs))
    proto.output.extend(f"o{at}" if value.name else "" for at, value in enumerate(node.outputs))
    return proto


def _by_onnx(
    node: ir.Node, facts: Sequence[Fact], opset: int
) -> list[tuple[Shape | None, ir.DataType | None]]:
    nothing: list[tuple[Shape | None, ir.DataType | None]] = [(None, None)] * len(node.outputs)
    schema = _schema(node.op_type, opset)
    if schema is None:
        return nothing
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for at, (value, fact) in enumerate(zip(node.inputs, facts, strict=True)):
        if value is None:
            continue
        if fact.shape is None:
            return nothing
        kind = int(fact.dtype or ir.DataType.FLOAT)
        types[f"i{at}"] = onnx.helper.make_tensor_type_proto(kind, fact.shape)
        if fact.data is not None and fact.data.dtype.kind in "iub":
            data[f"i{at}"] = onnx.numpy_helper.from_array(np.ascontiguousarray(fact.data), f"i{at}")
    imports = [onnx.helper.make_opsetid("", opset)]
    try:
        found = shape_inference.infer_node_outputs(
            schema, anonymous_proto(node), types, data, opset_imports=imports
        )
    except (
        Exception
    ):  # onnx raises several unrelated classes for shapes that do not fit; unknown is the safe answer
        return nothing
    result: list[tuple[Shape | None, ir.DataType | None]] = []
    for at in range(len(node.outputs)):
        kind_of = found.get(f"o{at}")
        if kind_of is None or not kind_of.HasField("tensor_type"):
            result.append((None, None))
            continue
        held = kind_of.tensor_type
        complete = held.HasField("shape") and all(dim.HasField("dim_value") for dim in held.shape.dim)
        shape = tuple(int(dim.dim_value) for dim in held.shape.dim) if complete else None
        result.append((shape, ir.DataType(held.elem_type) if held.elem_type else None))
    return result


def infer(
    node: ir.Node, facts: Sequence[Fact], opset: int, conflicts: Conflicts
) -> list[tuple[Shape | None, ir.DataType | None]]:
    """Shapes and types of all outputs of `node`; (None, None) where they cannot be told."""
    domain = "" if standard(node) else node.domain
    rule = RULES.get((domain, node.op_type))
    if rule is None:
        return _by_onnx(node, facts, opset) if standard(node) else [(None, None)] * len(node.outputs)
    first = rule(node, facts, conflicts)[0]
    rest: list[tuple[Shape | None, ir.DataType | None]] = [(None, None)] * (len(node.outputs) - 1)
    if node.op_type == "EmbedLayerNormalization" and rest:
        rest[0] = (None if first is None else first[:1], ir.DataType.INT32)  # tokens of each batch row
    if (
        node.op_type in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
        and len(node.outputs) > 3
    ):
        rest[2] = (first, facts[0].dtype)  # output 3 is the sum that goes on as the residual
    return [(first, output_dtype(node, facts)), *rest]
