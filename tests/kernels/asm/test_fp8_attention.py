"""FP8 prefill on the emulated MI355X against the CPU operator on the same codes, without a finding of the emulator."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernels.asm.fp8_problems import Problem, check, make_problem
from ml_dtypes import float8_e4m3fn
from reference.attention import attention
from reference.inputs import FAMILIES
from zyfa_ort.kernels.asm.fp8_config import Fp8Config
from zyfa_ort.kernels.emulator import launch

from kernels.asm import fp8_launch
from zyfa_ort.numerics import TOLERANCES

DIMS = (128, 192)
EDGES = ("hilo", "none")
LENGTHS = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511)
NAN = np.uint8(0x7F).view(float8_e4m3fn)


def config(head_dim: int = 128, edges: str = "hilo", output: str = "bf16") -> Fp8Config:
    return Fp8Config(head_dim=head_dim, edges=edges, output=output)


# --- lengths


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("head_dim", DIMS)
def test_lengths(length: int, head_dim: int) -> None:
    edges = EDGES[length % 2]
    check(make_problem(length, family="outlier", head_dim=head_dim), config(head_dim, edges))


@pytest.mark.parametrize(("length", "head_dim"), [(1000, 128), (1000, 192), (2048, 128)])
def test_long(length: int, head_dim: int) -> None:
    check(make_problem(length, family="s3", head_dim=head_dim), config(head_dim))


UNEQUAL = [
    (1, 500),
    (32, 257),
    (33, 127),
    (255, 511),
    (257, 1000),
    (300, 64),
    (300, 33),
    (511, 129),
    (600, 1),
    (129, 2048),
]


@pytest.mark.parametrize("alignment", ["bottom_right", "top_left"])
@pytest.mark.parametrize(("q_len", "kv_len"), UNEQUAL)
def test_unequal_lengths(q_len: int, kv_len: int, alignment: str) -> None:
    head_dim = DIMS[kv_len % 2]
    problem = make_problem(q_len, kv_len, family="sink", head_dim=head_dim, causal_alignment=alignment)
    check(problem, config(head_dim))


@pytest.mark.parametrize(("q_len", "kv_len"), [(1, 1), (33, 129), (257, 255), (300, 600)])
@pytest.mark.parametrize("head_dim", DIMS)
def test_bidirectional(q_len: int, kv_len: int, head_dim: int) -> None:
    check(make_problem(q_len, kv_len, head_dim=head_dim, is_causal=0), config(head_dim))


@pytest.mark.parametrize("is_causal", [0, 1])
def test_no_keys_give_zeros(is_causal: int) -> None:
    output, lse = check(make_problem(40, 0, heads=2, is_causal=is_causal), config())
    assert not output.any() and np.all(lse == -np.inf)


def test_no_rows_launch_nothing() -> None:
    output, _ = check(make_problem(0, 70), config())
    assert output.shape == (1, 1, 0, 128)


@pytest.mark.slow
@pytest.mark.parametrize("head_dim", DIMS)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize(("q_len", "kv_len"), list(itertools.product((*LENGTHS, 1000), repeat=2)))
def test_all_lengths(q_len: int, kv_len: int, edges: str, head_dim: int) -> None:
    problem = make_problem(q_len, kv_len, family="heavy", head_dim=head_dim)
    check(problem, config(head_dim, edges))


# --- heads, batches, layouts, scales


@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (4, 1), (8, 1), (8, 2), (6, 2)])
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_grouped_query(heads: int, kv_heads: int, layout: str) -> None:
    check(make_problem(70, 200, heads=heads, kv_heads=kv_heads, layout=layout, batch=2), config())


@pytest.mark.parametrize("scales", ["tensor", "head", "batch_head"])
@pytest.mark.parametrize("head_dim", DIMS)
def test_scales(scales: str, head_dim: int) -> None:
    problem = make_problem(65, 130, heads=4, kv_heads=2, batch=2, scales=scales, head_dim=head_dim)
    check(problem, config(head_dim))


@pytest.mark.parametrize("scale", [-0.09, 0.0, -0.0, 1.0, 1e-6, 300.0])
@pytest.mark.parametrize("edges", EDGES)
def test_softmax_scale(scale: float, edges: str) -> None:
    """Negative, zero (masked keys stay masked), and so large that the anchor has no fraction."""
    check(make_problem(300, scale=scale), config(edges=edges))


@pytest.mark.parametrize("edges", EDGES)
def test_scores_beyond_the_precision_of_codes(edges: str) -> None:
    """Anchors of millions of log2 units: 8e is off by several codes, which must not pass the largest one.

    Scores are small integers: exact in any order of their sums, which such a factor would blow up.
    """
    rng = np.random.default_rng(0)
    problem = make_problem(400, scale=1e6)
    for tensor in (problem.query, problem.key):
        tensor[...] = rng.integers(-1, 2, tensor.shape).astype(float8_e4m3fn)
    for name in ("q_scale", "k_scale"):
        problem.scales[name][:] = 1
    check(problem, config(edges=edges))


def test_tiny_value_scale() -> None:
    problem = make_problem(70)
    problem.scales["v_scale"][:] = 2.0**-120
    check(problem, config(output="f32"))


@pytest.mark.parametrize("output", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("head_dim", DIMS)
def test_output_types(output: str, head_dim: int) -> None:
    check(make_problem(100, heads=2, head_dim=head_dim, layout="BSHD"), config(head_dim, output=output))


def test_float16_overflows_to_infinity() -> None:
    problem = make_problem(40)
    problem.scales["v_scale"][:] = 1e4
    output, _, result = fp8_launch.run(config(output="f16"), *problem.tensors(), **problem.launch_options())
    assert result is not None and not result.findings
    assert np.isinf(output).any() and not np.isnan(output).any()


def test_lse_is_optional() -> None:
    problem = make_problem(100)
    with_lse, _ = check(problem, config())
    output, lse, _ = fp8_launch.run(config(), *problem.tensors(), want_lse=False, **problem.launch_options())
    assert lse is None and output.tobytes() == with_lse.tobytes()


def test_sinks() -> None:
    sinks = [0.0, -3.0, 5.0, 60.0, -np.inf, 2000.0]
    check(make_problem(200, heads=6, kv_heads=2, sinks=sinks), config())
    check(make_problem(70, 33, heads=6, kv_heads=2, sinks=sinks), config())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["query", "key", "value"])
@pytest.mark.parametrize("by", ["head", "row"])
def test_offsets_beyond_32_bits(name: str, by: str) -> None:
    """Two heads, or rows, so far apart that byte offsets pass 2^32 (memory that is never touched costs nothing)."""
    problem = make_problem(150, heads=2, kv_heads=2)
    expected, _ = check(problem, config())
    made = fp8_launch.make_launch(config(), *problem.tensors(), **problem.launch_options())
    tensor, letter = made.values[name].view(np.uint8), name[0]
    row, head = (2**25, 2**25 * 150) if by == "row" else (128, 2**32 + 4096)
    wide = np.zeros(head + 150 * row, np.uint8)
    for h, r in itertools.product(range(2), range(150)):
        wide[h * head + r * row :][:128] = tensor[0, h, r]
    made.values.update({name: wide, f"{letter}_head": head, f"{letter}_row": row})
    launch(fp8_launch.code_object(config()), config().name, made.grid, made.block, made.args)
    assert made.output.tobytes() == expected.tobytes()


# --- what rows see


@pytest.mark.parametrize("window", [0, 1, 63, 64, 100, 300, 2**31 - 1])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_windows(window: int, is_causal: int) -> None:
    check(make_problem(600, window_left=window, is_causal=is_causal), config())


@pytest.mark.parametrize(("q_len", "kv_len"), [(257, 600), (600, 257)])
def test_windows_with_unequal_lengths(q_len: int, kv_len: int) -> None:
    check(make_problem(q_len, kv_len, window_left=70, head_dim=192), config(192))


RANGES = [[0, 400], [130, 400], [0, 70], [129, 321], [64, 128], [200, 200], [399, 400], [0, 1]]


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("window", [-1, 100])
def test_ragged_batch(is_causal: int, window: int) -> None:
    """Left and right padding, tiles masked as a whole, an entry without keys, entries of one key."""
    problem = make_problem(
        400, batch=len(RANGES), key_range=RANGES, is_causal=is_causal, window_left=window, sinks=[1.0]
    )
    check(problem, config())


# --- values of the inputs


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", EDGES)
def test_families(family: str, edges: str) -> None:
    check(make_problem(330, family=family, heads=2), config(edges=edges))


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("head_dim", DIMS)
def test_scores_that_rise_along_the_keys_move_the_anchors(edges: str, head_dim: int) -> None:
    problem = make_problem(700, family="rising", head_dim=head_dim, is_causal=0, scale=6 * 128**-0.5)
    check(problem, config(head_dim, edges))


@pytest.mark.parametrize("family", ["gauss", "outlier", "sink"])
def test_against_float64(family: str) -> None:
    problem = make_problem(1024, family=family)
    output, _, _ = fp8_launch.run(config(), *problem.tensors(), **problem.launch_options())
    exact = attention(**problem.op_inputs(), layout="BHSD").output
    name = "fp8_sink" if family == "sink" else "fp8"
    assert not TOLERANCES[name].violations(output, exact)


def poisoned(problem: Problem, keys: list[int], tensors: str = "kv") -> Problem:
    for key in keys:
        if "k" in tensors:
            problem.key[:, :, key, 5::31] = NAN
        if "v" in tensors:
            problem.value[:, :, key, 7::29] = -NAN if key % 2 else NAN
    return problem


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("head_dim", DIMS)
def test_nan_behind_the_range_changes_no_bit(edges: str, head_dim: int) -> None:
    hidden = [0, 5, 63, 64, 69, 261, 262, 299]
    options: dict[str, Any] = {"key_range": [[70, 260]], "head_dim": head_dim}
    clean, clean_lse = check(make_problem(300, **options), config(head_dim, edges))
    dirty, dirty_lse = check(poisoned(make_problem(300, **options), hidden), config(head_dim, edges))
    assert not np.isnan(dirty.astype(np.float32)).any()
    assert clean.tobytes() == dirty.tobytes() and clean_lse.tobytes() == dirty_lse.tobytes()


@pytest.mark.parametrize("tensors", ["k", "v"])
@pytest.mark.parametrize("keys", [[0], [31, 32], [63, 64], [150], [299]])
@pytest.mark.parametrize("edges", EDGES)
def test_nan_reaches_the_rows_that_see_its_key(tensors: str, keys: list[int], edges: str) -> None:
    """Rows in front of the key are untouched; NaN in V only in its dims."""
    output, _ = check(poisoned(make_problem(300), keys, tensors), config(edges=edges))
    nan = np.isnan(output.astype(np.float32)).any(axis=-1)[0, 0]
    assert not nan[: keys[0]].any() and nan[keys[0] :].all()


@pytest.mark.parametrize("window", [0, 40, 100])
@pytest.mark.parametrize("head_dim", DIMS)
def test_nan_in_a_window(window: int, head_dim: int) -> None:
    problem = make_problem(400, window_left=window, head_dim=head_dim)
    check(poisoned(problem, [3, 77, 200, 255, 256], "v"), config(head_dim))


def test_nan_in_a_query_row_stays_there() -> None:
    problem = make_problem(100, scale=0.0)
    problem.query[0, 0, 40, 3] = NAN
    output, _ = check(problem, config())
    assert np.flatnonzero(np.isnan(output[0, 0].astype(np.float32)).any(axis=-1)).tolist() == [40]


def test_all_keys_nan() -> None:
    problem = make_problem(70)
    problem.value[...] = NAN
    output, _ = check(problem, config())
    assert np.isnan(output.astype(np.float32)).all()


# --- order


@pytest.mark.parametrize("head_dim", DIMS)
@pytest.mark.parametrize("edges", EDGES)
def test_the_order_of_waves_and_workgroups_changes_no_bit(edges: str, head_dim: int) -> None:
    problem = poisoned(make_problem(300, heads=2, head_dim=head_dim, family="rising"), [250], "v")
    first, lse = check(problem, config(head_dim, edges))
    for seed in (1, 2, 3):
        again, again_lse = check(problem, config(head_dim, edges), order_seed=seed)
        assert first.tobytes() == again.tobytes() and lse.tobytes() == again_lse.tobytes()


@pytest.mark.parametrize("accumulation", ["sequential", "pairwise"])
def test_other_orders_of_sums_in_the_matrix_instructions(accumulation: str) -> None:
    check(make_problem(300, family="outlier"), config(), accumulation=accumulation)
