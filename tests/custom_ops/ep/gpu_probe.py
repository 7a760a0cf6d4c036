"""Runs in another environment, with nothing of the project but the library: argument 1 is its path.

Prints "name: right" per check, or what was wrong. Values are chosen so that the answers are known by hand.
"""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

PROVIDER = "ZyfaExecutionProvider"
ROWS, DIM = 20, 64


def model(precision: str, count: int) -> bytes:
    """`count` attentions in a chain with an Add of zero, which is the CPU's, between them."""
    nodes, at = [], "value"
    for i in range(count):
        if i:
            nodes.append(helper.make_node("Add", [at, "zero"], [f"{at}_again"]))
            at = f"{at}_again"
        nodes.append(
            helper.make_node(
                "ZyfaPrefillAttention",
                ["query", "key", at],
                [f"out{i}"],
                domain="ai.zyfa",
                name=f"node{i}",
                precision=precision,
            )
        )
        at = f"out{i}"
    nodes.append(helper.make_node("Identity", [at], ["output"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, "s", 1, DIM])
            for n in ("query", "key", "value")
        ],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
        [helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def session(content: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(sys.argv[1])
    devices = [d for d in ort.get_ep_devices() if d.ep_name == PROVIDER]
    options.add_provider_for_devices(devices, {})
    return ort.InferenceSession(content, options)


def means(count: int) -> bool:
    """Equal scores: a row is the mean of the values it sees; of 0, 2, 4, ... this is 0, 1, 2, ..."""
    value = np.repeat(np.arange(0, 2 * ROWS, 2, dtype=np.float32), DIM).reshape(1, ROWS, 1, DIM)
    zeros = np.zeros_like(value)
    made = session(model("bf16", count))
    output = made.run(None, {"query": zeros, "key": zeros, "value": value})[0]
    return np.allclose(output, value / 2**count, rtol=1e-6, atol=0)


def refused() -> str:
    try:
        session(model("fp32", 1))
    except Exception as error:
        return "right" if "no GPU kernel computes in fp32" in str(error) else str(error)
    return "a session was made"


def main() -> None:
    print("version:", ort.__version__)
    try:
        ort.register_execution_provider_library("zyfa", sys.argv[1])
    except Exception as error:
        print("registration:", " ".join(str(error).split()))
        return
    print("registration: right")
    print("one node:", "right" if means(1) else "wrong")
    print("two nodes with one of the CPU between:", "right" if means(2) else "wrong")
    print("a node without a kernel:", refused())


main()
