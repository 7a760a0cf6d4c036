"""Key masks: rows that see nothing, gaps, batches of different length, NaN and infinity behind the mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import check_attention
from custom_ops.op_session import Array, run_attention
from custom_ops.problems import Sizes, counting, gaussian
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto

PRECISIONS = ("fp32", "bf16", "fp8")
EDGES = [("fp32", None), ("bf16", None), ("fp8", "hilo"), ("fp8", "bf16"), ("fp8", "none")]


def assert_same_bits(actual: dict[str, Array], wanted: dict[str, Array]) -> None:
    """What may not matter does not change the last bit of anything."""
    for name, array in wanted.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name, strict=True)


def edges(name: str | None) -> dict[str, str]:
    """The attribute, where the precision has it."""
    return {} if name is None else {"fp8_edges": name}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
def test_a_row_without_a_visible_key_gives_zeros(precision: str, dtype: Any) -> None:
    """Five keys, V = 0..4: a batch entry whose mask is all False gives 0 (not NaN), the other the mean 2."""
    one = counting(5, rows=2, dtype=dtype)
    inputs = {name: np.concatenate([array, array]) for name, array in one.items()}
    inputs["key_mask"] = np.array([[False] * 5, [True] * 5])
    actual = run_attention(inputs, ("output", "lse"), precision=precision, is_causal=0)
    assert not actual["output"][0].astype(np.float32).any()
    assert np.all(actual["lse"][0] == -np.inf)
    np.testing.assert_allclose(actual["output"][1].astype(np.float32), 2, rtol=3e-2)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_causal_and_left_padding_by_hand(precision: str) -> None:
    """Mask [F, T, T], three causal rows, V = [1, 2, 4]: 0, 2, 3."""
    inputs = counting(3, rows=3)
    inputs["value"] = np.array([1, 2, 4], np.float32)[None, :, None, None] * np.ones((1, 3, 1, 4), np.float32)
    inputs["key_mask"] = np.array([[False, True, True]])
    actual = run_attention(inputs, precision=precision)["output"]
    np.testing.assert_allclose(actual[0, :, 0, 0], [0, 2, 3], rtol=1e-3)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("pattern", ["00111111", "11111100", "01100101", "11111111", "00000001", "10000000"])
@pytest.mark.parametrize("repeat", [1, 40])
def test_left_right_and_gappy_padding(precision: str, is_causal: int, pattern: str, repeat: int) -> None:
    """Each bit stands for 1 key, or for 40 so that whole tiles disappear."""
    mask = np.repeat([int(bit) for bit in pattern], repeat)
    inputs = gaussian(Sizes(heads=2, kv_heads=2, q_len=len(mask), kv_len=len(mask)))
    inputs["key_mask"] = np.stack([mask, mask[::-1]]).astype(np.int64)
    check_attention(inputs, precision=precision, is_causal=is_causal)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_batch_of_different_lengths(precision: str) -> None:
    """True lengths 33, 1, 17 and 0 in one batch: each row equals the entry run alone at its length."""
    lengths = (33, 1, 17, 0)
    inputs = gaussian(Sizes(batch=4, q_len=33, kv_len=33))
    inputs["key_mask"] = np.arange(33) < np.array(lengths)[:, None]
    whole = check_attention(inputs, precision=precision)["output"]
    assert not whole[3].any()
    for b, length in enumerate(lengths[:3]):
        if precision == "fp8":  # padded queries are part of the quantisation scale of Q
            continue
        alone = {name: inputs[name][b : b + 1, :length] for name in ("query", "key", "value")}
        output = run_attention(alone, precision=precision)["output"]
        np.testing.assert_allclose(whole[b : b + 1, :length], output, rtol=1e-5, atol=1e-6)
    inputs["query"][0] += 1
    inputs["key"][0] *= 2
    inputs["value"][0] = 7
    assert run_attention(inputs, precision=precision)["output"][1:].tobytes() == whole[1:].tobytes()


@pytest.mark.parametrize(("precision", "edge"), EDGES)
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 3e38, -3.4028234e38])
@pytest.mark.parametrize("is_causal", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_what_is_behind_the_key_mask_never_matters(
    precision: str, edge: str | None, poison: float, is_causal: int
) -> None:
    inputs = gaussian(Sizes(heads=2, kv_heads=1, q_len=100, kv_len=150))
    mask = np.random.default_rng(0).random((2, 150)) < 0.6
    mask[0, :70] = False
    inputs["key_mask"] = mask
    attributes = {"precision": precision, "is_causal": is_causal, **edges(edge)}
    clean = check_attention(inputs, ("output", "lse"), **attributes)
    for name in ("key", "value"):
        inputs[name] = np.where(mask[:, :, None, None], inputs[name], np.float32(poison))
    dirty = check_attention(inputs, ("output", "lse"), **attributes)
    assert_same_bits(dirty, clean)


@pytest.mark.parametrize(("precision", "edge"), EDGES)
@pytest.mark.parametrize("alignment", ["bottom_right", "top_left"])
def test_what_is_outside_the_causal_range_never_matters(
    precision: str, edge: str | None, alignment: str
) -> None:
    """Keys after the last row's position (top-left, more keys than queries) and left of every window."""
    inputs = gaussian(Sizes(q_len=100, kv_len=300))
    window = 40
    attributes: dict[str, Any] = {
        "precision": precision,
        "causal_alignment": alignment,
        "window_left": window,
        **edges(edge),
    }
    clean = check_attention(inputs, ("output", "lse"), **attributes)
    first = 200 if alignment == "bottom_right" else 0
    for name in ("key", "value"):
        inputs[name][:, first + 100 :] = np.nan
        inputs[name][:, : max(0, first - window)] = np.nan
    dirty = check_attention(inputs, ("output", "lse"), **attributes)
    assert_same_bits(dirty, clean)


