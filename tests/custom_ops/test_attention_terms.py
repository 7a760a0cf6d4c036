"""FP32 attention of many rows: where the processor has AMX its products are sums of products of bfloat16 terms.

They must be no less exact than FP32, and values that terms cannot stand for must come out as elsewhere. Sizes are
of many heads on one key head, so that few rows are enough for terms to be worth their cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import assert_close, check_attention
from custom_ops.op_session import Array, run_attention
from custom_ops.problems import Sizes, gaussian
from custom_ops.test_instruction_sets import run
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto
from reference.attention import attention

# Lane blocks of a panel: 1 to 4; dims that fill steps of 32, of 16 and neither; keys that end in the middle of a tile.
SIZES = (
    Sizes(batch=1, heads=32, kv_heads=1, q_len=9, kv_len=9, head_dim=128),
    Sizes(batch=2, heads=16, kv_heads=1, q_len=23, kv_len=131, head_dim=112, v_head_dim=80),
    Sizes(batch=1, heads=6, kv_heads=2, q_len=150, kv_len=150, head_dim=100, v_head_dim=72, past=45),
    Sizes(batch=1, heads=3, kv_heads=1, q_len=111, kv_len=300, head_dim=192, v_head_dim=128),
    Sizes(batch=1, heads=2, kv_heads=1, q_len=333, kv_len=333, head_dim=64, v_head_dim=40),
)
SMALL = Sizes(batch=1, heads=4, kv_heads=1, q_len=80, kv_len=150, head_dim=128)


def row_errors(actual: Array, wanted: Array) -> Array:
    """Of each row, relative to the row."""
    difference = np.linalg.norm(actual.astype(np.float64) - wanted, axis=-1)
    return difference / np.linalg.norm(wanted, axis=-1)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16], ids=["float", "float16", "bfloat16"])
def test_every_width_of_panel_and_tile(dtype: Any, sizes: Sizes) -> None:
    inputs = gaussian(sizes, dtype)
    check_attention(inputs, precision="fp32")
    mask = np.random.default_rng(1).random((sizes.batch, sizes.past + sizes.kv_len)) < 0.7
    check_attention({**inputs, "key_mask": mask}, window_left=60, precision="fp32")


@pytest.mark.parametrize("sizes", SIZES[1:4], ids=str)
@pytest.mark.parametrize(
    "attributes",
    [{"scale": -0.1}, {"scale": 0.0}, {"softcap": 5.0}, {"is_causal": 0}, {"causal_alignment": "top_left"}],
    ids=str,
)
def test_scales_caps_and_shapes_of_the_mask(attributes: dict[str, Any], sizes: Sizes) -> None:
    check_attention(gaussian(sizes), precision="fp32", **attributes)


def test_bias_and_sinks() -> None:
    rng = np.random.default_rng(2)
    inputs = gaussian(SMALL)
    bias = rng.standard_normal((1, SMALL.heads, SMALL.q_len, SMALL.kv_len)).astype(np.float32)
    bias[..., ::3] = -np.inf
    sinks = rng.standard_normal(SMALL.heads).astype(np.float32)
    check_attention({**inputs, "attn_bias": bias, "sinks": sinks}, precision="fp32")


def test_stored_fp8_values() -> None:
    check_attention(gaussian(SIZES[1], float8_e4m3fn), precision="fp32", out_dtype=TensorProto.FLOAT)


@pytest.mark.parametrize("spread", [0.01, 1.0, 4.0])
def test_errors_are_those_of_fp32(spread: float) -> None:
    """An FP32 dot product of 128 dims is off by about 2^-24 * sqrt(128) of its terms' size, which a score passes on."""
    inputs = gaussian(Sizes(batch=1, heads=8, kv_heads=2, q_len=300, kv_len=300, head_dim=128), spread=spread)
    inputs["query"][..., -1] = 0  # the outlier channel would hide the others
    actual = run_attention(inputs, precision="fp32")["output"]
    errors = row_errors(actual, attention(**inputs, precision="fp32").output)
    assert np.sqrt(np.mean(errors**2)) < 4e-7 * max(spread, 1)


# What a tile or a row holds that terms cannot stand for: not finite, too large, too small.
STRANGE = (np.nan, np.inf, -np.inf, 1e30, 1e36, 1e-20, 1e-38, 1e-42)


