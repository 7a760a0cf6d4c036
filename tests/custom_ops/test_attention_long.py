"""Long prompts: the right answer and memory that does not grow with the square of the length."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from custom_ops.op_session import ATTENTION, Array, make_session, one_node_model, run_session

MEBIBYTE = 2**20


def ramp(length: int, heads: int = 1, head_dim: int = 4) -> dict[str, Array]:
    """Q = 0 and V row j = j / length: causal row i must be i / (2 length)."""
    value = (np.arange(length, dtype=np.float32) / length)[None, :, None, None]
    return {
        "query": np.zeros((1, length, heads, head_dim), np.float32),
        "key": np.ones((1, length, heads, head_dim), np.float32),
        "value": np.ascontiguousarray(np.broadcast_to(value, (1, length, heads, head_dim))),
    }


def peak_memory() -> int:
    """Highest resident size of this process so far, in bytes, since `reset_peak`."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def reset_peak() -> None:
    """Start counting the peak from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def check_ramp(length: int, heads: int = 1, head_dim: int = 4, precision: str = "fp32") -> None:
    """Run it, hold every row against i / (2 length)."""
    inputs = ramp(length, heads, head_dim)
    model = one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": precision})
    actual = run_session(make_session(model, threads=2), inputs)["output"]
    wanted = (np.arange(length) / (2 * length))[None, :, None, None]
    # FP8 rounds the values, at most by 2^-4 of each; BF16 by 2^-9; FP32 sums 131,072 terms in some order.
    tolerance = {"fp32": 2e-5, "bf16": 2e-3, "fp8": 0.04}[precision]
    smallest = 2.0**-9 / 448 if precision == "fp8" else 1e-9  # the first non-zero code of values up to 1
    np.testing.assert_allclose(actual, np.broadcast_to(wanted, actual.shape), rtol=tolerance, atol=smallest)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize("length", [2047, 2048, 2049, 4097, 8193])
def test_ramp(length: int, precision: str) -> None:
    check_ramp(length, precision=precision)


def test_ramp_of_eight_heads() -> None:
    check_ramp(4097, heads=8)


@pytest.mark.parametrize("precision", ["fp32", "fp8"])
def test_more_than_2_to_the_31_scores(precision: str) -> None:
    """46,341 squared is just over 2^31: every offset beyond 32 bits must be right."""
    check_ramp(46341, head_dim=8, precision=precision)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize("length", [32769, 131072])
def test_very_long_ramp(length: int, precision: str) -> None:
    check_ramp(length, precision=precision)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_memory_is_linear_in_the_length(precision: str) -> None:
    """At 16,385 rows a byte per score is 256 MiB; a run may add a tenth of that to the resident peak."""
    inputs = ramp(16385)
    model = one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": precision})
    session = make_session(model, threads=2)
    run_session(session, ramp(65))
    try:
        reset_peak()
    except OSError:
        pytest.skip("this kernel does not let a process reset its peak memory")
    before = peak_memory()
    run_session(session, inputs)
    assert peak_memory() - before < 25 * MEBIBYTE