@pytest.mark.parametrize(("precision", "edge"), EDGES)
@pytest.mark.parametrize("name", ["key", "value"])
def test_nan_reaches_the_rows_that_see_it_and_no_other(precision: str, edge: str | None, name: str) -> None:
    """NaN at key 70: causal rows 0..69 stay to the bit, rows from 70 on are NaN (in V: its channel only)."""
    inputs = gaussian(Sizes(batch=1, heads=2, kv_heads=1, q_len=150, kv_len=150))
    attributes = {"precision": precision, **edges(edge)}
    clean = run_attention(inputs, ("output", "lse"), **attributes)
    inputs[name] = inputs[name].copy()
    inputs[name][0, 70, 0, 3] = np.nan
    dirty = check_attention(inputs, ("output", "lse"), **attributes)
    assert np.isfinite(dirty["output"][:, :70]).all()
    if name == "key":
        assert np.isnan(dirty["output"][:, 70:]).all()
        assert np.isnan(dirty["lse"][:, :, 70:]).all()
        np.testing.assert_array_equal(np.isnan(dirty["lse"][:, :, :70]), False)
    else:
        assert np.isnan(dirty["output"][:, 70:, :, 3]).all()
        others = np.delete(dirty["output"], 3, axis=3)
        clean["output"] = np.delete(clean["output"], 3, axis=3)
        assert_same_bits({"output": others, "lse": dirty["lse"]}, clean)


@pytest.mark.parametrize(("precision", "edge"), EDGES)
def test_nan_in_a_query_row_stays_in_its_row(precision: str, edge: str | None) -> None:
    inputs = gaussian(Sizes(batch=1, heads=2, kv_heads=1, q_len=100, kv_len=100))
    attributes = {"precision": precision, **edges(edge)}
    clean = run_attention(inputs, **attributes)["output"]
    inputs["query"][0, 40, 1, 0] = np.nan
    dirty = check_attention(inputs, ("output", "lse"), **attributes)["output"]
    assert np.isnan(dirty[0, 40, 1]).all()
    dirty[0, 40, 1] = clean[0, 40, 1]
    assert dirty.tobytes() == clean.tobytes()


def test_nan_codes_of_fp8_inputs_stay_in_their_row() -> None:
    inputs = gaussian(Sizes(batch=1, q_len=100, kv_len=100), float8_e4m3fn)
    inputs["query"][0, 40, 1, 0] = np.nan
    inputs["key"][0, 70, 0, 2] = np.nan
    inputs["value"][0, 90, 1, 5] = np.nan
    actual = check_attention(inputs, out_dtype=TensorProto.FLOAT)["output"]
    assert np.isnan(actual[0, 40, 1]).all() and np.isnan(actual[0, 70:, :2]).all()
    assert np.isnan(actual[0, 90:, 2:, 5]).all() and np.isfinite(actual[0, :, 2:, :5]).all()


