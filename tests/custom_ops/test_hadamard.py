"""ZyfaHadamard: x H / sqrt(n) over the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.op_session import Array, run_op
from ml_dtypes import bfloat16
from reference.fp8_quantise import hadamard

SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 512, 2048]


def rotate(x: Array) -> Array:
    """One run."""
    return run_op("ZyfaHadamard", {"x": x}, {"y": x.dtype}, {})["y"]


def matrix(n: int) -> Array:
    """Sylvester's matrix by definition: entry (i, j) is -1 to the number of common one bits, over sqrt(n)."""
    index = np.arange(n)
    ones = np.array([[bin(i & j).count("1") for j in index] for i in index])
    return (-1.0) ** ones / np.sqrt(n)


@pytest.mark.parametrize("n", SIZES[:-1])
def test_against_the_matrix(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((3, 5, n)).astype(np.float32)
    wanted = (
        np.concatenate([part @ matrix(64) for part in np.split(x, 3, axis=-1)], -1)
        if n == 192
        else x @ matrix(n)
    )
    np.testing.assert_allclose(rotate(x), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", SIZES)
def test_bits_of_the_written_butterfly(n: int) -> None:
    """Stages h = 1, 2, 4, ... in FP32 and one multiplication by fl(1/sqrt(n))."""
    x = (100 * np.random.default_rng(n).standard_normal((4, n))).astype(np.float32)
    np.testing.assert_array_equal(rotate(x), hadamard(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("n", SIZES)
def test_types(dtype: Any, n: int) -> None:
    """Computed in FP32, rounded once."""
    x = np.random.default_rng(0).standard_normal((2, 3, n)).astype(dtype)
    wanted = hadamard(x.astype(np.float32)).astype(dtype)
    assert rotate(x).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
@pytest.mark.parametrize("n", [1, 2, 16])
def test_every_16_bit_pattern(dtype: Any, n: int) -> None:
    """Each stands beside zeros: subnormals, infinities and what overflows on the way, and NaN stays NaN."""
    x = np.zeros((65536, n), dtype)
    x[:, -1] = np.arange(65536, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = hadamard(x.astype(np.float32)).astype(dtype)
    got, nan = rotate(x), np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got.view(np.uint16)[~nan], wanted.view(np.uint16)[~nan])


@pytest.mark.parametrize("rows", [255, 256, 257, 1000])
def test_rows_of_several_tasks(rows: int) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 4)).astype(np.float32)
    np.testing.assert_array_equal(
        run_op("ZyfaHadamard", {"x": x}, {"y": x.dtype}, {}, threads=2)["y"], hadamard(x)
    )


@pytest.mark.parametrize("n", [64, 192])
def test_rotating_twice_gives_the_input_and_products_stay(n: int) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((6, n)).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(rotate(rotate(q)), q, atol=1e-5)
    np.testing.assert_allclose(rotate(q) @ rotate(k).T, q @ k.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(8,), (0, 8), (2, 0, 8), (2, 3, 4, 5, 8)])
def test_any_rank_and_zero_lengths(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(rotate(x), hadamard(x) if x.size else x)


def test_nan_spoils_its_own_row_only() -> None:
    x = np.ones((3, 64), np.float32)
    x[1, 5] = np.nan
    y = rotate(x)
    assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()
