"""``python -m zyfa_ort.demo --cache FOLDER``: runs the main job and prints its table."""

from __future__ import annotations

import json
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from zyfa_ort.cli.common import ERROR, JsonOption, console, print_error, print_json, table
from zyfa_ort.demo.main_job import PROMPT, Demo, run_demo


def main(
    cache: Annotated[Path, typer.Option(help="Folder for the exported and fused models (about 600 MB).")],
    as_json: JsonOption = False,
) -> None:
    """Export, fuse and run SmolLM2-135M-Instruct, and compare."""
    start = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {what}", file=sys.stderr, flush=True)

    try:
        demo = run_demo(cache, say)
    except Exception as error:
        print_error(error)
        raise typer.Exit(ERROR) from None
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


if __name__ == "__main__":
    typer.run(main)
