"""ZyfaQuantizeFp8 and ZyfaHadamard against the bandwidth of a copy."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np
from custom_ops.op_session import one_node_model

from benchmarks import peak
from benchmarks.ort_graphs import session
from benchmarks.pinning import caller_pinned, workers_pinned
from benchmarks.prepared import Prepared, Unavailable
from benchmarks.rounds import median_seconds, timed_rounds
from benchmarks.table import markdown_row, milliseconds
from zyfa_ort.tensors import from_ortvalue, to_ortvalue

SHAPE = (1, 8192, 32, 128)  # BSHD
COPY_BYTES = 4 * math.prod(SHAPE) // 2  # per thread of two: FP32 in all
OUTPUTS: dict[str, dict[str, Any]] = {
    "ZyfaQuantizeFp8": {"y": ml_dtypes.float8_e4m3fn, "scale": np.float32},
    "ZyfaHadamard": {"y": None},
}


@dataclass(frozen=True)
class Stream:
    """An operator and how often it must touch its elements: quantising reads twice, for the scale and for the codes."""

    op: str
    dtype: Any
    reads: int
    attributes: dict[str, str]

    @property
    def name(self) -> str:
        words = [self.op, np.dtype(self.dtype).name, *self.attributes.values()]
        return " ".join(words)

    @property
    def bytes(self) -> int:
        """Read and written by one run."""
        size = np.dtype(self.dtype).itemsize
        return math.prod(SHAPE) * (self.reads * size + (1 if self.reads == 2 else size))


DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
STREAMS = [
    *(Stream("ZyfaQuantizeFp8", dtype, 2, {}) for dtype in DTYPES),
    *(Stream("ZyfaQuantizeFp8", dtype, 2, {"rotation": "hadamard"}) for dtype in DTYPES),
    *(Stream("ZyfaHadamard", dtype, 1, {}) for dtype in DTYPES),
]


def prepared(stream: Stream, shape: tuple[int, ...], threads: int) -> Prepared:
    """Input and outputs bound."""
    x = np.random.default_rng(0).standard_normal(shape, np.float32).astype(stream.dtype)
    outputs = {name: dtype or stream.dtype for name, dtype in OUTPUTS[stream.op].items()}
    opened = session(one_node_model(stream.op, {"x": x}, outputs, stream.attributes), threads)
    binding = opened.io_binding()
    sizes = {"y": shape, "scale": (shape[0], shape[2])}
    values = {name: to_ortvalue(np.zeros(sizes[name], dtype)) for name, dtype in outputs.items()}
    for name, value in values.items():
        binding.bind_ortvalue_output(name, value)
    values["x"] = to_ortvalue(x)
    binding.bind_ortvalue_input("x", values["x"])
    return Prepared(partial(opened.run_with_iobinding, binding), lambda: from_ortvalue(values["y"]), values)


def streams(options: argparse.Namespace, cpus: tuple[int, ...]) -> str:
    """Quantise and Hadamard: bytes per second beside those of a copy."""
    with caller_pinned(cpus):
        with workers_pinned(cpus):
            ready = {stream.name: prepared(stream, SHAPE, len(cpus)) for stream in STREAMS}
            runs = {name: made.run for name, made in ready.items()}
            for run in runs.values():
                run()
        try:
            peak.copied_bytes_per_second(1, cpus, 0)
            gauges = {"copy": partial(peak.copied_bytes_per_second, COPY_BYTES, cpus)}
        except Unavailable as reason:
            return f"missing: {reason}"
        rounds = timed_rounds(runs, options.rounds, gauges)
    copy = median(found.gauges["copy"] for found in rounds)
    lines = [
        f"{' x '.join(map(str, SHAPE))}, BSHD. Bytes read and written; a copy does {copy / 1e9:.1f} GB/s.",
        "",
        markdown_row(["operator", "ms", "GB/s", "of a copy"]),
        markdown_row(["---", "---:", "---:", "---:"]),
    ]
    for stream in STREAMS:
        seconds = median_seconds(rounds, stream.name)
        share = median(stream.bytes / r.seconds[stream.name] / r.gauges["copy"] for r in rounds)
        rate = f"{stream.bytes / seconds / 1e9:.1f}"
        lines.append(markdown_row([stream.name, milliseconds(seconds), rate, f"{share:.0%}"]))
    return "\n".join(lines)
