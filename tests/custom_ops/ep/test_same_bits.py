"""The same bits from every run on the device, alone, in a batch and beside other work; lengths that change between runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from custom_ops.gpu_session import gpu_session
from custom_ops.op_session import ATTENTION, Array, one_node_model, run_session
from custom_ops.test_attention_long import ramp
from kernels.select.cases import tensors

PRECISIONS = ("bf16", "fp8")


def session_for(inputs: dict[str, Array], precision: str) -> ort.InferenceSession:
    return gpu_session(one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": precision}))


def distinct(precision: str, inputs: dict[str, Array], runs: int) -> int:
    """Outputs that are not the same; a second session works on the device all the while."""
    session, other = session_for(inputs, precision), session_for(inputs, "bf16")
    small = tensors(20, 30, (128, 128), np.float32)
    with ThreadPoolExecutor(2) as pool:
        disturbance = [pool.submit(run_session, other, small) for _ in range(runs)]
        seen = {run_session(session, inputs)["output"].tobytes() for _ in range(runs)}
        for done in disturbance:
            done.result()
    return len(seen)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_runs_beside_other_work(precision: str) -> None:
    assert distinct(precision, tensors(100, 140, (128, 128), np.float32), 20) == 1


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_two_hundred_runs_of_a_thousand_rows(precision: str) -> None:
    assert distinct(precision, tensors(1000, 1000, (128, 128), np.float32, heads=(8, 8)), 200) == 1


@pytest.mark.parametrize("dims", [(64, 64), (128, 128)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_entry_of_a_batch_is_the_entry_alone(precision: str, dims: tuple[int, int]) -> None:
    """Prefill. Decode splits the cache by the number of heads in the batch, which its bits depend on (docs/kernels.md)."""
    batch = tensors(40, 140, dims, np.float32, batch=8)
    session = session_for(batch, precision)
    together = run_session(session, batch)["output"]
    for entry in range(8):
        alone = run_session(session, {name: x[entry : entry + 1].copy() for name, x in batch.items()})[
            "output"
        ]
        assert alone.tobytes() == together[entry : entry + 1].tobytes()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_lengths_change_between_runs_of_one_session(precision: str) -> None:
    cases = {rows: tensors(rows, rows, (128, 128), np.float32) for rows in (512, 10, 513, 1)}
    session = session_for(cases[512], precision)
    for rows in (512, 10, 513, 1, 512):
        fresh = run_session(session_for(cases[rows], precision), cases[rows])["output"]
        assert run_session(session, cases[rows])["output"].tobytes() == fresh.tobytes()


def check_ramp(length: int, precision: str, head_dim: int) -> None:
    inputs = ramp(length, head_dim=head_dim)
    output = run_session(session_for(inputs, precision), inputs)["output"]
    wanted: Any = (np.arange(length) / (2 * length))[None, :, None, None]
    tolerance, smallest = {"bf16": (4e-3, 1e-9), "fp8": (0.04, 2.0**-9 / 448)}[precision]
    np.testing.assert_allclose(output, np.broadcast_to(wanted, output.shape), rtol=tolerance, atol=smallest)


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_ramp(precision: str, head_dim: int) -> None:
    """Q = 0 and V row j = j / length: causal row i must be i / (2 length)."""
    check_ramp(1025, precision, head_dim)


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_more_than_2_to_the_31_scores(precision: str) -> None:
    """46,341 squared is just over 2^31: about a minute of emulation each."""
    check_ramp(46341, precision, 64)
