"""Where tensors lie while a problem is planned."""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.select.choice import At
from zyfa_ort.kernels.select.problem import Strides

Bytes = tuple[int, int, int]  # from batch to batch, head to head, row to row
Sizes = tuple[int, int, int, int]  # batch, heads, rows, dim


@dataclass(frozen=True)
class Tensor:
    at: At
    strides: Bytes
    dtype: str


@dataclass(frozen=True)
class Tensors:
    """What the attention kernel is called with. Scales are null when the inputs have none; their strides are in elements."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    scales: dict[str, At | None]
    scale_strides: dict[str, Strides]
    key_range: At | None = None
    key_mask: At | None = None  # bytes
    bias: At | None = None  # of `bias_dtype`
    bias_dtype: str = "bfloat16"


class Workspace:
    """Parts one behind the other, each aligned."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.size = 0

    def take(self, size: int) -> At:
        at = At("workspace", self.size)
        self.size += -(-size // self.alignment) * self.alignment
        return at
