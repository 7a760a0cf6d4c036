"""Opsets, IR versions and names: what a rewrite must keep, and what it must not depend on."""

from __future__ import annotations

import copy

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from custom_ops.problems import Sizes
from zyfa_ort.graph_passes.errors import GraphPassError
from zyfa_ort.graph_passes.pipeline import fuse_model, inspect_model
from zyfa_ort.graph_passes.schema import DOMAIN

from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, feeds, hidden_feeds, layers, one_attention
from graph_passes.graph import Graph
from graph_passes.running import assert_same_numbers, attention_nodes, check_fused, fuse, imports, run_both

SIZES = Sizes(batch=2, heads=4, kv_heads=2, q_len=9, kv_len=9)
TWO = (Style(form="sdpa", mask=masks.causal()), Style(mask=masks.causal()))
VERSIONS = ((11, 7), (13, 7), (14, 8), (17, 8), (18, 9), (21, 10), (23, 11), (24, 11), (18, 7), (11, 11))


@pytest.mark.parametrize(("opset", "ir_version"), VERSIONS)
@pytest.mark.parametrize("form", ["sdpa", "eager"])
def test_opset_and_ir_version_stay(opset: int, ir_version: int, form: str) -> None:
    """And exactly one import is added, in the first run and not in the second."""
    style = Style(form=form, mask=masks.causal_and_padding(number=-1e9))
    model = one_attention(SIZES, style, graph=Graph(opset, ir_version)).model()
    given = feeds(SIZES) | {"attention_mask": np.ones((2, 9), np.int64)}
    after, _ = check_fused(model, given)
    assert imports(after) == {"": opset, DOMAIN: 1} and after.ir_version == ir_version
    again, report = fuse(after)
    assert again.SerializeToString() == after.SerializeToString()
    assert not report.modified and report.already_fused == 1


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_inserted_nodes_are_of_the_graph_s_opset(opset: int) -> None:
    """Reshape, Cast, Unsqueeze, Slice: a key mask cut to the keys, and a bias of folded heads."""

    def mask(graph: Graph, scores: str) -> str:
        name = graph.input("attention_mask", np.int64, ["batch", "keys"])
        wide = graph.cast(graph.unsqueeze(name, 1, 2), np.float32)
        cut = graph.op("Slice", wide, graph.integers(0), graph.length(scores, -1), graph.integers(-1))
        hidden = graph.op("Sub", cut, graph.constant(1, np.float32))
        return masks.add(graph, scores, graph.op("Mul", hidden, graph.constant(1e9, np.float32)))

    model = one_attention(SIZES, Style(mask=mask), graph=Graph(opset)).model()
    given = feeds(SIZES) | {"attention_mask": np.array([[1] * 12, [0, 0] + [1] * 10])}
    _, report = check_fused(model, given)
    assert report.sites[0].mask == ("key mask",)


@pytest.mark.parametrize("opset", [6, onnx.defs.onnx_opset_version() + 1])
def test_unknown_opsets_are_refused_before_any_work(opset: int) -> None:
    model = one_attention(SIZES, Style()).model()
    model.opset_import[0].version = opset
    held = ir.serde.deserialize_model(model)
    before = ir.serde.serialize_model(held).SerializeToString()
    newest = onnx.defs.onnx_opset_version()
    wanted = (
        rf"^opset of the model: expected 7 to {newest} \(what onnx .* knows\), got {opset}; "
        "convert the model or install a newer onnx$"
    )
    for run in (fuse_model, inspect_model):
        with pytest.raises(GraphPassError, match=wanted):
            run(held)
    assert ir.serde.serialize_model(held).SerializeToString() == before


def renamed(model: onnx.ModelProto, how: str) -> onnx.ModelProto:
    """The model with other node names."""
    model = copy.deepcopy(model)
    nodes = model.graph.node
    for at, node in enumerate(nodes):
        if how == "the output of another node":
            node.name = nodes[(at + 7) % len(nodes)].output[0]
        elif how == "the fused node's":
            node.name = "ZyfaPrefillAttention"
        else:
            node.name = {"empty": "", "all alike": "x", "not ASCII": f"/層.{at % 3}/внимание/Softmax"}[how]
    return model


NAMES = ("empty", "all alike", "the output of another node", "the fused node's", "not ASCII")


@pytest.mark.parametrize("how", NAMES)
def test_node_names_are_decoration(how: str) -> None:
    plain = layers(Graph(), SIZES, TWO).model()
    after, report = fuse(renamed(plain, how))
    assert report.fused == 2
    new = [node.name for node in attention_nodes(after)]
    assert len(set(new)) == 2 and all(new)
    assert [site.node for site in report.sites] == new
    others = [node.name for node in after.graph.node if node.name not in new]
    assert not set(others) & set(new)
    if how == "not ASCII":
        assert all(
            name.startswith("/層.") and name.endswith("/внимание/ZyfaPrefillAttention") for name in new
        )
    outputs = [name for node in after.graph.node for name in node.output if name]
    assert len(set(outputs)) == len(outputs)
    for node in after.graph.node:  # ONNX Runtime refuses what the original has: one name on two nodes
        node.name = node.name if node.name in new else ""
    wanted, got = run_both(plain, after, hidden_feeds())
    assert_same_numbers(got["output"], wanted["output"])


def test_value_names_that_the_rewrite_would_choose() -> None:
    """A value already called like a new one."""
    graph = Graph()
    layers(graph, SIZES, (Style(form="sdpa", mask=masks.causal_and_padding()),))
    taken = graph.op("Identity", "hidden", name="ZyfaPrefillAttention")
    graph.op("Identity", taken, name="Reshape_output")
    graph.output("Reshape_output", np.float32, ["batch", "tokens", 48])
    given = hidden_feeds() | {"attention_mask": np.ones((2, 9), np.int64)}
    after, report = check_fused(graph.model(), given)
    assert report.sites[0].node == "ZyfaPrefillAttention_1"
    assert [value.name for value in after.graph.output] == ["output", "Reshape_output"]


SCOPES = "pkg.torch.onnx.name_scopes"


@pytest.mark.parametrize(
    ("scopes", "wanted"),
    [
        (
            "['', 'model', 'model.layers.3.self_attn', 'softmax']",
            "model.layers.3.self_attn/ZyfaPrefillAttention",
        ),
        ("not a list", "ZyfaPrefillAttention"),
        ("", "ZyfaPrefillAttention"),
    ],
)
def test_the_node_is_named_after_its_module(scopes: str, wanted: str) -> None:
    model = one_attention(SIZES, Style()).model()
    (softmax,) = (node for node in model.graph.node if node.op_type == "Softmax")
    softmax.metadata_props.add(key=SCOPES, value=scopes)
    after, _ = fuse(model)
    (node,) = attention_nodes(after)
    assert node.name == wanted
    assert {one.key: one.value for one in node.metadata_props} == {SCOPES: scopes}
