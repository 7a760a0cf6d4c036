"""Every reason for leaving an attention alone: the model stays as it is to the byte, and the report names the node that
stands in the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from zyfa_ort.graph_passes.errors import GraphPassError
from zyfa_ort.graph_passes.pipeline import fuse_model
from zyfa_ort.graph_passes.report import FuseOptions, SiteOptions

from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, feeds, inputs, merge_heads, one_attention, split_heads
from graph_passes.graph import Graph, onnx_type
from graph_passes.refusing import (
    SIZES,
    Scores,
    check_declined,
    constant,
    cut,
    many,
    sink,
    then,
    unary,
    with_constant,
    written_out,
)
from graph_passes.running import FP32, assert_untouched, check_fused, fuse


def test_softmax_over_another_axis() -> None:
    model = one_attention(SIZES, Style()).model()
    (softmax,) = (node for node in model.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = 2
    check_declined(model, "softmax_0", "Softmax runs over axis 2, not over the keys (the last axis)")


def test_softmax_of_opset_11_has_another_default_axis() -> None:
    """Without an axis it means axis 1 there: all heads of a row together."""
    model = one_attention(SIZES, Style(), graph=Graph(11)).model()
    (softmax,) = (node for node in model.graph.node if node.op_type == "Softmax")
    softmax.attribute.pop()
    check_declined(model, "softmax_0", "Softmax runs over axis 1, not over the keys (the last axis)")


def test_scores_are_an_output() -> None:
    graph = one_attention(SIZES, Style())
    graph.output("scores_0", np.float32, ["batch", 4, "tokens", "tokens"])
    check_declined(graph.model(), "Mul_0", "the intermediate value scores_0 is an output of the model")


def test_scores_have_another_reader() -> None:
    graph = one_attention(SIZES, Style())
    graph.op("Abs", "Mul_0", name="other")
    graph.output("other", np.float32, ["batch", 4, "tokens", "tokens"])
    check_declined(graph.model(), "other", "the intermediate value Mul_0 is also read by other")


def test_probabilities_are_an_output() -> None:
    graph = one_attention(SIZES, Style())
    graph.output("softmax_0", np.float32, ["batch", 4, "tokens", "tokens"])
    check_declined(graph.model(), "softmax_0", "the probabilities softmax_0 are an output of the model")


def test_probabilities_have_another_reader() -> None:
    graph = one_attention(SIZES, Style())
    graph.over("ReduceMax", "softmax_0", -1, name="largest")
    graph.output("largest", np.float32, ["batch", 4, "tokens", 1])
    check_declined(graph.model(), "largest", "the probabilities are read by attended_0, largest")


def test_probabilities_of_a_guarded_softmax_have_another_reader() -> None:
    graph = one_attention(SIZES, Style(form="sdpa"))
    graph.op("Not", "IsNaN_0", name="other")
    graph.output("other", np.bool_, ["batch", 4, "tokens", "tokens"])
    check_declined(graph.model(), "Where_0", "the probabilities are read by IsNaN_0, Where_0")


def test_probabilities_are_changed() -> None:
    model = written_out(with_constant("Mul", 0.9))
    check_declined(model, "odd", "Mul after the Softmax is not the product with V")


def test_probabilities_are_transposed() -> None:
    model = written_out(unary("Transpose", perm=[0, 1, 3, 2]))
    check_declined(model, "odd", "Transpose after the Softmax is not the product with V")


def test_einsum_with_transposed_probabilities() -> None:
    model = written_out(lambda graph, weights: weights)
    (product,) = (node for node in model.graph.node if node.name == "attended_0")
    product.op_type = "Einsum"
    product.attribute.append(helper.make_attribute("equation", "bhqk,bhqd->bhkd"))
    check_declined(model, "attended_0", "the product with V transposes the probabilities")


def test_too_many_nodes_after_the_softmax() -> None:
    model = written_out(many)
    check_declined(model, "softmax_0", "no product within 24 nodes after the Softmax")


def test_einsum_with_heads_between_queries_and_keys() -> None:
    """(B, S, H, T): the reason names the product."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    q, k, v = (graph.reshape(one, 0, 0, 4, 16) for one in (query, key, value))
    scores = graph.op("Einsum", q, k, name="scores", equation="bqhd,bkhd->bqhk")
    weights = graph.op("Softmax", scores, axis=-1, name="softmax_0")
    out = graph.op("Einsum", weights, v, equation="bqhk,bkhd->bqhd")
    graph.op("Identity", graph.reshape(out, 0, 0, 64), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    check_declined(graph.model(), "scores", "the product puts queries and keys on unusual axes")


def five_dimensions(change: Scores, mask: Scores | None) -> onnx.ModelProto:
    """Heads as 2 groups of 2; `change` on queries and keys hides where they come from."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    perm = [0, 2, 3, 1, 4]
    q, k, v = (graph.transpose(graph.reshape(one, 0, 0, 2, 2, 16), *perm) for one in (query, key, value))
    q, k = change(graph, q), change(graph, k)
    scores = graph.op("MatMul", q, graph.transpose(k, 0, 1, 2, 4, 3), name="scores")
    scores = scores if mask is None else mask(graph, scores)
    weights = graph.op("Softmax", scores, axis=-1, name="softmax_0")
    out = graph.transpose(graph.op("MatMul", weights, v, name="attended_0"), 0, 3, 1, 2, 4)
    graph.op("Identity", graph.reshape(out, 0, 0, 64), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    return graph.model()


def test_queries_of_five_dimensions() -> None:
    """No value above them has (batch, heads, length, head_dim) in any order."""
    model = five_dimensions(lambda graph, value: graph.op("Sin", value), None)
    reason = "the query tensor is not a (batch, heads, length, head_dim) reading of any value"
    check_declined(model, "Sin_0", reason)


def test_bias_of_five_dimensions() -> None:
    model = five_dimensions(
        lambda graph, value: value, masks.bias("bias", ["batch", 2, 2, "tokens", "tokens"])
    )
    reason = "a mask of shape [3, 2, 2, 5, 5] does not broadcast to (batch, heads, queries, keys)"
    check_declined(model, "masked_0", reason)


def test_rows_and_keys_are_mixed() -> None:
    """Free lengths, so no Reshape to fixed ones: (B, H, S, T) -> (B, S, H, T) is a Reshape that is no transpose."""

    def mix(graph: Graph, scores: str) -> str:
        shape = graph.op("Concat", *(graph.length(scores, axis) for axis in (0, 2, 1, 3)), axis=0)
        return graph.op("Reshape", scores, shape, name="odd")

    def back(graph: Graph, weights: str) -> str:
        shape = graph.op("Concat", *(graph.length(weights, axis) for axis in (0, 2, 1, 3)), axis=0)
        return graph.op("Reshape", weights, shape, name="back")

    check_declined(written_out(back, mix), "odd", "Reshape mixes queries and keys of the scores")


def test_scores_come_from_outside() -> None:
    graph = Graph()
    graph.input("scores", np.float32, ["batch", 4, "tokens", "tokens"])
    value = graph.input("value", np.float32, ["batch", "tokens", 64])
    weights = graph.op("Softmax", "scores", axis=-1, name="softmax_0")
    out = graph.op("MatMul", weights, split_heads(graph, value, 4, 16))
    graph.op("Identity", merge_heads(graph, out, 64), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    reason = "the scores do not come from a product of queries and keys"
    check_declined(graph.model(), "softmax_0", reason)


def test_float64() -> None:
    """No type that the operator has."""
    model = one_attention(SIZES, Style(), np.float64).model()
    reason = "query, key and value have no layout, head count and type in common"
    check_declined(model, "scores_0", reason)


def test_mask_on_a_sink_column() -> None:
    """A mask added after the sink has a column for it, which the operator's bias has not."""
    model = written_out(cut, then(sink, with_constant("Add", [0.0])))
    check_declined(model, "odd", "the sink column is not the last thing that is done to the scores")


def test_sink_column_that_depends_on_the_row() -> None:
    """One number per row is no sink of the operator."""

    def column(graph: Graph, scores: str) -> str:
        rows = graph.input("rows", np.float32, ["batch", 4, "tokens", 1])
        return graph.op("Concat", scores, rows, axis=-1, name="whole")

    reason = "the sink column is not one number per query head"
    check_declined(written_out(cut, column), "softmax_0", reason)


def standard_attention(*wires: str, outputs: int = 1, opset: int = 24, **attributes: Any) -> onnx.ModelProto:
    graph = Graph(opset, 11)
    shapes: dict[str, tuple[Any, list[int | str]]] = {
        "q": (np.float32, ["batch", 4, "tokens", 16]),
        "k": (np.float32, ["batch", 4, "tokens", 16]),
        "k3": (np.float32, ["batch", 3, "tokens", 16]),
        "v": (np.float32, ["batch", 4, "tokens", 16]),
        "v3": (np.float32, ["batch", 3, "tokens", 16]),
        "valid": (np.int64, ["batch"]),
    }
    for name in dict.fromkeys(wires):
        if name:
            graph.input(name, *shapes[name])
    names = ["y", "pk", "pv", "s"][:outputs]
    wanted = [name if name in ("y", "s") else "" for name in names]
    graph.nodes.append(helper.make_node("Attention", wires, wanted, name="attention", **attributes))
    for name in wanted:
        if name:
            graph.output(name, np.float32, ["batch", 4, "tokens", None])
    return graph.model()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (standard_attention("q", "k", "v", outputs=4), "its fourth output, the scores, is used"),
        (
            standard_attention("q", "k", "v", "", "", "", "valid", is_causal=1),
            "nonpad_kv_seqlen moves its causal rule or window by another length in each batch row",
        ),
        (
            standard_attention("q", "k3", "v3"),
            "head counts: expected key heads that divide query heads, got 3 and 4",
        ),
        (
            standard_attention("q", "k", "v", "", "k"),
            "query, key, value or one half of the past is missing",
        ),
        (
            standard_attention("q", "k", "v", opset=25, right_window_size=2),
            "right_window_size 2: a window to the right is not an attribute of ours",
        ),
    ],
    ids=["scores", "nonpad_kv_seqlen", "heads", "half a past", "right window"],
)
def test_standard_attention(model: onnx.ModelProto, reason: str) -> None:
    check_declined(model, "attention", reason, node="attention")


