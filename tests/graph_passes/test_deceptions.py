"""Masks and scales that look like plain ones for a while: fused with the same numbers, or left alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.problems import Sizes

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, attention, feeds, inputs, one_attention, split_heads
from graph_passes.graph import Array, Graph
from graph_passes.running import Feeds, assert_same_numbers, fuse, fused_session, original_session

SIZES = Sizes(batch=2, heads=2, kv_heads=2, q_len=9, kv_len=9, head_dim=8)
LONG = Sizes(batch=2, heads=2, kv_heads=2, q_len=70, kv_len=70, head_dim=8)
I64, F32 = np.int64, np.float32
Build = Callable[[Graph, str], str]


def check_unchanged(model: onnx.ModelProto, *runs: Feeds) -> None:
    """Whatever was fused, the outputs are those of the original."""
    after, _ = fuse(model)
    sessions = original_session(model), fused_session(after)
    for given in runs:
        wanted, got = (zyfa_ort.run(session, given) for session in sessions)
        for name in wanted:
            assert_same_numbers(got[name], wanted[name], what=name)


def hide(graph: Graph, scores: str, hidden: str) -> str:
    return graph.op("Where", hidden, graph.constant(-1e30, F32), scores)


def by_key(graph: Graph, condition: str) -> str:
    """(B, T) -> (B, 1, 1, T)"""
    return graph.unsqueeze(condition, 1, 2)


def ids(*rows: list[int]) -> Array:
    return np.array(rows, I64)


def is_number(number: int) -> Build:
    """Keys whose token is `number` are hidden."""
    return lambda graph, scores: hide(
        graph,
        scores,
        by_key(
            graph,
            graph.op("Equal", graph.input("x", I64, ["batch", "tokens"]), graph.constant(number, I64)),
        ),
    )


def documents(graph: Graph, scores: str) -> str:
    """Causal inside documents that end with token 2."""
    ends = graph.cast(
        graph.op("Equal", graph.input("x", I64, ["batch", "tokens"]), graph.constant(2, I64)), I64
    )
    number = graph.op("CumSum", ends, graph.constant(1, I64))
    same = graph.op("Equal", graph.unsqueeze(number, 1, 3), graph.unsqueeze(number, 1, 2))
    return hide(graph, scores, graph.op("Or", masks.hidden_by_position(graph, scores), graph.op("Not", same)))


def images(graph: Graph, scores: str) -> str:
    """Causal, but tokens 99 see each other."""
    image = graph.op("Equal", graph.input("x", I64, ["batch", "tokens"]), graph.constant(99, I64))
    both = graph.op("And", graph.unsqueeze(image, 1, 3), graph.unsqueeze(image, 1, 2))
    return hide(
        graph, scores, graph.op("And", masks.hidden_by_position(graph, scores), graph.op("Not", both))
    )


def prefix(graph: Graph, scores: str) -> str:
    """Causal, but the first x keys are seen by all; x is one number per sequence."""
    _, key = masks.positions(graph, scores)
    first = graph.op("Less", key, graph.unsqueeze(graph.input("x", I64, ["batch", 1]), 2, 3))
    return hide(
        graph, scores, graph.op("And", masks.hidden_by_position(graph, scores), graph.op("Not", first))
    )


def switch(graph: Graph, scores: str) -> str:
    """Causal if a flag says so."""
    return hide(
        graph,
        scores,
        graph.op("And", masks.hidden_by_position(graph, scores), graph.input("x", np.bool_, [1, 1])),
    )


def temperature(graph: Graph, scores: str) -> str:
    return graph.op("Mul", scores, graph.cast(graph.input("x", I64, [1, 1]), F32))


def fourth_of_four(graph: Graph, scores: str) -> str:
    """The first and the last of four masks, both needed."""
    names = [graph.input(name, I64, ["batch", "tokens"]) for name in ("x", "a", "b", "c")]
    both = graph.op("And", graph.cast(names[0], np.bool_), graph.cast(names[3], np.bool_))
    return hide(graph, scores, by_key(graph, graph.op("Not", both)))


MASK = ids([0, 0, 1, 1, 1, 1, 1, 0, 1], [1, 1, 1, 1, 0, 1, 1, 1, 0])
OTHER = ids([1, 1, 1, 0, 1, 1, 1, 1, 1], [1, 0, 1, 1, 1, 1, 1, 1, 1])
ONES = np.ones((2, 9), I64)
# Name -> the mask or scale, what its inputs hold.
INPUTS: dict[str, tuple[Build, dict[str, Array]]] = {
    "a padding token 2": (is_number(2), {"x": ids([2, 2, 5, 3, 4, 7, 0, 1, 9], [5, 3, 4, 7, 0, 1, 2, 2, 2])}),
    "a padding token -1": (
        is_number(-1),
        {"x": ids([-1, -1, 5, 3, 4, 7, 0, 1, 9], [5, 3, 4, 7, 0, 1, -1, 2, 2])},
    ),
    "documents": (documents, {"x": ids([7, 7, 7, 2, 7, 7, 7, 7, 7], [7] * 6 + [2, 7, 7])}),
    "image tokens": (images, {"x": ids([7, 7, 99, 99, 99, 7, 7, 7, 7], [7, 99, 99, 7, 7, 7, 7, 99, 7])}),
    "a prefix length": (prefix, {"x": ids([4], [6])}),
    "a flag": (switch, {"x": np.array([[False]])}),
    "a temperature": (temperature, {"x": ids([3])}),
    "four masks": (fourth_of_four, {"x": MASK, "a": ONES, "b": ONES, "c": OTHER}),
}


@pytest.mark.parametrize("name", INPUTS)
def test_numbers_that_inputs_hold(name: str) -> None:
    build, given = INPUTS[name]
    model = one_attention(SIZES, Style(mask=build)).model()
    check_unchanged(model, feeds(SIZES) | given)


def scaled_by_length(graph: Graph, scores: str) -> str:
    """max(1, log(keys) / log(32))"""
    keys = graph.cast(graph.scalar_length(scores, -1), F32)
    ratio = graph.op("Div", graph.op("Log", keys), graph.constant(math.log(32), F32))
    return graph.op("Mul", scores, graph.op("Max", graph.constant(1, F32), ratio))


def window_per_head(graph: Graph, scores: str) -> str:
    row, key = masks.positions(graph, scores)
    width = graph.constant(np.array([30, 50]).reshape(2, 1, 1), I64)
    early = graph.op("Less", key, graph.op("Sub", row, width))
    return hide(graph, scores, graph.op("Or", masks.hidden_by_position(graph, scores), early))


def chunks(graph: Graph, scores: str) -> str:
    row, key = masks.positions(graph, scores)
    row, key = (graph.op("Div", one, graph.constant(32, I64)) for one in (row, key))
    other = graph.op("Not", graph.op("Equal", row, key))
    return hide(graph, scores, graph.op("Or", masks.hidden_by_position(graph, scores), other))


def half_a_window(graph: Graph, scores: str) -> str:
    row, key = (graph.cast(one, F32) for one in masks.positions(graph, scores))
    early = graph.op("Less", key, graph.op("Sub", row, graph.constant(30.5, F32)))
    return hide(graph, scores, graph.op("Or", masks.hidden_by_position(graph, scores), early))


def late_padding(graph: Graph, scores: str) -> str:
    """Padding counts from key 32 on; the keys before are always visible."""
    _, key = masks.positions(graph, scores)
    missing = graph.op("Equal", graph.input("x", I64, ["batch", "tokens"]), graph.constant(0, I64))
    late = graph.op("GreaterOrEqual", key, graph.constant(32, I64))
    return hide(graph, scores, graph.op("And", by_key(graph, missing), late))


def growing_window(graph: Graph, scores: str) -> str:
    """max(20, keys - 45) keys."""
    row, key = masks.positions(graph, scores)
    rest = graph.op("Sub", graph.scalar_length(scores, -1), graph.constant(45, I64))
    first = graph.op("Sub", row, graph.op("Max", rest, graph.constant(20, I64)))
    early = graph.op("Less", key, first)
    return hide(graph, scores, graph.op("Or", masks.hidden_by_position(graph, scores), early))


def test_an_input_that_counts_only_in_long_runs() -> None:
    model = one_attention(SIZES, Style(mask=late_padding)).model()
    mask = np.ones((2, 70), I64)
    mask[0, 40:], mask[1, 50:60] = 0, 0
    check_unchanged(model, feeds(LONG) | {"x": mask})


def test_a_scale_for_large_batches() -> None:
    def scaled(graph: Graph, scores: str) -> str:
        many = graph.op("Greater", graph.scalar_length(scores, 0), graph.constant(5, I64))
        factor = graph.op("Where", many, graph.constant(0.3, F32), graph.constant(1, F32))
        return graph.op("Mul", scores, factor)

    model = one_attention(SIZES, Style(mask=scaled)).model()
    eight = Sizes(batch=8, heads=2, kv_heads=2, q_len=9, kv_len=9, head_dim=8)
    check_unchanged(model, feeds(SIZES), feeds(eight))


@pytest.mark.parametrize("build", [scaled_by_length, window_per_head, chunks, half_a_window, growing_window])
def test_rules_that_begin_at_a_length(build: Build) -> None:
    model = one_attention(SIZES, Style(mask=build)).model()
    check_unchanged(model, feeds(SIZES), feeds(LONG))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_maximum_over_another_axis_is_taken_off(axis: int) -> None:
    """x - max(x) is the same Softmax only over the keys."""

    def subtract(graph: Graph, scores: str) -> str:
        return graph.op("Sub", scores, graph.over("ReduceMax", scores, axis, keepdims=1))

    check_unchanged(one_attention(SIZES, Style(mask=subtract)).model(), feeds(SIZES))


def clamped(graph: Graph, scores: str) -> str:
    """Causal, bottom right, but rows before the first key see it all the same."""
    row, key = masks.positions(graph, scores)
    row = graph.op("Max", row, graph.constant(0, I64))
    return hide(graph, scores, graph.op("Greater", key, row))


def test_rows_above_the_diagonal_that_see_a_key() -> None:
    sizes = Sizes(batch=2, heads=2, kv_heads=2, q_len=9, kv_len=4, head_dim=8)
    model = one_attention(sizes, Style(mask=clamped), keys="keys").model()
    check_unchanged(model, feeds(sizes), feeds(SIZES))


@pytest.mark.parametrize("late", [5e-4, 1e-3])
def test_a_mask_that_is_scaled_away_again(late: float) -> None:
    def mask(graph: Graph, scores: str) -> str:
        hidden = masks.hidden_by_position(graph, scores)
        return graph.op(
            "Mul", masks.add(graph, scores, masks.fill(graph, hidden, -1e4, F32)), graph.constant(late, F32)
        )

    check_unchanged(one_attention(SIZES, Style(mask=mask)).model(), feeds(SIZES))


def test_lengths_in_front_of_the_batch() -> None:
    """(S, B, E) inputs, as torch's own attention has them: the first axes of queries and keys are no batch."""
    graph = Graph()
    q = graph.input("query", F32, ["seq", "batch", 16])
    k, v = (graph.input(name, F32, ["source", "batch", 16]) for name in ("key", "value"))
    q, k, v = (split_heads(graph, graph.transpose(one, 1, 0, 2), 2, 8) for one in (q, k, v))
    scores = graph.op("MatMul", q, graph.transpose(k, 0, 1, 3, 2))
    row = graph.unsqueeze(graph.range(graph.scalar_length(scores, 2)), 1)
    key = graph.unsqueeze(graph.range(graph.scalar_length(scores, 3)), 0)
    weights = graph.op("Softmax", hide(graph, scores, graph.op("Greater", key, row)), axis=-1)
    graph.op("MatMul", weights, v, name="output")
    graph.output("output", F32, ["batch", 2, "seq", 8])
    rng = np.random.default_rng(0)
    for queries, keys in ((3, 8), (6, 6)):
        given = {"query": rng.standard_normal((queries, 2, 16)).astype(F32)}
        given |= {name: rng.standard_normal((keys, 2, 16)).astype(F32) for name in ("key", "value")}
        check_unchanged(graph.model(), given)


