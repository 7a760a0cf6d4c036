"""Masks that are stored in the model, masks that callers may pass longer than the keys, and half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.problems import Sizes
from ml_dtypes import bfloat16
from reference.attention import attention as reference

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, feeds, one_attention
from graph_passes.graph import Graph
from graph_passes.running import (
    assert_same_numbers,
    attention_nodes,
    check_fused,
    fuse,
    fused_session,
    original_session,
    run_both,
)

SIZES = Sizes(batch=2, heads=2, kv_heads=2, q_len=7, kv_len=7)
ONE = Sizes(batch=1, heads=1, kv_heads=1, q_len=4, kv_len=4, head_dim=4)


def at_length(length: int) -> Sizes:
    return Sizes(batch=2, heads=2, kv_heads=2, q_len=length, kv_len=length)


def sliced_buffer(length: int, dtype: Any, as_bias: bool) -> masks.Masking:
    """nanoGPT: a stored triangle (1, 1, N, N), cut to the scores at run time."""

    def mask(graph: Graph, scores: str) -> str:
        data = np.tril(np.ones((length, length)))
        if as_bias:
            data = np.where(data, 0, masks.LOWEST)
        stored = graph.constant(data.reshape(1, 1, length, length), dtype)
        for axis in (2, 3):
            end = graph.length(scores, axis)
            stored = graph.op("Slice", stored, graph.integers(0), end, graph.integers(axis))
        if as_bias:
            return masks.add(graph, scores, stored)
        hidden = graph.op("Equal", stored, graph.constant(0, dtype))
        return graph.op("Where", hidden, graph.constant(-np.inf, np.float32), scores)

    return mask


@pytest.mark.parametrize(("dtype", "as_bias"), [(np.float32, True), (np.float32, False), (np.int64, False)])
@pytest.mark.parametrize("length", [32, 600])
def test_triangle_cut_from_a_buffer(dtype: Any, as_bias: bool, length: int) -> None:
    """Causal up to the end of the buffer. Beyond it the original fails; the fused model goes on, which a note says."""
    style = Style(mask=sliced_buffer(length, dtype, as_bias))
    model = one_attention(SIZES, style).model()
    sets = [feeds(at_length(n)) for n in (1, 7, 32)]
    after, report = check_fused(model, *sets)
    site = report.sites[0]
    assert site.mask == ("causal",)
    assert site.notes == (
        f"the original ends at {length} keys, where its stored mask ends; the fused node goes on",
    )
    assert not after.graph.initializer
    beyond = feeds(at_length(length + 1))
    with pytest.raises(Exception, match=r"Where|Add"):
        zyfa_ort.run(original_session(model), beyond)
    wanted = reference(**beyond, num_heads=2, kv_num_heads=2).output.astype(np.float32)
    assert_same_numbers(zyfa_ort.run(fused_session(after), beyond)["output"], wanted)


def test_a_buffer_that_is_no_triangle_stays_a_bias() -> None:
    """Causal for the first 30 positions, then a key that all rows see: only a look at the whole buffer tells."""

    def mask(graph: Graph, scores: str) -> str:
        data = np.where(np.tril(np.ones((64, 64))), 0, masks.LOWEST)
        data[:, 40] = 0
        stored = graph.constant(data, np.float32)
        for axis in (0, 1):
            end = graph.length(scores, axis + 2)
            stored = graph.op("Slice", stored, graph.integers(0), end, graph.integers(axis))
        return masks.add(graph, scores, stored)

    model = one_attention(SIZES, Style(mask=mask)).model()
    _, report = check_fused(model, feeds(SIZES), feeds(at_length(60)))
    assert report.sites[0].mask == ("bias",)


def constant_triangle(length: int, rank: int) -> masks.Masking:
    data = np.where(np.tril(np.ones((length, length))), 0, masks.LOWEST)
    return lambda graph, scores: masks.add(
        graph, scores, graph.constant(data.reshape((1,) * (rank - 2) + data.shape), np.float32)
    )


@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize("fixed", [True, False])
def test_constant_triangle_without_a_slice(rank: int, fixed: bool) -> None:
    """8 x 8 works at length 8 only; with free lengths in the model a note says that the fused node is not so strict."""
    model = one_attention(SIZES, Style(mask=constant_triangle(8, rank))).model()
    if fixed:
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[1].dim_value = 8
    _, report = check_fused(model, feeds(at_length(8)))
    site = report.sites[0]
    assert site.mask == ("causal",)
    words = "the original ends at 8 keys, where its stored mask ends; the fused node goes on"
    assert site.notes == (() if fixed else (words,))


def test_constant_mask_with_a_bias_in_it() -> None:
    data = np.random.default_rng(0).standard_normal((1, 2, 8, 8)).astype(np.float32)
    style = Style(mask=lambda graph, scores: masks.add(graph, scores, graph.constant(data)))
    _, report = check_fused(one_attention(SIZES, style).model(), feeds(at_length(8)))
    assert report.sites[0].mask == ("bias",)


def cut_mask(where: str) -> masks.Masking:
    """A (B, T) mask of which the first keys count: cut before or after it becomes a mask over (B, 1, S, T)."""

    def mask(graph: Graph, scores: str) -> str:
        name = graph.input("attention_mask", np.int64, ["batch", "keys"])
        end = graph.length(scores, -1)
        start, axis = graph.integers(0), graph.integers(-1)
        if where == "early":
            name = graph.op("Slice", name, start, end, axis)
        exists = graph.unsqueeze(graph.cast(name, np.bool_), 1, 2)
        hidden = graph.op("Not", exists)
        if where == "late":
            # One column per element of the mask, then the first ones.
            row = graph.unsqueeze(graph.range(graph.scalar_length(scores, -2)), 1)
            key = graph.unsqueeze(graph.range(graph.scalar_length(name, 1)), 0)
            hidden = graph.op("Or", graph.op("Greater", key, row), hidden)
            hidden = graph.op("Slice", hidden, start, end, axis)
        return masks.add(graph, scores, masks.fill(graph, hidden, masks.LOWEST, np.float32))

    return mask


@pytest.mark.parametrize("where", ["early", "late"])
def test_mask_longer_than_the_keys(where: str) -> None:
    """The original takes a mask for the whole buffer, so the fused model must."""
    model = one_attention(SIZES, Style(mask=cut_mask(where))).model()
    given = feeds(SIZES) | {"attention_mask": np.array([[1] * 7, [1, 1, 1, 1, 1, 0, 0]])}
    longer = given | {"attention_mask": np.pad(given["attention_mask"], ((0, 0), (0, 5)), constant_values=1)}
    after, report = check_fused(model, given, longer)
    assert "key mask" in report.sites[0].mask
    assert attention_nodes(after)[0].input[5] != "attention_mask"


def test_mask_whose_last_elements_count_stays_a_bias() -> None:
    """mask[:, -keys:] is neither the mask itself nor its first elements."""

    def mask(graph: Graph, scores: str) -> str:
        name = graph.input("attention_mask", np.int64, ["batch", "keys"])
        row = graph.unsqueeze(graph.range(graph.scalar_length(scores, -2)), 1)
        hidden = graph.op("Not", graph.unsqueeze(graph.cast(name, np.bool_), 1, 2))
        hidden = graph.op("Or", hidden, graph.op("Less", row, graph.constant(0, np.int64)))
        start = graph.op("Neg", graph.length(scores, -1))
        end, axis = graph.integers(2**62), graph.integers(-1)
        hidden = graph.op("Slice", hidden, start, end, axis)
        return masks.add(graph, scores, masks.fill(graph, hidden, masks.LOWEST, np.float32))

    model = one_attention(SIZES, Style(mask=mask)).model()
    given = feeds(SIZES) | {"attention_mask": np.array([[1] * 7, [0, 0, 1, 1, 1, 1, 1]])}
    longer = given | {"attention_mask": np.pad(given["attention_mask"], ((0, 0), (5, 0)))}
    _, report = check_fused(model, given, longer)
    assert report.sites[0].mask == ("bias",)


def low_scores() -> dict[str, np.ndarray]:
    """Scores of -20 everywhere, V = [1, 2, 50, 60]."""
    return {
        "query": np.full((1, 4, 4), -5, np.float16),
        "key": np.ones((1, 4, 4), np.float16),
        "value": np.repeat(np.array([1, 2, 50, 60], np.float16).reshape(1, 4, 1), 4, axis=2),
    }


def half_masks() -> dict[str, masks.Masking]:
    """Ways to hide keys 2 and 3 that overflow to -inf in float16."""

    def stored(graph: Graph, scores: str) -> str:
        return masks.add(graph, scores, graph.constant([0, 0, -65504, -65504], np.float16))

    def two_planes(graph: Graph, scores: str) -> str:
        plane = graph.constant([0, 0, -65504, -65504], np.float16)
        return masks.add(graph, scores, graph.op("Add", plane, graph.constant(plane_data, np.float16)))

    def cast(graph: Graph, scores: str) -> str:
        wide = graph.constant([0, 0, masks.LOWEST, masks.LOWEST], np.float32)
        return masks.add(graph, scores, graph.cast(wide, np.float16))

    plane_data = [0, 0, -65504, -65504]
    return {"added to scores": stored, "two planes": two_planes, "cast from float": cast}


@pytest.mark.parametrize("name", half_masks())
def test_masks_that_overflow_in_half_precision(name: str) -> None:
    """-65504 plus a score of -20 is -inf: the mean of the visible values is 1.5, and nothing is NaN."""
    style = Style(mask=half_masks()[name], scale_op="none")
    model = one_attention(ONE, style, np.float16).model()
    after, report = fuse(model)
    assert report.fused == 1
    got = zyfa_ort.run(fused_session(after), low_scores())["output"]
    np.testing.assert_array_equal(got, np.full((1, 4, 4), 1.5, np.float16))


@pytest.mark.parametrize("cast_mask", [False, True])
@pytest.mark.parametrize("scale", [100.0, 0.25])
def test_softmax_in_float_between_casts(cast_mask: bool, scale: float) -> None:
    """float16 products, Cast to float before the mask or after it: the node is float16 and keeps the factor."""
    sizes = Sizes(batch=2, heads=2, kv_heads=2, q_len=9, kv_len=9, head_dim=16)
    own = np.float16 if cast_mask else np.float32
    style = Style(
        scale=scale,
        scale_dtype=own,
        softmax_in=np.float32,
        cast_mask=cast_mask,
        mask=masks.causal(-1e4, dtype=own),
    )
    model = one_attention(sizes, style, np.float16).model()
    given = feeds(sizes, np.float16)
    given["query"] = (given["query"] * (0.01 / scale)).astype(np.float16)
    after, report = fuse(model)
    assert report.sites[0].scale == (None if scale == 0.25 else pytest.approx(100.0))
    got = zyfa_ort.run(fused_session(after), given)["output"]
    wanted = reference(**given, num_heads=2, kv_num_heads=2, scale=scale).output
    assert got.dtype == np.float16
    assert_same_numbers(got, wanted.astype(np.float16), "fp32_float16")


def test_scores_beyond_half_precision() -> None:
    """q.k = 115,200 overflows float16 in the original (NaN); the fused node accumulates in float."""
    sizes = Sizes(batch=1, heads=1, kv_heads=1, q_len=1, kv_len=2, head_dim=128)
    model = one_attention(sizes, Style(), np.float16, keys="keys").model()
    given = {"query": np.full((1, 1, 128), 30, np.float16), "key": np.full((1, 2, 128), 30, np.float16)}
    given["key"][:, 1] = 29.9
    given["value"] = np.repeat(np.array([1, 0], np.float16).reshape(1, 2, 1), 128, axis=2)
    after, _ = fuse(model)
    got = zyfa_ort.run(fused_session(after), given)["output"]
    wanted = reference(**given, num_heads=1, kv_num_heads=1, is_causal=0).output
    assert_same_numbers(got, wanted.astype(np.float16), "fp32_float16")


def test_bfloat16() -> None:
    """No oracle in ONNX Runtime's CPU provider: the float64 reference of the rounded inputs."""
    style = Style(form="sdpa", softmax_in=np.float32, mask=masks.causal(), scale_dtype=bfloat16)
    model = one_attention(SIZES, style, bfloat16).model()
    given = feeds(SIZES, bfloat16)
    after, report = fuse(model)
    assert (report.sites[0].mask, report.sites[0].scale) == (("causal",), None)
    got = zyfa_ort.run(fused_session(after), given)["output"]
    wanted = reference(**given, num_heads=2, kv_num_heads=2).output
    assert_same_numbers(got, wanted.astype(bfloat16), "fp32_bfloat16")


def test_double_stays_as_it_is() -> None:
    """The operator has no float64."""
    model = one_attention(SIZES, Style(), np.float64).model()
    after, report = fuse(model)
    assert (report.fused, report.declined) == (0, 1)
    wanted, got = run_both(model, after, feeds(SIZES, np.float64))
    np.testing.assert_array_equal(got["output"], wanted["output"])
    assert isinstance(after, onnx.ModelProto)
