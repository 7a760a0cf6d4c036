"""A/B comparison: a right model passes, a wrong one fails, and a bfloat16 one can be judged at all."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from reference.toy_model import HEAD_DIM, VOCABULARY, write_toy

import zyfa_ort
from zyfa_ort.errors import InputError


@pytest.fixture
def toy(tmp_path):
    return write_toy(tmp_path / "toy.onnx", layers=2)


def fused(source, precision="fp32", **options):
    target = source.with_name(f"{source.stem}-{precision}.onnx")
    zyfa_ort.fuse(source, target, precision=precision, **options)
    return target


def test_a_correctly_fused_model_agrees(toy):
    comparison = zyfa_ort.compare_models(toy, fused(toy))
    assert not comparison.failures
    assert comparison.bound == "fp32"
    (logits,) = comparison.outputs
    assert (logits.output, logits.top1) == ("logits", 1.0)
    assert logits.kl < 1e-9
    assert [site.relative < 1e-5 for site in comparison.sites] == [True, True]
    assert not comparison.latencies


def test_a_scale_off_by_two_percent_is_found(toy, tmp_path):
    wrong = write_toy(tmp_path / "wrong.onnx", layers=2, scale=1.02 * HEAD_DIM**-0.5)
    comparison = zyfa_ort.compare_models(toy, fused(wrong))
    assert any(
        "logits on made, seed 0: expected a relative error <= 0.0002" in text for text in comparison.failures
    )


def test_errors_of_each_site_grow_with_the_precision(toy):
    errors = [
        zyfa_ort.compare_models(toy, fused(toy, precision)).sites[0].relative
        for precision in ("fp32", "bf16", "fp8")
    ]
    assert errors == sorted(errors)
    assert errors[0] < 1e-5 < errors[1] < errors[2] < 0.2


def test_layers_can_be_left_out_and_runs_timed(toy):
    comparison = zyfa_ort.compare_models(toy, fused(toy), layers=False, runs=3)
    assert not comparison.sites
    (latency,) = comparison.latencies
    assert latency.runs == 3
    assert 0 < latency.reference_p50 <= latency.reference_p99


def test_a_bound_on_the_kl_can_be_given(toy):
    comparison = zyfa_ort.compare_models(toy, fused(toy, "fp8"), max_kl=0.0)
    assert any("expected a mean KL <= 0" in failure for failure in comparison.failures)


def test_bfloat16_models_run_with_float_and_say_so(tmp_path):
    """The CPU provider has no bfloat16 MatMul: the original alone would not even load."""
    toy = write_toy(tmp_path / "toy.onnx", "bfloat16")
    comparison = zyfa_ort.compare_models(toy, fused(toy, "bf16"))
    assert not comparison.failures
    assert any(note.startswith("toy.onnx: run with float in place of bfloat16") for note in comparison.notes)
    assert len(comparison.sites) == 1


def test_inputs_can_be_given(toy, tmp_path):
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (1, 5))
    for name in ("first", "second"):
        np.savez(tmp_path / f"{name}.npz", input_ids=ids.astype(np.int32), attention_mask=np.ones_like(ids))
    comparison = zyfa_ort.compare_models(toy, fused(toy), inputs=tmp_path)
    assert [error.inputs for error in comparison.outputs] == ["first", "second"]
    np.savez(tmp_path / "second.npz", input_ids=ids)
    with pytest.raises(
        InputError, match="input attention_mask: required by the model, got none; given: input_ids"
    ):
        zyfa_ort.compare_models(toy, fused(toy), inputs=tmp_path)


def test_models_without_a_common_output_are_refused(toy, tmp_path):
    renamed = onnx.load(toy)
    renamed.graph.node[-1].output[0] = renamed.graph.output[0].name = "other"
    onnx.save(renamed, tmp_path / "renamed.onnx")
    with pytest.raises(
        InputError, match=r"renamed\.onnx: expected an output named like one of the reference: logits"
    ):
        zyfa_ort.compare_models(toy, tmp_path / "renamed.onnx")
