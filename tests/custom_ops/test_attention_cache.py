"""Past keys and values in, present ones out; prefill in one go, in chunks, and token by token."""

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
ALL = ("output", "present_key", "present_value", "lse")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16, float8_e4m3fn])
@pytest.mark.parametrize("past", [1, 3, 64, 100])
@pytest.mark.parametrize(("layout", "rank"), [("BSHD", 4), ("BHSD", 4), ("BSHD", 3)])
def test_past_and_present(dtype: Any, past: int, layout: str, rank: int) -> None:
    """present is past ++ new in (B, Hkv, S, D) with key heads unrepeated, whatever the layout of the rest."""
    inputs = gaussian(Sizes(q_len=40, kv_len=40, past=past, v_head_dim=24), dtype, layout=layout, rank=rank)
    attributes: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2} if rank == 3 else {"layout": layout}
    if dtype == float8_e4m3fn:
        attributes["out_dtype"] = TensorProto.FLOAT
    check_attention(inputs, ALL, **attributes)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_present_without_past_is_the_new_keys(precision: str) -> None:
    check_attention(gaussian(Sizes()), ALL, precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("static", [False, True])
def test_past_of_length_zero(precision: str, static: bool) -> None:
    inputs = gaussian(Sizes())
    without = run_attention(inputs, ALL, precision=precision)
    for name in ("key", "value"):
        inputs[f"past_{name}"] = np.zeros((2, 2, 0, 16), np.float32)
    given = run_attention(inputs, ALL, precision=precision, static_shapes=static)
    for name in ALL:
        assert given[name].tobytes() == without[name].tobytes()


def test_causal_with_past_by_hand() -> None:
    """Three past keys, two new queries, V = 0..4: 1.5 and 2."""
    inputs = counting(5, rows=2)
    inputs["past_key"] = inputs["key"][:, :3].swapaxes(1, 2).copy()
    inputs["past_value"] = inputs["value"][:, :3].swapaxes(1, 2).copy()
    inputs["key"], inputs["value"] = inputs["key"][:, 3:].copy(), inputs["value"][:, 3:].copy()
    actual = run_attention(inputs)["output"]
    np.testing.assert_allclose(actual[0, :, 0, 0], [1.5, 2.0], rtol=1e-6)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_new_tokens_after_a_past_with_mask_and_window(precision: str) -> None:
    inputs = gaussian(Sizes(q_len=30, kv_len=30, past=130))
    inputs["key_mask"] = np.random.default_rng(0).random((2, 160)) < 0.7
    check_attention(inputs, ALL, precision=precision, window_left=70)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_cross_attention_with_a_cache(precision: str) -> None:
    """Other key lengths than query lengths beside a past, causal and not."""
    for is_causal in (0, 1):
        inputs = gaussian(Sizes(q_len=20, kv_len=33, past=50))
        check_attention(inputs, ALL, precision=precision, is_causal=is_causal)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("chunks", [(100,), (60, 40), (33, 33, 33, 1), (97, 1, 1, 1)])
def test_chunked_prefill_and_decode_equal_one_long_run(precision: str, chunks: tuple[int, ...]) -> None:
    whole = gaussian(Sizes(q_len=100, kv_len=100))
    wanted = run_attention(whole, precision=precision)["output"]
    past: dict[str, Array] = {}
    start, outputs = 0, []
    for length in chunks:
        part = {name: whole[name][:, start : start + length].copy() for name in ("query", "key", "value")}
        step = run_attention({**part, **past}, ALL, precision=precision)
        past = {f"past_{name}": step[f"present_{name}"] for name in ("key", "value")}
        outputs.append(step["output"])
        start += length
    tolerance = 1e-5 if precision == "fp32" else 1e-2
    np.testing.assert_allclose(np.concatenate(outputs, axis=1), wanted, rtol=tolerance, atol=tolerance)
