"""Runs that stand apart: how time grows with length, how much memory a long prompt takes, and a whole model."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.ort_graphs import session
from benchmarks.pinning import caller_pinned, workers_pinned
from benchmarks.prepared import Prepared
from benchmarks.problem import Problem
from benchmarks.rounds import Run, median_ratio, median_seconds, timed_rounds
from benchmarks.shapes import Shape
from benchmarks.table import markdown_row, milliseconds
from zyfa_ort.demo.main_job import Cache, prefill
from zyfa_ort.demo.variants import VARIANTS

SCALING_LENGTHS = (2048, 4096, 8192, 16384)
SCALING_HEADS = (4, 1)
MEMORY_LENGTH = 32768
MODEL_TOKENS = 1024
DEMO_CACHE = Path(__file__).parents[2] / ".cache" / "demo"


def ours(options: argparse.Namespace) -> list[Contender]:
    """Our contenders at the precisions that were asked for."""
    return [c for c in CONTENDERS if c.ours and c.precision in options.only]


def scaling(options: argparse.Namespace, cpus: tuple[int, ...]) -> str:
    """Time by length: with one visible pair costing the same everywhere, every row says 1.00."""
    heads, kv_heads = SCALING_HEADS
    shapes = [Shape(n, n, heads, kv_heads) for n in SCALING_LENGTHS]
    names = [c.name for c in ours(options)]
    ready: dict[str, Prepared] = {}
    with caller_pinned(cpus):
        with workers_pinned(cpus):
            for contender in ours(options):
                for shape in shapes:
                    prepared = contender.ready(Problem(shape, contender.precision), len(cpus))
                    prepared.run()
                    ready[f"{contender.name} {shape.rows}"] = prepared
        rounds = timed_rounds({name: prepared.run for name, prepared in ready.items()}, options.rounds)
    lines = [
        f"128, {heads}/{kv_heads}: milliseconds, and the cost of a visible pair relative to {SCALING_LENGTHS[0]:,} rows.",
        "",
        markdown_row(["rows", *names]),
        markdown_row(["---:"] * (1 + len(names))),
    ]
    for shape in shapes:
        cells = []
        for name in names:
            key, first = f"{name} {shape.rows}", f"{name} {shapes[0].rows}"
            cost = median_ratio(rounds, key, first) * shapes[0].visible_pairs / shape.visible_pairs
            cells.append(f"{milliseconds(median_seconds(rounds, key))} ({cost:.2f})")
        lines.append(markdown_row([f"{shape.rows:,}", *cells]))
    return "\n".join(lines)


def memory(options: argparse.Namespace, cpus: tuple[int, ...]) -> str:
    """Peak memory of a prompt of 32,768 tokens beyond its inputs and output, a process per precision."""
    shape = Shape(MEMORY_LENGTH, MEMORY_LENGTH)
    lines = [
        f"{shape}: largest resident memory of a run beyond inputs and output.",
        "",
        markdown_row(["contender", "extra MB", "one FP32 score matrix would be, MB"]),
        markdown_row(["---", "---:", "---:"]),
    ]
    for contender in ours(options):
        command = [
            sys.executable,
            "-m",
            "benchmarks.peak_memory",
            contender.name,
            str(shape.rows),
            str(len(cpus)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines.append(
            markdown_row(
                [contender.name, f"{float(done.stdout) / 1e6:,.1f}", f"{shape.score_bytes / 1e6:,.0f}"]
            )
        )
    return "\n".join(lines)


def model(options: argparse.Namespace, cpus: tuple[int, ...]) -> str:
    """SmolLM2-135M prefill of 1,024 tokens, fused and not, with the files that `make demo` leaves."""
    cache = Cache(DEMO_CACHE)
    files = {"unfused": cache.original} | {
        f"fused, {v.title}": cache.fused(v) for v in VARIANTS if v.title in options.only
    }
    absent = [path.name for path in files.values() if not path.exists()]
    if absent:
        return f"SmolLM2-135M: missing, no {', '.join(absent)} in .cache/demo; run `make demo`."
    ids = np.random.default_rng(0).integers(1000, 40000, (1, MODEL_TOKENS))
    runs: dict[str, Run] = {}
    with caller_pinned(cpus):
        with workers_pinned(cpus):
            for name, path in files.items():
                opened = session(str(path), len(cpus))
                runs[name] = lambda opened=opened: prefill(opened, ids)
                runs[name]()
        rounds = timed_rounds(runs, options.rounds)
    lines = [
        f"SmolLM2-135M-Instruct, prefill of {MODEL_TOKENS:,} tokens in ONNX Runtime.",
        "",
        markdown_row(["attention", "ms", "unfused over this"]),
        markdown_row(["---", "---:", "---:"]),
    ]
    for name in files:
        ratio = median_ratio(rounds, "unfused", name)
        lines.append(markdown_row([name, milliseconds(median_seconds(rounds, name)), f"{ratio:.2f}"]))
    return "\n".join(lines)
