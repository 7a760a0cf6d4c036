"""Importing the package: fast, and without the heavy packages."""

from __future__ import annotations

import statistics
import subprocess
import sys

IMPORT = "import sys, time; t = time.perf_counter(); import zyfa_ort; print(time.perf_counter() - t); print(*sys.modules)"


def test_import_is_fast_and_brings_no_framework():
    # A limit on time in a test of its own kind: the median of five processes, because one may be disturbed.
    seconds = []
    for _ in range(5):
        out = subprocess.run(
            [sys.executable, "-c", IMPORT], check=True, capture_output=True, text=True
        ).stdout
        took, modules = out.splitlines()
        seconds.append(float(took))
        heavy = {"torch", "transformers", "onnxscript", "onnxruntime"} & {
            m.split(".")[0] for m in modules.split()
        }
        assert not heavy
    assert statistics.median(seconds) < 0.3


def test_everything_public_can_be_reached():
    import zyfa_ort

    for name in zyfa_ort.__all__:
        assert getattr(zyfa_ort, name).__doc__
    assert set(zyfa_ort.__all__) <= set(dir(zyfa_ort))