def test_attribute_of_a_later_standard_attention() -> None:
    """onnx knows no such attribute, so only a model that nobody checks has it."""
    model = standard_attention("q", "k", "v")
    model.graph.node[0].attribute.append(helper.make_attribute("temperature", 2.0))
    held = ir.serde.deserialize_model(model)
    (site,) = fuse_model(held, FP32).sites
    assert (site.status, site.reason) == ("declined", "its attribute temperature is not understood")


def test_casts_that_cut_numbers() -> None:
    """A detour over integers changes the scores; one over half precision is taken for rounding."""
    for dtype, is_rounding in ((np.int32, False), (np.float16, True)):
        there = unary("Cast", to=onnx_type(dtype))
        back = then(there, lambda graph, scores: graph.cast(scores, np.float32))
        model = one_attention(SIZES, Style(mask=back)).model()
        if is_rounding:
            assert fuse(model)[1].fused == 1
        else:
            check_declined(model, "odd", "Cast between the product and the Softmax is not understood")


def test_dropout_that_trains() -> None:
    def dropout(graph: Graph, weights: str) -> str:
        return graph.op("Dropout", weights, constant(graph, 0.5), graph.constant(True), name="odd")

    check_declined(written_out(dropout), "odd", "Dropout after the Softmax is not the product with V")


