"""The benchmark's machinery on tiny problems: who is refused, what is counted, how results are written. No times."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks import contenders, cpu, long_runs, peak, peak_memory, report, shapes, streams, table
from benchmarks.contenders import CONTENDERS, chosen
from benchmarks.pinning import processors, workers_pinned
from benchmarks.prepared import Prepared, Unavailable
from benchmarks.problem import Problem
from benchmarks.results import Result, measure
from benchmarks.rounds import Round, median_ratio, median_seconds, timed_rounds
from benchmarks.shapes import Shape

TINY = Shape(rows=65, keys=65, heads=4, kv_heads=2, qk_dim=16, v_dim=16, batch=2)
DECODE = replace(TINY, rows=1)
CPUS = processors(1)


@pytest.fixture(scope="module", params=[TINY, DECODE], ids=str)
def result(request) -> Result:
    return measure(request.param, CONTENDERS, CPUS, rounds=2, limit=60)


def test_every_contender_computes_the_same_attention(result):
    """Causal, grouped heads, both as a prompt and as one row at the end of a cache."""
    assert result.missing == {}
    assert all(set(r.seconds) == {c.name for c in CONTENDERS} for r in result.rounds)


def test_everything_is_derived_from_the_rounds(result):
    ours, peer = "zyfa fp32", "ORT Attention"
    a, b = (r.seconds[ours] for r in result.rounds)
    assert result.seconds(ours) == pytest.approx((a + b) / 2)
    assert result.gflops(ours) == pytest.approx(result.shape.flops / result.seconds(ours) / 1e9)
    ratios = [r.seconds[peer] / r.seconds[ours] for r in result.rounds]
    assert result.ratio(peer, ours) == pytest.approx(sum(ratios) / 2)
    for unit in result.rounds[0].gauges:
        assert 0 < result.share_of_peak(ours, unit) < 1


def test_nothing_is_timed_before_the_workers_are_on_their_processors():
    """They start on the caller's: two threads of one processor passed for two processors once."""
    with (
        workers_pinned(CPUS),
        pytest.raises(RuntimeError, match="timed inside workers_pinned: the workers are not on their"),
    ):
        timed_rounds({"none": lambda: None}, 1)
    assert len(timed_rounds({"none": lambda: None}, 1)) == 1


def test_pairs_are_those_under_the_mask():
    """Counted one by one."""
    for shape in (TINY, DECODE, replace(TINY, rows=3, keys=5)):
        first = shape.keys - shape.rows
        seen = sum(j <= first + i for i in range(shape.rows) for j in range(shape.keys))
        assert shape.visible_pairs == seen * shape.batch * shape.heads
        assert shape.flops == 2 * (shape.qk_dim + shape.v_dim) * shape.visible_pairs


def broken(problem: Problem, threads: int) -> Prepared:
    s = problem.shape
    return Prepared(lambda: None, lambda: np.zeros((s.batch, s.heads, s.rows, s.v_dim), np.float32))


def refusing(problem: Problem, threads: int) -> Prepared:
    raise Unavailable("is not made for this")


@pytest.mark.parametrize(
    ("change", "limit", "reason"),
    [
        ({"prepare": broken}, 60, "is not this attention: relative error: expected <= 1e-05, got 1"),
        ({"prepare": refusing}, 60, "is not made for this"),
        ({}, 0, "takes 0 s a call (limit 0 s)"),
    ],
)
def test_a_contender_that_is_wrong_or_slow_or_refuses_is_left_out_with_the_reason(change, limit, reason):
    peer = replace(next(c for c in CONTENDERS if c.name == "ORT Attention"), **change)
    result = measure(TINY, [peer], CPUS, rounds=1, limit=limit)
    assert result.rounds[0].seconds == {}
    assert result.missing[peer.name].startswith(reason)


def test_our_own_are_timed_however_slow_they_are():
    assert measure(TINY, chosen(("fp32",))[:1], CPUS, rounds=1, limit=0).missing == {}


def test_grouped_query_attention_takes_one_head_dim():
    names = {"ORT GroupQueryAttention", "zyfa fp32"}
    peers = [c for c in CONTENDERS if c.name in names]
    result = measure(replace(TINY, v_dim=32), peers, CPUS, rounds=1, limit=60)
    assert result.missing == {"ORT GroupQueryAttention": "takes one head dim for keys and values"}


