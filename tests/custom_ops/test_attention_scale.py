"""scale absent, given, zero, negative; scores far beyond the range of 16-bit floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import assert_close, check_attention
from custom_ops.op_session import run_attention
from custom_ops.problems import Sizes, gaussian
from ml_dtypes import bfloat16
from reference.attention import attention

PRECISIONS = ("fp32", "bf16", "fp8")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("scale", "wanted"), [(None, 0.88080), (1.0, 0.98201), (0.5, 0.88080), (-1.0, 0.01799), (0.0, 0.5)]
)
def test_scale_by_hand(precision: str, scale: float | None, wanted: float) -> None:
    """q = k0 = (1, 1, 1, 1), k1 = 0, V = [1, 0]: sigmoid(4 scale); absent means 1/sqrt(4)."""
    inputs = {
        "query": np.ones((1, 1, 1, 4), np.float32),
        "key": np.array([[1] * 4, [0] * 4], np.float32).reshape(1, 2, 1, 4),
        "value": np.array([[1] * 4, [0] * 4], np.float32).reshape(1, 2, 1, 4),
    }
    attributes: dict[str, Any] = {} if scale is None else {"scale": scale}
    actual = check_attention(inputs, is_causal=0, precision=precision, **attributes)["output"]
    np.testing.assert_allclose(actual, wanted, atol={"fp32": 1e-5, "bf16": 2e-3, "fp8": 2e-3}[precision])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("scale", [0.0, -0.0, -0.3, 1e-3, 2.0])
@pytest.mark.parametrize("softcap", [0.0, 5.0])
def test_scale_is_used_as_given(precision: str, scale: float, softcap: float) -> None:
    inputs = gaussian(Sizes(q_len=150, kv_len=200))
    check_attention(inputs, precision=precision, scale=scale, softcap=softcap)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_scale_zero_weighs_all_visible_keys_alike(precision: str) -> None:
    inputs = gaussian(Sizes(q_len=130, kv_len=130))
    inputs["value"] = np.zeros_like(inputs["value"]) + np.arange(130)[None, :, None, None] % 16
    inputs["value"] = inputs["value"].astype(np.float32)
    actual = run_attention(inputs, precision=precision, scale=0.0)["output"]
    means = np.cumsum(np.arange(130) % 16) / np.arange(1, 131)
    tolerance = 0.05 if precision == "fp8" else 1e-5  # FP8 rounds the values 0..15 themselves
    np.testing.assert_allclose(actual, means[None, :, None, None] + np.zeros_like(actual), rtol=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32])
@pytest.mark.parametrize("size", [30.0, 100.0, 200.0])
def test_scores_beyond_the_range_of_float16(dtype: Any, size: float) -> None:
    """128 products of 900 to 40,000 overflow float16 before the factor 1/sqrt(d) could save them."""
    inputs = {
        "query": np.full((1, 1, 1, 128), size),
        "key": np.stack([np.full(128, size), np.full(128, size - 0.1)]).reshape(1, 2, 1, 128),
        "value": np.stack([np.ones(128), np.zeros(128)]).reshape(1, 2, 1, 128),
    }
    inputs = {name: array.astype(dtype) for name, array in inputs.items()}
    wanted = attention(**inputs, is_causal=0).output
    actual = run_attention(inputs, is_causal=0, precision="fp32")["output"]
    assert np.isfinite(actual.astype(np.float32)).all()
    np.testing.assert_allclose(actual.astype(np.float64), wanted, atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_large_inputs_stay_finite(dtype: Any, precision: str) -> None:
    """Random entries of up to 200: rows become one-hot, not NaN."""
    rng = np.random.default_rng(0)
    inputs = {
        name: (200 * rng.uniform(-1, 1, (1, 70, 2, 128))).astype(dtype) for name in ("query", "key", "value")
    }
    actual = check_attention(inputs, precision=precision)["output"]
    assert np.isfinite(actual.astype(np.float32)).all()


def test_float32_scores_of_hundreds() -> None:
    """Logits of +-300 nats: one-hot rows and a few near ties."""
    inputs = gaussian(Sizes(q_len=64, kv_len=64, head_dim=64), spread=80)
    wanted = attention(**inputs).output
    assert_close(run_attention(inputs)["output"], wanted, "fp32_large_scores")
