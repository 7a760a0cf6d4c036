"""Every length: nothing, one, around a tile, around a block, more queries than keys and fewer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import check_attention
from custom_ops.op_session import run_attention
from custom_ops.problems import Sizes, counting, gaussian
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto

PRECISIONS = ("fp32", "bf16", "fp8")
AROUND_TILES = (1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("length", AROUND_TILES)
@pytest.mark.parametrize("is_causal", [0, 1])
def test_self_attention(precision: str, length: int, is_causal: int) -> None:
    inputs = gaussian(Sizes(heads=2, kv_heads=1, q_len=length, kv_len=length, head_dim=32))
    check_attention(inputs, precision=precision, is_causal=is_causal)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("length", [511, 513, 1000, pytest.param(1023), pytest.param(1025)])
def test_longer_self_attention(precision: str, length: int) -> None:
    inputs = gaussian(Sizes(batch=1, heads=2, kv_heads=1, q_len=length, kv_len=length, head_dim=64))
    check_attention(inputs, precision=precision)


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("length", [*AROUND_TILES, 511, 513, 1000, 1023, 1025])
def test_self_attention_of_real_head_dims(precision: str, head_dim: int, is_causal: int, length: int) -> None:
    inputs = gaussian(Sizes(heads=2, kv_heads=1, q_len=length, kv_len=length, head_dim=head_dim))
    check_attention(inputs, precision=precision, is_causal=is_causal)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("alignment", ["bottom_right", "top_left"])
@pytest.mark.parametrize(
    ("q_len", "kv_len"), [(1, 200), (5, 64), (33, 65), (64, 1), (130, 66), (300, 290), (257, 700), (700, 129)]
)
def test_queries_and_keys_of_different_length(
    precision: str, alignment: str, q_len: int, kv_len: int
) -> None:
    """Both alignments; with bottom-right and more queries than keys the first rows see nothing: zeros."""
    inputs = gaussian(Sizes(batch=1, heads=2, kv_heads=1, q_len=q_len, kv_len=kv_len, head_dim=32))
    actual = check_attention(inputs, precision=precision, causal_alignment=alignment)
    if alignment == "bottom_right" and q_len > kv_len:
        assert not actual["output"][:, : q_len - kv_len].any()
        assert np.all(actual["lse"][:, :, : q_len - kv_len] == -np.inf)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("length", [1, 63, 64, 65, 129, 300])
def test_values_of_one_give_one(precision: str, length: int) -> None:
    """Probabilities sum to one in every precision: the sum is that of the rounded probabilities."""
    inputs = gaussian(Sizes(q_len=length, kv_len=length), spread=2)
    inputs["value"] = np.ones_like(inputs["value"])
    actual = run_attention(inputs, precision=precision)["output"]
    np.testing.assert_allclose(actual, 1, rtol=0, atol=1e-5)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_alignment_by_hand(precision: str) -> None:
    """Two queries, five keys, V = 0..4: bottom-right sees 4 and 5 keys, top-left 1 and 2."""
    inputs = counting(5, rows=2)
    for alignment, means in (("bottom_right", [1.5, 2.0]), ("top_left", [0.0, 0.5])):
        actual = run_attention(inputs, precision=precision, causal_alignment=alignment)["output"]
        np.testing.assert_allclose(actual[0, :, 0, 0], means, rtol=5e-2)  # FP8 rounds 3 itself


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16, float8_e4m3fn])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(kv_len=0),
        Sizes(q_len=0),
        Sizes(batch=0),
        Sizes(q_len=0, kv_len=0),
        Sizes(heads=0, kv_heads=0),
        Sizes(v_head_dim=8, kv_len=0, q_len=3),
    ],
    ids=lambda sizes: f"b{sizes.batch}h{sizes.heads}q{sizes.q_len}k{sizes.kv_len}",
)
def test_zero_lengths(dtype: Any, static: bool, sizes: Sizes) -> None:
    """No keys: zeros and lse = -inf. No queries, batch or heads: empty outputs."""
    inputs = gaussian(sizes, dtype)
    out = {"out_dtype": TensorProto.FLOAT} if dtype == float8_e4m3fn else {}
    for layout in ("BSHD", "BHSD"):
        if layout == "BHSD":
            inputs = {
                name: np.ascontiguousarray(array.swapaxes(1, 2)) if array.ndim == 4 else array
                for name, array in inputs.items()
            }
        actual = run_attention(
            inputs,
            ("output", "present_key", "present_value", "lse"),
            layout=layout,
            static_shapes=static,
            **out,
        )
        v_dim = sizes.v_head_dim or sizes.head_dim
        shape = (sizes.batch, sizes.q_len, sizes.heads, v_dim)
        assert actual["output"].shape == (shape if layout == "BSHD" else tuple(np.array(shape)[[0, 2, 1, 3]]))
        assert not actual["output"].astype(np.float32).any()
        assert np.all(actual["lse"] == -np.inf)
        assert actual["present_key"].shape == (sizes.batch, sizes.kv_heads, sizes.kv_len, sizes.head_dim)
        assert actual["present_value"].shape == (sizes.batch, sizes.kv_heads, sizes.kv_len, v_dim)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("q_len", "kv_len"), [(3, 0), (0, 3), (0, 0)])
def test_zero_lengths_in_packed_layout(precision: str, q_len: int, kv_len: int) -> None:
    inputs = gaussian(Sizes(q_len=q_len, kv_len=kv_len), rank=3)
    actual = run_attention(inputs, ("output", "lse"), precision=precision, num_heads=4, kv_num_heads=2)
    assert actual["output"].shape == (2, q_len, 64)
    assert not actual["output"].any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_values_without_a_head_dim(precision: str) -> None:
    """Dv = 0 is a legal zero length: an empty output and an honest lse."""
    inputs = gaussian(Sizes())
    inputs["value"] = inputs["value"][..., :0]
    actual = run_attention(inputs, ("output", "lse"), precision=precision)
    assert actual["output"].shape == (2, 70, 4, 0)
    assert np.isfinite(actual["lse"]).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_jump_at_a_tile_boundary(precision: str) -> None:
    """Key lengths 127 to 130: the error against float64 does not depend on where the last tile ends."""
    for kv_len in (127, 128, 129, 130):
        inputs = gaussian(Sizes(batch=1, q_len=40, kv_len=kv_len, head_dim=64), spread=2)
        check_attention(inputs, precision=precision)
