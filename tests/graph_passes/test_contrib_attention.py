"""MultiHeadAttention and Attention of ONNX Runtime: fused with the numbers of its own kernels, or declined."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from graph_passes.contrib import Array, one_node, random_inputs
from graph_passes.refusing import check_declined
from graph_passes.running import attention_nodes, attribute, check_fused

HEADS, HEAD_DIM = 4, 16
WIDTH = HEADS * HEAD_DIM
LENGTHS = {"batch": 3, "queries": 7, "keys": 7, "past": 5, "total": 12}
F32, I32 = np.float32, np.int32
QKV = {
    "query": (F32, ["batch", "queries", WIDTH]),
    "key": (F32, ["batch", "keys", WIDTH]),
    "value": (F32, ["batch", "keys", WIDTH]),
}
SELF = {name: (F32, ["batch", "queries", WIDTH]) for name in ("query", "key", "value")}
PAST = {name: (F32, ["batch", HEADS, "past", HEAD_DIM]) for name in ("past_key", "past_value")}
OUTPUT = {"output": ["batch", "queries", WIDTH]}
PRESENT = {name: ["batch", HEADS, "total", HEAD_DIM] for name in ("present_key", "present_value")}
NONE: dict[str, Any] = {"bias": None, "key_padding_mask": None, "attention_bias": None}


def multi_head(
    inputs: dict[str, Any], outputs: dict[str, Any] = OUTPUT, **attributes: Any
) -> onnx.ModelProto:
    return one_node("MultiHeadAttention", inputs, outputs, num_heads=HEADS, **attributes)


def padding(lengths: dict[str, int], total: int) -> Array:
    """(B, total): right, left and no padding."""
    mask = np.ones((lengths["batch"], total), I32)
    mask[0, -2:] = 0
    mask[1, :3] = 0
    return mask


# Name -> model, further inputs, what the fused node says.
MULTI_HEAD: dict[str, tuple[onnx.ModelProto, dict[str, Any], dict[str, Any]]] = {
    "plain": (multi_head(SELF), {}, {"is_causal": 0}),
    "cross": (multi_head(QKV), {"keys": 11}, {"is_causal": 0}),
    "scale": (multi_head(SELF, scale=0.7), {}, {"scale": pytest.approx(0.7)}),
    "causal": (multi_head(SELF, unidirectional=1), {}, {"is_causal": 1}),
    "projection bias": (multi_head(SELF | {"bias": (F32, [3 * WIDTH])}), {}, {}),
    "attention bias": (
        multi_head(
            SELF | NONE | {"attention_bias": (F32, [1, HEADS, "queries", "queries"])},
        ),
        {},
        {},
    ),
    "key padding": (
        multi_head(SELF | {"bias": None, "key_padding_mask": (I32, ["batch", "queries"])}),
        {"key_padding_mask": padding(LENGTHS, 7)},
        {},
    ),
    "negative key padding": (
        multi_head(SELF | {"bias": None, "key_padding_mask": (I32, ["batch", "queries"])}),
        {"key_padding_mask": padding(LENGTHS, 7) * 2 - 1},
        {},
    ),
    "key lengths": (
        multi_head(SELF | {"bias": None, "key_padding_mask": (I32, ["batch"])}),
        {"key_padding_mask": np.array([7, 2, 5], I32)},
        {},
    ),
    "past": (
        multi_head(SELF | NONE | PAST, OUTPUT | PRESENT),
        {},
        {},
    ),
    "past, causal": (
        multi_head(SELF | NONE | PAST, OUTPUT | PRESENT, unidirectional=1),
        {},
        {"is_causal": 1, "causal_alignment": "bottom_right"},
    ),
    "past, key padding": (
        multi_head(SELF | NONE | {"key_padding_mask": (I32, ["batch", "total"])} | PAST, OUTPUT | PRESENT),
        {"key_padding_mask": padding(LENGTHS, 12)},
        {},
    ),
    "keys of rank 4": (
        multi_head(
            {"query": QKV["query"]}
            | {name: (F32, ["batch", HEADS, "keys", HEAD_DIM]) for name in ("key", "value")}
        ),
        {"keys": 9},
        {},
    ),
}


@pytest.mark.parametrize("name", MULTI_HEAD)
def test_multi_head_attention(name: str) -> None:
    model, more, said = MULTI_HEAD[name]
    arrays = {key: value for key, value in more.items() if isinstance(value, np.ndarray)}
    lengths = LENGTHS | {key: value for key, value in more.items() if isinstance(value, int)}
    fused, _ = check_fused(model, random_inputs(model, lengths, **arrays))
    (node,) = attention_nodes(fused)
    assert {key: attribute(node, key) for key in said} == said


def projecting(
    inputs: dict[str, Any] | None = None,
    widths: tuple[int, int, int] = (WIDTH, WIDTH, WIDTH),
    **attributes: Any,
) -> onnx.ModelProto:
    """Attention(input, weights, bias, ...) with an input of width 24."""
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((24, sum(widths))).astype(F32) / 5
    constants = {"weights": weights, "bias": rng.standard_normal(sum(widths)).astype(F32)}
    first: dict[str, Any] = {
        "input": (F32, ["batch", "queries", 24]),
        "weights": (F32, weights.shape),
        "bias": (F32, [sum(widths)]),
    }
    return one_node(
        "Attention",
        first | (inputs or {}),
        {"output": ["batch", "queries", widths[2]]},
        constants,
        num_heads=HEADS,
        **attributes,
    )


NO_PAST = {"mask_index": None, "past": None}
PROJECTING: dict[str, tuple[onnx.ModelProto, dict[str, Any]]] = {
    "plain": (projecting(), {}),
    "causal": (projecting(unidirectional=1), {}),
    "scale": (projecting(scale=0.2), {}),
    "key padding": (
        projecting({"mask_index": (I32, ["batch", "queries"])}),
        {"mask_index": padding(LENGTHS, 7)},
    ),
    "key lengths": (
        projecting({"mask_index": (I32, ["batch"])}),
        {"mask_index": np.array([7, 2, 5], I32)},
    ),
    "causal, key lengths": (
        projecting({"mask_index": (I32, ["batch"])}, unidirectional=1),
        {"mask_index": np.array([7, 2, 5], I32)},
    ),
    "attention bias": (
        projecting(NO_PAST | {"attention_bias": (F32, ["batch", HEADS, "queries", "queries"])}),
        {},
    ),
    "other width of values": (
        projecting(widths=(WIDTH, WIDTH, 2 * WIDTH), qkv_hidden_sizes=[WIDTH, WIDTH, 2 * WIDTH]),
        {},
    ),
}


@pytest.mark.parametrize("name", PROJECTING)
def test_attention_with_its_projection(name: str) -> None:
    model, arrays = PROJECTING[name]
    fused, _ = check_fused(model, random_inputs(model, LENGTHS, **arrays))
    kinds = [node.op_type for node in fused.graph.node]
    assert kinds.count("MatMul") == 1 and "Attention" not in kinds


def test_no_mask_at_all_is_written_as_one_of_zeros() -> None:
    """The optimizer hands Attention the token counts of an EmbedLayerNormalization that has no mask: all are 0."""
    rng = np.random.default_rng(0)
    tables = {name: rng.standard_normal((9, 24)).astype(F32) for name in ("words", "positions")}
    model = projecting({"mask_index": (I32, ["batch"])})
    norm = {name: rng.standard_normal(24).astype(F32) for name in ("gamma", "beta")}
    embed = helper.make_node(
        "EmbedLayerNormalization",
        ["ids", "", "words", "positions", "", "gamma", "beta"],
        ["input", "mask_index"],
        name="embed",
        domain="com.microsoft",
    )
    graph = model.graph
    graph.node.insert(0, embed)
    del graph.input[:]
    graph.input.append(helper.make_tensor_value_info("ids", onnx.TensorProto.INT32, ["batch", "queries"]))
    graph.initializer.extend(
        onnx.numpy_helper.from_array(held, name) for name, held in (tables | norm).items()
    )
    ids = np.random.default_rng(1).integers(0, 9, (3, 7)).astype(I32)
    # The original's scores are all 10,000 lower, where float32 has steps of 1e-3.
    check_fused(model, {"ids": ids}, tolerance="bf16")


REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "causal over other lengths": (
        multi_head(QKV, unidirectional=1),
        "its causal rule needs as many new keys as queries",
    ),
    "packed": (
        one_node(
            "MultiHeadAttention",
            {"query": (F32, ["batch", "queries", HEADS, 3, HEAD_DIM])},
            OUTPUT,
            num_heads=HEADS,
        ),
        "query, key and value in one tensor are not read by this version",
    ),
    "half a past": (
        multi_head(SELF | NONE | {"past_key": PAST["past_key"]}),
        "one half of the past is missing",
    ),
    "later attribute": (
        multi_head(SELF, temperature=2.0),
        "its attribute temperature is not understood",
    ),
    "filter that does not hide": (
        multi_head(
            SELF | {"bias": None, "key_padding_mask": (I32, ["batch", "queries"])}, mask_filter_value=-5.0
        ),
        "a key mask that adds -5 does not hide keys",
    ),
    "mask of three lengths": (
        multi_head(SELF | {"bias": None, "key_padding_mask": (I32, [11])}),
        "expected a key mask (batch, keys) or (batch), got [11]",
    ),
    "unknown past of both": (
        projecting({"mask_index": None, "past": (F32, [2, "batch", HEADS, "past", HEAD_DIM])}),
        "keys and values of a past in one tensor are not read by this version",
    ),
    "own rotary": (projecting(do_rotary=1), "its own rotary embedding is not read by this version"),
    "shared buffer": (
        projecting(past_present_share_buffer=1),
        "a past in a shared buffer is not read by this version",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    model, reason = REFUSED[name]
    check_declined(model, "attention", reason, node="attention")


def test_scores_that_are_read() -> None:
    outputs = OUTPUT | PRESENT | {"qk": ["batch", HEADS, "queries", "total"]}
    model = multi_head(SELF | NONE | PAST, outputs)
    check_declined(model, "attention", "its output 3, the scores, is used", node="attention")
