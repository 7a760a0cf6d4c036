"""The BF16 prefill kernels on the emulated device against attention in float64."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from kernels.hip.prefill_launch import KERNELS, Arguments, assert_same_as_cpu, check, gaussian, run
from ml_dtypes import bfloat16
from reference import inputs as families
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels import emulator as emulated
from zyfa_ort.kernels.asm.output_check import kernels_of

from kernels.hip import prefill_launch

DIMS = list(KERNELS)
TILE = 64


@pytest.fixture(scope="module")
def code() -> bytes:
    return prefill_launch.code(prefill_launch.PLAIN)


def test_all_kernels_are_there(code):
    assert sorted(kernels_of(code)) == sorted(f"bf16_prefill_{name}" for name in KERNELS.values())


def test_the_argument_struct_is_the_header_s(code):
    for kernel in emulated.kernels(code):
        assert kernel.explicit_bytes() == ctypes.sizeof(Arguments)


def test_the_shipped_code_object_is_this_source(code):
    if "bf16_prefill" not in code_objects.names():
        pytest.skip("code objects are built with the package (pip install .)")
    assert code_objects.load("bf16_prefill") == code


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("keys", [1, TILE - 1, TILE, TILE + 1, 3 * TILE + 5])
def test_key_lengths(dims, is_causal, keys):
    check(gaussian((1, 1, 1), 40, keys, dims), is_causal=is_causal)


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("queries", [1, 31, 32, 33, 127, 128, 129, 255, 256, 257])
def test_query_lengths(dims, queries):
    check(gaussian((1, 1, 1), queries, queries, dims))


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("alignment", ["bottom_right", "top_left"])
@pytest.mark.parametrize(("queries", "keys"), [(100, 30), (30, 100), (70, 64), (64, 129), (300, 1)])
def test_alignments(is_causal, alignment, queries, keys):
    check(gaussian((1, 2, 1), queries, keys), is_causal=is_causal, causal_alignment=alignment)


@pytest.mark.parametrize("dims", DIMS)
def test_no_keys_give_zeros(dims):
    output, lse = check(gaussian((2, 2, 1), 40, 0, dims))
    assert not output.any()
    assert np.all(lse == -np.inf)


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("window", [0, 1, 31, TILE - 1, TILE, TILE + 1, 150, 1000, 2**31 - 1])
def test_windows(is_causal, window):
    check(gaussian((1, 1, 1), 150, 200), is_causal=is_causal, window_left=window)
    check(gaussian((1, 1, 1), 150, 100), is_causal=is_causal, window_left=window)


@pytest.mark.parametrize(("heads", "kv_heads"), [(3, 1), (6, 2), (8, 8), (7, 1)])
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_grouped_heads_batches_and_layouts(heads, kv_heads, layout):
    tensors = gaussian((2, heads, kv_heads), 45, 70)
    if layout == "BHSD":
        tensors = {name: np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for name, x in tensors.items()}
    check(tensors, layout=layout)


def test_heads_of_one_packed_projection():
    packed = np.random.default_rng(1).standard_normal((2, 100, 3, 2, 128)).astype(bfloat16)
    check({name: packed[:, :, i] for i, name in enumerate(("query", "key", "value"))})


def test_strides_beyond_four_gibibytes():
    batch = 2**32 + 4096
    tensors = gaussian((2, 1, 1), 33, 65, (64, 64))
    spread = {}
    for name, x in tensors.items():
        room = np.zeros((2, batch // 128, 1, 64), bfloat16)  # untouched pages take no memory
        spread[name] = room[:, : x.shape[1]]
        spread[name][...] = x
    output, _, result = run(spread)
    assert not result.findings
    np.testing.assert_array_equal(output, run(tensors)[0])


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("out", [bfloat16, np.float16])
def test_output_types_are_one_rounding_of_float(dims, out):
    tensors = gaussian((1, 1, 1), 70, 90, dims)
    wide, _, _ = run(tensors)
    output, _, result = run(tensors, out=out)
    assert not result.findings
    np.testing.assert_array_equal(output.view(np.uint16), wide.astype(out).view(np.uint16))
    check(tensors, out=out)


def test_scores_near_the_largest_float():
    tensors = gaussian((1, 1, 1), 8, 40)
    for name in ("query", "key"):
        tensors[name] = (tensors[name].astype(np.float32) * 1e15).astype(bfloat16)
    check(tensors, scale=1e-30)


def test_lse_may_be_left_out():
    tensors = gaussian()
    output, lse, _ = run(tensors, with_lse=False)
    assert lse is None
    np.testing.assert_array_equal(output, run(tensors)[0])


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("family", sorted(families.FAMILIES))
def test_input_families(dims, family):
    shape = families.Shape(heads=1, kv_heads=1, length=200, head_dim=dims[0], v_head_dim=dims[1])
    made = families.make(family, shape)
    tensors = {
        name: x.astype(bfloat16).transpose(0, 2, 1, 3).copy()
        for name, x in zip(("query", "key", "value"), made, strict=True)
    }
    check(tensors)


# --- sinks


@pytest.mark.parametrize("sinks", [[-5.0, 0.0], [3.0, 40.0], [-np.inf, 400.0], [-1e30, 1e30]])
def test_sinks(sinks):
    tensors = gaussian((1, 2, 1), 40, 100)
    check({**tensors, "sinks": np.float32(sinks)})


def test_rows_without_keys_stay_zero_beside_a_sink():
    output, lse = check({**gaussian((1, 1, 1), 100, 30), "sinks": np.float32([2])})
    assert not output[0, :70].any()
    assert np.all(lse[0, 0, :70] == -np.inf)


# --- masks, and what lies behind them


def poisoned(tensors: dict, hidden: np.ndarray, seed: int = 0) -> dict:
    """Keys and values of `hidden` (batch, key) become NaN and infinities."""
    rng = np.random.default_rng(seed)
    made = {name: x.copy() for name, x in tensors.items()}
    for name in ("key", "value"):
        garbage = rng.choice(np.float32([np.nan, np.inf, -np.inf]), made[name].shape).astype(bfloat16)
        made[name][hidden] = garbage[hidden]
    return made


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("dims", DIMS)
def test_key_masks_hide_nan(is_causal, dims):
    tensors = gaussian((2, 2, 1), 70, 150, dims)
    mask = np.random.default_rng(2).random((2, 150)) < 0.6
    mask[1, 64:128] = False
    clean, _ = check({**tensors, "key_mask": mask.astype(np.uint8)}, is_causal=is_causal)
    output, _ = check({**poisoned(tensors, ~mask), "key_mask": mask.astype(np.uint8)}, is_causal=is_causal)
    assert np.isfinite(output).all()
    np.testing.assert_allclose(output, clean, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_key_masks_of_any_length(count):
    mask = (np.arange(count) % 3 != 0).astype(np.uint8)[None] * np.uint8(128)
    check({**gaussian((1, 1, 1), 33, count), "key_mask": mask}, is_causal=0)


def test_a_mask_that_hides_all_keys_gives_zeros():
    output, _ = check({**gaussian((2, 1, 1), 40, 100), "key_mask": np.zeros((2, 100), np.uint8)}, is_causal=0)
    assert not output.any()


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize(
    "ranges", [[[0, 65], [0, 1]], [[70, 150], [3, 64]], [[64, 128], [9, 9]], [[90, 20], [0, 0]]]
)
def test_key_ranges_hide_nan(dims, ranges):
    tensors = gaussian((2, 1, 1), 70, 150, dims)
    limits = np.int32(ranges)
    keys = np.arange(150)
    hidden = (keys < limits[:, :1]) | (keys >= limits[:, 1:])
    output, _ = check(poisoned(tensors, hidden), key_range=limits)
    assert np.isfinite(output).all()
    check(poisoned(tensors, hidden), key_range=limits, is_causal=0, window_left=80)


def test_key_ranges_are_cut_to_the_keys():
    tensors = gaussian((2, 1, 1), 40, 100)
    given, _, _ = run(tensors, key_range=np.int32([[-5, 1000], [-(2**31), 2**31 - 1]]))
    np.testing.assert_array_equal(given, run(tensors)[0])


# --- NaN and infinity that are seen


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_reach_the_rows_that_see_them(dims, bad):
    tensors = gaussian((1, 1, 1), 140, 140, dims)
    tensors["value"][0, 70, 0, 5] = bad
    output, _ = check(tensors)
    assert np.isfinite(output[0, :70]).all()
    assert np.isfinite(np.delete(output, 5, axis=3)).all()


def test_opposite_infinities_give_nan():
    tensors = gaussian((1, 1, 1), 140, 140)
    tensors["value"][0, 70, 0, 5], tensors["value"][0, 90, 0, 5] = np.inf, -np.inf
    output, _ = check(tensors)
    assert np.all(output[0, 70:90, 0, 5] == np.inf)
    assert np.isnan(output[0, 90:, 0, 5]).all()


def test_nan_in_a_key_reaches_the_rows_that_see_it():
    tensors = gaussian((1, 2, 2), 140, 140)
    tensors["key"][0, 100, 1, 7] = np.nan
    output, lse, result = run(tensors)
    assert not result.findings
    bad = np.zeros((140, 2), bool)
    bad[100:, 1] = True
    np.testing.assert_array_equal(np.isnan(output[0]).all(axis=2), bad)
    np.testing.assert_array_equal(np.isnan(output[0]).any(axis=2), bad)
    np.testing.assert_array_equal(np.isnan(lse[0]).T, bad)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_query_that_is_not_finite_spoils_its_own_row(bad):
    tensors = gaussian((1, 1, 1), 70, 70)
    tensors["query"][0, 40, 0, 3] = bad
    output, _, result = run(tensors)
    assert not result.findings
    np.testing.assert_array_equal(np.isnan(output[0, :, 0]).all(axis=1), np.arange(70) == 40)
    np.testing.assert_array_equal(np.isnan(output[0, :, 0]).any(axis=1), np.arange(70) == 40)


# --- the same bits


def test_any_order_of_waves_gives_the_same_bits():
    tensors = gaussian((2, 2, 1), 300, 300)
    first, lse, _ = run(tensors)
    for seed in (1, 2):
        again, lse_again, result = run(tensors, order_seed=seed, threads=2)
        assert not result.findings
        np.testing.assert_array_equal(again, first)
        np.testing.assert_array_equal(lse_again, lse)


@pytest.mark.parametrize("accumulation", ["sequential", "pairwise"])
def test_any_order_of_sums_is_within_the_tolerance(accumulation):
    tensors = gaussian((1, 1, 1), 130, 300)
    output, _, _ = run(tensors, accumulation=accumulation)
    prefill_launch.assert_near(output, prefill_launch.reference(tensors).output, "bf16")


@pytest.mark.parametrize(
    "problem",
    [{}, {"is_causal": 0, "window_left": 70}, {"causal_alignment": "top_left"}, {"scale": 0.3}],
    ids=str,
)
@pytest.mark.parametrize("dims", [(128, 128), (192, 128)])
def test_the_cpu_operator_answers_the_same(dims, problem):
    tensors = {**gaussian((2, 4, 2), 70, 150, dims), "sinks": np.float32([-1, 0, 1, 2])}
    assert_same_as_cpu(tensors, **problem)


@pytest.mark.slow
@pytest.mark.parametrize("dims", DIMS)
def test_every_length(dims):
    for queries in range(1, 140, 3):
        for keys in range(0, 140, 7):
            check(gaussian((1, 1, 1), queries, keys, dims), is_causal=(queries + keys) % 2)
