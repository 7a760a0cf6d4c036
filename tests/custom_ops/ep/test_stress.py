"""Eight threads, changing shapes, sessions that come and go, on the CPU and on the emulated device at once.

`make sanitize-ops` runs this over libraries built with AddressSanitizer and with ThreadSanitizer.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from custom_ops.gpu_session import gpu_session
from custom_ops.op_session import ATTENTION, Array, make_session, one_node_model, run_session
from kernels.select.cases import tensors

THREADS = 8
# A node that every session runs: rows, keys, of which in the cache. Decode, prefill, beyond a tile, nothing.
LENGTHS = ((1, 40, 30), (20, 90, 30), (70, 100, 30), (300, 330, 30), (0, 31, 30))


@dataclass(frozen=True)
class Place:
    """Where a session runs, and in which precision."""

    device: str
    precision: str

    def session(self, model: Any) -> ort.InferenceSession:
        return gpu_session(model) if self.device == "gpu" else make_session(model, threads=2)


PLACES = tuple(
    Place(device, precision)
    for device, precisions in (("cpu", ("fp32", "bf16", "fp8")), ("gpu", ("bf16", "fp8")))
    for precision in precisions
)


def problem(lengths: tuple[int, int, int]) -> dict[str, Array]:
    """Padded on the left by seven keys."""
    rows, keys, past = lengths
    made = tensors(rows, keys, (64, 64), np.float32, past=past)
    return made | {"key_mask": np.arange(keys)[None] >= 7}


def as_bytes(outputs: dict[str, Array]) -> bytes:
    return b"".join(outputs[name].tobytes() for name in sorted(outputs))


@pytest.mark.parametrize("runs", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_eight_threads_with_changing_shapes(runs: int) -> None:
    problems = [problem(lengths) for lengths in LENGTHS]
    outputs = {"output": np.float32, "present_key": np.float32, "present_value": np.float32}
    models = {
        place: one_node_model(ATTENTION, problems[0], outputs, {"precision": place.precision})
        for place in PLACES
    }
    shared = {place: place.session(models[place]) for place in PLACES}
    wanted = {place: [as_bytes(run_session(shared[place], p)) for p in problems] for place in PLACES}
    start = threading.Barrier(THREADS)

    def work(seed: int) -> list[str]:
        rng = np.random.default_rng(seed)
        start.wait()
        wrong = []
        for run in range(runs):
            place, which = PLACES[rng.integers(len(PLACES))], rng.integers(len(problems))
            # Every tenth run has a session of its own, which ends with it.
            session = place.session(models[place]) if rng.integers(10) == 0 else shared[place]
            if as_bytes(run_session(session, problems[which])) != wanted[place][which]:
                wrong.append(f"thread {seed}, run {run}: {place}, {LENGTHS[which]}")
        return wrong

    with ThreadPoolExecutor(THREADS) as pool:
        assert [text for wrong in pool.map(work, range(THREADS)) for text in wrong] == []
