"""`python -m benchmarks.peak_memory CONTENDER ROWS THREADS` prints the bytes one run takes beyond inputs and output."""

from __future__ import annotations

import gc
import re
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.problem import Problem
from benchmarks.shapes import Shape


def extra_bytes(contender: Contender, shape: Shape, threads: int) -> int:
    """Largest resident size during a run minus the size before it, everything bound, touched and loaded."""
    small = contender.ready(Problem(replace(shape, rows=64, keys=64), contender.precision), threads)
    small.run()  # code and thread pools
    problem = Problem(shape, contender.precision)
    prepared = contender.ready(problem, threads)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM to what is resident now
    before = _kilobytes("VmRSS")
    prepared.run()
    return max(0, _kilobytes("VmHWM") - before) * 1024


def _kilobytes(field: str) -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"/proc/self/status: expected a line {field}, found none; Linux is needed")
    return int(found.group(1))


if __name__ == "__main__":
    name, rows, threads = sys.argv[1:]
    wanted = next(c for c in CONTENDERS if c.name == name)
    print(extra_bytes(wanted, Shape(int(rows), int(rows)), int(threads)))
