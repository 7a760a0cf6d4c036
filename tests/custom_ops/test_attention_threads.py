"""One session, many callers: no state between runs, no influence between threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from custom_ops.op_session import ATTENTION, Array, make_session, one_node_model, run_session
from custom_ops.problems import Sizes, gaussian

PRECISIONS = ("fp32", "bf16", "fp8")
THREADS = 8
OUTPUTS = {"output": np.float32, "lse": np.float32}


def as_bytes(outputs: dict[str, Array]) -> bytes:
    """All outputs as one string of bytes."""
    return b"".join(outputs[name].tobytes() for name in OUTPUTS)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("sessions", "runs"), [(1, 50), (4, 15)])
def test_eight_threads_get_the_bits_of_one(precision: str, sessions: int, runs: int) -> None:
    """8 threads, 8 different inputs of one shape, over one session or four."""
    inputs = [gaussian(Sizes(q_len=70, kv_len=90), seed=seed) for seed in range(THREADS)]
    model = one_node_model(ATTENTION, inputs[0], OUTPUTS, {"precision": precision})
    pool = [make_session(model, threads=2) for _ in range(sessions)]
    wanted = [as_bytes(run_session(pool[0], arrays)) for arrays in inputs]
    wrong: list[str] = []

    def caller(number: int) -> None:
        for run in range(runs):
            session = pool[(number + run) % sessions]
            if as_bytes(run_session(session, inputs[number])) != wanted[number]:
                wrong.append(f"thread {number}, run {run}")

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(THREADS)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("precision", PRECISIONS)
def test_lengths_change_between_runs_of_one_session(precision: str) -> None:
    """512, 10, 513, 1, 512: each equals a fresh session's bits."""
    cases = {length: gaussian(Sizes(batch=1, q_len=length, kv_len=length)) for length in (512, 10, 513, 1)}
    model = one_node_model(ATTENTION, cases[512], OUTPUTS, {"precision": precision})
    session = make_session(model)
    for length in (512, 10, 513, 1, 512):
        fresh = run_session(make_session(model), cases[length])
        assert as_bytes(run_session(session, cases[length])) == as_bytes(fresh)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_inputs_are_left_alone(precision: str) -> None:
    inputs = gaussian(Sizes())
    before = {name: array.copy() for name, array in inputs.items()}
    run_session(make_session(one_node_model(ATTENTION, inputs, OUTPUTS, {"precision": precision})), inputs)
    for name, array in before.items():
        assert inputs[name].tobytes() == array.tobytes()
