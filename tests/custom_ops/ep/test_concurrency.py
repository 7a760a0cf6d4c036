"""Sessions and threads that share one device."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort
import pytest
from custom_ops.gpu_session import gpu_session
from custom_ops.op_session import ATTENTION, Array, one_node_model, run_session
from kernels.select.cases import tensors


def session_for(inputs: dict[str, Array], precision: str) -> ort.InferenceSession:
    return gpu_session(one_node_model(ATTENTION, inputs, {"output": np.float32}, {"precision": precision}))


@pytest.mark.parametrize("runs", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_the_same_bits_from_every_thread_and_session(runs: int) -> None:
    """Eight threads, two sessions, three shapes; memory and streams are shared."""
    problems = [tensors(rows, rows + 30, (128, 128), np.float32, past=30) for rows in (1, 20, 70)]
    sessions = [session_for(problems[0], precision) for precision in ("bf16", "fp8")]
    wanted = [[run_session(s, p)["output"].tobytes() for p in problems] for s in sessions]
    start = threading.Barrier(8)

    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        start.wait()
        for _ in range(runs):
            s, p = rng.integers(2), rng.integers(3)
            if run_session(sessions[s], problems[p])["output"].tobytes() != wanted[s][p]:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_an_error_in_one_thread_is_nobody_elses() -> None:
    """Holes in the mask of one run; the status belongs to its stream."""
    inputs = tensors(40, 70, (128, 128), np.float32) | {"key_mask": np.ones((1, 70), np.int64)}
    session = session_for(inputs, "fp8")
    wanted = run_session(session, inputs)["output"].tobytes()
    holes = inputs | {"key_mask": inputs["key_mask"].copy()}
    holes["key_mask"][0, 30] = 0

    def work(number: int) -> bool:
        for _ in range(6):
            if number % 2:
                if run_session(session, inputs)["output"].tobytes() != wanted:
                    return False
                continue
            try:
                run_session(session, holes)
            except Exception as error:
                if "a mask with holes" not in str(error):
                    return False
            else:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_a_session_ends_while_another_runs() -> None:
    inputs = tensors(20, 50, (64, 64), np.float32)
    kept = session_for(inputs, "bf16")
    wanted = run_session(kept, inputs)["output"].tobytes()
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            run_session(session_for(inputs, "bf16"), inputs)

    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(come_and_go)
        try:
            same = all(run_session(kept, inputs)["output"].tobytes() == wanted for _ in range(20))
        finally:
            stop.set()
        others.result()
    assert same