def guarded(mask: Any, limit: float, fill: float, axis: int = -1) -> onnx.ModelProto:
    """Probabilities replaced by `fill` where the largest number of a mask over `axis` is `limit`."""
    added: list[str] = []

    def hide(graph: Graph, scores: str) -> str:
        added.append(graph.input("bias", np.float32, mask))
        return graph.op("Add", scores, added[0])

    def guard(graph: Graph, weights: str) -> str:
        largest = graph.op("ReduceMax", added[0], graph.integers(axis), keepdims=1)
        test = graph.op("Equal", largest, constant(graph, limit))
        return graph.op("Where", test, constant(graph, fill), weights, name="guard")

    return written_out(guard, hide)


@pytest.mark.parametrize(("limit", "fill", "axis"), [(0.0, 0.0, -1), (-np.inf, 0.5, -1), (-np.inf, 0.0, -2)])
def test_guards_that_zero_other_rows(limit: float, fill: float, axis: int) -> None:
    """Only rows at -inf over all keys may become zeros."""
    model = guarded(["batch", 1, "tokens", "tokens"], limit, fill, axis)
    check_declined(model, "guard", "Where after the Softmax is not the product with V")


def test_guard_of_hidden_rows() -> None:
    model = guarded(["batch", 1, "tokens", "tokens"], -np.inf, 0.0)
    bias = np.zeros((2, 1, 9, 9), np.float32)
    bias[:, :, 3] = -np.inf
    bias[:, :, 5, 2:] = -np.inf
    check_fused(model, feeds(SIZES) | {"bias": bias})