def test_an_output_of_another_shape_is_wrong():
    peer = CONTENDERS[0]
    assert peer.wrong(Problem(TINY, "fp32"), np.zeros((1, 2, 3, 4))) == ["output shape (1, 2, 3, 4)"]


def test_scores_that_do_not_fit_are_not_tried(monkeypatch):
    monkeypatch.setattr(contenders, "SCORE_LIMIT", TINY.score_bytes - 1)
    reasons = measure(TINY, CONTENDERS, CPUS, rounds=1, limit=60).missing
    assert set(reasons) == {c.name for c in CONTENDERS if c.keeps_scores}
    assert set(reasons.values()) == {"would keep 0.0 GB of scores"}


def test_without_torch_its_rows_say_so(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    missing = measure(TINY, chosen(("bf16",)), CPUS, rounds=1, limit=60).missing
    assert set(missing.values()) == {"torch is not installed: pip install torch"}
    assert set(missing) == {"torch SDPA fp32", "torch SDPA bf16"}


def test_without_a_compiler_peaks_are_missing(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    peak._library.cache_clear()
    result = measure(TINY, chosen(("fp32",))[:1], CPUS, rounds=1, limit=60)
    assert result.rounds[0].gauges == {}
    text = report.attention([result], cpu.arguments(["--only", "fp32"]))
    assert "Peaks are missing: no C++ compiler: expected no-such-compiler on PATH; set CXX." in text
    peak._library.cache_clear()


def test_units_and_copy_give_a_rate():
    assert set(peak.units()) <= set(peak.UNITS)
    for unit in peak.units():
        assert peak.flops_per_second(unit, CPUS, seconds=1e-4) > 1e8
    assert peak.copied_bytes_per_second(1 << 16, CPUS, seconds=1e-4) > 1e6


def test_narrow_types_are_measured_against_both_peaks():
    assert peak.best_units("fp32", set(peak.UNITS)) == ["fp32 avx512"]
    assert peak.best_units("fp8", set(peak.UNITS)) == ["fp32 avx512", "bf16 amx"]
    assert peak.best_units("bf16", {"fp32 avx2"}) == ["fp32 avx2"]


def test_tables_are_well_formed(result):
    for precision in ("fp32", "bf16", "fp8"):
        lines = table.markdown([result, result], [precision]).splitlines()
        assert len(lines) == 4
        assert len({line.count("|") for line in lines}) == 1
        assert str(result.shape) in lines[2] and f"zyfa {precision}, ms" in lines[0]


def test_missing_rows_become_footnotes():
    rounds = [Round({"zyfa fp32": 1e-3}, {}), Round({"zyfa fp32": 3e-3}, {})]
    reasons = {c.name: "is slow" for c in CONTENDERS if c.name != "zyfa fp32"}
    lines = table.markdown([Result(TINY, rounds, reasons)], ["fp32"]).splitlines()
    assert lines[2].startswith(f"| {TINY} | 2 | ") and lines[2].endswith(" | (a) | (b) | (c) | (d) | (e) |")
    assert lines[4] == "(a) torch SDPA fp32 is slow  "


def test_csv_has_a_line_for_everyone(result):
    lines = list(csv.DictReader(io.StringIO(table.as_csv([result], CONTENDERS))))
    assert [line["contender"] for line in lines if "peak" not in line["contender"]] == [
        c.name for c in CONTENDERS
    ]
    ours = next(line for line in lines if line["contender"] == "zyfa bf16")
    assert float(ours["over_zyfa_bf16"]) == 1 and float(ours["median_ms"]) > 0
    assert all(line["keys"] == "65" for line in lines)


def test_rounds_interleave_and_ratios_are_paired():
    order: list[str] = []
    runs = {name: partial(order.append, name) for name in "ab"}
    rounds = timed_rounds(runs, 3, {"gauge": lambda: order.append("g") or 1.0})
    order = [name for i, name in enumerate(order) if i == 0 or name != order[i - 1]]
    assert "".join(order) == "ab" + "abg" * 3
    uneven = [Round({"a": 1, "b": 2}, {}), Round({"a": 10, "b": 30}, {}), Round({"a": 3, "b": 12}, {})]
    assert len(rounds) == 3 and median_seconds(uneven, "a") == 3
    assert median_ratio(uneven, "b", "a") == 3


def test_shapes_of_the_command_line():
    everything = list(shapes.full())
    assert len(everything) == len(set(everything)) == 3 * 3 * 2 * 6
    assert set(shapes.quick()) | set(shapes.prompts()) <= set(everything)
    words = ["--shapes", "one", "--head-dim", "192-128", "--heads", "9/3", "--length", "77", "--decode"]
    assert cpu.shapes_of(cpu.arguments(words)) == [Shape(1, 77, 9, 3, 192, 128)]
    assert cpu.shapes_of(cpu.arguments(["--shapes", "none"])) == []


def test_an_unknown_precision_is_refused(capsys):
    with pytest.raises(SystemExit):
        cpu.arguments(["--only", "fp32,int8"])
    assert "expected some of fp32,bf16,fp8, got fp32,int8" in capsys.readouterr().err


def test_more_threads_than_processors_are_refused():
    with pytest.raises(ValueError, match=r"threads: expected at most \d+ on this machine, got 4096"):
        processors(4096)


def test_parts_of_the_page_are_replaced_and_the_rest_stays(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("top\n<!-- a -->\nold\n<!-- end of a -->\nbottom\n", encoding="utf-8")
    report.write_parts(page, {"a": "new"})
    assert page.read_text(encoding="utf-8") == "top\n<!-- a -->\n\nnew\n\n<!-- end of a -->\nbottom\n"
    with pytest.raises(
        ValueError, match=r"page.md: expected one line <!-- b --> and one line <!-- end of b -->; add"
    ):
        report.write_parts(page, {"b": "new"})


def test_the_page_has_every_part_and_the_machine_is_named(tmp_path):
    page = tmp_path / "performance.md"
    page.write_bytes((cpu.Path(__file__).parents[2] / "docs/performance.md").read_bytes())
    report.write_parts(page, dict.fromkeys(["attention", *cpu.EXTRAS], "measured"))
    assert page.read_text(encoding="utf-8").count("\nmeasured\n") == 1 + len(cpu.EXTRAS)
    assert "onnxruntime 1." in report.machine(2) and ", 2 thread(s), " in report.machine(2)


def test_scaling_names_every_length(monkeypatch):
    monkeypatch.setattr(long_runs, "SCALING_LENGTHS", (32, 64))
    lines = long_runs.scaling(cpu.arguments(["--only", "fp32,fp8", "--rounds", "1"]), CPUS).splitlines()
    assert lines[2] == "| rows | zyfa fp32 | zyfa fp8 |"
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["32", "64"] and "(1.00)" in lines[4]


def test_peak_memory_sees_what_a_run_takes():
    """The unfused graph keeps its scores, at least once; our kernel does not."""
    shape = replace(TINY, rows=1500, keys=1500, heads=2, batch=1)
    by_name = {c.name: c for c in CONTENDERS}
    assert peak_memory.extra_bytes(by_name["ORT unfused"], shape, 1) >= 0.9 * shape.score_bytes
    assert peak_memory.extra_bytes(by_name["zyfa fp32"], shape, 1) < 0.5 * shape.score_bytes


def test_peak_memory_does_not_count_the_output():
    """Of 33 MB; its pages are resident before the run."""
    wide = Shape(rows=64, keys=64, heads=512, kv_heads=1, qk_dim=16, v_dim=256)
    ours = next(c for c in CONTENDERS if c.name == "zyfa fp32")
    assert peak_memory.extra_bytes(ours, wide, 1) < 4 * 64 * 512 * 256 / 4


def test_without_the_demo_the_model_row_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(long_runs, "DEMO_CACHE", tmp_path)
    text = long_runs.model(cpu.arguments(["--only", "fp32"]), CPUS)
    assert text == "SmolLM2-135M: missing, no original.onnx, fp32.onnx in .cache/demo; run `make demo`."


@pytest.mark.parametrize("stream", streams.STREAMS, ids=lambda stream: stream.name)
def test_streams_touch_every_element(stream):
    ready = streams.prepared(stream, (1, 8, 2, 16), 1)
    ready.run()
    assert ready.output().shape == (1, 8, 2, 16) and np.any(ready.output().astype(np.float32))


def test_streams_table(monkeypatch):
    monkeypatch.setattr(streams, "SHAPE", (1, 64, 2, 16))
    lines = streams.streams(cpu.arguments(["--rounds", "1"]), CPUS).splitlines()
    assert len(lines) == 4 + len(streams.STREAMS) and lines[2] == "| operator | ms | GB/s | of a copy |"
