"""``zyfa-ort compare REF NEW``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from zyfa_ort.cli.common import BOUND_PASSED, JsonOption, console, print_json, table, working
from zyfa_ort.compare import Comparison, OutputError, compare_models
from zyfa_ort.inputs import Request

_FEW = 4


def compare(
    reference: Annotated[Path, typer.Argument(metavar="REF", help="The original model.")],
    candidate: Annotated[Path, typer.Argument(metavar="NEW", help="The fused model.")],
    inputs: Annotated[
        Path | None,
        typer.Option(help=".npz file of inputs, or a folder of them; none: made from the signature."),
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Made inputs: tokens per row.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Made inputs: rows; the last of several is padded.")] = 2,
    seed: Annotated[int, typer.Option(help="Made inputs: random seed.")] = 0,
    runs: Annotated[int, typer.Option(min=0, help="Timed runs per model; 0 measures no time.")] = 5,
    layers: Annotated[bool, typer.Option(help="Also compare the output of every fused attention.")] = True,
    max_kl: Annotated[
        float | None, typer.Option(help="Bound on the mean KL, instead of the precision's own.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run two models on the same inputs on the CPU and compare; exit code 2 when they differ by more than the bound."""
    with working(f"comparing {reference} and {candidate}", quiet=as_json):
        comparison = compare_models(
            reference,
            candidate,
            inputs=inputs,
            request=Request(tokens=tokens, batch=batch, seed=seed),
            runs=runs,
            layers=layers,
            max_kl=max_kl,
        )
    if as_json:
        print_json(comparison.to_dict())
    else:
        print_comparison(comparison)
    if comparison.failures:
        raise typer.Exit(BOUND_PASSED)


def print_comparison(comparison: Comparison) -> None:
    """Tables of outputs, attention sites and latency, then the verdict."""
    out = console()
    for note in comparison.notes:
        out.print(f"note: {note}", markup=False)
    made = table(
        "Outputs", "inputs", "output", "mean KL (nats)", "top-1 equal", "relative error", "max abs error"
    )
    for error in _shortened(comparison.outputs):
        kl = "" if error.kl is None else f"{error.kl:.2e}"
        top1 = "" if error.top1 is None else f"{error.top1:.1%}"
        cells = (error.inputs, error.output, kl, top1, f"{error.relative:.2e}", f"{error.max_abs:.2e}")
        made.add_row(*map(escape, cells))
    out.print(made)
    if comparison.sites:
        made = table("Attention outputs", "inputs", "node", "relative error")
        for site in comparison.sites:
            made.add_row(escape(site.inputs), escape(site.node), f"{site.relative:.2e}")
        out.print(made)
    if comparison.latencies:
        made = table(
            "Latency on this machine (ms)",
            "inputs",
            "runs",
            "REF P50",
            "REF P99",
            "NEW P50",
            "NEW P99",
            "P50 ratio",
        )
        for time in comparison.latencies:
            figures = (time.reference_p50, time.reference_p99, time.candidate_p50, time.candidate_p99)
            ratio = time.reference_p50 / time.candidate_p50
            milliseconds = (f"{1e3 * seconds:.1f}" for seconds in figures)
            made.add_row(escape(time.inputs), str(time.runs), *milliseconds, f"{ratio:.2f}x")
        out.print(made)
    if comparison.failures:
        for failure in comparison.failures:
            out.print(f"differs: {failure}", markup=False)
    else:
        out.print(f"agrees within the bound for {comparison.bound}", markup=False)


def _shortened(errors: tuple[OutputError, ...]) -> list[OutputError]:
    """Logits one by one; of the other outputs (caches, often dozens) the worst of each input set, when they are many."""
    shown = [error for error in errors if error.kl is not None]
    for inputs in dict.fromkeys(error.inputs for error in errors):
        others = [error for error in errors if error.kl is None and error.inputs == inputs]
        if len(others) <= _FEW:
            shown += others
            continue
        relative, max_abs = max(error.relative for error in others), max(error.max_abs for error in others)
        shown.append(OutputError(inputs, f"worst of {len(others)} others", relative, max_abs))
    return shown
