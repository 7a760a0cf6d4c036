"""``zyfa-ort inspect MODEL``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zyfa_ort import api
from zyfa_ort.cli.common import JsonOption, console, print_json, working
from zyfa_ort.cli.placement import print_placement
from zyfa_ort.cli.sites import sites_table


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="ONNX model, fused or not.")],
    placement: Annotated[
        bool, typer.Option("--placement", help="Show where the nodes run instead, by asking ONNX Runtime.")
    ] = False,
    device: Annotated[
        str, typer.Option("--device", help="With --placement: auto, cpu or gpu, as zyfa_ort.session.")
    ] = "auto",
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--provider", help="With --placement: provider for nodes that are not ours; repeatable."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="With --placement: a provider option; repeatable."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the attention sites of a model without writing anything: fusible, declined with the reason, already fused."""
    if placement:
        print_placement(model, device, provider or None, option or [], as_json)
        return
    with working(f"reading {model}", quiet=as_json):
        report = api.inspect(model)
    if as_json:
        print_json(report.to_dict())
        return
    out = console()
    if report.sites:
        out.print(sites_table(report))
    out.print(report.summary(), markup=False)
