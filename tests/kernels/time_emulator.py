"""How fast the emulator is on this machine: `python -m kernels.time_emulator`, in tests/. No test; nothing asserts it.

The FP8 prefill kernel, causal, head dim 128, one head, on one core: seconds of functional runs with and without checks, and
of the timing model, each the median of three, interleaved.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import ml_dtypes
import numpy as np
from zyfa_ort.kernels.asm.fp8_config import Fp8Config

from kernels.asm.fp8_launch import code_object, run

ROUNDS = 3
WAYS: dict[str, dict[str, Any]] = {
    "functional": {},
    "without checks": {"check": False},
    "timed": {"timing": {"constants": {}}},
}


def main() -> None:
    config, one = Fp8Config(head_dim=128), np.ones(1, np.float32)
    code_object(config)
    for length in (1024, 8192):
        rng = np.random.default_rng(0)
        tensors = [rng.standard_normal((1, length, 1, 128)).astype(ml_dtypes.float8_e4m3fn) for _ in range(3)]
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way, options in WAYS.items():
                began = time.perf_counter()
                run(config, *tensors, options=options, q_scale=one, k_scale=one, v_scale=one)
                seconds[way].append(time.perf_counter() - began)
        medians = {way: statistics.median(found) for way, found in seconds.items()}
        shown = ", ".join(f"{way} {median:.3f} s" for way, median in medians.items())
        print(
            f"{length} x {length}: {shown}; timed / functional {medians['timed'] / medians['functional']:.2f}"
        )


if __name__ == "__main__":
    main()
