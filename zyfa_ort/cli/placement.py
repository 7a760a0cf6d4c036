"""``zyfa-ort inspect MODEL --placement``: where the nodes run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from rich.markup import escape

from zyfa_ort.cli.common import BOUND_PASSED, console, print_json, shown, table, working
from zyfa_ort.errors import InputError
from zyfa_ort.placement_report import OurNode, PlacementReport, placement_report


def print_placement(
    model: Path, device: str, providers: Sequence[str] | None, options: Sequence[str], as_json: bool
) -> None:
    """Asks and prints; exit code 2 when something does not run where it was asked to."""
    given = dict(map(_key_and_value, options))
    with working(f"asking ONNX Runtime about {model}", quiet=as_json):
        report = placement_report(model, device, given, providers)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)
    if report.complaints:
        raise typer.Exit(BOUND_PASSED)


def _key_and_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"--option: expected KEY=VALUE, got {text!r}")
    return key, value


def _print(report: PlacementReport) -> None:
    out = console()
    providers = table(f"Nodes by provider ({report.source})", "provider", "nodes")
    for name, count in report.providers.items():
        providers.add_row(name, str(count))
    if report.copies is not None:
        providers.add_row("copies between host and device", str(report.copies))
    out.print(providers)
    if report.ours:
        ours = table("Nodes of ai.zyfa", "node", "provider", "kernels")
        for first, last, count in _runs(report.ours):
            name = shown(first.node) or "(unnamed)"
            if last.node != first.node:
                name += f" ... {shown(last.node) or '(unnamed)'}"
            if count > 1:
                name += f" ({count} nodes)"
            ours.add_row(escape(name), first.provider or "(optimised away)", escape(first.kernels))
        out.print(ours)
    if report.on_cpu:
        kinds = ", ".join(f"{count} {op}" for op, count in report.on_cpu.items())
        out.print(f"On the CPU besides: {kinds}", markup=False)
    for sentence in report.complaints:
        out.print(sentence, markup=False)
    how = (
        f"{report.runtime} made this session."
        if report.source == "asked"
        else f"Predicted by rule, since {report.reason}."
    )
    out.print(how, markup=False)


def _runs(nodes: Iterable[OurNode]) -> list[tuple[OurNode, OurNode, int]]:
    """Neighbours that differ in nothing but their names."""
    runs: list[tuple[OurNode, OurNode, int]] = []
    for node in nodes:
        if runs and (runs[-1][0].op, runs[-1][0].provider, runs[-1][0].kernels) == (
            node.op,
            node.provider,
            node.kernels,
        ):
            runs[-1] = (runs[-1][0], node, runs[-1][2] + 1)
        else:
            runs.append((node, node, 1))
    return runs
