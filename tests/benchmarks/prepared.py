"""A contender that is ready to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.problem import Array


class Unavailable(Exception):
    """Why something cannot be measured here, in a sentence."""


@dataclass(frozen=True)
class Prepared:
    """`run` does the timed work; `output` is the answer of the last run as (B, H, S, D).

    `holds`: ONNX Runtime reads bound arrays where they are and does not keep them alive.
    """

    run: Callable[[], object]
    output: Callable[[], Array]
    holds: object = None
