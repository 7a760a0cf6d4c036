"""Models of several nodes: elementwise, attention, attention on its output, elementwise."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from custom_ops.op_session import Array, run_session
from onnx import TensorProto, helper

ROWS, HEADS, DIM = 40, 2, 64


def chain(precision: str) -> onnx.ModelProto:
    """y = 2 * attention(attention(q + 1, k, v), k, v)."""
    zyfa: dict[str, Any] = {"domain": "ai.zyfa", "precision": precision}
    nodes = [
        helper.make_node("Add", ["query", "one"], ["shifted"]),
        helper.make_node(
            "ZyfaPrefillAttention", ["shifted", "key", "value"], ["first"], name="first", **zyfa
        ),
        helper.make_node(
            "ZyfaPrefillAttention", ["first", "key", "value"], ["second"], name="second", **zyfa
        ),
        helper.make_node("Mul", ["second", "two"], ["output"]),
    ]
    shape = ["batch", "rows", HEADS, DIM]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("query", "key", "value")],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
        [
            helper.make_tensor(name, TensorProto.FLOAT, [], [value])
            for name, value in (("one", 1.0), ("two", 2.0))
        ],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def inputs(seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    shape = (1, ROWS + seed % 7, HEADS, DIM)
    return {name: rng.standard_normal(shape).astype(np.float32) for name in ("query", "key", "value")}


def runs_are_right(session: ort.InferenceSession, fresh: Any, count: int = 50) -> bool:
    """Back-to-back runs with changing inputs and lengths against a session of its own for each of seven."""
    wanted = {seed: run_session(fresh(), inputs(seed))["output"].tobytes() for seed in range(7)}
    got = [(run % 7, run_session(session, inputs(run % 7))["output"].tobytes()) for run in range(count)]
    return all(found == wanted[seed] for seed, found in got)


def operators(session: ort.InferenceSession) -> Counter[str]:
    """What a profiled session has run, by operator, in all its runs so far."""
    profile = Path(session.end_profiling())
    events = json.loads(profile.read_text(encoding="utf-8"))
    profile.unlink()
    return Counter(e["args"]["op_name"] for e in events if e["name"].endswith("_kernel_time"))