@pytest.mark.parametrize(("precision", "edge"), EDGES)
@pytest.mark.parametrize("rows", ["all", "by batch"])
def test_masked_tiles_before_the_first_visible_one(precision: str, edge: str | None, rows: str) -> None:
    """Keys 0..255 of 512 hidden: a first tile without any visible key must not leave -inf - -inf behind."""
    inputs = gaussian(Sizes(q_len=60, kv_len=512))
    mask = np.ones((2, 512), bool)
    mask[:, :256] = False
    if rows == "by batch":
        mask[1] = True
    inputs["value"] = np.where(mask[:, :, None, None], np.float32(5), inputs["value"])
    inputs["key_mask"] = mask
    actual = check_attention(inputs, precision=precision, is_causal=0, **edges(edge))["output"]
    np.testing.assert_allclose(actual, 5, rtol=1e-2 if precision == "fp8" else 1e-5)
    mask[0] = False  # a length of 0 beside one of 512
    assert not run_attention(inputs, precision=precision, is_causal=0, **edges(edge))["output"][0].any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_masked_tiles_for_half_of_the_rows(precision: str) -> None:
    """The same by an additive mask that hides keys 0..255 from odd rows only."""
    inputs = gaussian(Sizes(batch=1, q_len=40, kv_len=512))
    bias = np.zeros((1, 1, 40, 512), np.float32)
    bias[:, :, 1::2, :256] = -np.inf
    inputs["attn_bias"] = bias
    check_attention(inputs, precision=precision, is_causal=0)


@pytest.mark.parametrize("rows", [1, 3, 200])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_score_of_minus_infinity_counts_nothing(precision: str, rows: int) -> None:
    """Of an infinite key. Unlike a hidden key it still meets its values: 0 times NaN is NaN."""
    inputs = gaussian(Sizes(q_len=rows, kv_len=300, head_dim=16), np.float32)
    inputs["query"] = np.abs(inputs["query"])
    inputs["key"][:, 7] = -np.inf
    outputs = ("output", "lse")
    visible = np.arange(300) != 7
    wanted = run_attention(
        {**inputs, "key_mask": np.stack([visible] * len(inputs["key"]))},
        outputs=outputs,
        is_causal=0,
        precision=precision,
    )
    got = run_attention(inputs, outputs=outputs, is_causal=0, precision=precision)
    assert_same_bits(got, wanted)
    inputs["value"][:, 7] = np.nan
    assert np.isnan(run_attention(inputs, is_causal=0, precision=precision)["output"]).all()
    inputs["key"][:] = -np.inf
    inputs["value"][:, 7] = 1
    nothing = run_attention(inputs, outputs=outputs, is_causal=0, precision=precision)
    assert not nothing["output"].any()
    assert (nothing["lse"] == -np.inf).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_softcap_comes_before_the_mask(precision: str) -> None:
    """Scores 0 and 0, key 1 masked, cap 2, V = [0, 1]: exactly 0; capping a masked -inf would give 0.119."""
    inputs: dict[str, Array] = {
        "query": np.zeros((1, 1, 1, 4), np.float32),
        "key": np.ones((1, 2, 1, 4), np.float32),
        "value": np.array([0, 1], np.float32)[None, :, None, None] * np.ones((1, 2, 1, 4), np.float32),
    }
    for mask in (
        {"key_mask": np.array([[True, False]])},
        {"attn_bias": np.array([[[[0, -np.inf]]]], np.float32)},
    ):
        actual = run_attention({**inputs, **mask}, precision=precision, softcap=2.0, is_causal=0)["output"]
        assert not actual.any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_additive_mask_of_half_precision(precision: str) -> None:
    """-65504 on keys 2 and 3, scores of -20, V = [1, 2, 50, 60]: 1.5, though the sum leaves float16."""
    inputs = {
        "query": np.full((1, 1, 1, 4), 1, np.float16),
        "key": np.full((1, 4, 1, 4), -10, np.float16),
        "value": np.array([1, 2, 50, 60], np.float16)[None, :, None, None]
        * np.ones((1, 4, 1, 4), np.float16),
        "attn_bias": np.array([[[[0, 0, -65504, -65504]]]], np.float16),
    }
    actual = run_attention(inputs, precision=precision, is_causal=0)["output"]
    np.testing.assert_allclose(actual.astype(np.float32), 1.5, rtol=5e-2 if precision == "fp8" else 1e-3)
    with np.errstate(over="ignore"):
        inputs["attn_bias"] = inputs["attn_bias"] + inputs["attn_bias"]  # -inf in float16
    actual = run_attention(inputs, precision=precision, is_causal=0)["output"]
    np.testing.assert_allclose(actual.astype(np.float32), 1.5, rtol=5e-2 if precision == "fp8" else 1e-3)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_row_of_finite_minima_is_a_row_of_equal_keys(precision: str) -> None:
    """-3.4e38 on every key of a row hides none of them, unlike -inf; NaN does not arise."""
    inputs = counting(4, rows=2)
    bias = np.zeros((1, 1, 2, 4), np.float32)
    bias[:, :, 0] = np.finfo(np.float32).min
    bias[:, :, 1] = -np.inf
    inputs["attn_bias"] = bias
    actual = run_attention(inputs, ("output", "lse"), precision=precision, is_causal=0)
    np.testing.assert_allclose(actual["output"][0, :, 0, 0], [1.5, 0], rtol=3e-2)
    assert actual["lse"][0, 0, 1] == -np.inf
