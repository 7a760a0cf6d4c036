"""One attention written in many ways: each is found, its scale and heads are read right, and it keeps its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.problems import Sizes
from ml_dtypes import bfloat16
from reference.attention import attention as reference

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import (
    Style,
    attention,
    feeds,
    from_heads,
    inputs,
    merge_heads,
    one_attention,
    split_heads,
)
from graph_passes.graph import Graph
from graph_passes.running import (
    assert_same_numbers,
    attention_nodes,
    attribute,
    check_fused,
    fuse,
    fused_session,
    run_both,
)

MHA = Sizes(batch=2, heads=4, kv_heads=4, q_len=9, kv_len=9)
GQA = Sizes(batch=2, heads=4, kv_heads=2, q_len=9, kv_len=9)
OTHER = Sizes(batch=3, heads=4, kv_heads=4, q_len=70, kv_len=70)
MASKS: dict[str, masks.Masking | None] = {
    "none": None,
    "scores + mask": masks.causal(),
    "mask + scores": masks.causal(swap=True),
    "where": masks.causal_where(),
}
OTHER_GQA = Sizes(batch=3, heads=4, kv_heads=2, q_len=70, kv_len=70)


@pytest.mark.parametrize("form", ["sdpa", "eager"])
@pytest.mark.parametrize("keys", ["0132", "0231", "two"])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_forms_of_the_scores(form: Any, keys: Any, swap: bool, mask: str) -> None:
    """SDPA and eager exports, operands of Mul and Add exchanged, K^T in three ways: one node, the same numbers."""
    style = Style(form=form, keys=keys, swap=swap, mask=MASKS[mask])
    model = one_attention(MHA, style).model()
    after, report = check_fused(model, feeds(MHA), feeds(OTHER))
    (site,), (node,) = report.sites, attention_nodes(after)
    assert site.mask == (("full",) if mask == "none" else ("causal",))
    assert (site.num_heads, site.kv_num_heads, site.head_dim, site.scale) == (4, 4, 16, None)
    assert list(node.input) == ["query", "key", "value"]  # straight from the projections
    assert len(after.graph.node) == 1


@pytest.mark.parametrize("form", ["sdpa", "eager"])
def test_float64_agrees(form: Any) -> None:
    """Not only as wrong as the graph: the naive reference says the same."""
    model = one_attention(GQA, Style(form=form, mask=masks.causal())).model()
    after, _ = fuse(model)
    given = feeds(OTHER_GQA)
    wanted = reference(**given, num_heads=4, kv_num_heads=2).output
    got = zyfa_ort.run(fused_session(after), given)["output"]
    assert_same_numbers(got, wanted.astype(np.float32))


@pytest.mark.parametrize(
    ("style", "scale"),
    [
        (Style(scale_op="Mul"), None),
        (Style(scale_op="Div"), None),
        (Style(scale_op="on query"), None),
        (Style(form="sdpa"), None),
        (Style(scale_op="Mul", scale_shape=(1,)), None),
        (Style(scale_op="Div", scale_shape=(1, 1, 1, 1)), None),
        (Style(form="sdpa", scale_shape=(1,)), None),
        (Style(form="sdpa", scale_shape=(1, 1, 1, 1)), None),
        (Style(scale=0.3), 0.3),
        (Style(scale=0.3, scale_op="Div"), 0.3),
        (Style(scale=0.3, form="sdpa"), 0.3),
        (Style(scale=0.3, scale_op="on query"), 0.3),
        (Style(scale_op="none"), 1.0),
        (Style(scale=-1.0), -1.0),
        (Style(scale=0.0), 0.0),
    ],
    ids=lambda one: f"{one.scale_op}-{one.form}-{one.scale_shape}" if isinstance(one, Style) else str(one),
)
def test_scale(style: Style, scale: float | None) -> None:
    """The factor of the graph and no other: split over Q and K, as divisor, of any one-element shape, -1 and 0 included."""
    after, report = check_fused(one_attention(MHA, style).model(), feeds(MHA), feeds(OTHER))
    assert report.sites[0].scale == (None if scale is None else pytest.approx(scale, rel=1e-6))
    (node,) = attention_nodes(after)
    assert attribute(node, "scale") == (None if scale is None else pytest.approx(scale, rel=1e-6))


@pytest.mark.parametrize(("scale_op", "factor", "wanted"), [
    ("none", 1.0, 0.98201), ("Mul", 0.5, 0.88080), ("Mul", -1.0, 0.01799), ("Mul", 0.0, 0.5),
])  # fmt: skip
def test_scale_by_hand(scale_op: Any, factor: float, wanted: float) -> None:
    """q = k0 = (1,1,1,1), k1 = 0, V = [1, 0]: the weight of key 0 is 1 / (1 + exp(-4 factor))."""
    sizes = Sizes(batch=1, heads=1, kv_heads=1, head_dim=4)
    model = one_attention(sizes, Style(scale=factor, scale_op=scale_op), keys="keys").model()
    after, _ = fuse(model)
    given = {
        "query": np.ones((1, 1, 4), np.float32),
        "key": np.array([[[1] * 4, [0] * 4]], np.float32),
        "value": np.array([[[1] * 4, [0] * 4]], np.float32),
    }
    got = zyfa_ort.run(fused_session(after), given)["output"]
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_factors_on_both_sides_multiply() -> None:
    """A constant on the query projection, one on K^T, one on the scores, and a division."""
    graph = Graph()
    query, key, value = inputs(graph, MHA)
    scaled = graph.op("Mul", query, graph.constant(0.5, np.float32))
    q = split_heads(graph, scaled, 4, 16)
    k = graph.transpose(split_heads(graph, key, 4, 16), 0, 1, 3, 2)
    k = graph.op("Div", k, graph.constant([4.0], np.float32))
    out = from_heads(graph, q, k, split_heads(graph, value, 4, 16), MHA, Style(scale=3.0))
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    after, report = check_fused(graph.model(), feeds(MHA))
    assert report.sites[0].scale == pytest.approx(0.375)
    assert list(attention_nodes(after)[0].input)[:2] == ["query", "key"]


def test_scale_computed_from_the_shape() -> None:
    """sqrt(head_dim) by Shape, Gather, Cast, Sqrt, as the TorchScript exporter writes SDPA without a scale argument."""
    graph = Graph()
    query, key, value = inputs(graph, MHA)
    q, k, v = (split_heads(graph, one, 4, 16) for one in (query, key, value))
    root = graph.op("Sqrt", graph.cast(graph.length(q, -1), np.float32))
    factor = graph.op("Sqrt", graph.op("Div", graph.constant([1.0], np.float32), root))
    q = graph.op("Mul", q, factor)
    k = graph.op("Mul", graph.transpose(k, 0, 1, 3, 2), factor)
    out = from_heads(graph, q, k, v, MHA, Style(scale_op="none"))
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    after, report = check_fused(graph.model(), feeds(MHA))
    assert report.sites[0].scale is None and len(after.graph.node) == 1


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_scale_off_by_one_percent_in_a_narrow_type(dtype: Any) -> None:
    """No rounding of 1/sqrt(16): the node says so."""
    model = one_attention(MHA, Style(scale=0.2525), dtype).model()
    _, report = fuse(model)
    assert report.sites[0].scale == pytest.approx(0.2525, rel=4e-3)


@pytest.mark.parametrize("repeat", ["expand", "tile"])
@pytest.mark.parametrize("form", ["sdpa", "eager"])
def test_key_heads_repeated_in_blocks_are_recovered(repeat: Any, form: Any) -> None:
    """0,0,1,1: the node reads two key heads."""
    style = Style(form=form, repeat=repeat, mask=masks.causal())
    after, report = check_fused(one_attention(GQA, style).model(), feeds(GQA), feeds(OTHER_GQA))
    (node,) = attention_nodes(after)
    assert (report.sites[0].num_heads, report.sites[0].kv_num_heads) == (4, 2)
    assert (attribute(node, "num_heads"), attribute(node, "kv_num_heads")) == (4, 2)
    assert list(node.input) == ["query", "key", "value"]


def test_key_heads_repeated_in_turn_keep_their_order() -> None:
    """0,1,0,1 looks alike and is not: with V of 10 and 20 the heads answer 10, 20, 10, 20."""
    sizes = Sizes(batch=1, heads=4, kv_heads=2, q_len=1, kv_len=1, head_dim=4)
    model = one_attention(sizes, Style(repeat="tile heads")).model()
    after, report = fuse(model)
    given = feeds(sizes)
    given["value"] = np.repeat(np.array([[[10, 20]]], np.float32), 4, axis=2)
    wanted, got = run_both(model, after, given)
    np.testing.assert_array_equal(got["output"][0, 0, ::4], [10, 20, 10, 20])
    np.testing.assert_array_equal(wanted["output"][0, 0, ::4], [10, 20, 10, 20])
    assert all(site.kv_num_heads in (None, 4) for site in report.sites)
    check_fused(model, feeds(Sizes(2, 4, 2, 9, 9, 4)))


@pytest.mark.parametrize(("heads", "kv_heads"), [(14, 2), (6, 1), (3, 3)])
def test_head_counts(heads: int, kv_heads: int) -> None:
    sizes = Sizes(batch=2, heads=heads, kv_heads=kv_heads, q_len=5, kv_len=5, head_dim=8)
    style = Style(form="sdpa", mask=masks.causal())
    _, report = check_fused(one_attention(sizes, style).model(), feeds(sizes))
    assert (report.sites[0].num_heads, report.sites[0].kv_num_heads) == (heads, kv_heads)


def test_one_key_head_by_broadcasting() -> None:
    """Falcon's MQA: K^T of one head meets all query heads in the product, no Expand anywhere."""
    sizes = Sizes(batch=2, heads=4, kv_heads=1, q_len=9, kv_len=9)
    graph = Graph()
    query, key, value = inputs(graph, sizes)
    q, k, v = (split_heads(graph, one, n, 16) for one, n in ((query, 4), (key, 1), (value, 1)))
    style = Style(mask=masks.causal())
    out = from_heads(graph, q, graph.transpose(k, 0, 1, 3, 2), v, sizes, style)
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    after, report = check_fused(graph.model(), feeds(sizes))
    assert report.sites[0].kv_num_heads == 1
    assert list(attention_nodes(after)[0].input) == ["query", "key", "value"]


