"""The bytes of P, anchors and exponents that the kernel made, against the NumPy model of docs/numerics.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.asm.fp8_problems import Problem, make_problem
from numpy.typing import NDArray
from reference.fp8_model import Trace, fp8_attention
from reference.inputs import FAMILIES
from zyfa_ort.kernels.asm.fp8_config import GROUP_ROWS, TILE_KEYS, TRACE_WORDS, WAVE_LANES, Fp8Config

from kernels.asm import fp8_launch

Array = NDArray[Any]

# Score register 16t + 4a + c of lane l holds key 32t + 8a + 4 (l / 32) + c of row l mod 32; bytes are in that order.
REGISTER = np.arange(32)
KEY = 32 * (REGISTER // 16) + 8 * (REGISTER // 4 % 4) + REGISTER % 4


def kernel_trace(
    problem: Problem, config: Fp8Config, options: dict[str, Any] | None = None
) -> tuple[Array, Array, Array, Array, Array]:
    """terms (B, H, Sq, tiles), m, d, and hi, lo (B, H, Sq, tiles * 64); terms 0 where the wave did not look."""
    batch, heads, rows = problem.query.shape[:3]
    groups, tiles = -(-rows // GROUP_ROWS), -(-problem.key.shape[2] // TILE_KEYS)
    records = np.zeros((batch, heads, groups, tiles, WAVE_LANES, TRACE_WORDS), np.uint32)
    _, _, result = fp8_launch.run(
        config, *problem.tensors(), options=options, trace=records, **problem.launch_options()
    )
    assert result is not None and not result.findings, result.table()
    # (…, tile, half, row of the group, word) -> (…, group, row, tile, …)
    lanes = records.reshape(batch, heads, groups, tiles, 2, GROUP_ROWS, TRACE_WORDS)
    words = np.moveaxis(lanes, 5, 3).reshape(batch, heads, groups * GROUP_ROWS, tiles, 2, TRACE_WORDS)[
        :, :, :rows
    ]
    codes = np.ascontiguousarray(words[..., :16]).view(np.uint8).reshape(*words.shape[:-1], 2, 32)
    by_key = np.zeros((2, *words.shape[:4], TILE_KEYS), np.uint8)
    for half in range(2):
        for term in range(2):
            by_key[term][..., KEY + 4 * half] = codes[..., half, term, :]
    np.testing.assert_array_equal(words[..., 0, 16:19], words[..., 1, 16:19], err_msg="two halves of a row")
    terms, exponent = words[..., 0, 18], words[..., 0, 17].astype(np.int32) - 127
    anchor = np.ascontiguousarray(words[..., 0, 16]).view(np.float32)
    hi, lo = (term.reshape(*terms.shape[:3], tiles * TILE_KEYS) for term in by_key)
    return terms, anchor, exponent, hi, lo


def compare(problem: Problem, config: Fp8Config, share: float = 0.0, **launch: Any) -> Trace:
    """Bit for bit, but for `share` of the bytes: those whose score is rounded once more between two k-steps."""
    options = {k: v for k, v in problem.options.items() if k != "layout"}
    inputs = problem.op_inputs()
    model = fp8_attention(**inputs, **options, fp8_edges=config.edges, trace=True).trace
    assert model is not None
    terms, anchor, exponent, hi, lo = kernel_trace(problem, config, launch)
    seen = model.visited
    np.testing.assert_array_equal(terms[seen], np.where(model.is_edge[seen] & (config.edges == "hilo"), 2, 1))
    where = np.repeat(seen, TILE_KEYS, axis=3)[..., : hi.shape[3]]
    edge = np.repeat(terms == 2, TILE_KEYS, axis=3)
    if share == 0:
        np.testing.assert_array_equal(anchor[seen], model.m[seen], err_msg="anchors")
    np.testing.assert_allclose(anchor[seen], model.m[seen], rtol=1e-6, err_msg="anchors")
    for name, got, wanted, allowed in (
        ("exponents", exponent[seen], model.d[seen], share),
        ("hi", hi[where], model.hi[where], share),
        ("lo", lo[where & edge], model.lo[where & edge], 10 * share),
    ):
        turned = np.count_nonzero(got != wanted)
        assert turned <= allowed * wanted.size, f"{name}: {turned} of {wanted.size} differ"
    hidden = ~where & np.repeat(terms > 0, TILE_KEYS, axis=3)
    assert not hi[hidden].any() and not lo[hidden & edge].any()
    return model


def small_integers(problem: Problem) -> Problem:
    """Scores that are exact in any order of their sums."""
    rng = np.random.default_rng(7)
    for tensor in (problem.query, problem.key):
        tensor[...] = rng.integers(-3, 4, tensor.shape).astype(tensor.dtype)
    for name in ("q_scale", "k_scale"):
        problem.scales[name][...] = 0.77
    return problem


@pytest.mark.parametrize("head_dim", [128, 192])
@pytest.mark.parametrize("edges", ["hilo", "none"])
def test_bytes_of_exact_scores(edges: str, head_dim: int) -> None:
    problem = small_integers(make_problem(330, heads=2, head_dim=head_dim, scale=0.05))
    compare(problem, Fp8Config(head_dim=head_dim, edges=edges, trace=True))


@pytest.mark.parametrize("options", [
    {"window_left": 100}, {"is_causal": 0}, {"scale": -0.1}, {"scale": 0.0}, {"key_range": [[70, 290]]}])  # fmt: skip
def test_bytes_of_other_masks_and_scales(options: dict[str, Any]) -> None:
    compare(small_integers(make_problem(400, **options)), Fp8Config(trace=True))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["hilo", "none"])
def test_bytes_of_families(family: str, edges: str) -> None:
    """Codes use all of their range: some scores are rounded between the k-steps, and 1 in 10^4 bytes may turn."""
    compare(make_problem(400, family=family), Fp8Config(edges=edges, trace=True), share=1e-4)
