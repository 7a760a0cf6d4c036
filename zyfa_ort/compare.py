"""A/B comparison of two models on the same inputs: logits, every attention, latency."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from zyfa_ort import api, inputs as model_inputs, numerics
from zyfa_ort.errors import InputError

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

    from zyfa_ort.inputs import Inputs


@dataclass(frozen=True)
class OutputError:
    """Difference of one output on one input set, padding rows left out. KL and top-1 only for logits, else None."""

    inputs: str
    output: str
    relative: float
    max_abs: float
    kl: float | None = None
    top1: float | None = None


@dataclass(frozen=True)
class SiteError:
    """Relative error of one fused attention's output, the errors of all earlier layers included."""

    node: str
    inputs: str
    relative: float


@dataclass(frozen=True)
class Latency:
    """Seconds per run on the machine at hand: medians and 99th percentiles of runs that alternate between the models."""

    inputs: str
    runs: int
    reference_p50: float
    reference_p99: float
    candidate_p50: float
    candidate_p99: float


@dataclass(frozen=True)
class Comparison:
    """Everything that `compare` found; `failures` says in words which bound was passed, empty when none was."""

    outputs: tuple[OutputError, ...]
    sites: tuple[SiteError, ...]
    latencies: tuple[Latency, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)
