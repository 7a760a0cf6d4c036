"""The same input gives the same bits: run after run, alone or in a batch, on an idle or a busy machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from custom_ops.op_session import ATTENTION, Array, make_session, one_node_model, run_session
from custom_ops.problems import Sizes, gaussian

PRECISIONS = ("fp32", "bf16", "fp8")
LONG = Sizes(batch=1, heads=8, kv_heads=8, q_len=1000, kv_len=1000, head_dim=128)


@contextmanager
def busy() -> Iterator[None]:
    """Another thread multiplies matrices meanwhile."""
    stop = threading.Event()

    def work() -> None:
        x = np.ones((300, 300), np.float32)
        while not stop.is_set():
            np.matmul(x, x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def distinct(precision: str, inputs: dict[str, Array], runs: int) -> int:
    """Outputs that are not the same, one and two threads in turn, half of the runs beside other work."""
    model = one_node_model(
        ATTENTION, inputs, {"output": np.float32, "lse": np.float32}, {"precision": precision}
    )
    sessions = [make_session(model, threads) for threads in (1, 2)]

    def once(run: int) -> bytes:
        outputs = run_session(sessions[run % 2], inputs)
        return outputs["output"].tobytes() + outputs["lse"].tobytes()

    seen = {once(run) for run in range(runs // 2)}
    with busy():
        return len(seen | {once(run) for run in range(runs // 2)})


@pytest.mark.parametrize("precision", PRECISIONS)
def test_two_hundred_runs(precision: str) -> None:
    assert distinct(precision, gaussian(Sizes(batch=1, q_len=200, kv_len=200, head_dim=128)), 200) == 1


@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS)
def test_two_hundred_runs_of_a_thousand_rows(precision: str) -> None:
    assert distinct(precision, gaussian(LONG), 200) == 1


@pytest.mark.parametrize("q_len", [1, 70, 300])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_entry_of_a_batch_is_the_entry_alone(precision: str, q_len: int) -> None:
    batch = gaussian(Sizes(batch=8, q_len=q_len, kv_len=300, head_dim=64))
    model = one_node_model(ATTENTION, batch, {"output": np.float32}, {"precision": precision})
    session = make_session(model, 2)
    together = run_session(session, batch)["output"]
    for entry in range(8):
        alone = run_session(session, {name: x[entry : entry + 1].copy() for name, x in batch.items()})[
            "output"
        ]
        assert alone.tobytes() == together[entry : entry + 1].tobytes()