@pytest.mark.parametrize("head_dim", [8, 63, 80, 96, 192, 256])
def test_any_head_dim(head_dim: int) -> None:
    """The default scale is that of the true head_dim."""
    sizes = Sizes(batch=1, heads=2, kv_heads=2, q_len=5, kv_len=5, head_dim=head_dim)
    _, report = check_fused(one_attention(sizes, Style(mask=masks.causal())).model(), feeds(sizes))
    assert (report.sites[0].head_dim, report.sites[0].scale) == (head_dim, None)


def test_values_of_another_head_dim() -> None:
    """MLA: 24 for queries and keys, 16 for values."""
    sizes = Sizes(batch=2, heads=4, kv_heads=4, q_len=9, kv_len=9, head_dim=24, v_head_dim=16)
    _, report = check_fused(
        one_attention(sizes, Style(form="sdpa", mask=masks.causal())).model(), feeds(sizes)
    )
    assert (report.sites[0].head_dim, report.sites[0].v_head_dim) == (24, 16)


def test_hidden_size_is_not_heads_times_head_dim() -> None:
    """Hidden 48, 4 heads of 16: sizes come from the reshapes and not from a division of the hidden size."""
    rng = np.random.default_rng(0)
    graph = Graph()
    hidden = graph.input("hidden", np.float32, ["batch", "tokens", 48])
    q, k, v = (
        graph.op("MatMul", hidden, graph.constant(rng.standard_normal((48, 64)) / 7, np.float32))
        for _ in range(3)
    )
    out = attention(graph, q, k, v, MHA, Style(mask=masks.causal()))
    graph.op("MatMul", out, graph.constant(rng.standard_normal((64, 48)) / 8, np.float32), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 48])
    given = {"hidden": rng.standard_normal((2, 9, 48)).astype(np.float32)}
    _, report = check_fused(graph.model(), given)
    assert (report.sites[0].num_heads, report.sites[0].head_dim, report.sites[0].scale) == (4, 16, None)


