"""``zyfa-ort migraphx IN OUT``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from zyfa_ort import migraphx as programs
from zyfa_ort.cli.common import JsonOption, console, print_json, table, working
from zyfa_ort.errors import InputError


def migraphx(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Fused ONNX model to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Program to write.")],
    target_name: Annotated[
        Literal["gpu", "ref"], typer.Option("--target", help="MIGraphX's target; ref is the CPU.")
    ] = "gpu",
    dims: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LENGTH", help="Number for a free dimension of the inputs; repeat it."),
    ] = None,
    precision: Annotated[
        Literal["fp8", "bf16", "fp32"] | None,
        typer.Option(help="Of every attention whose inputs are not quantised, instead of the node's own."),
    ] = None,
    fast_math: Annotated[
        bool, typer.Option("--fast-math", help="MIGraphX may compute faster and less exactly.")
    ] = False,
    exhaustive_tune: Annotated[
        bool, typer.Option("--exhaustive-tune", help="MIGraphX tries every way of computing, for long.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile a fused model with MIGraphX, our kernels inside, into one file that needs no ONNX Runtime."""
    with working(f"compiling {source}", quiet=as_json):
        program = programs.compile(
            source,
            target=target_name,
            dims=_numbers(dims or []),
            precision=precision,
            fast_math=fast_math,
            exhaustive_tune=exhaustive_tune,
        )
        program.save(target)
    ports = {"inputs": program.inputs, "outputs": program.outputs}
    if as_json:
        written = {kind: {name: str(one) for name, one in some.items()} for kind, some in ports.items()}
        print_json({"target": target_name, "program": str(target), **written})
        return
    made = table(f"{source} for {target_name}", "", "name", "type and shape")
    for kind, some in ports.items():
        for name, one in some.items():
            made.add_row(kind.removesuffix("s"), escape(name), str(one))
    out = console()
    out.print(made)
    out.print(f"{program!r}; wrote {target}", markup=False)


def _numbers(given: list[str]) -> dict[str, int]:
    """Of "name=128"."""
    found = {}
    for one in given:
        name, equals, number = one.rpartition("=")
        if not equals or not number.isdigit():
            raise InputError(f"--dims: expected NAME=LENGTH, got {one!r}")
        found[name] = int(number)
    return found
