"""A model of many layers: one attention in each, between ordinary nodes. What goes through is the value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from custom_ops.op_session import Array
from onnx import TensorProto, helper

DIM = 64
# Every one leaves the shape (1, rows, 1, DIM) as it is. MaxPool looks at windows of one element.
_CONSTANTS = {
    "Add": helper.make_tensor("addend", TensorProto.FLOAT, [1], [0.5]),
    "Reshape": helper.make_tensor("same", TensorProto.INT64, [4], [0, 0, 0, 0]),
    "MatMul": helper.make_tensor("weight", TensorProto.FLOAT, [DIM, DIM], np.eye(DIM).ravel()),
}
_ATTRIBUTES = {"MaxPool": {"kernel_shape": [1, 1]}}


def layered_model(
    layers: int, between: Sequence[str], rows: int | str = "rows", precision: str = "bf16"
) -> onnx.ModelProto:
    """Nodes `between` stand in front of every attention, and behind the last."""
    nodes: list[onnx.NodeProto] = []
    at = "value"

    def ordinary(layer: int) -> None:
        nonlocal at
        for i, op in enumerate(between):
            constant = [_CONSTANTS[op].name] if op in _CONSTANTS else []
            made = "output" if layer == layers and i == len(between) - 1 else f"{op}_{layer}_{i}"
            nodes.append(
                helper.make_node(
                    op, [at, *constant], [made], name=f"{op}_{layer}_{i}", **_ATTRIBUTES.get(op, {})
                )
            )
            at = made

    for layer in range(layers):
        ordinary(layer)
        made = "output" if layer == layers - 1 and not between else f"attention_{layer}"
        nodes.append(
            helper.make_node(
                "ZyfaPrefillAttention",
                ["query", "key", at],
                [made],
                domain="ai.zyfa",
                name=f"attention_{layer}",
                precision=precision,
            )
        )
        at = made
    ordinary(layers)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, rows, 1, DIM])
        for name in ("query", "key", "value")
    ]
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, rows, 1, DIM])
    constants = [_CONSTANTS[op] for op in dict.fromkeys(between) if op in _CONSTANTS]
    graph = helper.make_graph(nodes, "layered", inputs, [output], constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def layered_inputs(rows: int, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal((1, rows, 1, DIM), dtype=np.float32) for name in ("query", "key", "value")
    }
