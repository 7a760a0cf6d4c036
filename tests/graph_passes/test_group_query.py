"""GroupQueryAttention of ONNX Runtime: fused with the numbers of its own kernel, or declined; and what the fused node
refuses because the original does something else there."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import zyfa_ort
from graph_passes.contrib import Array, one_node, random_inputs
from graph_passes.refusing import check_declined
from graph_passes.running import (
    assert_same_numbers,
    attention_nodes,
    attribute,
    check_fused,
    fuse,
    fused_session,
    original_session,
)

HEADS, KV_HEADS, HEAD_DIM, WINDOW = 4, 2, 32, 5
WIDTH, KV_WIDTH = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
F32, I32 = np.float32, np.int32
PACKED: dict[str, Any] = {
    "query": (F32, ["batch", "queries", WIDTH + 2 * KV_WIDTH]),
    "key": None,
    "value": None,
}
APART: dict[str, Any] = {
    "query": (F32, ["batch", "queries", WIDTH]),
    "key": (F32, ["batch", "queries", KV_WIDTH]),
    "value": (F32, ["batch", "queries", KV_WIDTH]),
}
PAST = {name: (F32, ["batch", KV_HEADS, "past", HEAD_DIM]) for name in ("past_key", "past_value")}
COUNTS = {"seqlens_k": (I32, ["batch"]), "total_sequence_length": (I32, [])}
PRESENT = {name: ["batch", KV_HEADS, "total", HEAD_DIM] for name in ("present_key", "present_value")}
OUTPUTS = {"output": ["batch", "queries", WIDTH]} | PRESENT
NO_ROTARY = {"cos_cache": None, "sin_cache": None}
ORDER = (
    "position_ids",
    "attention_bias",
    "head_sink",
    "k_scale",
    "v_scale",
    "q_norm_weight",
    "k_norm_weight",
)


def tables(width: int) -> dict[str, Array]:
    """Rotary tables of 32 positions for `width` of each head's numbers."""
    angles = np.arange(32)[:, None] / 100.0 ** (np.arange(width // 2) / (width // 2))
    return {"cos_cache": np.cos(angles).astype(F32), "sin_cache": np.sin(angles).astype(F32)}


def group_query(
    tensors: dict[str, Any] = PACKED, rotary: int = 0, more: dict[str, Any] | None = None, **attributes: Any
) -> onnx.ModelProto:
    """rotary: how many numbers of each head are rotated. more: further inputs by name."""
    constants = tables(rotary) if rotary else {}
    inputs = tensors | PAST | COUNTS
    inputs |= {name: (F32, table.shape) for name, table in constants.items()} or NO_ROTARY
    inputs |= {name: (more or {}).get(name) for name in ORDER}
    while inputs and next(reversed(inputs.values())) is None:
        inputs.popitem()
    given = {"do_rotary": 1} if rotary else {}
    return one_node(
        "GroupQueryAttention",
        inputs,
        OUTPUTS,
        constants,
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        **given,
        **attributes,
    )


def inputs(
    model: onnx.ModelProto,
    batch: int,
    queries: int,
    past: int,
    counts: list[int] | None = None,
    seed: int = 0,
):
    total = queries + past
    given = {
        "seqlens_k": np.asarray(counts or [total] * batch, I32) - 1,
        "total_sequence_length": np.asarray(total, I32),
    }
    lengths = {"batch": batch, "queries": queries, "past": past, "total": total}
    return random_inputs(model, lengths, seed, **given)


CASES: dict[str, tuple[onnx.ModelProto, dict[str, Any]]] = {
    "packed": (group_query(), {"is_causal": 1, "kv_num_heads": KV_HEADS, "window_left": -1}),
    "apart": (group_query(APART), {"num_heads": HEADS}),
    "rotary": (group_query(rotary=HEAD_DIM), {}),
    "rotary of a part": (group_query(rotary=16), {}),
    "interleaved rotary": (group_query(APART, rotary=HEAD_DIM, rotary_interleaved=1), {}),
    "window": (group_query(local_window_size=WINDOW), {"window_left": WINDOW - 1}),
    "softcap": (group_query(softcap=1.5), {"softcap": 1.5}),
    "scale": (group_query(scale=0.5), {"scale": 0.5}),
    "sinks": (group_query(more={"head_sink": (F32, [HEADS])}), {}),
    "smooth softmax": (group_query(smooth_softmax=1), {}),
    "bias": (group_query(more={"attention_bias": (F32, ["batch", 1, "queries", "total"])}), {}),
    "everything": (
        group_query(
            APART, HEAD_DIM, {"head_sink": (F32, [HEADS])}, local_window_size=WINDOW, softcap=3.0, scale=0.3
        ),
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_prompt_chunk_and_decode(name: str) -> None:
    model, said = CASES[name]
    runs = [inputs(model, 2, 9, 0), inputs(model, 1, 6, 7), inputs(model, 3, 1, 8), inputs(model, 1, 1, 0)]
    fused, report = check_fused(model, *runs)
    (node,) = attention_nodes(fused)
    assert {key: attribute(node, key) for key in said} == said
    (site,) = report.sites
    assert site.past and any("right padding" in note for note in site.notes)


def test_token_counts_with_a_second_axis() -> None:
    model, _ = CASES["packed"]
    model = onnx.ModelProto.FromString(model.SerializeToString())
    (counts,) = (value for value in model.graph.input if value.name == "seqlens_k")
    counts.type.tensor_type.shape.dim.add().dim_value = 1
    feeds = inputs(model, 2, 9, 0)
    feeds["seqlens_k"] = feeds["seqlens_k"].reshape(2, 1)
    check_fused(model, feeds)


@pytest.mark.parametrize("name", ["packed", "rotary", "window", "sinks"])
def test_a_first_prompt_padded_on_the_right(name: str) -> None:
    """Rows beyond a sequence's own length mean nothing in the original and are not compared."""
    model, _ = CASES[name]
    after, _ = fuse(model)
    counts = [9, 4, 1]
    feeds = inputs(model, 3, 9, 0, counts)
    wanted, got = (
        zyfa_ort.run(one(held), feeds) for one, held in ((original_session, model), (fused_session, after))
    )
    for row, count in enumerate(counts):
        assert_same_numbers(got["output"][row, :count], wanted["output"][row, :count])
        for kept in PRESENT:
            assert_same_numbers(got[kept][row, :, :count], wanted[kept][row, :, :count])


@pytest.mark.parametrize(
    ("queries", "past", "total", "counts"),
    [
        (1, 6, 7, [7, 5]),  # the original puts the second row's new key at position 4
        (1, 12, 7, [7, 7]),  # a cache with room for more
    ],
    ids=["padded decode", "shared buffer"],
)
def test_runs_that_the_fused_node_refuses(queries: int, past: int, total: int, counts: list[int]) -> None:
    model, _ = CASES["packed"]
    after, _ = fuse(model)
    feeds = inputs(model, 2, queries, past, counts)
    feeds["total_sequence_length"] = np.asarray(total, I32)
    with pytest.raises(Exception, match=f"key_mask shape: expected 2x{past + queries}"):
        zyfa_ort.run(fused_session(after), feeds)


def windowed(**attributes: Any) -> onnx.ModelProto:
    model = group_query(local_window_size=WINDOW, sliding_window_cache=1, **attributes)
    for value in model.graph.output[1:]:
        value.type.tensor_type.shape.dim[2].dim_param = "past"
    return model


@pytest.mark.parametrize("capacity", [WINDOW, WINDOW + 2, WINDOW + 6])
@pytest.mark.parametrize("batch", [1, 2])
def test_windowed_cache_over_many_steps(capacity: int, batch: int) -> None:
    """Prompt, chunks and single tokens, each model with its own cache; rows of the cache behind the resident ones are
    not specified. With more than one batch row the original takes single tokens only once there is a past."""
    model = windowed(rotary=HEAD_DIM)
    after, report = fuse(model)
    assert report.fused == 1
    sessions = original_session(model), fused_session(after)
    empty = np.zeros((batch, KV_HEADS, capacity, HEAD_DIM), F32)
    caches = [{"past_key": empty, "past_value": empty} for _ in sessions]
    tokens = 0
    for step, new in enumerate((7, 1, 3, 1, 1, 4, 1) if batch == 1 else (7, 1, 1, 1, 1, 1, 1)):
        tokens += new
        feeds = inputs(model, batch, new, 0, [tokens] * batch, seed=step)
        feeds["total_sequence_length"] = np.asarray(tokens, I32)
        results = [zyfa_ort.run(one, feeds | cache) for one, cache in zip(sessions, caches, strict=True)]
        assert_same_numbers(results[1]["output"], results[0]["output"], what=f"step {step}")
        gap = capacity - WINDOW + 1
        resident = tokens - gap * -(-max(tokens - capacity, 0) // gap)
        for kept in PRESENT:
            wanted, got = results[0][kept], results[1][kept]
            assert got.shape == wanted.shape == empty.shape
            assert_same_numbers(got[:, :, :resident], wanted[:, :, :resident], what=f"step {step}")
        caches = [{"past_key": one["present_key"], "past_value": one["present_value"]} for one in results]


def test_norms_of_query_and_key_come_before_the_rotation() -> None:
    """ONNX Runtime's CPU kernel has no norms inside, so the oracle is the same node with the norms before it."""
    weights = {name: (F32, [HEAD_DIM]) for name in ("q_norm_weight", "k_norm_weight")}
    model = group_query(APART, HEAD_DIM, weights, qk_norm_epsilon=1e-3, k_norm_epsilon=1e-2)
    after, report = fuse(model)
    assert report.fused == 1
    feeds = inputs(model, 2, 9, 0)
    oracle = group_query(APART, HEAD_DIM)
    normed = dict(feeds)
    for name, which, epsilon in (("query", "q", 1e-3), ("key", "k", 1e-2)):
        by_head = feeds[name].reshape(2, 9, -1, HEAD_DIM).astype(np.float64)
        by_head = by_head / np.sqrt((by_head**2).mean(-1, keepdims=True) + epsilon)
        by_head = by_head * normed.pop(f"{which}_norm_weight")
        normed[name] = by_head.reshape(feeds[name].shape).astype(F32)
    wanted = zyfa_ort.run(original_session(oracle), normed)
    got = zyfa_ort.run(fused_session(after), feeds)
    for name in wanted:
        assert_same_numbers(got[name], wanted[name], what=name)


def test_lengths_are_counted_once_for_all_layers() -> None:
    """Two nodes on the same lengths share the nodes that make the key mask and the positions."""
    model = group_query(rotary=HEAD_DIM)
    second = onnx.NodeProto()
    second.CopyFrom(model.graph.node[0])
    second.name = "second"
    second.output[:] = [f"{name}_2" for name in second.output]
    model.graph.node.append(second)
    for value in list(model.graph.output):
        copy = onnx.ValueInfoProto()
        copy.CopyFrom(value)
        copy.name += "_2"
        model.graph.output.append(copy)
    fused, _ = check_fused(model, inputs(model, 2, 6, 0), inputs(model, 2, 1, 6), fused=2)
    kinds = [node.op_type for node in fused.graph.node]
    assert kinds.count("Range") == 1 and kinds.count("ReduceMin") == 1
    masks = {node.input[5] for node in attention_nodes(fused)}
    assert len(masks) == 1


REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "own positions": (
        group_query(rotary=HEAD_DIM, more={"position_ids": (np.int64, ["batch", "queries"])}),
        "its input position_ids is not read by this version",
    ),
    "rotary without tables": (group_query(do_rotary=1), "do_rotary without cos_cache and sin_cache"),
    "quantised cache": (
        group_query(k_quant_type="PER_TENSOR"),
        "k_quant_type PER_TENSOR: a quantised cache is not read",
    ),
    "scores": (group_query(qk_output=1), "its output 3, the scores, is used"),
    "later attribute": (group_query(temperature=2.0), "its attribute temperature is not understood"),
    "windowed without a window": (
        group_query(sliding_window_cache=1),
        "a windowed cache needs a window, a past and no attention_bias",
    ),
    "window of nothing": (
        group_query(local_window_size=0),
        "local_window_size: expected -1 or at least 1, got 0",
    ),
    "one norm": (
        group_query(more={"q_norm_weight": (F32, [HEAD_DIM])}),
        "one of q_norm_weight and k_norm_weight is missing",
    ),
    "width": (
        group_query({"query": (F32, ["batch", "queries", WIDTH + 1]), "key": None, "value": None}),
        f"a query of width {WIDTH + 1} does not hold {HEADS} and 2 x {KV_HEADS} heads",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    model, reason = REFUSED[name]
    check_declined(model, "attention", reason, node="attention")