def check_strange(inputs: dict[str, Array], **attributes: Any) -> None:
    """Infinities and NaN where float64 has them, the rest within the tolerance."""
    actual = run_attention(inputs, precision="fp32", **attributes)["output"].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = attention(**inputs, precision="fp32", **attributes).output
    infinite = np.isinf(wanted)
    np.testing.assert_array_equal(actual[infinite], wanted[infinite])
    assert_close(
        np.where(infinite, 0, actual).astype(np.float32), np.where(infinite, 0, wanted), "fp32_large_scores"
    )


@pytest.mark.parametrize("value", STRANGE)
@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_one_strange_element(name: str, value: float) -> None:
    """In the second tile of keys, or in a row that only some panels have."""
    inputs = gaussian(SMALL)
    inputs[name][0, 75, 0, 3] = value
    check_strange(inputs)


@pytest.mark.parametrize("value", STRANGE)
@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_rows_of_strange_elements(name: str, value: float) -> None:
    inputs = gaussian(SMALL)
    inputs[name][0, 70:80] = value
    check_strange(inputs, scale=0.1 / value if abs(value) > 1 and np.isfinite(value) else None)


@pytest.mark.parametrize("exponent", [-120, -60, -41, -39, 20, 49, 51, 100])
def test_tensors_of_one_size(exponent: int) -> None:
    """K scaled by a power of two that the scale takes back; V scaled."""
    inputs = gaussian(SMALL)
    factor = np.float32(2.0) ** np.float32(exponent)
    check_attention({**inputs, "key": inputs["key"] * factor}, precision="fp32", scale=0.125 / float(factor))
    check_attention({**inputs, "value": inputs["value"] * factor}, precision="fp32")


def test_the_largest_values_of_many_dims() -> None:
    """Sums of 256 products that are just finite in FP32."""
    inputs = gaussian(Sizes(batch=1, heads=4, kv_heads=1, q_len=64, kv_len=64, head_dim=256))
    inputs["query"][:] = inputs["key"][:] = np.nextafter(np.float32(2.0**60), np.float32(0))
    check_attention(inputs, precision="fp32", scale=1e-38)


def test_subnormal_products_that_the_scale_makes_large() -> None:
    """One key of usual size beside others that are not."""
    inputs = gaussian(SMALL)
    tiny = np.float32(2.0**-110)
    inputs["key"][:, 1:] *= tiny
    inputs["query"][:, :, :, 0] = 0
    inputs["key"][:, 0, :, 1:] = 0
    check_attention(inputs, precision="fp32", scale=2.0**107)


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float", "float16"])
def test_few_rows_of_many_dims(dtype: Any) -> None:
    """Enough work for terms, but Q as rows and K and V in place."""
    sizes = Sizes(batch=1, heads=1, kv_heads=1, q_len=4, kv_len=70, head_dim=8192)
    check_attention(gaussian(sizes, dtype, spread=0.1), precision="fp32", is_causal=0)


def test_a_strange_query_leaves_other_rows_alone() -> None:
    inputs = gaussian(SMALL)
    before = run_attention(inputs, precision="fp32")["output"]
    inputs["query"][0, 5] = np.nan
    after = run_attention(inputs, precision="fp32")["output"]
    rows = np.arange(SMALL.q_len) != 5
    assert np.isnan(after[0, 5]).all()
    np.testing.assert_allclose(after[0, rows], before[0, rows], rtol=0, atol=2e-6)


def test_threads_do_not_show() -> None:
    inputs = gaussian(Sizes(batch=2, heads=8, kv_heads=2, q_len=200, kv_len=200, head_dim=128))
    inputs["key"][0, 70, 0, 0] = np.inf
    outputs = [
        run_attention(inputs, precision="fp32", threads=threads)["output"].tobytes() for threads in (1, 2, 3)
    ]
    assert len(set(outputs)) == 1


def main() -> None:
    """Prints the bytes of an output, and which set made it."""
    outputs = run_attention(gaussian(SMALL), precision="fp32")
    print(outputs["output"].tobytes().hex())


def test_terms_are_in_use() -> None:
    """They round otherwise than multiply-adds do: or the tests above see nothing of them."""
    terms, multiply_adds = (run(name, "custom_ops.test_attention_terms") for name in ("amx_bf16", "avx512"))
    assert terms.returncode == 0 == multiply_adds.returncode, terms.stderr[-2000:]
    assert terms.stdout != multiply_adds.stdout


if __name__ == "__main__":
    main()
