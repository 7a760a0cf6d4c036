"""What ``zyfa-ort doctor --probe`` prints."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.markup import escape

from zyfa_ort import probe as probes
from zyfa_ort.cli.common import BOUND_PASSED, console, print_json, table, working
from zyfa_ort.kernels.asm.probe.table import BY_NAME

_MARKS = {True: "[green]ok[/]", False: "[red]differs[/]", None: "[cyan]not measured[/]"}


def probe(as_json: bool) -> None:
    """Asks the device, stores the answers, prints them; exit code 2 when something has no valid kernel."""
    with working("asking the device", quiet=as_json):
        answers = probes.ask()
        path = probes.store(answers)
    if as_json:
        print_json(probes.to_dict(answers, path))
    else:
        _show(answers, path)
    if answers.missing:
        raise typer.Exit(BOUND_PASSED)


def _show(answers: probes.Answers, path: Path) -> None:
    made = table(f"Probes of {answers.title}", "", "probe", "expected", "got", "meaning")
    for name, answer in answers.answers.items():
        asked = BY_NAME[name]
        cells = (name, asked.expected, answer, asked.meaning(answer).text)
        made.add_row(_MARKS[probes.judged(asked, answer)], *map(escape, cells))
    out = console()
    out.print(made)
    out.print(f"Valid kernels: {', '.join(answers.valid) or 'none'}", markup=False)
    for need in answers.missing:
        out.print(f"No valid kernel for {need}: models run on the CPU kernel", markup=False)
    out.print(f"Stored in {path}", markup=False, soft_wrap=True)
