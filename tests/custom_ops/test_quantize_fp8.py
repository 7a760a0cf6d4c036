"""ZyfaQuantizeFp8: rounding, saturation, scales by granularity, rotation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.op_session import Array, run_op
from ml_dtypes import bfloat16, float8_e4m3fn
from ml_dtypes import finfo as ml_finfo
from reference.attention import from_bhsd, to_bhsd
from reference.e4m3 import MIDPOINTS, decode, encode
from reference.fp8_quantise import amax_scale, hadamard

AXES = {"tensor": (0, 1, 2, 3), "head": (0, 2, 3), "batch_head": (2, 3)}
SCALE_SHAPES = {"tensor": (1,), "head": (3,), "batch_head": (2, 3)}


def quantize(x: Array, **attributes: Any) -> tuple[Array, Array]:
    """Codes and scale of one run."""
    outputs = {"y": float8_e4m3fn, "scale": np.float32}
    answer = run_op("ZyfaQuantizeFp8", {"x": x}, outputs, attributes)
    return answer["y"].view(np.uint8), answer["scale"]


def quantize_at_scale_one(values: Array) -> Array:
    """Codes of values up to 448: one entry of 448 makes the scale 1."""
    x = np.concatenate([values, [448.0]]).astype(np.float32).reshape(1, 1, 1, -1)
    codes, scale = quantize(x, granularity="tensor", layout="BHSD")
    assert scale.tolist() == [1.0]
    return codes.ravel()[:-1]


def test_rounds_to_nearest_and_ties_to_even() -> None:
    values = [1.8131605, 1.0625, 1.1875, 0.0009765625, 0.00097657, -0.0, 447.0]
    wanted = [1.875, 1.0, 1.25, 0.0, 0.001953125, -0.0, 448.0]
    got = decode(quantize_at_scale_one(np.array(values)))
    np.testing.assert_array_equal(got, wanted)
    assert np.signbit(got[5])


def test_every_finite_code_survives() -> None:
    codes = np.array([code for code in range(256) if code & 0x7F != 0x7F], np.uint8)
    np.testing.assert_array_equal(quantize_at_scale_one(decode(codes)), codes)


def test_every_midpoint_goes_to_the_even_code_and_its_neighbours_to_the_nearest() -> None:
    middle = MIDPOINTS.astype(np.float32)
    codes = np.arange(126)
    np.testing.assert_array_equal(quantize_at_scale_one(middle), codes + codes % 2)
    np.testing.assert_array_equal(quantize_at_scale_one(np.nextafter(middle, np.float32(0))), codes)
    np.testing.assert_array_equal(quantize_at_scale_one(np.nextafter(middle, np.float32(500))), codes + 1)


def test_quotients_are_rounded_as_divisions_are() -> None:
    """Values whose quotients lie beside the midpoints of codes, a scale per head."""
    amax = np.random.default_rng(3).uniform(0.5, 4, 4096).astype(np.float32)
    scales = amax / np.float32(448)
    middle = scales[:, None] * MIDPOINTS.astype(np.float32)
    beside = [np.nextafter(middle, np.float32(0)), middle, -np.nextafter(middle, np.float32(500))]
    x = np.concatenate([amax[:, None], *beside], axis=1)[None, :, None]
    codes, found = quantize(x, layout="BHSD")
    np.testing.assert_array_equal(found[0], scales)
    np.testing.assert_array_equal(codes, encode(x / scales[None, :, None, None]))


@pytest.mark.parametrize(
    ("x", "scale"),
    [
        ("0x1.800026p-108", "0x1.00001ap-99"),
        ("-0x1.500016p-107", "0x1.80001ap-100"),
        ("0x1.ffffb2p-110", "0x1.ffffb0p-100"),
    ],
)
def test_quotients_of_tiny_numbers_are_rounded_as_divisions_are(x: str, scale: str) -> None:
    """A remainder of such a division is a subnormal number and more digits than it has."""
    numerator, divisor = (np.float32(float.fromhex(number)) for number in (x, scale))
    row = np.array([numerator, divisor * np.float32(448)], np.float32)
    codes, found = quantize(row.reshape(1, 1, 1, 2), layout="BHSD")
    assert found.item() == divisor
    assert codes.ravel()[0] == encode(numerator / divisor)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
def test_all_kinds_of_numbers(dtype: Any) -> None:
    """Random bits: every exponent, subnormals, infinities, NaN; half of them near the codes' range."""
    bits = np.random.default_rng(0).integers(0, 2**32, 1 << 16, np.uint32)
    x = bits.view(np.float32) if dtype == np.float32 else (bits >> 16).astype(np.uint16).view(dtype)
    near = np.random.default_rng(1).standard_normal(x.size) * np.exp2(np.arange(x.size) % 24 - 14)
    x = np.where(np.arange(x.size) % 2, x, near.astype(dtype)).reshape(1, 1, -1, 64)
    codes, scale = quantize(x, layout="BHSD")
    wide = x.astype(np.float32)
    assert scale[0, 0] == amax_scale(wide, (0, 1, 2, 3)).item()
    for limit in (448.0, 1.0, 1e-3):
        bounded = np.where(np.abs(wide) <= limit, wide, np.float32(limit))
        codes, scale = quantize(bounded, layout="BHSD")
        np.testing.assert_array_equal(codes, encode(bounded / scale[0, 0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_every_head_dim_up_to_70(dtype: Any, layout: str) -> None:
    """Rows that end within a vector; infinity and NaN at the end of a row change nobody else's scale."""
    for head_dim in range(1, 71):
        x = np.random.default_rng(head_dim).standard_normal((1, 3, 2, head_dim)).astype(dtype)
        x[0, 1, 1, -1], x[0, 2, 1, -1] = np.inf, np.nan
        codes, scale = quantize(x, layout=layout, granularity="tensor")
        wide = x.astype(np.float32)
        assert scale[0] == amax_scale(wide, (0, 1, 2, 3)).item()
        np.testing.assert_array_equal(decode(codes), decode(encode(wide / scale[0])))


@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("rotation", ["none", "hadamard"])
def test_rows_of_several_tasks(layout: str, rotation: str) -> None:
    """More elements than one task takes, on two threads; every head's largest value in another task."""
    bhsd = np.random.default_rng(0).standard_normal((2, 3, 1100, 64)).astype(np.float32)
    for head in range(3):
        bhsd[:, head, 400 * head + 250] *= 10
    x = np.ascontiguousarray(from_bhsd(bhsd, layout, 4)).astype(np.float32)
    outputs = {"y": float8_e4m3fn, "scale": np.float32}
    answer = run_op("ZyfaQuantizeFp8", {"x": x}, outputs, {"layout": layout, "rotation": rotation}, threads=2)
    wide = hadamard(bhsd) if rotation == "hadamard" else bhsd
    wanted = amax_scale(wide, (2, 3))
    np.testing.assert_array_equal(answer["scale"], wanted.reshape(2, 3))
    codes = encode(wide / wanted.reshape(2, 3, 1, 1))
    np.testing.assert_array_equal(to_bhsd(answer["y"].view(np.uint8), layout, None), codes)


def test_infinity_saturates_and_nan_stays_and_neither_sets_the_scale() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 448, -224, 1], np.float32).reshape(1, 1, 1, -1)
    codes, scale = quantize(x, granularity="tensor", layout="BHSD")
    assert scale.tolist() == [1.0]
    values = decode(codes.ravel())
    np.testing.assert_array_equal(values, [448, -448, np.nan, 448, -224, 1])


@pytest.mark.parametrize(
    "x", [np.zeros((1, 1, 2, 4)), np.full((1, 1, 2, 4), np.nan), np.full((1, 1, 2, 4), np.inf)]
)
def test_nothing_finite_or_all_zero_has_scale_one(x: Array) -> None:
    codes, scale = quantize(x.astype(np.float32), granularity="batch_head", layout="BHSD")
    assert scale.tolist() == [[1.0]]
    np.testing.assert_array_equal(decode(codes), np.clip(x, -448, 448))


@pytest.mark.parametrize("tiny", [1e-45, 1e-40, 2.0**-126, 1e-36])
def test_tiny_tensors_keep_a_normal_scale(tiny: float) -> None:
    """The scale is never below 2^-126, so that its inverse is finite."""
    x = (tiny * np.array([1, -0.5, 0.25, 0])).astype(np.float32).reshape(1, 1, 1, 4)
    codes, scale = quantize(x, granularity="tensor", layout="BHSD")
    wanted = amax_scale(x, (0, 1, 2, 3))
    assert scale[0] == wanted >= 2.0**-126
    np.testing.assert_array_equal(codes, encode(x / wanted))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("granularity", AXES)
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("rotation", ["none", "hadamard"])
def test_codes_and_scales(dtype: Any, granularity: str, layout: str, rotation: str) -> None:
    """Bit for bit, for every granularity; heads 100 times apart in size."""
    rng = np.random.default_rng(0)
    bhsd = rng.standard_normal((2, 3, 45, 64)) * np.array([1, 0.01, 100])[None, :, None, None]
    bhsd[..., 5] += 30 * np.abs(bhsd).mean(axis=(0, 2, 3))[None, :, None]
    x = np.ascontiguousarray(from_bhsd(bhsd, layout, 4)).astype(dtype)
    codes, scale = quantize(x, granularity=granularity, layout=layout, rotation=rotation)
    wide = to_bhsd(x, layout, None).astype(np.float32)
    wide = hadamard(wide) if rotation == "hadamard" else wide
    wanted = amax_scale(wide, AXES[granularity])
    assert scale.shape == SCALE_SHAPES[granularity]
    np.testing.assert_array_equal(scale, wanted.reshape(scale.shape))
    spread = np.expand_dims(wanted, AXES[granularity])
    np.testing.assert_array_equal(to_bhsd(codes, layout, None), encode(wide / spread))


@pytest.mark.parametrize("head_dim", [1, 2, 8, 128, 192, 256])
def test_rotation_of_each_head_dim(head_dim: int) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 5, head_dim)).astype(np.float32)
    codes, scale = quantize(x, granularity="batch_head", layout="BHSD", rotation="hadamard")
    np.testing.assert_array_equal(codes, encode(hadamard(x) / scale[..., None, None]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("head_dim", [16, 64, 128, 192, 256, 512])
def test_rotated_rows_beside_some_that_are_not_finite(dtype: Any, layout: str, head_dim: int) -> None:
    """NaN, infinities, sums that overflow on the way, zeros of both signs: each in every fifth row."""
    bhsd = np.random.default_rng(0).standard_normal((2, 3, 35, head_dim))
    bhsd[0, 0, ::5, 3], bhsd[0, 1, 1::5, 4], bhsd[0, 2, 2::5, -1] = np.nan, np.inf, -np.inf
    bhsd[1, 0, 3::5, :2] = float(ml_finfo(dtype).max)
    bhsd[1, 1, 4::5], bhsd[1, 2, ::5] = 0.0, -0.0
    x = np.ascontiguousarray(from_bhsd(bhsd, layout, 4)).astype(dtype)
    codes, scale = quantize(x, layout=layout, rotation="hadamard")
    wide = hadamard(to_bhsd(x, layout, None).astype(np.float32))
    wanted = amax_scale(wide, (2, 3))
    np.testing.assert_array_equal(scale, wanted)
    with np.errstate(invalid="ignore"):
        expected = encode(wide / wanted[..., None, None])
    got, is_nan = to_bhsd(codes, layout, None), np.isnan(wide)
    np.testing.assert_array_equal(np.where(is_nan, got & 0x7F, got), np.where(is_nan, 0x7F, expected))


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 0, 3, 4), (2, 3, 0, 4), (2, 3, 4, 0)])
@pytest.mark.parametrize("granularity", AXES)
def test_empty_tensors(shape: tuple[int, ...], granularity: str) -> None:
    codes, scale = quantize(np.zeros(shape, np.float32), granularity=granularity, layout="BHSD")
    assert codes.shape == shape
    assert np.all(scale == 1)


@pytest.mark.parametrize(
    "attribute", [{"granularity": "batch_head"}, {"rotation": "none"}, {"layout": "BSHD"}]
)
def test_defaults(attribute: dict[str, str]) -> None:
    """Absent: a scale per batch entry and head, no rotation, BSHD."""
    x = np.random.default_rng(0).standard_normal((2, 5, 3, 8)).astype(np.float32)
    default, given = quantize(x), quantize(x, **attribute)
    assert default[0].tobytes() == given[0].tobytes()
    assert default[1].tobytes() == given[1].tobytes() and default[1].shape == given[1].shape


def test_the_scale_fits_the_attention_op() -> None:
    """Every scale shape is one the attention op takes for q, k and v."""
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 8)).astype(np.float32)
    for granularity in AXES:
        codes, scale = quantize(x, granularity=granularity, layout="BHSD")
        inputs = {name: codes.view(float8_e4m3fn) for name in ("query", "key", "value")}
        inputs |= {name: scale for name in ("q_scale", "k_scale", "v_scale")}
        run_op("ZyfaPrefillAttention", inputs, {"output": np.float32}, {"layout": "BHSD", "out_dtype": 1})
