"""The answer: copies and launches in their order, with all that a host needs to make them."""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.errors import KernelError
from zyfa_ort.kernels.select.table import KernelRow

# Tensors that arguments point into. key_range is (batch, 2) int32: first and one past the last visible key.
BUFFERS = (
    "query", "key", "value", "past_key", "past_value", "output", "present_key", "present_value", "lse",
    "key_mask", "key_range", "bias", "sinks", "q_scale", "k_scale", "v_scale", "workspace",
    "x", "y", "scale",
)  # fmt: skip


class NoKernelError(KernelError):
    """No GPU kernel computes the problem. The message names the attribute, what was expected, what was found, what to do."""


@dataclass(frozen=True)
class At:
    """A place in a tensor, in bytes."""

    buffer: str
    offset: int = 0

    def __add__(self, step: int) -> At:
        return At(self.buffer, self.offset + step)

    def __str__(self) -> str:
        return f"{self.buffer}+{self.offset}"


@dataclass(frozen=True)
class Copy:
    """Rows of `row_bytes`, (batch, heads, rows) of them; strides of the three axes in bytes."""

    source: At
    target: At
    counts: tuple[int, int, int]
    row_bytes: int
    source_strides: tuple[int, int, int]
    target_strides: tuple[int, int, int]

    def __str__(self) -> str:
        def numbers(of: tuple[int, int, int]) -> str:
            return "x".join(map(str, of))

        return (
            f"copy {self.source} -> {self.target} {numbers(self.counts)} rows of {self.row_bytes} bytes, "
            f"strides {numbers(self.source_strides)} -> {numbers(self.target_strides)}"
        )


@dataclass(frozen=True)
class Launch:
    """`arguments` is the packed block with 0 for pointers; `pointers` says what goes where in it (absent ones stay null)."""

    row: KernelRow
    grid: tuple[int, int, int]
    arguments: bytes
    pointers: tuple[tuple[int, At], ...]

    @property
    def block(self) -> tuple[int, int, int]:
        return self.row.work_items, 1, 1

    def __str__(self) -> str:
        places = " ".join(f"{offset}={at}" for offset, at in self.pointers)
        return (
            f"launch {self.row.code_object} {self.row.kernel} grid {'x'.join(map(str, self.grid))} "
            f"block {self.row.work_items} lds {self.row.lds_bytes} pointers {places} arguments {self.arguments.hex()}"
        )


@dataclass(frozen=True)
class Choice:
    """Steps in order; all on one stream. The workspace is aligned to 256 bytes and needs no content."""

    steps: tuple[Copy | Launch, ...]
    workspace_bytes: int
    why: str

    @property
    def launches(self) -> list[Launch]:
        return [step for step in self.steps if isinstance(step, Launch)]

    def __str__(self) -> str:
        """The form that custom_ops/hip/select.cc must give too, byte for byte."""
        lines = [f"why {self.why}", f"workspace {self.workspace_bytes}", *map(str, self.steps)]
        return "".join(f"{line}\n" for line in lines)
