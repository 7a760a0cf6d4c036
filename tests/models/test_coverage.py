"""The coverage page says what the stored results say; every kind of failure becomes a result."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from models import corpus, coverage, coverage_page
from models.apart import Ended, run_apart
from models.judge import TOOLS, Outcome, judge

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


def entry(name: str) -> corpus.Entry:
    (found,) = (one for one in corpus.entries() if one.file == name)
    return found


def test_the_page_is_made_of_the_results():
    assert coverage_page.page(*coverage.load()) == PAGE.read_text(encoding="utf-8"), "run make coverage"


def test_every_file_has_a_result_of_every_tool():
    results, _ = coverage.load()
    assert results.keys() == {one.file for one in corpus.entries()}
    assert all(tools.keys() == TOOLS.keys() for tools in results.values())
    assert sorted(key for keys in coverage_page.GROUPS.values() for key in keys) == sorted(corpus.exporters())


def test_our_result():
    found = judge(entry("llama__ts17__sdpa_mask_dyn_fp32"), "zyfa_ort")
    assert found == Outcome(fused=2, heads=2, grouped=2, masks=2, outputs="equal")


@pytest.mark.slow
def test_a_peer_that_fuses_with_other_outputs():
    found = judge(entry("clip__ts17__eager_mask_dyn_fp32"), "optimizer")
    assert (found.fused, found.outputs) == (1, "differ") and "relative error" in found.detail


@pytest.mark.slow
def test_a_peer_whose_result_is_not_loaded():
    found = judge(entry("gpt2__dynamo18__sdpa_mask_dyn_fp32"), "onnxscript")
    assert (found.fused, found.masks, found.outputs) == (2, 0, "not loaded") and "Gemm" in found.detail


def test_a_function_apart_returns_its_result():
    assert run_apart(sum, [1, 2, 3], seconds=60) == 6


@pytest.mark.parametrize(
    ("function", "arguments", "what"),
    [
        (signal.raise_signal, (signal.SIGKILL,), "crash: SIGKILL"),
        (os._exit, (3,), "crash: exit code 3"),
        (int, ("x",), "ValueError: invalid literal"),
    ],
    ids=["signal", "exit", "exception"],
)
def test_how_a_function_apart_can_end(function: Any, arguments: tuple[Any, ...], what: str):
    with pytest.raises(Ended, match=what):
        run_apart(function, *arguments, seconds=60)


def test_a_function_apart_has_limited_time():
    with pytest.raises(Ended, match=r"no result within 0\.2 s"):
        run_apart(time.sleep, 60, seconds=0.2)


def test_a_failing_tool_is_a_result(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(TOOLS, "onnxscript", lambda *_: signal.raise_signal(signal.SIGKILL))
    found = coverage.outcome(entry("bidir__ts17__hand_hand_dyn_fp32"), "onnxscript")
    assert found == Outcome(outputs="failed", detail="crash: SIGKILL")
    assert coverage_page.cell(found) == "x"


@pytest.mark.parametrize(
    ("found", "cell"),
    [
        (Outcome(), "-"),
        (Outcome(2, heads=2, grouped=2, masks=2, outputs="equal"), "2 hm="),
        (Outcome(2, heads=0, grouped=2, masks=2, outputs="differ"), "2 m≠"),
        (Outcome(2, masks=1, outputs="not run"), "2 !"),
        (Outcome(1, masks=1), "1 m?"),
    ],
)
def test_cells(found: Outcome, cell: str):
    assert coverage_page.cell(found) == cell
