"""Attention inside If and Loop bodies and model-local functions: fused, or declined with the reason."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.inliner
import pytest
from custom_ops.problems import Sizes
from onnx import TensorProto, helper
from zyfa_ort.graph_passes.schema import DOMAIN

from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, feeds, from_heads, inputs, one_attention, split_heads
from graph_passes.graph import Graph
from graph_passes.running import assert_same_numbers, assert_untouched, check_fused, fuse, run_both

SIZES = Sizes(batch=2, heads=4, kv_heads=4, q_len=9, kv_len=9)


def branch(outer: Graph, q: str, k_t: str, v: str, mask: str, style: Style, name: str) -> onnx.GraphProto:
    """A body that computes one attention from values of the outer graph."""
    graph = Graph(outer.opset)
    graph.prefix = f"{name}_"
    style = Style(**{**style.__dict__, "mask": lambda g, scores: masks.add(g, scores, mask)})
    out = from_heads(graph, q, k_t, v, SIZES, style)
    graph.output(out, np.float32, ["batch", "tokens", 64])
    return graph.graph(name)


def if_model(then: Style, otherwise: Style) -> onnx.ModelProto:
    """Keys and the mask are made outside; each branch scales on its own."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    graph.input("first", np.bool_, [])
    q, k, v = (split_heads(graph, one, 4, 16) for one in (query, key, value))
    k_t = graph.transpose(k, 0, 1, 3, 2)
    position = graph.range(graph.scalar_length("query", 1))
    row, column = graph.unsqueeze(position, 1), graph.unsqueeze(position, 0)
    mask = masks.fill(graph, graph.op("Greater", column, row), masks.LOWEST, np.float32)
    bodies = (
        branch(graph, q, k_t, v, mask, then, "then"),
        branch(graph, q, k_t, v, mask, otherwise, "else"),
    )
    graph.op("If", "first", name="chosen", then_branch=bodies[0], else_branch=bodies[1])
    graph.op("Identity", "chosen", name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    return graph.model()


def bodies_of(model: onnx.ModelProto) -> dict[str, list[str]]:
    """Operators of each If branch."""
    (node,) = (node for node in model.graph.node if node.op_type == "If")
    return {one.name: [inner.op_type for inner in one.g.node] for one in node.attribute}


@pytest.mark.parametrize("first", [True, False])
def test_if_branches_fuse(first: bool) -> None:
    """Each branch holds one attention on keys and a mask from outside; both conditions run."""
    model = if_model(Style(), Style(scale=0.1))
    after, report = check_fused(model, feeds(SIZES) | {"first": np.array(first)}, fused=2)
    assert [site.graph for site in report.sites] == ["chosen/then_branch/", "chosen/else_branch/"] or [
        site.graph for site in report.sites
    ] == ["chosen/else_branch/", "chosen/then_branch/"]
    assert all(site.mask == ("causal",) for site in report.sites)
    assert all("ZyfaPrefillAttention" in ops and "Softmax" not in ops for ops in bodies_of(after).values())
    assert {one.domain for one in after.opset_import} == {"", DOMAIN}


@pytest.mark.parametrize("first", [True, False])
def test_one_branch_is_declined(first: bool) -> None:
    """What the fused branch no longer needs stays for the other."""
    model = if_model(Style(), Style(scale_op="none", mask=None))
    broken = next(one for one in model.graph.node if one.op_type == "If")
    (other,) = (one.g for one in broken.attribute if one.name == "else_branch")
    (softmax,) = (node for node in other.node if node.op_type == "Softmax")
    softmax.attribute[0].i = 2
    after, report = fuse(model)
    assert report.summary() == "1 of 2 attention sites fused, 1 found but declined"
    wanted, got = run_both(model, after, feeds(SIZES) | {"first": np.array(first)})
    assert_same_numbers(got["output"], wanted["output"])


def test_loop_body_is_declined_by_name() -> None:
    """Lengths of a Loop body are not known. Three rounds of attention on its own output."""
    body = Graph()
    body.prefix = "body_"
    body.inputs = [
        helper.make_tensor_value_info("round", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, ["batch", "tokens", 64]),
    ]
    q, k, v = (split_heads(body, one, 4, 16) for one in ("state", "key", "value"))
    out = from_heads(body, q, body.transpose(k, 0, 1, 3, 2), v, SIZES, Style(mask=masks.causal()))
    body.op("Identity", "go", name="go_on")
    body.output("go_on", np.bool_, [])
    body.output(out, np.float32, ["batch", "tokens", 64])
    graph = Graph()
    query, _, _ = inputs(graph, SIZES)
    rounds, start = graph.constant(3, np.int64), graph.constant(True, np.bool_)
    graph.op("Loop", rounds, start, query, name="output", body=body.graph("body"))
    graph.output("output", np.float32, ["batch", "tokens", 64])
    model = graph.model()
    after, report = fuse(model)
    wanted, got = run_both(model, after, feeds(SIZES))
    assert_same_numbers(got["output"], wanted["output"])
    (site,) = report.sites
    assert site.status == "declined" and site.graph == "output/body/"
    assert site.reason == "inside a Loop body, whose lengths are not known"
    assert_untouched(after, model)


def function_model() -> onnx.ModelProto:
    """One local function with the scale as an attribute, called four times, twice with another value."""
    body = Graph()
    q, k, v = (split_heads(body, one, 4, 16) for one in ("q", "k", "v"))
    body.nodes.append(helper.make_node("Constant", [], ["factor"]))
    body.nodes[-1].attribute.add(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="scale")
    scores = body.op("Mul", body.op("MatMul", q, body.transpose(k, 0, 1, 3, 2)), "factor")
    weights = body.op("Softmax", scores, axis=-1)
    out = body.reshape(body.transpose(body.op("MatMul", weights, v), 0, 2, 1, 3), 0, 0, 64)
    constants = [helper.make_node("Constant", [], [one.name], value=one) for one in body.initializers]
    function = helper.make_function(
        "local",
        "attend",
        ["q", "k", "v"],
        [out],
        [*constants, *body.nodes],
        [helper.make_opsetid("", 18)],
        attributes=["scale"],
    )
    graph = Graph()
    graph.functions = [function]
    query, key, value = inputs(graph, SIZES)
    for scale in (0.25, 0.25, 0.1, 0.1):
        query = graph.op("attend", query, key, value, domain="local", scale=scale)
    graph.op("Identity", query, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    return graph.model()


def test_functions_are_declined_by_name() -> None:
    model = function_model()
    after, report = fuse(model)
    wanted, got = run_both(model, after, feeds(SIZES))
    np.testing.assert_array_equal(got["output"], wanted["output"])
    (site,) = report.sites
    assert site.status == "declined" and site.graph == "function local::attend/"
    assert site.reason == "inside function attend; inline functions first"
    assert_untouched(after, model)


def test_inlined_functions_fuse() -> None:
    """What the reason advises works: onnx's own inliner, then four sites of two scales."""
    model = onnx.inliner.inline_local_functions(function_model())
    _, report = check_fused(model, feeds(SIZES), fused=4)
    assert [site.scale for site in report.sites] == [None, None, pytest.approx(0.1), pytest.approx(0.1)]


def test_a_function_beside_the_attention_stays() -> None:
    """A function that has no attention in it does not matter."""
    graph = one_attention(SIZES, Style(mask=masks.causal()))
    twice = helper.make_function(
        "local",
        "twice",
        ["x"],
        ["y"],
        [helper.make_node("Add", ["x", "x"], ["y"])],
        [helper.make_opsetid("", 18)],
    )
    graph.functions = [twice]
    graph.op("twice", "Reshape_3", domain="local", name="doubled")
    graph.output("doubled", np.float32, ["batch", "tokens", 64])
    after, report = check_fused(graph.model(), feeds(SIZES))
    assert len(after.functions) == 1 and report.fused == 1
