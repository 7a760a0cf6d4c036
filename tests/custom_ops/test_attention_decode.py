"""A few rows against a long cache: K and V in place, in their own type, and cut into parts (docs/performance.md)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from custom_ops.expected import check_attention
from custom_ops.op_session import run_attention
from custom_ops.problems import Sizes, gaussian
from onnx import TensorProto

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "fp32": (np.float32, {}),
    "float16 in fp32": (np.float16, {"precision": "fp32"}),
    "bfloat16 in fp32": (BF16, {"precision": "fp32"}),
    "bf16": (BF16, {"precision": "bf16"}),
    "float16 in bf16": (np.float16, {"precision": "bf16"}),
    "fp8": (E4M3, {"precision": "fp8", "out_dtype": TensorProto.FLOAT}),
    "e4m3 in fp32": (E4M3, {"precision": "fp32", "out_dtype": TensorProto.FLOAT}),
    "fp8 of floats": (np.float32, {"precision": "fp8"}),
    "bf16 edges": (np.float32, {"precision": "fp8", "fp8_edges": "bf16"}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("group", [1, 3, 4, 5])
@pytest.mark.parametrize("past", [0, 63, 200])
def test_one_row(kind: str, group: int, past: int) -> None:
    """Up to four rows of a key head have products of their own; five do not."""
    dtype, attributes = KINDS[kind]
    sizes = Sizes(batch=2, heads=2 * group, kv_heads=2, q_len=1, kv_len=70, head_dim=64, past=past)
    check_attention(gaussian(sizes, dtype), **attributes)


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize("q_len", [1, 2, 3, 4, 16])
@pytest.mark.parametrize("kv_len", [2047, 2048, 5000])
def test_parts_of_a_long_cache(kind: str, q_len: int, kv_len: int) -> None:
    """From 2,048 keys on, FP32 and BF16 go through parts of the keys that are merged afterwards."""
    dtype, attributes = KINDS[kind]
    check_attention(gaussian(Sizes(batch=1, q_len=q_len, kv_len=kv_len, head_dim=32), dtype), **attributes)


@pytest.mark.parametrize("dims", [(40, 24), (192, 128), (8, 8), (80, 80), (256, 256)])
@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp8"])
def test_head_dims(kind: str, dims: tuple[int, int]) -> None:
    dtype, attributes = KINDS[kind]
    sizes = Sizes(q_len=1, kv_len=150, head_dim=dims[0], v_head_dim=dims[1])
    check_attention(gaussian(sizes, dtype), **attributes)


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("window", [0, 100, 1500])
def test_parts_without_a_visible_key(kind: str, window: int) -> None:
    """A window or a mask leaves some parts, or all, with nothing to add."""
    dtype, attributes = KINDS[kind]
    inputs = gaussian(Sizes(q_len=2, kv_len=4100, head_dim=16), dtype)
    check_attention(inputs, window_left=window, **attributes)
    mask = np.zeros((2, 4100), bool)
    mask[0, 1024:1030] = True
    check_attention({**inputs, "key_mask": mask}, **attributes)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp8 of floats"])
def test_what_is_hidden_does_not_matter(kind: str, poison: float) -> None:
    """In place or not, NaN and infinity of masked keys change no bit."""
    dtype, attributes = KINDS[kind]
    inputs = gaussian(Sizes(q_len=1, kv_len=4100, head_dim=16), dtype)
    mask = np.random.default_rng(0).random((2, 4100)) < 0.6
    inputs["key_mask"] = mask
    clean = run_attention(inputs, **attributes)
    for name in ("key", "value"):
        inputs[name][~mask] = poison
    dirty = run_attention(inputs, **attributes)
    for name, output in clean.items():
        np.testing.assert_array_equal(dirty[name], output, err_msg=name)


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("q_len", [1, 8])
@pytest.mark.parametrize("hidden", [1024, 2048])
def test_finite_minima_hide_whole_parts(kind: str, q_len: int, hidden: int) -> None:
    """A bias of -3.4e38, as exported masks have it: too large for log2 units, and still a number."""
    inputs = {name: np.zeros((1, n, 2, 16), np.float32) for name, n in (("query", q_len), ("key", 2048))}
    inputs["value"] = np.full((1, 2048, 2, 16), 3, np.float32)
    inputs["value"][:, :1024] = 1
    bias = np.zeros((1, 1, q_len, 2048), np.float32)
    bias[..., :hidden] = np.finfo(np.float32).min
    got = run_attention(
        {**inputs, "attn_bias": bias},
        is_causal=0,
        outputs=("output", "lse"),
        precision=KINDS[kind][1].get("precision", "fp32"),
    )
    np.testing.assert_allclose(got["output"], 3 if hidden == 1024 else 2, rtol=1e-3)
    wanted = np.log(1024) if hidden == 1024 else np.finfo(np.float32).min
    np.testing.assert_allclose(got["lse"], wanted, rtol=1e-3)


def test_nan_of_one_part_reaches_the_row() -> None:
    inputs = gaussian(Sizes(batch=1, q_len=1, kv_len=4096, head_dim=16))
    inputs["value"][0, 3000, 0, 5] = np.nan
    output = check_attention(inputs)["output"]
    assert np.isnan(output[0, 0, :2, 5]).all() and np.isfinite(output[0, 0, :2, :5]).all()
    inputs["key"][0, 100, 1, 0] = np.nan
    output = check_attention(inputs)["output"]
    assert np.isnan(output[0, 0, 2:]).all() and np.isfinite(output[0, 0, :2, :5]).all()


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp8"])
def test_bits_do_not_depend_on_threads(kind: str) -> None:
    dtype, attributes = KINDS[kind]
    inputs = gaussian(Sizes(batch=1, q_len=1, kv_len=5000, head_dim=64), dtype)
    one, two, seven = (
        run_attention(inputs, threads=threads, **attributes)["output"].tobytes() for threads in (1, 2, 7)
    )
    assert one == two == seven
