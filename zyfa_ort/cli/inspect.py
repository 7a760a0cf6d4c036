"""``zyfa-ort inspect MODEL``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zyfa_ort import api
from zyfa_ort.cli.common import JsonOption, console, print_json, working
from zyfa_ort.cli.sites import sites_table


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX model, fused or not.")],
    as_json: JsonOption = False,
) -> None:
    """Show the attention sites of a model without writing anything: fusible, declined with the reason, already fused."""
    with working(f"reading {model}", quiet=as_json):
        report = api.inspect(model)
    if as_json:
        print_json(report.to_dict())
        return
    out = console()
    if report.sites:
        out.print(sites_table(report))
    out.print(report.summary(), markup=False)