@pytest.mark.parametrize("merge", [True, False])
def test_packed_projection_is_split(merge: bool) -> None:
    """One MatMul for query, keys and values, then Split; the output merged, or left as (B, H, S, D)."""
    rng = np.random.default_rng(0)
    graph = Graph()
    hidden = graph.input("hidden", np.float32, ["batch", "tokens", 32])
    packed = graph.op("MatMul", hidden, graph.constant(rng.standard_normal((32, 128)) / 6, np.float32))
    graph.ops("Split", packed, graph.integers(64, 32, 32), outputs=["q", "k", "v"], axis=2)
    out = attention(graph, "q", "k", "v", GQA, Style(form="sdpa", mask=masks.causal(), merge=merge))
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64] if merge else ["batch", 4, "tokens", 16])
    given = {"hidden": rng.standard_normal((2, 9, 32)).astype(np.float32)}
    after, report = check_fused(graph.model(), given)
    if merge:
        assert list(attention_nodes(after)[0].input) == ["q", "k", "v"]
    else:
        assert report.sites[0].layout == "BHSD"


def test_reshape_without_transpose_is_not_a_head_split() -> None:
    """(B,S,H*D) viewed as (B,H,S,D) mixes heads and tokens. By hand: Q = 0, V tokens [1,2], [3,4]: the mix gives 1.5 and
    3.5 where heads would give 2 and 3. Whatever the pass does, the graph's own numbers stay."""
    sizes = Sizes(batch=1, heads=2, kv_heads=2, q_len=2, kv_len=2, head_dim=1)
    graph = Graph()
    query, key, value = inputs(graph, sizes)
    q, k, v = (graph.reshape(one, graph.length(one, 0), 2, -1, 1) for one in (query, key, value))
    out = from_heads(graph, q, graph.transpose(k, 0, 1, 3, 2), v, sizes, Style(merge=False, scale_op="none"))
    graph.op("Identity", graph.reshape(out, 0, -1, 2), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 2])
    model = graph.model()
    given = {"query": np.zeros((1, 2, 2), np.float32), "key": np.zeros((1, 2, 2), np.float32)}
    given["value"] = np.array([[[1, 2], [3, 4]]], np.float32)
    wanted, got = run_both(model, fuse(model)[0], given)
    np.testing.assert_allclose(wanted["output"], [[[1.5, 1.5], [3.5, 3.5]]])
    np.testing.assert_allclose(got["output"], wanted["output"])


