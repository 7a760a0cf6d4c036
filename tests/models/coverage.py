"""Who fuses what: every stored file through our passes and through what others offer, as a page for people.

    cd tests
    python -m models.coverage ../docs/coverage.md [--ours | --render]

measures (`coverage.json` keeps the results; --ours measures zyfa_ort only, --render nothing) and writes the page. `make
coverage` does so.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from models import corpus, coverage_page
from models.apart import Ended, run_apart
from models.corpus import Entry
from models.coverage_page import Results
from models.judge import TOOLS, Outcome, judge

RESULTS: Final = Path(__file__).with_name("coverage.json")
SECONDS: Final = 300.0
PACKAGES: Final = ("onnxruntime", "onnxscript", "onnx_ir", "onnx")


def measure(tools: Iterable[str], say: Callable[[str], None]) -> dict[str, dict[str, Outcome]]:
    """Every file through the tools, each time in a process of its own."""
    import onnxruntime.transformers.optimizer  # noqa: F401  imported once here, not in every process
    import onnxscript.rewriter.ort_fusions  # noqa: F401

    measured: dict[str, dict[str, Outcome]] = {}
    for entry in corpus.entries():
        measured[entry.file] = {tool: outcome(entry, tool) for tool in tools}
        say(f"{entry.file}: {', '.join(f'{tool} {one.fused}' for tool, one in measured[entry.file].items())}")
    return measured


def outcome(entry: Entry, tool: str) -> Outcome:
    try:
        found: Outcome = run_apart(judge, entry, tool, seconds=SECONDS)
    except Ended as end:
        return Outcome(outputs="failed", detail=str(end))
    return found


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def save(results: Results, used: Mapping[str, str]) -> None:
    """One line per file, without what is 0 or empty."""
    lines = []
    for file, tools in sorted(results.items()):
        kept = {
            tool: {key: value for key, value in asdict(one).items() if value} for tool, one in tools.items()
        }
        lines.append(f"{json.dumps(file)}: {json.dumps(kept)}")
    body = ",\n".join(lines)
    RESULTS.write_text(f'{{"versions": {json.dumps(used)},\n"files": {{\n{body}\n}}}}\n', encoding="utf-8")


def load() -> tuple[dict[str, dict[str, Outcome]], dict[str, str]]:
    held: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    results = {
        file: {tool: Outcome(**facts) for tool, facts in tools.items()}
        for file, tools in held["files"].items()
    }
    return results, held["versions"]


def remeasure(ours_only: bool) -> None:
    """Runs the tools and stores what they did."""
    start = time.monotonic()

    def say(what: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {what}", file=sys.stderr, flush=True)

    if ours_only:
        known, used = load()
        measured = {file: known.get(file, {}) | tools for file, tools in measure(["zyfa_ort"], say).items()}
        save(measured, used)
    else:
        save(measure(TOOLS, say), versions())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m models.coverage", description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--ours", action="store_true", help="measure zyfa_ort, keep the results of the others"
    )
    choice.add_argument("--render", action="store_true", help="write the page from the stored results")
    given = parser.parse_args(arguments)
    if not given.render:
        remeasure(given.ours)
    results, used = load()
    given.page.write_text(coverage_page.page(results, used), encoding="utf-8")
    print(f"{given.page}: {sum(len(tools) for tools in results.values())} results", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
