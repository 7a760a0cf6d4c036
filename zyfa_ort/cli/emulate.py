"""``zyfa-ort emulate CODE_OBJECT``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from zyfa_ort.cli.common import ERROR, JsonOption, console, print_json, shown, table, working
from zyfa_ort.cli.emulate_output import (
    after_launch,
    argument_rows,
    print_findings,
    print_kernels,
    print_listing,
)
from zyfa_ort.errors import InputError

if TYPE_CHECKING:
    from zyfa_ort.kernels.emulator import Kernel, Result
    from zyfa_ort.kernels.emulator.specification import Specified

DEVICE = "emulated gfx950"


def emulate(
    code_object: Annotated[
        Path, typer.Argument(metavar="CODE_OBJECT", help="gfx950 ELF file (.co, .hsaco).")
    ],
    kernel: Annotated[
        str | None, typer.Option(help="Name of the kernel; needed when there are several.")
    ] = None,
    grid: Annotated[str, typer.Option(metavar="X,Y,Z", help="Workgroups.")] = "1",
    block: Annotated[str, typer.Option(metavar="X,Y,Z", help="Work-items per workgroup.")] = "64",
    args: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORDS",
            help="Arguments in order, several in one quoted text or one per --args: f32[2,64]=randn:7, out:bf16[64], "
            "i32[8]=@file.npy, u32=5, null.",
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARG=FILE", help="Write a buffer after the run as .npy; ARG is its name or number."
        ),
    ] = None,
    list_kernels: Annotated[
        bool, typer.Option("--list", help="Only show the kernels and their arguments.")
    ] = False,
    disassemble: Annotated[bool, typer.Option("--disassemble", help="Only show the instructions.")] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Exit code 0 even with findings of severity error.")
    ] = False,
    check: Annotated[bool, typer.Option(help="Look for hazards, late data, races, undefined reads.")] = True,
    max_instructions: Annotated[
        int, typer.Option(min=1, help="Per wave; more are taken for a loop without end.")
    ] = 200_000_000,
    order_seed: Annotated[
        int, typer.Option(min=0, help="Shuffles waves and workgroups; 0: natural order.")
    ] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of this machine that run workgroups.")] = 1,
    dynamic_lds: Annotated[int, typer.Option(min=0, help="Bytes of LDS besides the kernel's own.")] = 0,
    accumulation: Annotated[
        str, typer.Option(help="How matrix instructions sum: exact, sequential or pairwise.")
    ] = "exact",
    timing: Annotated[
        bool, typer.Option("--timing", help="Also model the time on the chip (modelled, not measured).")
    ] = False,
    clock: Annotated[float | None, typer.Option(min=0.1, help="GHz of the modelled chip.")] = None,
    flops: Annotated[float, typer.Option(min=0, help="Useful operations of the launch, for TFLOP/s.")] = 0.0,
    trace: Annotated[
        Path | None, typer.Option(help="Write the modelled timeline for ui.perfetto.dev.")
    ] = None,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity", help="Model again for every fact about the chip that is not published."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a kernel on the emulated MI355X; exit code 1 when the emulator finds it wrong."""
    # Only here: the other commands work without the compiled emulator.
    from zyfa_ort.kernels import emulator
    from zyfa_ort.kernels.emulator.code_object import find_kernel
    from zyfa_ort.kernels.emulator.specification import specify

    code = _read(code_object)
    if list_kernels:
        print_kernels(emulator.kernels(code), code_object, as_json)
        return
    names = [one.name for one in emulator.kernels(code)]
    if disassemble:
        print_listing(
            {name: emulator.disassemble(code, name) for name in ([kernel] if kernel else names)}, as_json
        )
        return
    chosen = find_kernel(code, kernel or _only(names))
    given = [specify(word) for text in args or () for word in shlex.split(text)]
    targets = _targets(output or [], chosen, given)
    before = [one.array.copy() if one.array is not None else None for one in given]
    run = _Run(
        code,
        chosen.name,
        _sizes("--grid", grid),
        _sizes("--block", block),
        [one.value for one in given],
        {
            "check": check,
            "dynamic_lds": dynamic_lds,
            "max_instructions": max_instructions,
            "order_seed": order_seed,
            "threads": threads,
            "accumulation": accumulation,
        },
    )
    timed = timing or trace is not None or clock is not None
    with working(
        f"running {shown(chosen.name)} on the {DEVICE} (slow: every instruction is executed)", as_json
    ):
        rows = run.sensitivity(clock, flops) if sensitivity else None
        modelled = run.time(clock, flops, trace) if timed else None
        result = modelled.result if modelled is not None else run.launch()
    for _index, array, path in targets:
        with path.open("wb") as file:
            np.save(file, array)
    after = after_launch(chosen, given, before)
    if as_json:
        data = {
            "device": DEVICE,
            "kernel": chosen.name,
            "grid": run.grid,
            "block": run.block,
            "arguments": [row.to_dict() for row in after],
            **result.to_dict(),
        }
        if modelled is not None:
            data["timing"] = modelled.to_dict()
        if rows is not None:
            data["sensitivity"] = [vars(row) for row in rows]
        print_json(data)
    else:
        out = console()
        if after:
            made = table(
                f"{shown(chosen.name)} on the {DEVICE}", "", "argument", "given as", "after the launch"
            )
            for cells in argument_rows(after):
                made.add_row(*map(escape, cells))
            out.print(made)
            out.print()
        print_findings(out, result)
        if modelled is not None:
            out.print(modelled.table(), markup=False)
        if rows is not None:
            from zyfa_ort.kernels.emulator.timing import sensitivity_table

            out.print(sensitivity_table(rows), markup=False)
        for index, _array, path in targets:
            out.print(f"wrote argument {index} to {path}", markup=False)
    if result.errors and not report_only:
        raise typer.Exit(ERROR)


