"""``zyfa-ort doctor``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from zyfa_ort import doctor as examination
from zyfa_ort.cli import probe
from zyfa_ort.cli.common import ERROR, JsonOption, console, print_json, table

_COLOURS = {"ok": "green", "note": "cyan", "problem": "red"}


ProbeOption = Annotated[
    bool,
    typer.Option(
        "--probe",
        help="Ask the HIP device what no document says, store the answers, say which kernels are valid on it.",
    ),
]


def doctor(ask: ProbeOption = False, as_json: JsonOption = False) -> None:
    """Say what is installed, what would run where, and what to do about it; exit code 1 when something is broken."""
    if ask:
        probe.probe(as_json)
        return
    findings = examination.diagnose()
    if as_json:
        print_json(examination.to_dict(findings))
    else:
        made = table("This machine", "", "subject", "found", "what to do")
        for finding in findings:
            colour = _COLOURS[finding.state]
            made.add_row(
                f"[{colour}]{finding.state}[/]",
                *map(escape, (finding.subject, finding.found, finding.advice)),
            )
        console().print(made)
    if any(finding.state == "problem" for finding in findings):
        raise typer.Exit(ERROR)
