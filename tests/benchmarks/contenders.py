"""Who is timed: one class of prepared runs, and a table of ways to make them.

Every way gets tensors in the layout it likes best, made beforehand; keys and values are repeated beforehand for those that
know no grouped heads. None of that is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import ort_graphs, torch_sdpa
from benchmarks.prepared import Prepared, Unavailable
from benchmarks.problem import Array, Problem
from zyfa_ort.numerics import TOLERANCES

SCORE_LIMIT = 3_000_000_000  # bytes of scores that an unfused contender may take


@dataclass(frozen=True)
class Contender:
    """`precisions` are the tables in which it appears; `tolerance` is that of its outputs against float64."""

    name: str
    precision: str
    tolerance: str
    prepare: Callable[[Problem, int], Prepared]
    precisions: tuple[str, ...]
    keeps_scores: bool = False

    @property
    def ours(self) -> bool:
        return self.name.startswith("zyfa")

    def ready(self, problem: Problem, threads: int) -> Prepared:
        """Prepared for one problem.

        Raises:
            Unavailable: it cannot run the problem, in one sentence.
        """
        needed = problem.shape.score_bytes
        if self.keeps_scores and needed > SCORE_LIMIT:
            raise Unavailable(f"would keep {needed / 1e9:.1f} GB of scores")
        return self.prepare(problem, threads)

    def wrong(self, problem: Problem, output: Array) -> list[str]:
        """What is wrong with its answer; empty when it is within the tolerance."""
        if output.shape != (
            problem.shape.batch,
            problem.shape.heads,
            problem.shape.rows,
            problem.shape.v_dim,
        ):
            return [f"output shape {output.shape}"]
        return TOLERANCES[self.tolerance].violations(problem.sampled(output), problem.expected)


CONTENDERS = (
    Contender("zyfa fp32", "fp32", "fp32", ort_graphs.zyfa, ("fp32",)),
    Contender("zyfa bf16", "bf16", "bf16", ort_graphs.zyfa, ("bf16",)),
    Contender("zyfa fp8", "fp8", "fp8_flat", ort_graphs.zyfa, ("fp8",)),
    Contender("torch SDPA fp32", "fp32", "fp32", torch_sdpa.prepare, ("fp32", "bf16", "fp8")),
    Contender("torch SDPA bf16", "bf16", "bf16", torch_sdpa.prepare, ("bf16", "fp8")),
    Contender("ORT GroupQueryAttention", "fp32", "fp32", ort_graphs.group_query, ("fp32", "bf16", "fp8")),
    Contender("ORT MultiHeadAttention", "fp32", "fp32", ort_graphs.multi_head, ("fp32",), keeps_scores=True),
    Contender("ORT Attention", "fp32", "fp32", ort_graphs.attention, ("fp32",), keeps_scores=True),
    Contender("ORT unfused", "fp32", "fp32", ort_graphs.unfused, ("fp32",), keeps_scores=True),
)


def chosen(precisions: tuple[str, ...]) -> list[Contender]:
    """Those that appear in the tables of some precisions."""
    return [c for c in CONTENDERS if set(c.precisions) & set(precisions)]
