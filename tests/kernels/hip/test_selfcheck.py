"""The self-check kernels on the emulated device against NumPy. A finding of severity error fails a launch."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.asm.output_check import kernels_of
from zyfa_ort.kernels.emulator import launch
from zyfa_ort.kernels.errors import EmulationError

SOURCE = Path(__file__).parents[3] / "kernels" / "hip" / "selfcheck.hip"
KERNELS = ["vector_add", "lds_reduction", "gemm_bf16", "quantize_fp8_f32", "quantize_fp8_bf16"]


@pytest.fixture(scope="module")
def code() -> bytes:
    return compile_hip(SOURCE)


def groups(items: int, size: int) -> tuple[int]:
    return (-(-items // size),)


def test_all_kernels_are_there(code):
    assert sorted(kernels_of(code)) == sorted(KERNELS)


def test_the_shipped_code_object_is_this_source(code):
    if "selfcheck" not in code_objects.names():
        pytest.skip("code objects are built with the package (pip install .)")
    assert code_objects.load("selfcheck") == code


def test_a_missing_code_object_is_named():
    with pytest.raises(
        code_objects.MissingCodeObjectError, match=r"expected nothing.co among the built ones, found"
    ):
        code_objects.path("nothing")


# --- vector_add


@pytest.mark.parametrize("block", [64, 256, 320, 1024])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_vector_add(code, count, block):
    rng = np.random.default_rng(count)
    a, b = rng.standard_normal((2, count), np.float32)
    a[0], b[-1] = np.inf, np.nan
    out = np.full(count, 7, np.float32)
    launch(code, "vector_add", groups(count, block), (block,), [a, b, out, count])
    np.testing.assert_array_equal(out, a + b)


def test_vector_add_leaves_the_rest_alone(code):
    a, b, out = np.ones(256, np.float32), np.ones(256, np.float32), np.zeros(256, np.float32)
    launch(code, "vector_add", (2,), (128,), [a, b, out, 130])
    np.testing.assert_array_equal(out, np.repeat(np.float32([2, 0]), [130, 126]))


def test_a_count_beyond_the_buffer_is_an_access_error(code):
    a, b, out = (np.zeros(64, np.float32) for _ in range(3))
    with pytest.raises(EmulationError, match="vector_add"):
        launch(code, "vector_add", (1,), (128,), [a, b, out, 65])


def test_denormals_are_kept(code):
    a = np.float32([1e-40, -1e-40, 1.1754944e-38, 0])
    b = np.float32([1e-41, 1e-41, -1e-45, -0.0])
    out = np.empty(4, np.float32)
    launch(code, "vector_add", (1,), (64,), [a, b, out, 4])
    np.testing.assert_array_equal(out.view(np.uint32), (a + b).view(np.uint32))


# --- lds_reduction


def tree_sums(values: np.ndarray, block: int) -> np.ndarray:
    """Sums per block in the kernel's order: item i takes item i + stride, stride halving."""
    padded = np.zeros(-(-len(values) // block) * block, np.float32)
    padded[: len(values)] = values
    rows = padded.reshape(-1, block)
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        rows = rows[:, :half] + rows[:, half:]
    return rows[:, 0]


@pytest.mark.parametrize("block", [1, 2, 64, 128, 512, 1024])
@pytest.mark.parametrize("count", [1, 700, 2049])
def test_lds_reduction(code, count, block):
    if count > 700 and block < 64:
        count = 129
    values = np.random.default_rng(block + count).standard_normal(count, np.float32)
    out = np.full(*groups(count, block), np.nan, np.float32)
    launch(code, "lds_reduction", groups(count, block), (block,), [values, out, count], dynamic_lds=4 * block)
    np.testing.assert_array_equal(out, tree_sums(values, block))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lds_reduction_in_any_order_of_waves(code, seed):
    values = np.random.default_rng(seed).standard_normal(3000, np.float32)
    out = np.empty(3, np.float32)
    result = launch(
        code,
        "lds_reduction",
        (3,),
        (1024,),
        [values, out, 3000],
        dynamic_lds=4096,
        order_seed=seed,
        threads=2,
    )
    np.testing.assert_array_equal(out, tree_sums(values, 1024))
    assert result.workgroups == 3


def test_too_little_dynamic_lds_is_found(code):
    values, out = np.ones(256, np.float32), np.empty(1, np.float32)
    with pytest.raises(EmulationError, match="lds_reduction"):
        launch(code, "lds_reduction", (1,), (256,), [values, out, 256], dynamic_lds=512)


# --- gemm_bf16


def gemm(code: bytes, a: np.ndarray, b: np.ndarray, **options: int) -> np.ndarray:
    (m, k), n = a.shape, b.shape[0]
    c = np.full((m, n), 1e30, np.float32)
    grid = (-(-n // 64), -(-m // 64))
    launch(code, "gemm_bf16", grid, (256,), [a.view(np.uint16), b.view(np.uint16), c, m, n, k], **options)
    return c


SHAPES = [(1, 1, 1), (64, 64, 32), (63, 65, 31), (65, 63, 33), (32, 96, 16), (7, 130, 100), (128, 64, 64)]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_gemm_of_small_integers_is_exact(code, m, n, k):
    rng = np.random.default_rng(m * n + k)
    a = rng.integers(-8, 9, (m, k)).astype(ml_dtypes.bfloat16)
    b = rng.integers(-8, 9, (n, k)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(gemm(code, a, b), a.astype(np.float32) @ b.astype(np.float32).T)


def test_gemm_of_real_numbers(code):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((70, 90)).astype(ml_dtypes.bfloat16) for _ in range(2))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    # One rounding of the sum per matrix instruction, and at most one per product inside it.
    bound = 90 * 2.0**-23 * (np.abs(wide_a) @ np.abs(wide_b).T)
    assert np.all(np.abs(gemm(code, a, b, order_seed=9) - wide_a @ wide_b.T) <= bound)


def test_gemm_keeps_nan_and_infinity_to_their_rows_and_columns(code):
    a, b = np.ones((40, 20), ml_dtypes.bfloat16), np.ones((50, 20), ml_dtypes.bfloat16)
    a[3, 7], a[33, 0], b[49, 19] = np.nan, np.inf, -np.inf
    expected = np.full((40, 50), 20.0, np.float32)
    expected[33], expected[:, 49], expected[33, 49], expected[3] = np.inf, -np.inf, np.nan, np.nan
    np.testing.assert_array_equal(gemm(code, a, b), expected)


def test_gemm_refuses_more_work_items_than_it_was_compiled_for(code):
    c = np.zeros((1, 1), np.float32)
    one = np.zeros((1, 1), np.uint16)
    with pytest.raises(EmulationError, match="512 work-items per workgroup, the kernel allows 256"):
        launch(code, "gemm_bf16", (1,), (512,), [one, one, c, 1, 1, 1])


# --- quantize_fp8


def to_e4m3(values: np.ndarray) -> np.ndarray:
    """Round to nearest even, ±448 beyond the range, NaN as NaN."""
    kept = np.where(np.isnan(values), values, np.clip(values, -448, 448)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        return kept.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def quantize(code: bytes, values: np.ndarray, scale: float = 1.0, block: int = 256) -> np.ndarray:
    kernel = "quantize_fp8_f32" if values.dtype == np.float32 else "quantize_fp8_bf16"
    source = values if values.dtype == np.float32 else values.view(np.uint16)
    out = np.full(values.size, 0xAA, np.uint8)
    launch(code, kernel, groups(values.size, 4 * block), (block,), [source, out, scale, values.size])
    return out


def assert_same_codes(found: np.ndarray, expected: np.ndarray) -> None:
    """NaN may come with either sign."""
    nan = (expected & 0x7F) == 0x7F
    np.testing.assert_array_equal(found[~nan], expected[~nan])
    assert np.all((found[nan] & 0x7F) == 0x7F)


# fmt: off
EDGES = np.float32([
    0, -0.0, 1, -1, 448, -448, 449, 463.9, 464, 465, 1e30, -1e30, np.inf, -np.inf, np.nan, 2**-6, 2**-9, 2**-10,
    2**-10 * 1.001, 2**-11, -(2**-9), 1e-40, -1e-40, 17, 18, 19, 1.0625, 1.1875, 0.0146484375, 240, 256, 3.4e38,
])
# fmt: on


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 31, 32])
def test_quantize_edges_and_tails(code, count):
    for begin in range(0, len(EDGES), count):
        values = EDGES[begin : begin + count]
        assert_same_codes(quantize(code, values), to_e4m3(values))


@pytest.mark.parametrize("block", [64, 192, 1024])
@pytest.mark.parametrize("scale", [1.0, 0.37, 4096.0])
def test_quantize_f32(code, scale, block):
    rng = np.random.default_rng(block)
    values = (rng.standard_normal(4111) * np.exp2(rng.integers(-14, 12, 4111))).astype(np.float32)
    assert_same_codes(quantize(code, values, scale, block), to_e4m3(values * np.float32(scale)))


def test_quantize_ties_go_to_even(code):
    codes = np.arange(0x00, 0x7E, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    above = np.arange(0x01, 0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    ties = np.concatenate([(codes + above) / 2, -(codes + above) / 2])
    near = np.concatenate(
        [ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, -np.float32(np.inf))]
    )
    assert_same_codes(quantize(code, near), to_e4m3(near))


def test_quantize_every_bf16_value(code):
    values = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    assert_same_codes(quantize(code, values, block=1024), to_e4m3(values.astype(np.float32)))


@pytest.mark.slow
def test_quantize_a_million_floats(code):
    values = np.random.default_rng(3).integers(0, 1 << 32, 1 << 20, dtype=np.uint32).view(np.float32)
    assert_same_codes(quantize(code, values, block=1024), to_e4m3(values))
