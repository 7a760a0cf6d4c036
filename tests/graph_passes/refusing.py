"""What the tests of refusals share: one attention with something odd in it, and the check that it is declined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from custom_ops.problems import Sizes

from graph_passes.decomposed import inputs, merge_heads, split_heads
from graph_passes.graph import Graph
from graph_passes.running import assert_untouched, fuse

SIZES = Sizes(batch=2, heads=4, kv_heads=4, q_len=9, kv_len=9)


Scores = Callable[[Graph, str], str]


def constant(graph: Graph, number: Any) -> str:
    return graph.constant(number, np.float32)


def unary(op_type: str, name: str = "odd", **attributes: Any) -> Scores:
    return lambda graph, scores: graph.op(op_type, scores, name=name, **attributes)


def with_constant(op_type: str, number: Any) -> Scores:
    return lambda graph, scores: graph.op(op_type, scores, constant(graph, number), name="odd")


def with_input(op_type: str, dims: list[int | str]) -> Scores:
    return lambda graph, scores: graph.op(
        op_type, scores, graph.input("runtime", np.float32, dims), name="odd"
    )


def then(*steps: Scores) -> Scores:
    def all_of_them(graph: Graph, scores: str) -> str:
        for step in steps:
            scores = step(graph, scores)
        return scores

    return all_of_them


def columns(graph: Graph, scores: str, number: int, name: str = "odd") -> str:
    """`number` columns of zeros behind the keys."""
    lengths = [graph.length(scores, 0), graph.integers(4), graph.length(scores, 2), graph.integers(number)]
    column = constant(graph, np.zeros((1, 4, 1, number)))
    column = graph.op("Expand", column, graph.op("Concat", *lengths, axis=0))
    return graph.op("Concat", scores, column, axis=-1, name=name)


def sink(graph: Graph, scores: str) -> str:
    return columns(graph, scores, 1, "sink")


def many(graph: Graph, scores: str) -> str:
    for at in range(30):
        scores = graph.op("Identity", scores, name=f"step_{at}")
    return scores


def cut(graph: Graph, weights: str) -> str:
    """Without the last column."""
    return graph.op("Slice", weights, *(graph.integers(number) for number in (0, -1, -1, 1)))


def check_declined(model: onnx.ModelProto, at: str, reason: str, node: str = "softmax_0") -> None:
    """Nothing is changed, and the one candidate is declined with this node and reason."""
    after, report = fuse(model)
    (site,) = report.sites
    assert (site.status, site.reason) == ("declined", reason)
    assert (site.node, site.at, site.graph) == (node, at, "")
    assert not report.modified and report.fused == 0
    assert report.summary() == "0 of 1 attention sites fused, 1 found but declined"
    assert_untouched(after, model)


def written_out(after_softmax: Scores, before: Scores = lambda graph, scores: scores) -> onnx.ModelProto:
    """One attention with something of its own around the probabilities."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    q, k, v = (split_heads(graph, one, 4, 16) for one in (query, key, value))
    scores = before(graph, graph.op("MatMul", q, graph.transpose(k, 0, 1, 3, 2), name="scores"))
    weights = after_softmax(graph, graph.op("Softmax", scores, axis=-1, name="softmax_0"))
    out = graph.op("MatMul", weights, v, name="attended_0")
    graph.op("Identity", merge_heads(graph, out, 64), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    return graph.model()
