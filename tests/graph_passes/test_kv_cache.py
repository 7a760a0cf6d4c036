"""Past keys and values: joined inside the operator, with the present under the model's own output names."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.problems import Sizes

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, from_heads, inputs, repeat_heads, split_heads
from graph_passes.graph import Array, Graph
from graph_passes.running import (
    assert_same_numbers,
    attention_nodes,
    check_fused,
    fuse,
    fused_session,
    run_both,
)

SDPA = Style(form="sdpa", mask=masks.causal())
SIZES = Sizes(batch=2, heads=4, kv_heads=2, q_len=5, kv_len=5)


def join(graph: Graph, past: str, new: str, name: str, axis: int = -2) -> str:
    return graph.op("Concat", past, new, name=name, axis=axis)


def cached_model(
    style: Style = SDPA,
    reorder: bool = False,
    copy_present: bool = False,
    cached: tuple[str, ...] = ("key", "value"),
) -> onnx.ModelProto:
    """One decoder attention: Concat(past, new) before the heads are repeated; the joined tensors are outputs."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    whole = {}
    for name, new in (("key", key), ("value", value)):
        heads = split_heads(graph, new, 2, 16)
        if name in cached:
            past = graph.input(f"past_{name}", np.float32, ["batch", 2, f"past_of_{name}", 16])
            if reorder:
                beams = "beams" if name == "value" else graph.input("beams", np.int64, ["batch"])
                past = graph.op("Gather", past, beams, axis=0)
            joined = f"joined_{name}" if copy_present else f"present_{name}"
            heads = join(graph, past, heads, joined)
            if copy_present:
                graph.op("Identity", heads, name=f"present_{name}")
            graph.output(f"present_{name}", np.float32, ["batch", 2, f"total_of_{name}", 16])
        whole[name] = repeat_heads(graph, heads, SIZES, 16, "expand")
    q = split_heads(graph, query, 4, 16)
    out = from_heads(graph, q, graph.transpose(whole["key"], 0, 1, 3, 2), whole["value"], SIZES, style)
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    return graph.model()


