"""The emulated MI355X: runs gfx950 code objects instruction by instruction, on any machine.

Stricter than the chip: see docs/emulator.md for what it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zyfa_ort.kernels.emulator import _native
from zyfa_ort.kernels.emulator.code_object import Argument, Kernel, Line, disassemble, kernels
from zyfa_ort.kernels.emulator.device import ACCUMULATIONS, MAX_INSTRUCTIONS, Arguments, Device
from zyfa_ort.kernels.emulator.findings import Finding, Result
from zyfa_ort.kernels.emulator.hip_library import hip_library_path
from zyfa_ort.kernels.errors import EmulationError

__all__ = [
    "ACCUMULATIONS",
    "MAX_INSTRUCTIONS",
    "Argument",
    "Arguments",
    "Device",
    "EmulationError",
    "Finding",
    "Kernel",
    "Line",
    "Result",
    "_native",
    "disassemble",
    "hip_library_path",
    "kernels",
    "launch",
    "lint",
]


def launch(
    code_object: bytes,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Arguments,
    *,
    kernarg: Callable[[list[int]], bytes] | None = None,
    report_only: bool = False,
    dynamic_lds: int = 0,
    check: bool = True,
    order_seed: int = 0,
    max_instructions: int = MAX_INSTRUCTIONS,
    threads: int = 1,
    accumulation: str = "exact",
    byte_rounding: str = "nearest_even",
    timing: dict[str, Any] | None = None,
) -> Result:
    """Runs a kernel on a fresh device and waits for its end.

    Args:
        code_object: Contents of a gfx950 ELF file.
        kernel: Name in its metadata.
        grid: Workgroups in x, y, z; fewer than three sizes are filled up with 1.
        block: Work-items per workgroup in x, y, z.
        args: The kernel's arguments in order, or by name. Arrays (ml_dtypes too) are buffers that the kernel changes in
            place; None is a null pointer; read-only arrays can be read. NumPy scalars must have the argument's size;
            Python integers and floats take it. Or the packed block as bytes.
        kernarg: For kernels that take one struct: `args` are then the buffers, and this makes the packed block from their
            device addresses, in the same order.
        report_only: Return findings of severity error instead of raising them.
        dynamic_lds: Bytes of LDS besides those the kernel declares.
        check: False runs without looking for hazards, late data, races and undefined reads (faster; wrong kernels pass).
        order_seed: 0 runs waves and workgroups in their natural order, any other number in a shuffled one.
        max_instructions: Per wave; more are taken for a loop that does not end.
        threads: Workgroups run on this many threads of this machine.
        accumulation: How matrix instructions sum along k: "exact" (one rounding), or in float32 "sequential" or "pairwise".
        byte_rounding: How v_cvt_pk_u8_f32 rounds, which AMD does not document: "nearest_even" or "truncate".
        timing: Settings of zyfa_ort.kernels.emulator.timing.time().

    Raises:
        EmulationError: the code object, an argument or an option is wrong; the launch failed (access outside of all buffers,
            undecodable or unknown instruction, deadlock, runaway loop); or, unless `report_only`, it has errors.
    """
    return Device().launch(
        code_object,
        kernel,
        grid,
        block,
        args,
        kernarg=kernarg,
        report_only=report_only,
        dynamic_lds=dynamic_lds,
        check=check,
        order_seed=order_seed,
        max_instructions=max_instructions,
        threads=threads,
        accumulation=accumulation,
        byte_rounding=byte_rounding,
        timing=timing,
    )


def lint(code_object: bytes) -> tuple[Finding, ...]:
    """The wait-state rules over a code object's instructions in linear order, without running it.

    Both sides of a conditional branch follow it, so a finding may be on a path that is never taken; offsets count from
    the beginning of the code. Raises EmulationError when bytes are no instruction.
    """
    try:
        return tuple(Finding(**f) for code in _native.code_of(code_object) for f in _native.hazards_of(code))
    except _native.EmulatorError as error:
        raise EmulationError(str(error)) from None
