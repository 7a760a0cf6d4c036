"""Which kernels run an attention problem on a gfx950, and how they are launched (docs/kernels.md, "Which kernel runs")."""

from __future__ import annotations

from zyfa_ort.kernels.select.choice import BUFFERS, At, Choice, Launch, NoKernelError
from zyfa_ort.kernels.select.plan import select
from zyfa_ort.kernels.select.problem import Problem, Strides, make_problem
from zyfa_ort.kernels.select.table import KERNELS, REFUSALS, KernelRow
from zyfa_ort.kernels.select.tensor_ops import select_hadamard, select_quantize

__all__ = [
    "BUFFERS",
    "KERNELS",
    "REFUSALS",
    "At",
    "Choice",
    "KernelRow",
    "Launch",
    "NoKernelError",
    "Problem",
    "Strides",
    "make_problem",
    "select",
    "select_hadamard",
    "select_quantize",
]