def given(past: int, tokens: int = 5, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> Array:
        array = rng.standard_normal(shape)
        array[..., 3] += 3
        return array.astype(np.float32)

    return {
        "query": random(2, tokens, 64),
        "key": random(2, tokens, 32),
        "value": random(2, tokens, 32),
        "past_key": random(2, 2, past, 16),
        "past_value": random(2, 2, past, 16),
    }


@pytest.mark.parametrize("form", ["sdpa", "eager"])
@pytest.mark.parametrize("copy_present", [False, True])
def test_past_becomes_an_input_of_the_node(form: Any, copy_present: bool) -> None:
    """Past 0, 3 and 20; one token and several. Present has the key heads, is exact, and keeps its name."""
    model = cached_model(Style(form=form, mask=masks.causal()), copy_present=copy_present)
    after, report = check_fused(model, given(3), given(0), given(20, 1))
    (node,) = attention_nodes(after)
    assert list(node.input[3:5]) == ["past_key", "past_value"]
    assert list(node.output) == [node.output[0], "present_key", "present_value"]
    assert report.sites[0].past and report.sites[0].kv_num_heads == 2
    assert not any(op.op_type in ("Concat", "Expand") for op in after.graph.node)
    wanted, got = run_both(model, after, given(7))
    for name in ("present_key", "present_value"):
        np.testing.assert_array_equal(got[name], wanted[name])
        assert got[name].shape == (2, 2, 12, 16)


def test_steps_equal_one_long_run() -> None:
    session = fused_session(fuse(cached_model())[0])
    whole = given(0, 9)
    expected = zyfa_ort.run(session, whole)
    step, past = dict(whole), {name: whole[name] for name in ("past_key", "past_value")}
    rows = []
    for window in (slice(0, 4), slice(4, 8), slice(8, 9)):
        step = {name: whole[name][:, window] for name in ("query", "key", "value")}
        found = zyfa_ort.run(session, step | past)
        rows.append(found["output"])
        past = {f"past_{name}": found[f"present_{name}"] for name in ("key", "value")}
    assert_same_numbers(np.concatenate(rows, axis=1), expected["output"])
    np.testing.assert_array_equal(past["past_key"], expected["present_key"])


def test_past_reordered_for_beams() -> None:
    model = cached_model(reorder=True)
    beams = {"beams": np.array([1, 1])}
    after, report = check_fused(model, given(3) | beams)
    assert report.sites[0].past
    assert any(node.op_type == "Gather" for node in after.graph.node)


@pytest.mark.parametrize("cached", [("key",), ("value",)])
def test_half_a_cache_is_joined_outside(cached: tuple[str, ...]) -> None:
    """The operator takes both halves or none; here the other half has the same length for past 0 only."""
    after, report = fuse(cached_model(cached=cached))
    names = {f"past_{name}" for name in ("key", "value")} - {f"past_{name}" for name in cached}
    feeds = {name: array for name, array in given(0).items() if name not in names}
    wanted, got = run_both(cached_model(cached=cached), after, feeds)
    for name in wanted:
        assert_same_numbers(got[name], wanted[name])
    assert not any(site.past for site in report.sites)


@pytest.mark.parametrize("what", ["rope after the join", "past of constants"])
def test_joins_that_are_no_cache(what: str) -> None:
    """Keys changed after the join, or joined with a stored prefix: the Concat stays and its result is the key."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    if what == "past of constants":
        prefix = graph.constant(np.random.default_rng(0).standard_normal((2, 2, 3, 16)), np.float32)
        past_key = past_value = prefix
    else:
        past_key, past_value = (
            graph.input(f"past_{one}", np.float32, ["batch", 2, "past", 16]) for one in ("key", "value")
        )
    k = join(graph, past_key, split_heads(graph, key, 2, 16), "k")
    v = join(graph, past_value, split_heads(graph, value, 2, 16), "v")
    if what == "rope after the join":
        k = graph.op("Sin", k)
    k, v = (repeat_heads(graph, one, SIZES, 16, "expand") for one in (k, v))
    q = split_heads(graph, query, 4, 16)
    style = Style(mask=masks.causal())
    out = from_heads(graph, q, graph.transpose(k, 0, 1, 3, 2), v, SIZES, style)
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, ["batch", "tokens", 64])
    feeds = {one.name: given(3)[one.name] for one in graph.inputs}
    _, report = check_fused(graph.model(), feeds)
    assert not report.sites[0].past and report.sites[0].kv_num_heads == 2


def test_the_joined_keys_have_another_reader() -> None:
    """The Concat stays for it; the model's output still comes from the node."""
    model = cached_model()
    model.graph.node.append(onnx.helper.make_node("Abs", ["present_key"], ["loud"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("loud", 1, ["batch", 2, "total_of_key", 16]))
    after, _ = check_fused(model, given(3))
    assert list(attention_nodes(after)[0].output[1:]) == ["present_key", "present_value"]


def test_a_cache_shared_by_two_layers() -> None:
    """A second attention on the same keys and values: both take past and new, one of them makes the present."""
    graph = Graph()
    query, key, value = inputs(graph, SIZES)
    graph.input("other", np.float32, ["batch", "tokens", 64])
    k, v = (
        join(
            graph,
            graph.input(f"past_{name}", np.float32, ["batch", 2, "past", 16]),
            split_heads(graph, new, 2, 16),
            f"present_{name}",
        )
        for name, new in (("key", key), ("value", value))
    )
    for name in ("present_key", "present_value"):
        graph.output(name, np.float32, ["batch", 2, "total", 16])
    k, v = (repeat_heads(graph, one, SIZES, 16, "expand") for one in (k, v))
    k_t = graph.transpose(k, 0, 1, 3, 2)
    for name, source in (("output", query), ("second", "other")):
        style = Style(form="sdpa", mask=masks.causal())
        out = from_heads(graph, split_heads(graph, source, 4, 16), k_t, v, SIZES, style)
        graph.op("Identity", out, name=name)
        graph.output(name, np.float32, ["batch", "tokens", 64])
    feeds = given(3) | {"other": given(3, seed=5)["query"]}
    check_fused(graph.model(), feeds, fused=2)
