"""Real exporters' models: every attention fused with the meaning its configuration gives it, outputs unchanged.

Two tables hold what is not so (yet): DECLINED and HANDED_OVER. A site that starts or stops being fused fails the test
until they say so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from models import corpus, coverage
from models.corpus import Entry
from models.judge import upcast, valid
from models.meaning import recovered
from zyfa_ort.graph_passes.pipeline import FuseReport, fuse_model

import zyfa_ort
from graph_passes.running import FP32, assert_same_numbers, fused_session, original_session
from zyfa_ort.inputs import fit_inputs

# File -> for each site in graph order the reason (a part of it) why it stays, None where it is fused.
DECLINED: dict[str, tuple[str | None, ...]] = {}

# File -> for each site what differs from the index because it is handed to the operator in another form.
HANDED_OVER: dict[str, tuple[dict[str, Any], ...]] = {}

# Together they hold every family, every exporter with every kind of input and type, every form of mask.
DEFAULT = {
    "bert__dynamo23__sdpa_mask_dyn_fp32",
    "bidir__dynamo18__hand_hand_dyn_fp32",
    "bloom__optimum__eager_past",
    "bloom__ts17__eager_nomask_dyn_fp32",
    "bmm3d__dynamo18__hand_hand_dyn_fp32",
    "clip__ortopt__ts17_eager_mask_dyn_fp32",
    "deepseek_v3__dynamo18__sdpa_nomask_dyn_fp32",
    "deepseek_v3__optimum__sdpa_nopast",
    "deepseek_v3__osfuse__dynamo18_sdpa_mask_dyn_fp32",
    "deepseek_v3__ts17__eager_past_dyn_fp32",
    "gemma2__dynamo23__eager_mask_dyn_fp32",
    "gemma2__genai__int4_cpu",
    "gemma2__optimum__eager_past",
    "gemma2__ts17__eager_past_dyn_fp32",
    "gpt2__optimum__eager_past",
    "gpt2__ts14__eager_mask_dyn_fp32",
    "gpt_oss__dynamo18__eager_mask_dyn_fp16",
    "gpt_oss__genai__fp16_cuda",
    "gpt_oss__optimum__eager_past",
    "gqa5d__dynamo18__hand_hand_dyn_fp32",
    "llama__dynamo18__eager_mask_dyn_bf16",
    "llama__dynamo18__sdpa_past_dyn_fp32",
    "llama__dynamo18__sdpa_pos_dyn_fp32",
    "llama__dynamo20__sdpa_mask_dyn_fp32",
    "llama__dynamo24__sdpa_mask_dyn_fp32",
    "llama__genai__int4_cpu",
    "llama__optimum__sdpa_past",
    "llama__ts17__sdpa_mask_dyn_fp16",
    "llama__ts17__sdpa_mask_stat_fp32",
    "llama__ts20__eager_mask_dyn_fp32",
    "llama_mha__optimum__sdpa_nopast",
    "mha__ts17__hand_hand_dyn_fp32",
    "mha_w__dynamo18__hand_hand_dyn_fp32",
    "mistral__optimum__sdpa_past",
    "mistral__osfuse__dynamo18_sdpa_mask_dyn_fp32",
    "opt__dynamo18__eager_mask_dyn_fp32",
    "phi__ts17__eager_past_dyn_fp32",
    "qwen2__dynamo18__sdpa_mask_dyn_fp32",
    "qwen3__dynamo18__sdpa_past_dyn_fp32",
    "qwen3_moe__optimum__sdpa_past",
    "sdpa_boolmask__ts17__hand_hand_dyn_fp32",
    "sdpa_causal__dynamo18__hand_hand_stat_fp32",
    "sdpa_gqa__dynamo23__hand_hand_dyn_fp32",
    "t5__optimum__eager_past__decoder_with_past_model",
    "t5__ts17__sdpa_t5_dyn_fp32",
    "triu_inf__ts17__hand_hand_dyn_fp32",
    "vit__optimum__sdpa_nopast",
    "whisper__dynamo18__eager_whisper_dyn_fp32",
    "whisper__genai__fp16_cuda__encoder",
}

TOLERANCES = {"fp32": "fp32", "bf16": "fp32", "fp16": "float16_model", "int4": "int4_model"}

FILES = [
    pytest.param(entry, id=entry.file, marks=[] if entry.file in DEFAULT else [pytest.mark.slow])
    for entry in corpus.entries()
]


@dataclass(frozen=True)
class Fused:
    entry: Entry
    original: onnx.ModelProto
    fused: onnx.ModelProto
    report: FuseReport


@pytest.fixture(scope="module", params=FILES)
def done(request: pytest.FixtureRequest) -> Fused:
    """One file after the other; all tests of a file share one run of the passes."""
    original = corpus.model(request.param)
    held = ir.serde.deserialize_model(original)
    report = fuse_model(held, FP32)
    return Fused(request.param, original, ir.serde.serialize_model(held), report)


def passes_checker(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError:
        return False
    return True


def test_sites(done: Fused) -> None:
    entry = done.entry
    reasons = DECLINED.get(entry.file, (None,) * len(entry.sites))
    differences = HANDED_OVER.get(entry.file, ({},) * len(entry.sites))
    assert len(done.report.sites) == len(entry.sites) == len(reasons)
    for site, wanted, reason, difference in zip(
        done.report.sites, entry.sites, reasons, differences, strict=True
    ):
        if reason is not None:
            assert site.status == "declined", f"{site.node} is fused now: take it out of DECLINED"
            assert reason in site.reason
            continue
        assert site.status == "fused", f"{site.node} is declined: {site.reason} ({site.at})"
        wanted = replace(wanted, **difference)
        assert recovered(site, wanted.scale) == wanted
    if passes_checker(done.original):  # models with ONNX Runtime's own operators in the default domain do not
        onnx.checker.check_model(done.fused)


def test_outputs(done: Fused) -> None:
    entry = done.entry
    original, fused = (upcast(one) if entry.dtype == "bf16" else one for one in (done.original, done.fused))
    if entry.unloadable:
        with pytest.raises(Exception, match=operator(entry.unloadable)):
            original_session(original)
        return
    session = original_session(original)
    for words, reason in entry.faults.items():
        with pytest.raises(Exception, match=operator(reason)):
            zyfa_ort.run(session, fit_inputs(session, corpus.feeds(entry, words)))
    if not entry.runnable:
        return
    sessions = session, fused_session(fused)
    for words in entry.runnable:
        feeds = fit_inputs(session, corpus.feeds(entry, words))
        wanted, got = (zyfa_ort.run(one, feeds) for one in sessions)
        assert list(got) == list(wanted)
        for name in wanted:
            pair = (valid(values[name], feeds) for values in (got, wanted))
            assert_same_numbers(*pair, TOLERANCES[entry.dtype], f"{name} on {words}")


def operator(reason: str) -> str:
    """Reasons in the index begin with the operator that fails."""
    return reason.split(":")[0]


def test_the_coverage_page_says_what_these_tables_say() -> None:
    results, _ = coverage.load()
    for entry in corpus.entries():
        fused = sum(reason is None for reason in DECLINED.get(entry.file, (None,) * len(entry.sites)))
        assert results[entry.file]["zyfa_ort"].fused == fused, f"{entry.file}: run make coverage"


def test_tables_name_stored_files() -> None:
    stored = {entry.file for entry in corpus.entries()}
    assert stored >= {*DEFAULT, *DECLINED, *HANDED_OVER}


def test_the_default_run_sees_every_family_and_exporter() -> None:
    default = [entry for entry in corpus.entries() if entry.file in DEFAULT]
    for trait in ("family", "exporter", "attention", "inputs", "dtype", "static"):
        assert {getattr(one, trait) for one in default} == {getattr(one, trait) for one in corpus.entries()}
