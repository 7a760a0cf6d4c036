"""The page docs/performance.md: parts between markers, each saying on which machine it was measured."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.peak import UNITS
from benchmarks.results import Result

# What others were doing on this machine in the minute before.
LOAD_BEFORE = os.getloadavg()[0]


def machine(threads: int) -> str:
    """CPU model, what else ran on it, and the versions of what was timed."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"^model name\s*:\s*(.*)$", info, re.MULTILINE)
    features = [f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if re.search(rf"\b{f}\b", info)]
    versions = ", ".join(f"{package} {version(package)}" for package in ("onnxruntime", "torch"))
    name = model.group(1).strip() if model else "unknown CPU"
    return f"{name} ({', '.join(features)}), {threads} thread(s), {versions}; load average before the run {LOAD_BEFORE:.1f}"


def version(package: str) -> str:
    """As installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def with_machine(text: str, options: argparse.Namespace) -> str:
    return f"Measured on {machine(options.threads)}.\n\n{text}"


def attention(results: Sequence[Result], options: argparse.Namespace) -> str:
    """The tables of all precisions with what they were measured against."""
    peaks = ", ".join(
        f"{unit} {max(r.peak(unit) for r in results) / 1e9:,.0f}"
        for unit in UNITS
        if unit in results[0].rounds[0].gauges
    )
    reason = results[0].missing.get("peak")
    measured = f"Peaks in GF/s: {peaks}." if peaks else f"Peaks are missing: {reason}."
    text = f"Medians of {options.rounds} interleaved rounds. {measured}"
    return with_machine(f"{text}\n\n{table.markdown(results, options.only)}", options)


def write_parts(page: Path, parts: Mapping[str, str]) -> None:
    """Replaces what is between `<!-- name -->` and `<!-- end of name -->`.

    Raises:
        ValueError: the page has no such markers.
    """
    text = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if text.count(start) != 1 or text.count(end) != 1:
            raise ValueError(f"{page.name}: expected one line {start} and one line {end}; add them")
        before, rest = text.split(start)
        text = f"{before}{start}\n\n{part}\n\n{end}{rest.split(end)[1]}"
    page.write_text(text, encoding="utf-8")
