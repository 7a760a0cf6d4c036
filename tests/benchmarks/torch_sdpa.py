"""torch's scaled_dot_product_attention on the CPU; torch is optional."""

from __future__ import annotations

import importlib.util

import numpy as np

from benchmarks.prepared import Prepared, Unavailable
from benchmarks.problem import Array, Problem


def prepare(problem: Problem, threads: int) -> Prepared:
    """(B, H, S, D), grouped heads by enable_gqa.

    Raises:
        Unavailable: torch is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise Unavailable("torch is not installed: pip install torch")
    import torch

    torch.set_num_threads(threads)
    s = problem.shape
    query, key, value = (_tensor(x) for x in problem.tensors)
    answer: list[torch.Tensor] = []

    def run() -> None:
        with torch.inference_mode():
            answer[:] = [
                torch.nn.functional.scaled_dot_product_attention(
                    query, key, value, is_causal=not s.decode, enable_gqa=s.heads != s.kv_heads
                )
            ]

    return Prepared(run, lambda: np.asarray(answer[0].float().numpy()))


def _tensor(x: Array) -> object:
    import torch

    return (
        torch.from_numpy(x)
        if x.dtype == np.float32
        else torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    )