def test_two_sites_on_one_mask_in_the_other_order() -> None:
    """What the sites share is made before the first that needs it; both the checker and the runtime accept the order."""
    graph = Graph()
    q, k, v = inputs(graph, SIZES, np.float16)
    bias = graph.cast(graph.input("bias", np.float64, ["batch", 1, "tokens", "tokens"]), np.float16)
    style = Style(mask=lambda graph, scores: graph.op("Add", scores, bias))
    results = [attention(graph, q, k, v, SIZES, style, np.float16) for _ in range(2)]
    for at, result in enumerate(reversed(results)):
        graph.op("Identity", result, name=f"output_{at}")
        graph.output(f"output_{at}", np.float16, ["batch", "tokens", 16])
    graph.nodes = _sorted_from_the_end(graph.nodes)
    given: dict[str, Any] = feeds(SIZES, np.float16)
    given["bias"] = np.random.default_rng(1).standard_normal((2, 1, 9, 9))
    fused, report = fuse(graph.model())
    assert report.fused == 2
    onnx.checker.check_model(fused)
    zyfa_ort.run(fused_session(fused), given)


def _sorted_from_the_end(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """A valid order in which what is needed last comes as late as it can."""
    makers = {name: node for node in nodes for name in node.output}
    order: list[onnx.NodeProto] = []

    def visit(node: onnx.NodeProto) -> None:
        if node in order:
            return
        for name in reversed(node.input):
            if name in makers:
                visit(makers[name])
        order.append(node)

    for node in reversed(nodes):
        visit(node)
    return order