def test_head_split_by_hand() -> None:
    """The right view of the same numbers: 2 and 3 for both tokens."""
    sizes = Sizes(batch=1, heads=2, kv_heads=2, q_len=2, kv_len=2, head_dim=1)
    model = one_attention(sizes, Style(scale_op="none")).model()
    given = {name: np.zeros((1, 2, 2), np.float32) for name in ("query", "key")}
    given["value"] = np.array([[[1, 2], [3, 4]]], np.float32)
    after, _ = fuse(model)
    got = zyfa_ort.run(fused_session(after), given)["output"]
    np.testing.assert_allclose(got, [[[2, 3], [2, 3]]])


def test_einsum_form() -> None:
    graph = Graph()
    query, key, value = inputs(graph, MHA)
    q, k, v = (graph.reshape(one, 0, 0, 4, 16) for one in (query, key, value))
    scores = graph.op("Einsum", q, k, equation="bqhd,bkhd->bhqk")
    scores = masks.causal()(graph, graph.op("Mul", scores, graph.constant(0.25, np.float32)))
    weights = graph.op("Softmax", scores, axis=-1)
    out = graph.op("Einsum", weights, v, equation="bhqk,bkhd->bqhd")
    graph.op("Identity", graph.reshape(out, 0, 0, 64), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    after, _ = check_fused(graph.model(), feeds(MHA), feeds(OTHER))
    assert list(attention_nodes(after)[0].input) == ["query", "key", "value"]


def test_heads_folded_into_the_batch() -> None:
    """Products of rank 3 over (B*H, S, D)."""
    graph = Graph()
    query, key, value = inputs(graph, MHA)
    batch, length = graph.length(query, 0), graph.length(query, 1)
    q, k, v = (graph.reshape(split_heads(graph, one, 4, 16), -1, length, 16) for one in (query, key, value))
    scores = graph.op("MatMul", q, graph.transpose(k, 0, 2, 1))
    scores = masks.causal()(graph, graph.op("Mul", scores, graph.constant(0.25, np.float32)))
    out = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v)
    out = graph.reshape(out, batch, 4, length, 16)
    graph.op("Identity", merge_heads(graph, out, 64), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    _, report = check_fused(graph.model(), feeds(MHA), feeds(OTHER))
    assert (report.sites[0].num_heads, report.sites[0].mask) == (4, ("causal",))


@pytest.mark.parametrize("no_op", ["Identity", "Dropout", "Cast", "transpose pair", "unsqueeze squeeze"])
def test_nodes_that_do_nothing(no_op: str) -> None:
    """Between every two steps of the scores and on the probabilities."""

    def idle(graph: Graph, value: str) -> str:
        if no_op == "transpose pair":
            return value
        if no_op == "unsqueeze squeeze":
            return graph.over("Squeeze", graph.unsqueeze(value, 0), 0)
        return graph.op(no_op, value, **({"to": 1} if no_op == "Cast" else {}))

    graph = Graph()
    query, key, value = inputs(graph, MHA)
    q, k, v = (split_heads(graph, one, 4, 16) for one in (query, key, value))
    if no_op == "transpose pair":
        q = graph.transpose(graph.transpose(q, 0, 1, 3, 2), 0, 1, 3, 2)
    scores = graph.op("MatMul", idle(graph, q), idle(graph, graph.transpose(k, 0, 1, 3, 2)))
    scores = idle(graph, graph.op("Mul", idle(graph, scores), graph.constant(0.25, np.float32)))
    weights = idle(graph, graph.op("Softmax", masks.causal()(graph, scores), axis=-1))
    out = idle(graph, graph.op("MatMul", weights, v))
    graph.op("Identity", merge_heads(graph, out, 64), name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    _, report = check_fused(graph.model(), feeds(MHA))
    assert report.sites[0].mask == ("causal",)


def test_constants_in_nodes_or_initializers() -> None:
    style = Style(form="sdpa", mask=masks.causal())
    for as_nodes in (False, True):
        graph = one_attention(GQA, style, graph=Graph(constants_as_nodes=as_nodes))
        after, _ = check_fused(graph.model(), feeds(GQA))
        assert len(after.graph.node) == 1 and not after.graph.initializer
