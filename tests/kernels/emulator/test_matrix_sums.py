"""How matrix instructions add up: one rounding, the other two orders, and the corners of the number line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernels.emulator.matrix_kernel import LANES, part, plain, random_rows, run_instructions
from kernels.emulator.matrix_reference import Shape, exact
from zyfa_ort.kernels.errors import EmulationError

BF16 = "v_mfma_f32_32x32x16_bf16"
F32 = "v_mfma_f32_32x32x2_f32"
FP8 = "v_mfma_f32_32x32x64_f8f6f4"


def empty() -> np.ndarray:
    return np.zeros_like(random_rows(np.random.default_rng(0), 1))


def bf16(value: float) -> int:
    bits = int(np.float32(value).view(np.uint32))
    assert bits & 0xFFFF == 0 or math.isnan(value)
    return bits >> 16


def one_dot(a: list[float], b: list[float], c: float, **settings: object) -> float:
    """D[0][0] of 16 bf16 products and C."""
    rows = empty()
    for key, values in (("a", a), ("b", b)):
        for k, value in enumerate(values):
            part(rows, key)[0, k % 8 // 2, 32 * (k // 8)] |= np.uint32(bf16(value) << 16 * (k % 2))
    part(rows, "c")[0, 0, 0] = np.float32(c).view(np.uint32)
    return float(run_instructions([plain(BF16)], rows, **settings)[0].view(np.float32)[0, 0, 0])


def wide(seed: int) -> np.ndarray:
    """bf16 of any exponent between 2**-40 and 2**40, and their negatives: most sums cancel at some digit."""
    random = np.random.default_rng(seed)
    rows = empty()
    for key in ("a", "b"):
        value = random.standard_normal((8, LANES, 2)) * 2.0 ** random.integers(-40, 40, (8, LANES, 2))
        half = value.astype(np.float32).view(np.uint32) >> 16
        part(rows, key)[0] = half[..., 0] | half[..., 1] << 16
    c = random.standard_normal((32, LANES)) * 2.0 ** random.integers(-70, 70, (32, LANES))
    part(rows, "c")[0] = c.astype(np.float32).view(np.uint32)
    return rows


def matrices(shape: Shape, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = shape.input_matrix("a", part(rows, "a")[0, : shape.registers("a")])[0]
    b = shape.input_matrix("b", part(rows, "b")[0, : shape.registers("b")])[0]
    return a, b, shape.output_matrix(part(rows, "c")[0, : shape.registers("d")])[0]


# ---- one rounding ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "c", "want"),
    [
        # Halfway between two floats: to even, and a last bit 2**-133 * 2**-100 away decides.
        ([1.0], [2.0**-24], 1.0, 1.0),
        ([1.0], [3 * 2.0**-24], 1.0, 1.0 + 2.0**-22),
        ([1.0, 2.0**-100], [2.0**-24, 2.0**-120], 1.0, 1.0 + 2.0**-23),
        ([1.0, -(2.0**-100)], [2.0**-24, 2.0**-120], 1.0, 1.0),
        # What double would have lost.
        ([2.0**60, 1.0, -(2.0**60)], [2.0**60, 1.0, 2.0**60], 0.5, 1.5),
        ([2.0**100, 2.0**-100, -(2.0**100)], [2.0**27, 2.0**-40, 2.0**27], 0.0, 2.0**-140),
        # Above the largest float on the way, not at the end.
        ([2.0**100, -(2.0**100), 3.0], [2.0**100, 2.0**100, 1.0], 0.25, 3.25),
        # Denormal results: one rounding too.
        ([2.0**-75], [2.0**-75], 0.0, 0.0),
        ([2.0**-75, 2.0**-120], [2.0**-75, 2.0**-120], 0.0, 2.0**-149),
        ([3 * 2.0**-75], [2.0**-75], 0.0, 2.0**-148),
        ([2.0**-133], [1.0], 2.0**-149, 2.0**-133 + 2.0**-149),
    ],
)
def test_one_rounding(a: list[float], b: list[float], c: float, want: float) -> None:
    assert one_dot(a, b, c) == want


def test_sums_that_cancel() -> None:
    """Equal and opposite columns of A: D is C, whatever the exponents in between."""
    rows = wide(1)
    low = part(rows, "a")[0] & 0xFFFF
    part(rows, "a")[0] = low | (low ^ 0x8000) << 16
    same = part(rows, "b")[0] & 0xFFFF
    part(rows, "b")[0] = same | same << 16
    got = run_instructions([plain(BF16)], rows)[0]
    np.testing.assert_array_equal(got[0].view(np.float32), part(rows, "c")[0, :16].view(np.float32))


@pytest.mark.parametrize("seed", range(2, 5))
def test_wide_exponents(seed: int) -> None:
    rows = wide(seed)
    shape = Shape.named(BF16)
    a, b, c = matrices(shape, rows)
    got = shape.output_matrix(run_instructions([plain(BF16)], rows)[0][0])[0]
    np.testing.assert_array_equal(got, exact(shape, a, b, c, shape.selected_rows(None)).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_wide_exponents_at_length(seed: int) -> None:
    test_wide_exponents(seed)


# ---- other orders -----------------------------------------------------------------------------------------------------


def test_sequential_is_a_chain_of_fused_multiply_adds() -> None:
    rows = wide(6)
    shape = Shape.named(BF16)
    a, b, c = matrices(shape, rows)
    want = c
    for k in range(shape.k):  # a sum of one product is a fused multiply-add
        one = exact(shape, a[k : k + 1], b[k : k + 1], want, shape.selected_rows(None)[:, :1])
        want = one.astype(np.float32)
    got = run_instructions([plain(BF16)], rows, options={"accumulation": "sequential"})[0]
    np.testing.assert_array_equal(shape.output_matrix(got[0])[0], want)


def test_pairwise_is_a_tree_of_floats() -> None:
    rows = wide(8)
    shape = Shape.named(BF16)
    a, b, c = matrices(shape, rows)
    tree = (a[:, :, None] * b[:, None, :]).astype(np.float32)
    while len(tree) > 1:
        tree = tree[0::2] + tree[1::2]
    got = run_instructions([plain(BF16)], rows, options={"accumulation": "pairwise"})[0]
    np.testing.assert_array_equal(shape.output_matrix(got[0])[0], tree[0] + c)


def test_the_orders_differ() -> None:
    """2**24 + 1 + 1: exact keeps both ones, the chain loses each, the tree adds them first."""
    a, b = [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]
    results = {
        order: one_dot(a, b, 2.0**24, options={"accumulation": order})
        for order in ("exact", "sequential", "pairwise")
    }
    assert results == {"exact": 2.0**24 + 2, "sequential": 2.0**24, "pairwise": 2.0**24 + 2}
    a, b = [2.0**12, 1.0, 1.0, -(2.0**12)], [2.0**12, 1.0, 1.0, 2.0**12]
    assert one_dot(a, b, 0.0, options={"accumulation": "exact"}) == 2.0
    assert one_dot(a, b, 0.0, options={"accumulation": "pairwise"}) == 1.0


@pytest.mark.parametrize("order", ["sequential", "pairwise"])
@pytest.mark.parametrize(
    "name",
    [
        "v_smfmac_f32_32x32x16_bf16",
        "v_mfma_f32_4x4x4_16b_bf16",
        "v_mfma_f64_16x16x4_f64",
        "v_mfma_i32_32x32x16_i8",
    ],
)
def test_small_integers_are_exact_in_any_order(name: str, order: str) -> None:
    shape = Shape.named(name)
    rows = empty()
    random = np.random.default_rng(9)
    for key in ("a", "b", "c"):
        registers = part(rows, key)
        count = registers.shape[1]
        if shape.b == "f64":
            bits = random.integers(-8, 8, (count // 2, LANES)).astype(np.float64).view(np.uint64)
            registers[0, 1::2] = bits >> np.uint64(32)
        elif key == "c" and shape.result == "f32":
            registers[0] = random.integers(-8, 8, (count, LANES)).astype(np.float32).view(np.uint32)
        elif shape.b == "bf16":
            half = random.integers(-8, 8, (count, LANES, 2)).astype(np.float32).view(np.uint32) >> 16
            registers[0] = half[..., 0] | half[..., 1] << 16
        else:
            registers[0] = random.integers(0, 2**32, (count, LANES), dtype=np.uint32)
    part(rows, "index")[...] = random.integers(0, 2**32, LANES, dtype=np.uint32)
    texts = [plain(name)]
    other = run_instructions(texts, rows, options={"accumulation": order})[0]
    np.testing.assert_array_equal(other, run_instructions(texts, rows)[0])


# ---- NaN, infinity, zero ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["exact", "sequential", "pairwise"])
@pytest.mark.parametrize(
    ("a", "b", "c", "want"),
    [
        ([math.inf, 1.0], [1.0, 1.0], 0.0, math.inf),
        ([math.inf], [-2.0], 5.0, -math.inf),
        ([math.inf], [0.0], 1.0, math.nan),
        ([math.inf, -math.inf], [1.0, 1.0], 0.0, math.nan),
        ([math.inf], [1.0], -math.inf, math.nan),
        ([1.0], [math.nan], 0.0, math.nan),
        ([0.0], [0.0], math.nan, math.nan),
        ([1.0], [1.0], math.inf, math.inf),
        ([2.0**127], [2.0], 0.0, math.inf),
        ([-(2.0**127)], [4.0], 1.0, -math.inf),
    ],
)
def test_nan_and_infinity(a: list[float], b: list[float], c: float, want: float, order: str) -> None:
    np.testing.assert_equal(one_dot(a, b, c, options={"accumulation": order}), want)


@pytest.mark.parametrize(
    ("a", "c", "negative"),
    [(-0.0, -0.0, True), (-0.0, 0.0, False), (0.0, -0.0, False), (0.0, 0.0, False)],
)
def test_sign_of_zero(a: float, c: float, negative: bool) -> None:
    """A sum of zeros is -0 only when all of them are."""
    got = one_dot([a] * 16, [1.0] * 16, c)
    assert got == 0
    assert math.copysign(1, got) == (-1 if negative else 1)
    assert math.copysign(1, one_dot([1.0, -1.0], [3.0, 3.0], 0.0)) == 1


def test_nan_of_a_byte() -> None:
    """E4M3 has one NaN and no infinity; it reaches its row and column only."""
    shape = Shape.named(FP8, "fp8", "fp8")
    rows = empty()
    part(rows, "a")[0, 3, 5] = 0x7F
    part(rows, "b")[0, 6, 41] = 0xFF00
    got = shape.output_matrix(run_instructions([plain(FP8, a="fp8", b="fp8")], rows)[0][0])[0]
    want = np.zeros((32, 32), bool)
    want[5], want[:, 9] = True, True
    np.testing.assert_array_equal(np.isnan(got), want)


# ---- overflow, MODE ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("overflow", "limit"), [(0, math.inf), (1, float(np.finfo(np.float32).max))])
@pytest.mark.parametrize("order", ["exact", "sequential", "pairwise"])
def test_fp16_ovfl_clamps_what_overflows(overflow: int, limit: float, order: str) -> None:
    settings = {"overflow": overflow, "options": {"accumulation": order}}
    assert one_dot([2.0**127], [2.0], 0.0, **settings) == limit
    assert one_dot([2.0**127], [-2.0], 0.0, **settings) == -limit
    assert one_dot([math.inf], [1.0], 0.0, **settings) == math.inf
    assert one_dot([1.0], [1.0], -math.inf, **settings) == -math.inf


@pytest.mark.parametrize("overflow", [0, 1])
def test_integers_wrap_or_saturate(overflow: int) -> None:
    name = "v_mfma_i32_32x32x16_i8"
    rows = empty()
    part(rows, "a")[...] = 0x7F7F7F7F
    part(rows, "b")[0, :, 0::2] = 0x7F7F7F7F
    part(rows, "b")[0, :, 1::2] = 0x80808080
    part(rows, "c")[0, :, 0::2] = 0x7FFFFFFF
    part(rows, "c")[0, :, 1::2] = 0x80000000
    got = run_instructions([plain(name)], rows, overflow=overflow)[0][0].view(np.int32)
    up, down = 16 * 127 * 127, 16 * 127 * 128
    assert set(got[:, 0::2].ravel()) == ({2**31 - 1} if overflow else {-(2**31) - 1 + up})
    assert set(got[:, 1::2].ravel()) == ({-(2**31)} if overflow else {2**31 - down})


def test_mode_does_not_flush_small_formats() -> None:
    assert one_dot([2.0**-133], [1.0], 2.0**-140, denorm32=0, denorm16=0) == 2.0**-133 + 2.0**-140


def test_flushed_denormals_of_f32_are_refused() -> None:
    """The manual gives MODE two meanings there."""
    rows = empty()
    part(rows, "a")[0, 0, 0] = 1
    assert run_instructions([plain(F32)], rows)[0].sum() == 0
    with pytest.raises(EmulationError, match="denormal 0x00000001 in A or B"):
        run_instructions([plain(F32)], rows, denorm32=0)
