"""Real gfx950 kernels that nobody here wrote run correctly, with no hazard error."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kernels.peers import aiter_attention as shipped

pytestmark = pytest.mark.peers

# Where AMD's kernels go below the stricter source of a rule (docs/emulator.md).
WARNINGS = {"G4", "G6", "G12", "lds_dma_overwrite"}


def inputs(kind: str, batch: int, length: int, heads: int, kv_heads: int, head_dim: int):
    """Gaussian rows; "outlier" adds four channels 20 times as large, a key that draws every row, and a flat stretch."""
    rng = np.random.default_rng(length + heads)
    query, key = (
        rng.standard_normal((batch, length, heads, head_dim)),
        rng.standard_normal((batch, length, kv_heads, head_dim)),
    )
    value = rng.standard_normal((batch, length, kv_heads, shipped.VALUE_DIM))
    if kind == "outlier":
        key[..., :4] *= 20
        query[..., :4] *= 0.2
        key[:, 0] = query.mean(axis=(1, 2))[:, None] * 30
        key[:, length // 2 : length // 2 + 64] = 0.01
    return [x.astype(ml_dtypes.bfloat16) for x in (query, key, value)]


def check(folder, kernel, kind, batch, length, heads, kv_heads):
    query, key, value = inputs(kind, batch, length, heads, kv_heads, kernel.head_dim)
    scale = kernel.head_dim**-0.5
    output, lse, result = shipped.run(folder, kernel, query, key, value, scale)
    expected, expected_lse = shipped.reference(query, key, value, scale, kernel.causal)
    assert {f.rule for f in result.warnings} <= WARNINGS
    got = output.astype(np.float64)
    # bf16 probabilities and output: 2^-9 each, as relative L2 of whole rows; bounds as for our own BF16 kernels.
    assert np.linalg.norm(got - expected) / np.linalg.norm(expected) < 6e-3
    assert np.max(np.abs(lse - expected_lse)) < 1e-3 * max(1, np.abs(expected_lse).max())
    return result


KERNELS = [
    pytest.param(shipped.HD128, id="hd128"),
    pytest.param(shipped.HD128_CAUSAL, id="hd128-causal"),
    pytest.param(shipped.HD192_CAUSAL, id="hd192-causal"),
]


@pytest.mark.parametrize("kind", ["random", "outlier"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_small_problems_match_float64(aiter_objects, kernel, kind):
    check(aiter_objects, kernel, kind, 1, 384, 2, 1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_length_between_tiles_and_grouped_heads_match_float64(aiter_objects, kernel):
    check(aiter_objects, kernel, "outlier", 2, 1000, 4, 1)


@pytest.mark.slow
@pytest.mark.parametrize("heads", [(4, 4), (4, 1), (8, 2)], ids=["mha", "mqa", "gqa"])
@pytest.mark.parametrize("length", [256, 384, 1000, 2048])
@pytest.mark.parametrize("kind", ["random", "outlier"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_lengths_and_head_counts_match_float64(aiter_objects, kernel, kind, length, heads):
    check(aiter_objects, kernel, kind, 1, length, *heads)
