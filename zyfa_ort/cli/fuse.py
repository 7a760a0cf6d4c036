"""``zyfa-ort fuse IN OUT``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from zyfa_ort import api
from zyfa_ort.cli.common import BOUND_PASSED, JsonOption, console, print_json, working
from zyfa_ort.cli.compare import print_comparison
from zyfa_ort.cli.sites import sites_table
from zyfa_ort.compare import compare_models


def fuse(
    source: Annotated[Path, typer.Argument(metavar="IN", help="ONNX model to read.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Fused model to write.")],
    precision: Annotated[
        Literal["auto", "fp8", "bf16", "fp32"],
        typer.Option(help="Arithmetic of the attention; auto is bf16."),
    ] = "auto",
    rotate: Annotated[
        Literal["none", "hadamard", "auto"], typer.Option(help="Rotate query and key before FP8.")
    ] = "none",
    fp8_edges: Annotated[
        Literal["hilo", "bf16", "none"],
        typer.Option(help="FP8: how the first and last key tiles are computed."),
    ] = "hilo",
    plan: Annotated[Path | None, typer.Option(help="JSON file with exceptions per site.")] = None,
    external_data: Annotated[
        Literal["copy", "hardlink", "reference"],
        typer.Option(help="Data files of a model that is written to another folder."),
    ] = "copy",
    quantize_nodes: Annotated[
        Literal["folded", "explicit"],
        typer.Option(help="FP8: codes made inside the attention or by nodes in front of it."),
    ] = "folded",
    portable: Annotated[
        bool,
        typer.Option(
            "--portable", help="Let the model also run without the library (slowly), by a function."
        ),
    ] = False,
    min_fused: Annotated[int, typer.Option(min=0, help="Exit with code 2 when fewer sites are fused.")] = 0,
    verify: Annotated[
        bool, typer.Option("--verify", help="Then run both models on made inputs and compare.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rewrite a model so that each attention is one operator; print what was fused and what was not, and why."""
    with working(f"fusing {source}", quiet=as_json):
        report = api.fuse(
            source,
            target,
            precision=precision,
            rotate=rotate,
            fp8_edges=fp8_edges,
            plan=plan,
            external_data=external_data,
            quantize_nodes=quantize_nodes,
            portable=portable,
        )
    comparison = None
    if verify:
        with working(f"comparing {source} and {target}", quiet=as_json):
            comparison = compare_models(source, target)
    if as_json:
        data = report.to_dict()
        print_json(data if comparison is None else {**data, "comparison": comparison.to_dict()})
    else:
        out = console()
        if report.sites:
            out.print(sites_table(report))
        out.print(f"{report.summary()}; wrote {target}", markup=False)
        if comparison is not None:
            print_comparison(comparison)
    fused = report.fused + report.already_fused
    if fused < min_fused:
        console(stderr=True).print(
            f"zyfa-ort: --min-fused: expected at least {min_fused}, got {fused}", markup=False
        )
        raise typer.Exit(BOUND_PASSED)
    if comparison is not None and comparison.failures:
        raise typer.Exit(BOUND_PASSED)
