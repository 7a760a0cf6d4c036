"""Operators of newer opsets in the words that MIGraphX knows.

RMSNormalization(x, w)              -> SimplifiedLayerNormalization(x, w), ONNX Runtime's name for it; over the last axis
RotaryEmbedding(x, cos, sin[, at])  -> slices, products and a Concat; 4-D x, halves rotated against each other

Other forms stay as they are, for MIGraphX to refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

from zyfa_ort.graph_passes.facts import Fact
from zyfa_ort.graph_passes.values import attribute_int, is_op, operand

Parts = tuple[list[onnx.NodeProto], list[onnx.TensorProto]]


def expanded(node: ir.Node, x: Fact) -> Parts:
    """The node, or what stands for it, and constants of it; `x` is known of the first input."""
    proto = ir.serde.serialize_node(node)
    if is_op(node, "RMSNormalization") and attribute_int(node, "axis", -1) in (-1, len(x.shape or ()) - 1):
        proto.op_type = "SimplifiedLayerNormalization"
    if not is_op(node, "RotaryEmbedding") or x.shape is None or len(x.shape) != 4:
        return [proto], []
    if attribute_int(node, "interleaved", 0):
        return [proto], []
    rotated = attribute_int(node, "rotary_embedding_dim", 0) or x.shape[3]
    prefix = f"{node.outputs[0].name}/rotary/"
    bounds = (0, rotated // 2, rotated, x.shape[3])
    constants = {"last": 3, "heads": 1, **{f"at_{at}": bound for at, bound in enumerate(bounds)}}
    tensors = [
        numpy_helper.from_array(np.array([one], np.int64), prefix + name) for name, one in constants.items()
    ]
    return list(_rotary(node, prefix, rotated < x.shape[3])), tensors


def _rotary(node: ir.Node, prefix: str, partial: bool) -> Iterator[onnx.NodeProto]:
    """y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos for the two halves; what lies behind them stays."""

    def made(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
        """`inputs` are own names; the node's stand behind an equals sign in `outside`."""
        names, target = (
            [outside.get(one, prefix + one) for one in some.split()] for some in (inputs, output)
        )
        return helper.make_node(op, names, target, name=f"{node.name}/{output.strip('=')}", **attributes)

    given = {"=x": node.inputs[0], "=cos": node.inputs[1], "=sin": node.inputs[2], "=at": operand(node, 3)}
    outside = {key: value.name or "" for key, value in given.items() if value is not None}
    outside["=y"] = node.outputs[0].name or ""
    for table in ("cos", "sin"):
        if "=at" in outside:
            yield made("Gather", f"={table} =at", f"{table}_rows", axis=0)
        yield made("Unsqueeze", f"{table}_rows heads" if "=at" in outside else f"={table} heads", table)
    for at in range(3 if partial else 2):
        yield made("Slice", f"=x at_{at} at_{at + 1} last", f"x{at + 1}")
    for x, table in (("x1", "cos"), ("x2", "sin"), ("x1", "sin"), ("x2", "cos")):
        yield made("Mul", f"{x} {table}", f"{x}_{table}")
    yield made("Sub", "x1_cos x2_sin", "y1")
    yield made("Add", "x1_sin x2_cos", "y2")
    yield made("Concat", "y1 y2 x3" if partial else "y1 y2", "=y", axis=3)