def test_unknown_shapes() -> None:
    """Queries from an operator that nobody knows."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    k, v = (split_heads(graph, one, 4, 16) for one in (key, value))
    q = graph.op("Mystery", query, name="mystery", domain="custom")
    scores = graph.op("MatMul", q, graph.transpose(k, 0, 1, 3, 2), name="scores")
    weights = graph.op("Softmax", scores, axis=-1, name="softmax_0")
    graph.op("MatMul", weights, v, name="output")
    graph.output("output", np.float32, ["batch", 4, "tokens", 16])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("custom", 1)]
    model = helper.make_model(graph.graph(), ir_version=8, opset_imports=opsets)
    check_declined(model, "scores", "the shapes of its operands are not known")


def test_three_candidates() -> None:
    """One fuses, one has its Softmax on another axis, one a run-time scale: 1 of 3, and each of the others says why."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    graph.input("factor", np.float32, [])
    outputs = []
    for at in range(3):
        q, k, v = (split_heads(graph, one, 4, 16) for one in (query, key, value))
        scores = graph.op("MatMul", q, graph.transpose(k, 0, 1, 3, 2))
        if at == 2:
            scores = graph.op("Mul", scores, "factor", name="runtime")
        weights = graph.op("Softmax", scores, axis=1 if at == 1 else -1, name=f"softmax_{at}")
        outputs.append(merge_heads(graph, graph.op("MatMul", weights, v), 64))
    graph.op("Sum", *outputs, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    _, report = fuse(graph.model())
    assert report.summary() == "1 of 3 attention sites fused, 2 found but declined"
    declined = [(site.node, site.at, site.reason) for site in report.sites if site.status == "declined"]
    assert declined == [
        ("softmax_1", "softmax_1", "Softmax runs over axis 1, not over the keys (the last axis)"),
        ("softmax_2", "runtime", "the scale of the scores is computed at run time"),
    ]


def test_nothing_found_is_worded_differently() -> None:
    """A classifier's Softmax is no candidate."""
    graph = Graph()
    hidden = graph.input("hidden", np.float32, ["batch", "tokens", 8])
    graph.op("Softmax", graph.op("MatMul", hidden, constant(graph, np.ones((8, 8)))), axis=-1, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 8])
    model = graph.model()
    after, report = fuse(model)
    wanted = "no attention found: the model has no Softmax between two products and no attention node"
    assert report.summary() == wanted and not report.sites and not report.modified
    assert_untouched(after, model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int8"}, "precision: expected one of 'auto', 'fp8', 'bf16', 'fp32', got 'int8'"),
        ({"rotate": "yes"}, "rotate: expected one of 'none', 'hadamard', 'auto', got 'yes'"),
        ({"fp8_edges": None}, "fp8_edges: expected one of 'hilo', 'bf16', 'none', got None"),
    ],
)
def test_unknown_options(options: dict[str, Any], message: str) -> None:
    for kind in (FuseOptions, SiteOptions):
        with pytest.raises(GraphPassError) as error:
            kind(**options)
        assert str(error.value) == message
    assert FP32.precision == "fp32"
