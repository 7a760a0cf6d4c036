"""Values with other readers: constants and masks shared by layers, and what else a graph still needs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from custom_ops.problems import Sizes

from graph_passes import mask_builders as masks
from graph_passes.decomposed import (
    Style,
    feeds,
    from_heads,
    hidden_feeds,
    inputs,
    layers,
    one_attention,
    split_heads,
)
from graph_passes.graph import Graph
from graph_passes.running import attention_nodes, check_fused, fuse, fused_session, original_session, run_both

SIZES = Sizes(batch=2, heads=4, kv_heads=4, q_len=9, kv_len=9)


def shared_causal(graph: Graph) -> masks.Masking:
    """One mask tensor for all layers, built once from the length of `hidden`."""
    made: list[str] = []

    def mask(graph: Graph, scores: str) -> str:
        if not made:
            position = graph.range(graph.scalar_length("hidden", 1))
            row, key = graph.unsqueeze(position, 1), graph.unsqueeze(position, 0)
            made.append(masks.fill(graph, graph.op("Greater", key, row), masks.LOWEST, np.float32))
        return masks.add(graph, scores, made[0])

    return mask


def test_mask_and_scale_shared_by_three_layers_of_which_two_fuse() -> None:
    """The middle layer has a node of its own in the scores; mask and scale stay for it, and the mask is an output."""
    graph = Graph()
    mask = shared_causal(graph)
    factor = graph.constant(0.25, np.float32, name="factor")

    def scaled(graph: Graph, scores: str) -> str:
        return mask(graph, graph.op("Mul", scores, factor))

    def odd(graph: Graph, scores: str) -> str:
        return mask(graph, graph.op("Erf", graph.op("Mul", scores, factor)))

    styles = [Style(scale_op="none", mask=one) for one in (scaled, odd, scaled)]
    layers(graph, SIZES, styles)
    (where,) = (node.output[0] for node in graph.nodes if node.op_type == "Where")
    graph.output(where, np.float32, ["tokens", "tokens"])
    model = graph.model()
    after, report = fuse(model)
    assert report.summary() == "2 of 3 attention sites fused, 1 found but declined"
    assert [site.status for site in report.sites] == ["fused", "declined", "fused"]
    wanted, got = run_both(model, after, hidden_feeds())
    for name in wanted:
        np.testing.assert_allclose(got[name], wanted[name], rtol=1e-4, atol=1e-5)
    assert "factor" in {one.name for one in after.graph.initializer}


def test_shared_constants_go_with_their_last_reader() -> None:
    graph = Graph()
    mask = shared_causal(graph)
    factor = graph.constant(0.25, np.float32, name="factor")
    style = Style(scale_op="none", mask=lambda g, scores: mask(g, g.op("Mul", scores, factor)))
    layers(graph, SIZES, [style] * 3)
    after, _ = check_fused(graph.model(), hidden_feeds(), fused=3)
    weights = {name for node in after.graph.node if node.op_type == "MatMul" for name in node.input}
    assert {one.name for one in after.graph.initializer} <= weights
    assert not any(node.op_type in ("Range", "Where", "Greater") for node in after.graph.node)


def test_key_mask_shared_by_layers_is_prepared_once() -> None:
    """(B, 1, 1, T) booleans are reshaped to (B, T) for all layers together."""
    graph = Graph()
    graph.input("visible", np.bool_, ["batch", 1, 1, "tokens"])
    graph.input("ids", np.int64, ["batch", "tokens"])
    real = graph.op("Greater", "ids", graph.constant(0, np.int64))
    wide = graph.unsqueeze(graph.op("Not", real), 1, 2)
    hidden = masks.fill(graph, wide, masks.LOWEST, np.float32)
    style = Style(mask=lambda g, scores: masks.add(g, scores, hidden))
    layers(graph, SIZES, [style] * 3)
    graph.inputs.pop(0)
    given = hidden_feeds() | {"ids": np.array([[3] * 9, [0, 0, 5, 5, 5, 5, 5, 5, 5]])}
    after, _ = check_fused(graph.model(), given, fused=3)
    key_masks = {node.input[5] for node in attention_nodes(after)}
    assert len(key_masks) == 1


def test_scale_that_callers_may_override_is_no_constant() -> None:
    """An initializer that is also a graph input: its value is a default only."""
    model = one_attention(SIZES, Style()).model()
    (factor,) = (one for one in model.graph.initializer if not one.dims)
    model.graph.input.append(onnx.helper.make_tensor_value_info(factor.name, onnx.TensorProto.FLOAT, []))
    after, report = fuse(model)
    assert report.fused == 0
    assert report.sites[0].reason == "the scale of the scores is computed at run time"
    given = feeds(SIZES) | {factor.name: np.array(0.5, np.float32)}
    wanted, got = (session.run(None, given)[0] for session in (original_session(model), fused_session(after)))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("reader", ["MatMul", "output"])
def test_the_transposed_keys_have_another_reader(reader: str) -> None:
    """The site fuses from the keys above the Transpose, which stays."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    q, k, v = (split_heads(graph, one, 4, 16) for one in (query, key, value))
    k_t = graph.op("Transpose", k, perm=[0, 1, 3, 2], name="k_t")
    out = from_heads(graph, q, k_t, v, SIZES, Style(mask=masks.causal()))
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    if reader == "MatMul":
        graph.op("MatMul", v, k_t, name="other")
        graph.output("other", np.float32, ["batch", 4, "tokens", "tokens"])
    else:
        graph.output("k_t", np.float32, ["batch", 4, 16, "tokens"])
    after, _ = check_fused(graph.model(), feeds(SIZES))
    assert "k_t" in {name for node in after.graph.node for name in node.output}


def test_keys_are_also_the_values() -> None:
    """One tensor read twice."""
    graph = Graph()
    query = graph.input("query", np.float32, ["batch", "tokens", 64])
    key = graph.input("key", np.float32, ["batch", "tokens", 64])
    q, k = (split_heads(graph, one, 4, 16) for one in (query, key))
    out = from_heads(graph, q, graph.transpose(k, 0, 1, 3, 2), k, SIZES, Style(mask=masks.causal()))
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    given = {name: array for name, array in feeds(SIZES).items() if name != "value"}
    after, _ = check_fused(graph.model(), given)
    assert list(attention_nodes(after)[0].input) == ["query", "key", "key"]


def test_the_output_is_read_twice() -> None:
    """Once as (B, H, S, D), once merged: the fused output keeps the form that both can use."""
    graph = one_attention(SIZES, Style(mask=masks.causal()))
    graph.output("attended_0", np.float32, ["batch", 4, "tokens", 16])
    check_fused(graph.model(), feeds(SIZES))


def test_the_shape_of_the_scores_is_read() -> None:
    """A reader of the shape alone does not stop the fusion unless it would lose its input."""
    graph = one_attention(SIZES, Style(mask=masks.causal()))
    graph.op("Shape", "scores_0", name="size")
    graph.output("size", np.int64, [4])
    model = graph.model()
    after, report = fuse(model)
    wanted, got = run_both(model, after, feeds(SIZES))
    np.testing.assert_array_equal(got["size"], wanted["size"])
    np.testing.assert_allclose(got["output"], wanted["output"], rtol=1e-4, atol=1e-5)
    assert report.fused == 1
