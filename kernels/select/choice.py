"""The answer: launches in their order, with all that a host needs to make them."""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.errors import KernelError
from zyfa_ort.kernels.select.table import KernelRow

# Tensors that arguments point into. key_range is (batch, 2) int32: first and one past the last visible key. status is an
# int32 that a launch sets to 1 when the result is not to be used.
BUFFERS = (
    "query", "key", "value", "past_key", "past_value", "output", "present_key", "present_value", "lse",
    "key_mask", "key_range", "bias", "sinks", "q_scale", "k_scale", "v_scale", "workspace",
    "x", "y", "scale", "status",
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
    """Launches in order; all on one stream. The workspace is aligned to 256 bytes and needs no content."""

    launches: tuple[Launch, ...]
    workspace_bytes: int
    why: str

    def __str__(self) -> str:
        """The form that custom_ops/hip/select.cc must give too, byte for byte."""
        lines = [f"why {self.why}", f"workspace {self.workspace_bytes}", *map(str, self.launches)]
        return "".join(f"{line}\n" for line in lines)
