"""decode.hip on the emulated device against attention in float64 on the same cache, two launches as a host would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.hip.decode_launch import HEAD_DIMS, KV_NAMES, SOURCE, Decoding, Problem
from ml_dtypes import bfloat16, float8_e4m3fn
from numpy.typing import NDArray
from zyfa_ort.kernels import code_objects
from zyfa_ort.kernels.asm.assemble import compile_hip
from zyfa_ort.kernels.asm.output_check import kernels_of
from zyfa_ort.kernels.emulator import Device

from zyfa_ort.numerics import LSE_TOLERANCES, TOLERANCES

Array = NDArray[Any]


@pytest.fixture(scope="module")
def code() -> bytes:
    return compile_hip(SOURCE)


def naive(p: Problem) -> tuple[Array, Array]:
    """Output and lse in float64, one row at a time."""
    batch, queries, heads, _ = p.q.shape
    group = heads // p.k.shape[2]
    out, lse = np.zeros((batch, queries, heads, p.v.shape[-1])), np.full((batch, heads, queries), -np.inf)
    visible = p.visible()
    for b, i, h in np.ndindex(batch, queries, heads):
        seen = visible[b, i]
        if not seen.any():
            continue
        scales = [
            1.0 if s is None else float(s[b, h // n])
            for s, n in ((p.q_scale, 1), (p.k_scale, group), (p.v_scale, group))
        ]
        k, v = (x[b, seen, h // group].astype(np.float64) for x in (p.k, p.v))
        with np.errstate(invalid="ignore", over="ignore"):
            logits = p.natural_scale * scales[0] * scales[1] * (k @ p.q[b, i, h].astype(np.float64))
            weights = np.exp(logits - logits.max())
            lse[b, h, i] = logits.max() + np.log(weights.sum())
            sink = 0.0 if p.sinks is None else np.exp(float(p.sinks[h]) - logits.max())
            out[b, i, h] = scales[2] * (weights @ v) / (weights.sum() + sink)
    return out, lse


def decode(
    code: bytes, p: Problem, splits: int = 3, rows_per_tile: int = 16, **options: Any
) -> tuple[Array, Array]:
    """Output and lse by the two launches. No findings, not even warnings."""
    device = Device()
    job = Decoding(p, splits, rows_per_tile)
    for kernel, grid, block in job.launches:
        result = device.launch(code, kernel, grid, block, job.buffers(), kernarg=job.packed, **options)
        assert not result.findings, result.table()
    return job.out, job.lse


def check(code: bytes, p: Problem, tolerance: str = "bf16", **options: Any) -> None:
    out, lse = decode(code, p, **options)
    expected, expected_lse = naive(p)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(out.astype(np.float64)), nan)
    found = np.where(nan, 0, out.astype(np.float64))
    assert not TOLERANCES[tolerance].violations(found, np.where(nan, 0, expected))
    np.testing.assert_allclose(lse, expected_lse, rtol=1e-6, atol=LSE_TOLERANCES["bf16"])


def random_problem(
    queries: int,
    keys: int,
    heads: tuple[int, int],
    dims: tuple[int, int],
    dtype: Any = bfloat16,
    *,
    batch: int = 1,
    seed: int = 0,
    **more: Any,
) -> Problem:
    """Gaussian with outlier channels in K and Q, and a first key that all rows attend to; e4m3 caches come with scales."""
    rng = np.random.default_rng(seed + 1000 * keys + queries)
    q = rng.standard_normal((batch, queries, heads[0], dims[0]))
    k = rng.standard_normal((batch, keys, heads[1], dims[0]))
    v = rng.standard_normal((batch, keys, heads[1], dims[1]))
    k[..., 3] *= 12
    q[..., 3] *= 0.2
    q[..., 7] = 1.5
    k[:, :1, :, 7] = 40
    if dtype == float8_e4m3fn:
        more.setdefault("k_scale", rng.uniform(0.02, 0.05, (batch, heads[1])).astype(np.float32))
        more.setdefault("v_scale", rng.uniform(0.02, 0.05, (batch, heads[1])).astype(np.float32))
        more.setdefault("q_scale", rng.uniform(0.02, 0.05, (batch, heads[0])).astype(np.float32))
        return Problem(*((x * 30).clip(-448, 448).astype(float8_e4m3fn) for x in (q, k, v)), **more)
    return Problem(*(x.astype(bfloat16) for x in (q, k, v)), **more)


DTYPES = [bfloat16, float8_e4m3fn]


def test_all_kernels_are_there(code: bytes) -> None:
    names = [
        f"decode_{kv}_{a}_{b}_{rows}" for kv in KV_NAMES.values() for a, b in HEAD_DIMS for rows in (16, 32)
    ]
    assert sorted(kernels_of(code)) == sorted([*names, "decode_combine"])


def test_the_shipped_code_object_is_this_source(code: bytes) -> None:
    if "decode" not in code_objects.names():
        pytest.skip("code objects are built with the package (pip install .)")
    assert code_objects.load("decode") == code


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", HEAD_DIMS)
@pytest.mark.parametrize("rows_per_tile", [16, 32])
def test_head_dims(code: bytes, dims: tuple[int, int], dtype: Any, rows_per_tile: int) -> None:
    check(code, random_problem(1, 300, (8, 2), dims, dtype), rows_per_tile=rows_per_tile)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [1, 31, 32, 33, 63, 127, 128, 129, 383, 385])
def test_key_counts_around_tiles(code: bytes, keys: int, dtype: Any) -> None:
    for splits in (1, 3):
        check(code, random_problem(1, keys, (4, 1), (64, 64), dtype), splits=splits)


@pytest.mark.parametrize("splits", [1, 7, 8, 9, 63, 65, 150])
def test_any_number_of_splits(code: bytes, splits: int) -> None:
    for dims in ((64, 64), (128, 128)):
        check(code, random_problem(1, 1100, (2, 1), dims), splits=splits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("queries", [1, 2, 3, 15, 16])
@pytest.mark.parametrize("heads", [(1, 1), (6, 2), (5, 1)])
def test_rows_of_a_group(code: bytes, heads: tuple[int, int], queries: int, dtype: Any) -> None:
    for rows_per_tile in (16, 32):
        check(code, random_problem(queries, 140, heads, (64, 64), dtype), rows_per_tile=rows_per_tile)


@pytest.mark.parametrize("queries", [2, 16])
@pytest.mark.parametrize("window", [0, 1, 15, 40, 1000])
def test_windows(code: bytes, window: int, queries: int) -> None:
    for causal in (True, False):
        p = random_problem(queries, 200, (2, 1), (64, 64), window_left=window, causal=causal)
        check(code, p, splits=2)


@pytest.mark.parametrize("top_left", [False, True])
def test_more_queries_than_keys_and_top_left(code: bytes, top_left: bool) -> None:
    for keys in (0, 1, 5, 40):
        p = random_problem(9, keys, (2, 2), (64, 64), top_left=top_left)
        check(code, p, splits=2)


def test_caches_by_head_and_parts_of_longer_ones(code: bytes) -> None:
    p = random_problem(2, 100, (4, 2), (64, 64), batch=2)
    expected = decode(code, p)
    for name in ("k", "v"):
        storage = np.full((2, 2, 160, 64), np.nan, bfloat16)
        part = storage.transpose(0, 2, 1, 3)[:, 20:120]
        part[...] = getattr(p, name)
        setattr(p, name, part)
    np.testing.assert_array_equal(decode(code, p)[0], expected[0])


def test_offsets_beyond_32_bits(code: bytes) -> None:
    """Keys 3 GiB apart: the pages between them are never touched."""
    p = random_problem(1, 5, (2, 2), (64, 64))
    expected = decode(code, p)
    for name in ("k", "v"):
        storage = np.zeros((1, 5, 3 << 23, 64), bfloat16)
        storage[:, :, -2:] = getattr(p, name)
        setattr(p, name, storage[:, :, -2:])
    np.testing.assert_array_equal(decode(code, p)[0], expected[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_ragged_batches_never_look_outside_of_their_ranges(code: bytes, dtype: Any) -> None:
    begin, end = [0, 37, 10, 150, 0], [200, 200, 11, 150, 170]
    p = random_problem(4, 200, (4, 2), (128, 128), dtype, batch=5, key_range=(begin, end))
    for b in range(5):
        outside = np.ones(200, bool)
        outside[begin[b] : end[b]] = False
        p.k[b, outside], p.v[b, outside] = np.nan, np.nan
    check(code, p)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows_per_tile", [16, 32])
def test_masked_keys_and_values_never_matter(code: bytes, rows_per_tile: int, dtype: Any) -> None:
    mask = np.random.default_rng(2).random((3, 150)) < 0.5
    mask[1] = False
    p = random_problem(5, 150, (4, 1), (64, 64), dtype, batch=3, key_mask=mask, window_left=80)
    p.k[~mask], p.v[~mask] = np.nan, np.nan
    check(code, p, rows_per_tile=rows_per_tile)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_only_later_rows_see(code: bytes, dtype: Any) -> None:
    """NaN in the newest keys reaches the rows that see it; with a window, NaN in the oldest those that still do."""
    p = random_problem(8, 100, (2, 1), (64, 64), dtype, window_left=60)
    p.v[0, 96, 0, 5] = np.nan
    p.k[0, 99, 0, 7] = np.nan
    p.v[0, 34, 0, 63] = np.nan
    if dtype == bfloat16:
        p.v[0, 97, 0, 6] = np.inf
        p.v[0, 98, 0, 6] = -np.inf
    for rows_per_tile in (16, 32):
        out, _ = decode(code, p, rows_per_tile=rows_per_tile)
        expected, _ = naive(p)
        same = np.where(np.isfinite(expected), 0, expected)
        np.testing.assert_array_equal(
            np.where(np.isfinite(out.astype(np.float64)), 0, out.astype(np.float64)), same
        )
        finite = np.isfinite(expected)
        found = np.where(finite, out.astype(np.float64), 0)
        assert not TOLERANCES["bf16"].violations(found, np.where(finite, expected, 0))


def test_nan_stays_in_its_row(code: bytes) -> None:
    p = random_problem(2, 90, (4, 2), (64, 64))
    p.q[0, 1, 2, 9] = np.nan
    p.v[0, 3, 1, 11] = np.nan
    out, lse = decode(code, p)
    expected, expected_lse = naive(p)
    np.testing.assert_array_equal(np.isnan(out.astype(np.float32)), np.isnan(expected))
    np.testing.assert_array_equal(np.isnan(lse), np.isnan(expected_lse))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sinks(code: bytes, dtype: Any) -> None:
    sinks = np.array([-np.inf, -3, 2, 50, 1e4, 0], np.float32)
    check(code, random_problem(3, 70, (6, 2), (64, 64), dtype, sinks=sinks))
    nothing = random_problem(2, 10, (6, 2), (64, 64), dtype, sinks=sinks, key_range=([10], [10]))
    out, lse = decode(code, nothing)
    assert not out.astype(np.float32).any()
    assert np.all(lse == -np.inf)


@pytest.mark.parametrize("scale", [0.0, -0.125, 1.0, 1e-3])
def test_scale_is_used_as_given(code: bytes, scale: float) -> None:
    check(code, random_problem(2, 100, (2, 1), (64, 64), scale=scale))


@pytest.mark.parametrize(
    ("out_dtype", "tolerance"), [(np.float32, "bf16"), (np.float16, "bf16"), (bfloat16, "bf16")]
)
def test_output_types_and_bf16_queries_for_an_e4m3_cache(code: bytes, out_dtype: Any, tolerance: str) -> None:
    p = random_problem(2, 100, (4, 2), (128, 128), float8_e4m3fn, out_dtype=out_dtype)
    check(code, p, tolerance)
    p.q, p.q_scale = np.random.default_rng(1).standard_normal(p.q.shape).astype(bfloat16), None
    check(code, p, tolerance)


def test_every_e4m3_value_is_decoded_exactly(code: bytes) -> None:
    """One key per split of the codes: its value is the output, whatever the scores."""
    codes = np.array([c for c in range(256) if c & 0x7F != 0x7F] + [0, 0], np.uint8).view(float8_e4m3fn)
    v = codes.reshape(4, 1, 1, 64)
    k = codes.reshape(4, 1, 1, 64)[::-1].copy()
    p = Problem(np.ones((4, 1, 1, 64), bfloat16), k, v, out_dtype=np.float32)
    out, lse = decode(code, p, splits=1)
    np.testing.assert_array_equal(out, v.astype(np.float32))
    expected = k.astype(np.float64).sum(axis=-1).reshape(4, 1, 1) / 8
    np.testing.assert_allclose(lse, expected, rtol=1e-6)


def test_bits_do_not_depend_on_the_order_of_waves(code: bytes) -> None:
    p = random_problem(3, 500, (8, 2), (128, 128))
    first = decode(code, p)
    for seed in (1, 2):
        again = decode(code, p, order_seed=seed)
        np.testing.assert_array_equal(first[0].view(np.uint16), again[0].view(np.uint16))
        np.testing.assert_array_equal(first[1], again[1])


@pytest.mark.parametrize("accumulation", ["sequential", "pairwise"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_order_of_sums_in_matrix_instructions(code: bytes, dtype: Any, accumulation: str) -> None:
    check(code, random_problem(2, 260, (4, 1), (192, 128), dtype), accumulation=accumulation)


def test_scores_far_apart(code: bytes) -> None:
    """The maximum moves from tile to tile; the last key has all the weight."""
    p = random_problem(1, 400, (2, 1), (64, 64), scale=1.0)
    ramp = (np.arange(400) / 4).astype(bfloat16)
    p.k[0, :, 0, :], p.q[0, 0, :, :] = 0, 0
    p.k[0, :, 0, 0], p.q[0, 0, :, 0] = ramp, np.array([1, -8], bfloat16)
    check(code, p)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", HEAD_DIMS)
@pytest.mark.parametrize("seed", range(12))
def test_random_problems(code: bytes, dims: tuple[int, int], dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kv_heads, group, batch = int(rng.integers(1, 4)), int(rng.integers(1, 9)), int(rng.integers(1, 3))
    keys, queries = int(rng.integers(1, 700)), int(rng.integers(1, 17))
    begin = rng.integers(0, keys + 1, batch)
    end = [int(rng.integers(b, keys + 1)) for b in begin]
    p = random_problem(
        *(queries, keys, (kv_heads * group, kv_heads), dims, dtype), batch=batch, seed=seed,
        causal=bool(rng.integers(2)), window_left=int(rng.choice([-1, 3, 50, 400])),
        key_range=(begin.tolist(), end) if rng.integers(2) else None,
        key_mask=rng.random((batch, keys)) < 0.7 if rng.integers(2) else None,
        sinks=rng.standard_normal(kv_heads * group).astype(np.float32) if rng.integers(2) else None,
    )  # fmt: skip
    check(code, p, splits=int(rng.integers(1, 6)), rows_per_tile=int(rng.choice([16, 32])))