class _Run:
    """One launch, as often as asked for."""

    def __init__(
        self,
        code: bytes,
        kernel: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        values: list[Any],
        options: dict[str, Any],
    ) -> None:
        self.launch_arguments = (code, kernel, grid, block, values)
        self.grid, self.block = grid, block
        self.options = {**options, "report_only": True}

    def launch(self) -> Result:
        from zyfa_ort.kernels import emulator

        return emulator.launch(*self.launch_arguments, **self.options)

    def time(self, clock: float | None, flops: float, trace: Path | None) -> Any:
        from zyfa_ort.kernels.emulator import timing

        window = (0, _TRACE_CYCLES) if trace is not None else None
        timed = timing.time(
            *self.launch_arguments, clock_ghz=clock, flops=flops, trace=window, **self.options
        )
        if trace is not None:
            timed.write_trace(trace)
        return timed

    def sensitivity(self, clock: float | None, flops: float) -> Any:
        from zyfa_ort.kernels.emulator import timing

        return timing.sensitivity(*self.launch_arguments, clock_ghz=clock, flops=flops, **self.options)


# Longer traces are too large for the viewers.
_TRACE_CYCLES = 100_000


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _only(names: list[str]) -> str:
    if len(names) != 1:
        raise InputError(
            f"--kernel: expected one of {', '.join(map(shown, names)) or 'none: the code object has no kernels'}"
        )
    return names[0]


def _sizes(option: str, text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not 1 <= len(words) <= 3 or not all(word.strip().isdecimal() for word in words):
        raise InputError(f"{option}: expected one to three numbers as in 4,2,1, got '{text}'")
    return tuple(int(word) for word in words)


def _targets(
    output: list[str], kernel: Kernel, given: list[Specified]
) -> list[tuple[int, np.ndarray[Any, Any], Path]]:
    names = [parameter.name for parameter in kernel.parameters]
    targets = []
    for one in output:
        what, _, path = one.partition("=")
        index = int(what) if what.isdecimal() else names.index(what) if what and what in names else -1
        array = given[index].array if 0 <= index < len(given) else None
        if not path or array is None:
            buffers = ", ".join(str(i) for i, some in enumerate(given) if some.array is not None)
            raise InputError(
                f"--output: expected ARG=FILE with the name or number of a buffer ({buffers or 'there is none'}), got '{one}'"
            )
        targets.append((index, array, Path(path)))
    return targets
