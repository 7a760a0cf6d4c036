"""Head counts: key head of query head h is h // (Hq / Hkv)."""

from __future__ import annotations

import numpy as np
import pytest
from custom_ops.expected import check_attention
from custom_ops.op_session import run_attention
from custom_ops.problems import Sizes, gaussian

PRECISIONS = ("fp32", "bf16", "fp8")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_heads_are_grouped_in_blocks_not_round_robin(precision: str, layout: str) -> None:
    """Four query heads over values 10 and 20: 10, 10, 20, 20."""
    value = np.array([10, 20], np.float32).reshape(1, 1, 2, 1)
    inputs = {
        "query": np.zeros((1, 1, 4, 1), np.float32),
        "key": np.zeros((1, 1, 2, 1), np.float32),
        "value": value,
    }
    if layout == "BHSD":
        inputs = {name: array.swapaxes(1, 2) for name, array in inputs.items()}
    actual = run_attention(inputs, layout=layout, precision=precision)["output"]
    np.testing.assert_allclose(actual.ravel(), [10, 10, 20, 20], rtol=1e-3)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("heads", "kv_heads"), [(14, 2), (9, 3), (8, 1), (1, 1), (5, 5), (32, 8)])
@pytest.mark.parametrize("rank", [3, 4])
def test_head_counts(precision: str, heads: int, kv_heads: int, rank: int) -> None:
    sizes = Sizes(batch=1, heads=heads, kv_heads=kv_heads, q_len=20, kv_len=33, head_dim=16)
    counts = {"num_heads": heads, "kv_num_heads": kv_heads}
    check_attention(gaussian(sizes, rank=rank), precision=precision, **counts)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_shared_key_heads_equal_repeated_ones(precision: str) -> None:
    inputs = gaussian(Sizes(heads=6, kv_heads=2, q_len=50, kv_len=80))
    shared = run_attention(inputs, precision=precision)["output"]
    for name in ("key", "value"):
        inputs[name] = np.repeat(inputs[name], 3, axis=2)
    assert run_attention(inputs, precision=precision)["output"].tobytes() == shared.tobytes()
