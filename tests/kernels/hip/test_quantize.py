"""quantize.hip on the emulated device: bytes and scales of the CPU operators, and of NumPy where those have no mask."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from custom_ops.op_session import run_op
from kernels.hip.quantize_launch import (
    GRANULARITIES,
    ITEMS,
    NAMES,
    SOURCE,
    Quantization,
    hadamard_block,
)
from ml_dtypes import bfloat16, float8_e4m3fn
from numpy.typing import NDArray
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.asm.output_check import kernels_of
from zyfa_ort.kernels.emulator import Device

Array = NDArray[Any]

DIMS = [64, 128, 192, 256]


@pytest.fixture(scope="module")
def code() -> bytes:
    return compile_hip(SOURCE)


def quantize(
    code: bytes, x: Array, *attributes: str, order_seed: int = 0, **more: Any
) -> tuple[Array, Array]:
    """Codes and scales by the two launches. No findings, not even warnings."""
    job = Quantization(x, *attributes, **more)
    device = Device()
    for name in job.kernels():
        result = device.launch(
            code, name, job.grid, ITEMS, job.buffers(), kernarg=job.packed, order_seed=order_seed
        )
        assert not result.findings, result.table()
    return job.codes, job.scale


def on_cpu(x: Array, granularity: str, rotation: str, layout: str) -> tuple[Array, Array]:
    """The operator of the CPU library."""
    attributes = {"granularity": granularity, "rotation": rotation, "layout": layout}
    outputs = {"y": float8_e4m3fn, "scale": np.float32}
    answer = run_op("ZyfaQuantizeFp8", {"x": x}, outputs, attributes)
    return answer["y"].view(np.uint8), answer["scale"]


def assert_same_codes(found: Array, expected: Array) -> None:
    """NaN may come with either sign."""
    nan = (expected & 0x7F) == 0x7F
    np.testing.assert_array_equal(found[~nan], expected[~nan])
    assert np.all((found[nan] & 0x7F) == 0x7F)


def assert_as_on_cpu(code: bytes, x: Array, *attributes: str, **options: Any) -> None:
    codes, scale = quantize(code, x, *attributes, **options)
    expected_codes, expected_scale = on_cpu(x, *attributes)
    np.testing.assert_array_equal(scale.view(np.uint32), expected_scale.view(np.uint32))
    assert_same_codes(codes, expected_codes)


def activations(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    """Gaussian, with two outlier channels and a sink row, as keys of language models have them."""
    x = np.random.default_rng(seed).standard_normal(shape)
    x[..., [5, 41]] *= 60
    x[:, :1] *= 25
    return x.astype(dtype)


def test_all_kernels_are_there(code: bytes) -> None:
    stems = ("quantize_amax", "quantize_convert", "hadamard")
    assert sorted(kernels_of(code)) == sorted(f"{stem}_{name}" for stem in stems for name in NAMES.values())


def test_the_shipped_code_object_is_this_source(code: bytes) -> None:
    if "quantize" not in code_objects.names():
        pytest.skip("code objects are built with the package (pip install .)")
    assert code_objects.load("quantize") == code


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("rotation", ["none", "hadamard"])
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_bits_of_the_cpu_operator(
    code: bytes, layout: str, dim: int, rotation: str, granularity: str
) -> None:
    shape = (2, 37, 3, dim) if layout == "BSHD" else (2, 3, 37, dim)
    dtype = [np.float32, np.float16, bfloat16][GRANULARITIES.index(granularity)]
    assert_as_on_cpu(code, activations(shape, dtype, dim), granularity, rotation, layout)


# A workgroup takes 2 * 256 chunks of eight elements at a time: 64 rows of 64, 32 of 128, 21.3 of 192, 16 of 256.
EDGES = [(64, 64), (128, 32), (192, 21), (256, 16)]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize(("dim", "tile"), EDGES)
def test_row_counts_around_a_workgroups_tile(code: bytes, dim: int, tile: int, dtype: Any) -> None:
    for rows in (0, 1, tile - 1, tile, tile + 1, 3 * tile + 2):
        x = activations((1, rows, 2, dim), dtype, rows)
        assert_as_on_cpu(code, x, "batch_head", "hadamard", "BSHD", blocks=1 + rows % 3)


@pytest.mark.parametrize("blocks", [1, 2, 5, 300])
def test_any_grid_and_order_gives_the_same_bits(code: bytes, blocks: int) -> None:
    x = activations((1, 130, 2, 128), bfloat16, 1)
    for granularity in GRANULARITIES:
        assert_as_on_cpu(code, x, granularity, "hadamard", "BSHD", blocks=blocks, order_seed=blocks)


@pytest.mark.parametrize("rotation", ["none", "hadamard"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
def test_nan_and_infinity(code: bytes, dtype: Any, rotation: str) -> None:
    x = activations((2, 9, 2, 64), dtype, 3)
    x[0, 3, 0, 7], x[0, 4, 0, 9], x[0, 4, 0, 40], x[1, 8, 1, 63] = np.nan, np.inf, -np.inf, -np.inf
    x[1, :, 0] = np.nan  # nothing finite at all
    for granularity in GRANULARITIES:
        assert_as_on_cpu(code, x, granularity, rotation, "BSHD")


def test_zeros_of_both_signs(code: bytes) -> None:
    x = np.zeros((1, 2, 1, 64), np.float32)
    x[0, 1, 0, ::2] = -0.0
    codes, scale = quantize(code, x)
    assert scale.tolist() == [[1.0]]
    np.testing.assert_array_equal(codes, np.where(np.signbit(x), 0x80, 0))


@pytest.mark.parametrize(
    "largest",
    [
        1e-45,
        1e-40,
        448 * 2.0**-126,
        5.3e-36,
        1.2e-37,
        448 * 2.0**-60,
        1e-15,
        1.0,
        447.99,
        3e19,
        3.3e38,
        3.4028235e38,
    ],
)
def test_scales_from_denormal_to_the_largest_float(code: bytes, largest: float) -> None:
    x = np.random.default_rng(4).uniform(-1, 1, (1, 40, 1, 64))
    x = (x * np.exp2(np.random.default_rng(5).integers(-16, 1, x.shape)) * largest).astype(np.float32)
    x[0, 11, 0, 3] = largest
    assert_as_on_cpu(code, x, "batch_head", "none", "BSHD")


def values_near_midpoints(scale: np.float32) -> Array:
    """Floats whose quotient by `scale` lies at the middle of two codes, and their neighbours."""
    every = np.arange(0x7E, dtype=np.uint8).view(float8_e4m3fn).astype(np.float64)
    middle = ((every[1:] + every[:-1]) / 2 * float(scale)).astype(np.float32)
    steps = [middle]
    for _ in range(3):
        steps += [np.nextafter(steps[-1], np.float32(np.inf))]
    down = [middle]
    for _ in range(3):
        down += [np.nextafter(down[-1], np.float32(0))]
    return np.concatenate(steps + down[1:])


def check_quotients(code: bytes, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    exponents = rng.integers(-110, 110, count)
    amax = (rng.uniform(1, 2, count) * np.exp2(exponents)).astype(np.float32)
    x = np.zeros((1, 32, count, 64), np.float32)
    for head, largest in enumerate(amax):
        values = np.append(values_near_midpoints(np.float32(largest / np.float32(448))), largest)
        values = values[values <= largest]
        x[0].transpose(1, 0, 2)[head].ravel()[: 2 * len(values)] = 0
        flat = np.zeros(32 * 64, np.float32)
        flat[: len(values)], flat[len(values) : 2 * len(values)] = values, -values
        x[0, :, head] = flat.reshape(32, 64)
    codes, scale = quantize(code, x, blocks=1)
    np.testing.assert_array_equal(scale[0], amax / np.float32(448))
    with np.errstate(under="ignore"):
        expected = (x / scale[0][:, None]).astype(float8_e4m3fn).view(np.uint8)
    np.testing.assert_array_equal(codes, expected)


def test_quotients_at_the_middle_of_two_codes(code: bytes) -> None:
    check_quotients(code, 60, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_quotients_at_the_middle_of_two_codes_for_many_scales(code: bytes, seed: int) -> None:
    check_quotients(code, 600, seed)


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_every_bf16_value(code: bytes, granularity: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(bfloat16).reshape(1, 256, 2, 128)
    assert_as_on_cpu(code, x, granularity, "none", "BSHD")


# --- parts of buffers, masks, ranges


@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_a_part_of_a_larger_buffer(code: bytes, layout: str) -> None:
    storage = activations((2, 50, 6, 256), bfloat16, 8)
    x = storage[:, 3:40, 1:4, 128:192]
    assert_as_on_cpu(code, x, "head", "hadamard", layout, storage=storage)


def test_offsets_beyond_32_bits(code: bytes) -> None:
    """Rows 3 GiB apart: the pages between them are never touched."""
    storage = np.zeros((1, 4, 3 << 23, 64), bfloat16)
    x = storage[:, :, -2:]
    x[...] = activations(x.shape, bfloat16, 12)
    codes, scale = quantize(code, x, storage=storage)
    expected_codes, expected_scale = on_cpu(np.ascontiguousarray(x), "batch_head", "none", "BSHD")
    np.testing.assert_array_equal(scale, expected_scale)
    np.testing.assert_array_equal(codes, expected_codes)


def expected_with_rows(x: Array, counted: Array) -> tuple[Array, Array]:
    """NumPy: BSHD float32, one scale per batch and head, amax over the rows that count."""
    finite = np.where(np.isfinite(x), np.abs(x), 0) * counted[:, :, None, None]
    amax = finite.max(axis=(1, 3))
    scale = np.where(amax == 0, np.float32(1), np.maximum(amax / np.float32(448), np.float32(2.0**-126)))
    quotient = np.clip(x / scale[:, None, :, None], -448, 448)
    return quotient.astype(float8_e4m3fn).view(np.uint8), scale


@pytest.mark.parametrize("mask_type", [np.bool_, np.int32, np.int64])
def test_masked_rows_saturate_and_do_not_set_the_scale(code: bytes, mask_type: Any) -> None:
    rng = np.random.default_rng(9)
    x = rng.standard_normal((3, 70, 2, 128)).astype(np.float32)
    visible = rng.random((3, 70)) < 0.5
    visible[2] = False
    x[~visible] *= 1e6
    x[0, ~visible[0], 0, 0] = np.inf
    # A number whose low bytes are 0 is still not 0.
    numbers = np.where(visible, 1 << 24 if mask_type != np.bool_ else 1, 0).astype(mask_type)
    if mask_type == np.int64:
        numbers <<= 20
    codes, scale = quantize(code, x, mask=numbers)
    expected_codes, expected_scale = expected_with_rows(x, visible)
    np.testing.assert_array_equal(scale, expected_scale)
    np.testing.assert_array_equal(codes, expected_codes)


@pytest.mark.parametrize("counted", [(0, 70), (0, 0), (5, 6), (63, 65), (69, 70), (70, 70), (1, 69)])
def test_a_range_of_rows(code: bytes, counted: tuple[int, int]) -> None:
    x = np.random.default_rng(10).standard_normal((1, 70, 2, 64)).astype(np.float32)
    x *= np.exp2(np.abs(np.arange(70) - 35)).astype(np.float32)[None, :, None, None]
    rows = np.zeros((1, 70), bool)
    rows[:, counted[0] : counted[1]] = True
    codes, scale = quantize(code, x, rows_counted=counted)
    expected_codes, expected_scale = expected_with_rows(x, rows)
    np.testing.assert_array_equal(scale, expected_scale)
    np.testing.assert_array_equal(codes, expected_codes)


# --- hadamard


def hadamard(code: bytes, x: Array, blocks: int = 2) -> Array:
    y = np.full(x.shape, 7, x.dtype)
    dim = x.shape[-1]

    def packed(addresses: list[int]) -> bytes:
        return struct.pack("<2QQ2I", *addresses, x.size, hadamard_block(dim), blocks)

    result = Device().launch(code, f"hadamard_{NAMES[x.dtype]}", blocks, ITEMS, [x, y], kernarg=packed)
    assert not result.findings, result.table()
    return y


def assert_same_bits(found: Array, expected: Array) -> None:
    nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), nan)
    bits = np.uint32 if expected.itemsize == 4 else np.uint16
    np.testing.assert_array_equal(found.view(bits)[~nan], expected.view(bits)[~nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("dim", DIMS)
def test_hadamard_has_the_bits_of_the_cpu_operator(code: bytes, dim: int, dtype: Any) -> None:
    for rows in (1, 7, 32, 33, 150):
        x = activations((1, rows, dim), dtype, dim)
        x[0, rows // 2, 3], x[0, 0, -1] = np.inf, np.nan
        assert_same_bits(hadamard(code, x), run_op("ZyfaHadamard", {"x": x}, {"y": dtype}, {})["y"])


@pytest.mark.parametrize("dim", DIMS)
def test_hadamard_is_the_matrix(code: bytes, dim: int) -> None:
    n = hadamard_block(dim)
    index = np.arange(n)
    matrix = (-1.0) ** np.bitwise_count(index[:, None] & index) / np.sqrt(n)
    x = np.random.default_rng(dim).standard_normal((5, dim)).astype(np.float32)
    expected = (x.reshape(-1, n).astype(np.float64) @ matrix).reshape(x.shape)
    # Eight stages, each rounding to half an ulp of values below 2 sqrt(n).
    assert np.max(np.abs(hadamard(code, x) - expected)) <= 8 * 2.0**-24 * np.abs(x).max() * np.sqrt(n)


def test_hadamard_keeps_denormals(code: bytes) -> None:
    x = np.random.default_rng(6).integers(0, 1 << 20, (4, 128), dtype=np.uint32).view(np.float32)
    assert_same_bits(hadamard(code, x), run_op("ZyfaHadamard", {"x": x}, {"y": np.float32}, {})["y"])
