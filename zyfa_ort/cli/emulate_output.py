"""What `emulate` prints: kernels, instructions, arguments after a launch, findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from zyfa_ort.cli.common import console, print_json, shown, table

if TYPE_CHECKING:
    from zyfa_ort.kernels.emulator import Kernel, Line, Result
    from zyfa_ort.kernels.emulator.specification import Specified

_COLOURS = {"error": "red", "warning": "yellow"}
_FEW_KERNELS = 8


@dataclass(frozen=True)
class After:
    """An argument after the launch; the figures are those of the finite elements that changed."""

    index: int
    name: str
    word: str
    elements: int | None = None
    changed: int | None = None
    not_finite: int | None = None
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def after_launch(
    kernel: Kernel, given: list[Specified], before: list[np.ndarray[Any, Any] | None]
) -> list[After]:
    """The arguments with what the launch did to them."""
    names = [parameter.name for parameter in kernel.parameters]
    names += [""] * (len(given) - len(names))
    return [_after(i, names[i], one, old) for i, (one, old) in enumerate(zip(given, before, strict=True))]


def _after(index: int, name: str, one: Specified, old: np.ndarray[Any, Any] | None) -> After:
    array = one.array
    if array is None or old is None:
        return After(index, name, one.word)
    unit = array.dtype.itemsize
    if array.size == 0:
        return After(index, name, one.word, 0, 0)
    same = array.reshape(-1).view(np.uint8).reshape(-1, unit) == old.reshape(-1).view(np.uint8).reshape(
        -1, unit
    )
    moved = ~same.all(axis=1)
    values = array.reshape(-1)[moved].astype(np.float64)
    finite = values[np.isfinite(values)]
    figures = (float(finite.min()), float(finite.mean()), float(finite.max())) if finite.size else (None,) * 3
    return After(index, name, one.word, array.size, values.size, values.size - finite.size, *figures)


def argument_rows(after: list[After]) -> Iterator[tuple[str, ...]]:
    """Cells: number, name, word, what happened to it."""
    for row in after:
        if row.elements is None:
            text = ""
        elif not row.changed:
            text = "unchanged"
        else:
            text = f"{row.changed} of {row.elements} elements changed"
            if row.minimum is not None:
                text += f"; min {row.minimum:.6g}, mean {row.mean:.6g}, max {row.maximum:.6g}"
            if row.not_finite:
                text += f"; {row.not_finite} not finite"
        yield str(row.index), shown(row.name), shown(row.word), text


def print_findings(out: Console, result: Result) -> None:
    """The findings grouped by rule, then the summary."""
    for rule, group in result.by_rule().items():
        colour = _COLOURS[group[0].severity]
        made = table(
            f"[{colour}]{group[0].severity}[/] {rule}: {escape(group[0].meaning)}",
            "at", "instruction", "what is wrong", "", "first", "times",
        )  # fmt: skip
        counted = any(finding.missing for finding in group)
        made.columns[3].header = "wait states missing" if counted else ""
        for finding in group:
            x, y, z = finding.workgroup
            made.add_row(
                f"+{finding.offset:#x}",
                escape(finding.instruction),
                escape(finding.message),
                str(finding.missing) if finding.missing else "",
                f"workgroup {x},{y},{z} wave {finding.wave}",
                str(finding.times),
            )
        out.print(made)
        out.print()
    colour = "red" if result.errors else "yellow" if result.warnings else "green"
    out.print(f"[{colour}]{escape(result.summary())}[/]")


def print_kernels(kernels: list[Kernel], path: Path, as_json: bool) -> None:
    """The kernels and, when they are few, their arguments."""
    if as_json:
        print_json([{**asdict(kernel), "agprs": kernel.agprs} for kernel in kernels])
        return
    out = console()
    made = table(
        f"Kernels of {path}", "kernel", "VGPRs", "of them AGPRs", "waves per SIMD", "LDS bytes", "scratch bytes",
        "kernarg bytes", "largest block",
    )  # fmt: skip
    for kernel in kernels:
        numbers = (
            kernel.vgprs, kernel.agprs, kernel.waves_per_simd, kernel.lds_bytes, kernel.private_bytes,
            kernel.kernarg_bytes, kernel.max_workgroup,
        )  # fmt: skip
        made.add_row(escape(shown(kernel.name)), *map(str, numbers))
    out.print(made)
    for kernel in kernels if len(kernels) <= _FEW_KERNELS else ():
        if not kernel.parameters:
            continue
        out.print()
        made = table(f"Arguments of {escape(shown(kernel.name))}", "", "name", "kind", "offset", "bytes")
        for index, argument in enumerate(kernel.parameters):
            cells = (shown(argument.name), argument.kind, f"{argument.offset:#x}", str(argument.size))
            made.add_row(str(index), *map(escape, cells))
        out.print(made)


def print_listing(listings: dict[str, list[Line]], as_json: bool) -> None:
    """The instructions of the kernels."""
    if as_json:
        print_json({name: [asdict(line) for line in lines] for name, lines in listings.items()})
        return
    for name, lines in listings.items():
        print(f"{shown(name)}:")
        targets = {line.target for line in lines}
        for line in lines:
            if line.offset in targets:
                print(f"@{line.offset:#x}:")
            print(f"  {line}")
