"""attn_bias: NumPy broadcasting to (B, Hq, Sq, Sp + Sk), added after scale and softcap; -inf hides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import check_attention
from custom_ops.op_session import run_attention
from custom_ops.problems import Sizes, gaussian
from ml_dtypes import bfloat16

PRECISIONS = ("fp32", "bf16", "fp8")
SHAPES = [
    (6,),
    (4, 6),
    (1, 1, 4, 6),
    (2, 1, 4, 6),
    (1, 3, 4, 6),
    (2, 3, 4, 6),
    (2, 1, 1, 6),
    (3, 4, 6),
    (1,),
    (),
]
SHAPES += [(2, 3, 4, 1), (3, 1, 1)]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_broadcasting(precision: str, shape: tuple[int, ...]) -> None:
    inputs = gaussian(Sizes(heads=3, kv_heads=1, q_len=4, kv_len=6))
    inputs["attn_bias"] = (2 * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    check_attention(inputs, precision=precision, is_causal=0)
    check_attention(inputs, precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("softcap", [0.0, 3.0])
def test_bias_with_everything_else(precision: str, dtype: Any, softcap: float) -> None:
    """Past, key mask, window, softcap and a bias over several tiles."""
    inputs = gaussian(Sizes(heads=4, kv_heads=2, q_len=70, kv_len=70, past=80), dtype)
    rng = np.random.default_rng(0)
    bias = 3 * rng.standard_normal((1, 4, 70, 150))
    bias[rng.random(bias.shape) < 0.3] = -np.inf
    inputs["attn_bias"] = bias.astype(dtype)
    inputs["key_mask"] = rng.random((2, 150)) < 0.8
    check_attention(inputs, precision=precision, softcap=softcap, window_left=90)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_bias_of_linear_distance(precision: str) -> None:
    """ALiBi: a slope per head times the distance; values grow to -150, the recent keys decide."""
    inputs = gaussian(Sizes(heads=4, kv_heads=4, q_len=300, kv_len=300))
    distance = np.arange(300)[None, :] - np.arange(300)[:, None]
    inputs["attn_bias"] = (2.0 ** -np.arange(1, 5)[:, None, None] * distance).astype(np.float32)[None]
    check_attention(inputs, precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_masks_of_minus_infinity_equal_key_masks(precision: str) -> None:
    """The same keys hidden by attn_bias and by key_mask: the same answer, all-hidden rows zero."""
    inputs = gaussian(Sizes(q_len=80, kv_len=80))
    mask = np.random.default_rng(0).random((2, 80)) < 0.5
    mask[1, :30] = False
    by_mask = run_attention({**inputs, "key_mask": mask}, ("output", "lse"))
    bias = np.where(mask, 0, -np.inf).astype(np.float32)[:, None, None]
    by_bias = run_attention({**inputs, "attn_bias": bias}, ("output", "lse"))
    for name in by_mask:
        np.testing.assert_allclose(by_bias[name], by_mask[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_what_is_behind_minus_infinity_never_matters(precision: str, poison: float) -> None:
    """NaN and infinity only: a finite key that only a bias hides is part of the FP8 scale."""
    inputs = gaussian(Sizes(q_len=80, kv_len=80))
    hidden = np.zeros(80, bool)
    hidden[[3, 4, 70]] = True
    inputs["attn_bias"] = np.where(hidden, -np.inf, 0).astype(np.float32)
    for name in ("key", "value"):
        inputs[name][:, hidden] = 0
    clean = run_attention(inputs, ("output", "lse"), precision=precision)
    for name in ("key", "value"):
        inputs[name][:, hidden] = poison
    dirty = check_attention(inputs, ("output", "lse"), precision=precision)
    for name in clean:
        np.testing.assert_array_equal(dirty[name], clean[name], err_msg=name)


def test_minus_infinity_where_half_a_panel_is_at_its_edge() -> None:
    """Of 64 rows 32 meet a tile with bfloat16 values and 32 with codes; only the bias hides keys of that tile."""
    inputs = gaussian(Sizes(batch=1, heads=1, kv_heads=1, q_len=64, kv_len=224))
    inputs["attn_bias"] = np.where(np.arange(224) % 7 == 0, -np.inf, 0).astype(np.float32)
    check_attention(inputs, precision="fp8", fp8_edges="bf16")
