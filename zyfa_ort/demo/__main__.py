"""``python -m zyfa_ort.demo --cache FOLDER``: runs the main job and prints its table.

``--device emulated`` runs the first layers on the emulated MI355X instead, and says where each node ran.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from zyfa_ort.cli.common import BOUND_PASSED, ERROR, JsonOption, console, print_error, print_json, table
from zyfa_ort.demo.emulated import Emulated, run_emulated
from zyfa_ort.demo.main_job import PROMPT, Demo, run_demo


def main(
    cache: Annotated[Path, typer.Option(help="Folder for the exported and fused models (about 600 MB).")],
    device: Annotated[
        Literal["cpu", "emulated"], typer.Option(help="emulated: the first layers on the emulated MI355X.")
    ] = "cpu",
    layers: Annotated[int, typer.Option(help="How many, with --device emulated.")] = 2,
    tokens: Annotated[int, typer.Option(help="Length of the prompt, with --device emulated.")] = 40,
    as_json: JsonOption = False,
) -> None:
    """Export, fuse and run SmolLM2-135M-Instruct, and compare."""
    start = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {what}", file=sys.stderr, flush=True)

    try:
        if device == "emulated":
            emulated = run_emulated(cache, say, layers, tokens)
        else:
            demo = run_demo(cache, say)
    except Exception as error:
        print_error(error)
        raise typer.Exit(ERROR) from None
    if device == "emulated":
        if as_json:
            print_json(asdict(emulated))
        else:
            _print_emulated(emulated)
        raise typer.Exit(0 if emulated.holds else BOUND_PASSED)
    (cache / "result.json").write_text(json.dumps(asdict(demo), indent=2), encoding="utf-8")
    if as_json:
        print_json(asdict(demo))
    else:
        _print(demo)
    say("done")


def _print(demo: Demo) -> None:
    made = table(
        f"SmolLM2-135M-Instruct, {demo.tokens} tokens, against the original in ONNX Runtime",
        "attention", "sites fused", "mean KL (nats)", "top-1 equal", "max abs error", "relative error", "prefill",
    )  # fmt: skip
    made.add_row("original", "", "", "", "", "", f"{demo.original_seconds:.2f} s")
    for row in demo.rows:
        made.add_row(
            row.title,
            f"{row.fused} of {row.sites}",
            f"{row.kl:.2e}",
            f"{row.top1:.1%}",
            f"{row.max_abs:.2e}",
            f"{row.relative:.2e}",
            f"{row.seconds:.2f} s",
        )
    out = console()
    out.print(made)
    out.print(f"prefill: median, measured on this machine ({platform.machine()} CPU)", markup=False)
    question = PROMPT.split("user\n")[1].split("<|im_end|>")[0]
    out.print(f"\n{demo.rows[-1].title}, 20 tokens through its KV cache:", markup=False)
    out.print(f"  {question}\n  {demo.answer}", markup=False)


def _print_emulated(emulated: Emulated) -> None:
    out = console()
    placed = table("Where nodes run", "attention", "provider", "nodes", "operators")
    for title, placement in emulated.placement.items():
        for provider in sorted({provider for provider, _, _ in placement}, reverse=True):
            nodes = [(op, count) for where, op, count in placement if where == provider]
            operators = ", ".join(f"{count} {op}" for op, count in nodes)
            placed.add_row(title, provider, str(sum(count for _, count in nodes)), operators)
    out.print(placed)
    made = table(
        f"SmolLM2-135M-Instruct, first {emulated.layers} layers on {emulated.device}, against the CPU session",
        "attention", "step", "tokens", "logits", "worst cache", "bound", "top-1 equal",
    )  # fmt: skip
    for row in emulated.rows:
        made.add_row(
            row.title, row.step, str(row.tokens), f"{row.logits:.1e}", f"{row.cache:.1e}", f"{row.bound:.1e}",
            f"{row.top1:.1%}",
        )  # fmt: skip
    out.print(made)
    out.print(
        "Errors are relative. Device memory faults when the host touches it: nothing did.", markup=False
    )
    out.print(f"Findings of the emulator: {emulated.findings or 'none'}", markup=False)
    if not emulated.holds:
        print(
            "error: the bounds are not held, a node of ours is not on the GPU, or there are findings",
            file=sys.stderr,
        )


if __name__ == "__main__":
    typer.run(main)
