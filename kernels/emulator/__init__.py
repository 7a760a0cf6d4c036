"""The emulated MI355X: runs gfx950 code objects instruction by instruction, on any machine."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from zyfa_ort.kernels.emulator import _native
from zyfa_ort.kernels.errors import EmulationError


@dataclass(frozen=True)
class Finding:
    """Something the emulator holds against a kernel: a broken hazard rule, late data, a race."""

    rule: str
    severity: str
    meaning: str
    kernel: str
    workgroup: tuple[int, int, int]
    wave: int
    offset: int
    instruction: str
    message: str
    missing: int
    times: int

    def __str__(self) -> str:
        missing = f", {self.missing} wait states missing" if self.missing else ""
        times = f" ({self.times} times)" if self.times > 1 else ""
        return (
            f"{self.severity} {self.rule}: {self.kernel} wave {self.wave} +{self.offset:#x} '{self.instruction}': "
            f"{self.message}{missing}{times}"
        )


@dataclass(frozen=True)
class Result:
    """What a launch did: findings, and how many instructions and workgroups ran."""

    findings: tuple[Finding, ...]
    instructions: int
    workgroups: int
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "warning")


def launch(
    code_object: bytes,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    args: list[Any] | bytes,
    *,
    report_only: bool = False,
    **options: Any,
) -> Result:
    """Runs a kernel. Arrays among `args` are device buffers, changed in place; numbers are passed by value.

    Raises EmulationError when the launch fails, and, unless `report_only`, when it has findings of severity error.
    """
    device = _native.Device()
    try:
        device.load(code_object)
        kernarg = args if isinstance(args, bytes) else pack(device, args)
        raw = device.launch(0, kernel, _three(grid), _three(block), kernarg, **options)
    except _native.EmulatorError as error:
        raise EmulationError(str(error)) from None
    result = Result(
        tuple(Finding(**f) for f in raw.pop("findings")), raw.pop("instructions"), raw.pop("workgroups"), raw
    )
    if result.errors and not report_only:
        raise EmulationError("; ".join(str(f) for f in result.errors[:5]))
    return result


def lint(code_object: bytes) -> tuple[Finding, ...]:
    """The wait-state rules over a code object's instructions in linear order, without running it.

    Both sides of a conditional branch follow it, so a finding may be on a path that is never taken; offsets count from
    the beginning of the code. Raises EmulationError when bytes are no instruction.
    """
    try:
        return tuple(Finding(**f) for code in _native.code_of(code_object) for f in _native.hazards_of(code))
    except _native.EmulatorError as error:
        raise EmulationError(str(error)) from None


def pack(device: Any, args: list[Any]) -> bytes:
    """Kernel arguments at their natural alignment: arrays as device pointers, NumPy scalars as they are."""
    packed = b""
    for index, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            value = struct.pack(
                "<Q", device.borrow(arg.view(np.uint8) if arg.dtype.kind == "V" else arg, f"argument {index}")
            )
        elif isinstance(arg, np.generic):
            value = arg.tobytes()
        elif isinstance(arg, bytes):
            value = arg
        elif isinstance(arg, int):
            value = struct.pack("<i" if arg < 0 else "<I", arg)
        else:
            value = struct.pack("<f", arg)
        packed += bytes(-len(packed) % min(len(value), 8)) + value
    return packed


def _three(size: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*size, 1, 1, 1)[:3]
    return x, y, z
