"""The general BF16 prefill kernels on the emulated device: softcap, bias, scales of any sign."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.hip.prefill_launch import KERNELS, assert_same_as_cpu, bias, check, gaussian, run
from ml_dtypes import bfloat16
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.output_check import kernels_of

from kernels.hip import prefill_launch

DIMS = list(KERNELS)
LOWEST = float(np.finfo(np.float32).min)


@pytest.fixture(scope="module")
def code() -> bytes:
    return prefill_launch.code(prefill_launch.GENERAL)


def test_all_kernels_are_there(code):
    assert sorted(kernels_of(code)) == sorted(f"bf16_prefill_{name}_general" for name in KERNELS.values())


def test_the_shipped_code_object_is_this_source(code):
    if "bf16_prefill_general" not in code_objects.names():
        pytest.skip("code objects are built with the package (pip install .)")
    assert code_objects.load("bf16_prefill_general") == code


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("softcap", [1e-3, 1.0, 30.0, 1e6])
def test_softcap(dims, softcap):
    check(gaussian((1, 1, 1), 40, 130, dims), softcap=softcap)


def test_softcap_of_large_scores():
    check(gaussian((1, 1, 1), 40, 130), softcap=50.0, scale=1e4)


@pytest.mark.parametrize("scale", [0.0, -0.1, -1.0, 1e-38, 0.7, 1.0, 30.0])
@pytest.mark.parametrize("dims", [(64, 64), (128, 128)])
def test_scales(dims, scale):
    check(gaussian((1, 2, 1), 70, 130, dims), scale=scale)


# --- bias


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_bias(dims, dtype, is_causal):
    tensors = gaussian((2, 2, 1), 45, 131, dims)
    check({**tensors, "attn_bias": bias((2, 2, 45, 131), dtype, 0.2)}, is_causal=is_causal)


@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
@pytest.mark.parametrize(
    "shape", [(1,), (131,), (45, 1), (1, 131), (2, 1, 131), (2, 1, 1, 131), (2, 1, 45, 1), (1, 2, 45, 131)]
)
def test_bias_broadcasts(dtype, shape):
    tensors = gaussian((2, 2, 1), 45, 131)
    check({**tensors, "attn_bias": bias(shape, dtype)}, is_causal=0)


@pytest.mark.parametrize("keys", [1, 3, 63, 64, 65, 127, 129])
@pytest.mark.parametrize("queries", [1, 31, 33, 127, 129])
def test_bias_ends_where_its_rows_do(queries, keys):
    check(
        {**gaussian((1, 1, 1), queries, keys, (64, 64)), "attn_bias": bias((queries, keys), bfloat16)},
        is_causal=0,
    )


def test_the_lowest_float_on_every_key_leaves_equal_keys_equal():
    tensors = gaussian((1, 1, 1), 40, 100)
    output, lse, result = run({**tensors, "attn_bias": np.full((40, 100), LOWEST, np.float32)}, is_causal=0)
    assert not result.findings
    mean = tensors["value"].astype(np.float64).mean(axis=1, keepdims=True)
    prefill_launch.assert_near(output, np.broadcast_to(mean, output.shape), "bf16")
    np.testing.assert_allclose(lse, LOWEST, rtol=1e-6)


def test_a_bias_of_minus_infinity_hides_nan():
    tensors = gaussian((1, 1, 1), 40, 130)
    mask = np.random.default_rng(3).random((1, 1, 40, 130)) < 0.5
    mask[..., 100] = True
    tensors["key"][0, 100], tensors["value"][0, 100] = np.nan, np.nan
    values = np.where(mask, -np.inf, 0).astype(np.float32)
    output, _ = check({**tensors, "attn_bias": values}, is_causal=0)
    assert np.isfinite(output).all()


def test_a_row_whose_biases_are_all_minus_infinity_gives_zeros():
    values = np.zeros((40, 130), np.float32)
    values[7] = -np.inf
    output, lse = check({**gaussian((1, 1, 1), 40, 130), "attn_bias": values}, is_causal=0)
    assert not output[0, 7].any()
    assert lse[0, 0, 7] == -np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_reach_the_rows_whose_bias_shows_them(bad):
    tensors = gaussian((1, 1, 1), 40, 130)
    tensors["value"][0, 70, 0, 5] = bad
    values = np.zeros((40, 130), np.float32)
    values[::2, 70] = -np.inf
    output, _ = check({**tensors, "attn_bias": values}, is_causal=0)
    np.testing.assert_array_equal(np.isfinite(output[0, :, 0, 5]), np.arange(40) % 2 == 0)


@pytest.mark.parametrize("problem", [{"softcap": 20.0}, {"scale": -0.2}, {}], ids=str)
def test_the_cpu_operator_answers_the_same(problem):
    tensors = gaussian((1, 4, 2), 70, 150, (128, 128))
    assert_same_as_cpu({**tensors, "attn_bias": bias((4, 70, 150), bfloat16, 0.1)}, **problem)
