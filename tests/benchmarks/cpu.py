"""`python -m benchmarks.cpu`, in the folder tests: our attention on this machine's CPU beside everyone else's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import long_runs, report, shapes, streams, table
from benchmarks.contenders import chosen
from benchmarks.pinning import processors
from benchmarks.results import Result, measure

PRECISIONS = ("fp32", "bf16", "fp8")
EXTRAS = {
    "scaling": long_runs.scaling,
    "memory": long_runs.memory,
    "model": long_runs.model,
    "streams": streams.streams,
}


SETS = {"quick": shapes.quick, "prompts": shapes.prompts, "full": shapes.full, "none": list}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description=__doc__)
    add = parser.add_argument
    add("--shapes", choices=(*SETS, "one"), default="quick")
    add("--only", type=_precisions, default=PRECISIONS, help="such as fp32,bf16")
    add("--rounds", type=int, default=7)
    add("--threads", type=int, default=2, help="each pinned to a processor")
    add("--limit", type=float, default=10, help="seconds a call; slower contenders are left out")
    add("--csv", type=Path, help="file to write")
    add("--write", type=Path, help="Markdown page whose marked parts are replaced")
    one = parser.add_argument_group("--shapes one")
    one.add_argument("--head-dim", choices=tuple(shapes.DIMS), default="128")
    one.add_argument("--heads", choices=tuple(shapes.HEADS), default="32/8")
    one.add_argument("--length", type=int, default=2048)
    one.add_argument("--batch", type=int, default=1)
    one.add_argument("--decode", action="store_true", help="one row against a cache of that length")
    for name, extra in EXTRAS.items():
        add(f"--{name}", action="store_true", help=(extra.__doc__ or "").splitlines()[0])
    return parser.parse_args(words)


def _precisions(text: str) -> tuple[str, ...]:
    wanted = tuple(text.split(","))
    if not set(wanted) <= set(PRECISIONS):
        raise argparse.ArgumentTypeError(f"expected some of {','.join(PRECISIONS)}, got {text}")
    return wanted


def shapes_of(options: argparse.Namespace) -> list[shapes.Shape]:
    """Those that the command line asks for."""
    if options.shapes == "one":
        return [shapes.one(options.head_dim, options.heads, options.length, options.batch, options.decode)]
    return list(SETS[options.shapes]())


def main(words: Sequence[str] | None = None) -> None:
    options = arguments(words)
    cpus = processors(options.threads)
    contenders = chosen(options.only)
    parts: dict[str, str] = {}
    results: list[Result] = []
    for shape in shapes_of(options):
        print(f"{shape} ...", file=sys.stderr, flush=True)
        results.append(measure(shape, contenders, cpus, options.rounds, options.limit))
    if results:
        parts["attention"] = report.attention(results, options)
    for name, extra in EXTRAS.items():
        if getattr(options, name):
            print(f"{name} ...", file=sys.stderr, flush=True)
            parts[name] = report.with_machine(extra(options, cpus), options)
    print("\n\n".join(parts.values()))
    if options.csv:
        options.csv.write_text(table.as_csv(results, contenders), encoding="utf-8")
    if options.write:
        report.write_parts(options.write, parts)


if __name__ == "__main__":
    main()
