"""Random problems with several features at once, plain and general kernels of BF16 prefill."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.hip.prefill_launch import KERNELS, bias, check, gaussian
from ml_dtypes import bfloat16

DIMS = list(KERNELS)


def pick(rng: np.random.Generator, *options: object) -> object:
    return options[rng.integers(len(options))]


def random_problem(seed: int) -> tuple[dict, dict]:
    """Tensors and attributes."""
    rng = np.random.default_rng(seed)
    batch, kv_heads = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    heads = kv_heads * int(rng.integers(1, 4))
    queries = int(pick(rng, 1, 31, 33, 64, 127, 130, 257))
    keys = int(pick(rng, 0, 1, 31, 63, 64, 65, 129, 200))
    tensors = gaussian((batch, heads, kv_heads), queries, keys, DIMS[rng.integers(4)], seed)
    problem = {
        "is_causal": int(rng.integers(2)),
        "causal_alignment": pick(rng, "bottom_right", "top_left"),
        "window_left": pick(rng, -1, -1, 0, 40, 100),
        "softcap": pick(rng, 0.0, 0.0, 1.0, 30.0),
        "scale": pick(rng, None, None, 0.0, -0.1, 1.0),
        "out": pick(rng, bfloat16, np.float16, np.float32),
    }
    if pick(rng, True, False):
        problem["key_range"] = np.sort(rng.integers(0, keys + 1, (batch, 2)), axis=1).astype(np.int32)
    if pick(rng, True, False):
        tensors["key_mask"] = (rng.random((batch, keys)) < 0.7).astype(np.uint8)
    if pick(rng, True, False):
        tensors["sinks"] = rng.standard_normal(heads).astype(np.float32) * 3
    if pick(rng, True, False):
        shape = [size if pick(rng, True, True, False) else 1 for size in (batch, heads, queries, keys)]
        tensors["attn_bias"] = bias(tuple(shape), pick(rng, np.float32, bfloat16), 0.2)  # type: ignore[arg-type]
    if keys and pick(rng, True, False):
        tensors["value"][0, rng.integers(keys), 0, 3] = pick(rng, np.nan, np.inf, -np.inf)
    if pick(rng, True, False):
        problem["layout"] = "BHSD"
        for name in ("query", "key", "value"):
            tensors[name] = np.ascontiguousarray(tensors[name].transpose(0, 2, 1, 3))
    return tensors, problem


@pytest.mark.parametrize("seed", range(20))
def test_random_problems(seed):
    tensors, problem = random_problem(seed)
    check(tensors, order_seed=seed, **problem)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 420, 50))
def test_more_random_problems(first):
    for seed in range(first, first + 50):
        tensors, problem = random_problem(seed)
        check(tensors, order_seed=seed, **problem)
