"""Fuse, inspect, session and run, on a model small enough to read."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from reference.toy_model import HEADS, write_toy

import zyfa_ort
from zyfa_ort import gpu, numerics
from zyfa_ort.errors import DeviceError, InputError


@pytest.fixture
def toy(tmp_path):
    return write_toy(tmp_path / "toy.onnx", layers=2)


def inputs() -> dict[str, np.ndarray]:
    ids = np.arange(2 * 9).reshape(2, 9) % 50
    mask = np.ones_like(ids)
    mask[1, :3] = 0
    return {"input_ids": ids, "attention_mask": mask}


def test_fused_model_gives_the_same_answers(toy, tmp_path):
    target = tmp_path / "fused.onnx"
    report = zyfa_ort.fuse(toy, target, precision="fp32")
    assert report.summary() == "2 of 2 attention sites fused"
    assert report.modified
    assert {(site.num_heads, site.kv_num_heads, site.mask) for site in report.sites} == {
        (HEADS, HEADS, ("causal", "key mask"))
    }
    expected = ort.InferenceSession(toy, providers=["CPUExecutionProvider"]).run(None, inputs())[0]
    actual = zyfa_ort.run(zyfa_ort.session(target), inputs())["logits"]
    rows = inputs()["attention_mask"].astype(bool)
    assert not numerics.TOLERANCES["fp32"].violations(actual[rows], expected[rows])


def test_fp8_has_to_be_asked_for(toy, tmp_path):
    assert {s.precision for s in zyfa_ort.fuse(toy, tmp_path / "auto.onnx").sites} == {"bf16"}
    assert {s.precision for s in zyfa_ort.fuse(toy, tmp_path / "fp8.onnx", precision="fp8").sites} == {"fp8"}


def test_inspect_writes_nothing_and_knows_what_is_fused(toy, tmp_path):
    before = toy.read_bytes()
    report = zyfa_ort.inspect(toy)
    assert report.summary() == "2 of 2 attention sites can be fused"
    assert not report.modified
    assert toy.read_bytes() == before
    zyfa_ort.fuse(toy, tmp_path / "fused.onnx")
    assert zyfa_ort.inspect(tmp_path / "fused.onnx").already_fused == 2


def test_a_plan_makes_exceptions_by_site(toy, tmp_path):
    names = [site.node for site in zyfa_ort.inspect(toy).sites]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"sites": {names[1]: {"precision": "fp8", "rotate": "hadamard"}}}))
    report = zyfa_ort.fuse(toy, tmp_path / "fused.onnx", precision="fp32", plan=plan)
    assert [(s.precision, s.rotation) for s in report.sites] == [("fp32", "none"), ("fp8", "hadamard")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "expected a plan in JSON"),
        ("[]", 'expected {"sites": {node: {"precision": ...}}}'),
        ('{"sites": {"a": {"size": 1}}}', "site a: expected the keys precision, rotate, fp8_edges, got size"),
        ('{"sites": {"a": {"precision": "fp9"}}}', "precision: expected one of .* got 'fp9'"),
    ],
)
def test_unusable_plans_are_refused(toy, tmp_path, content, message):
    plan = tmp_path / "plan.json"
    plan.write_text(content)
    with pytest.raises(Exception, match=message):
        zyfa_ort.fuse(toy, tmp_path / "fused.onnx", plan=plan)
    assert not (tmp_path / "fused.onnx").exists()


def test_asking_for_a_gpu_never_ends_on_the_cpu_silently(toy, monkeypatch):
    monkeypatch.setattr(gpu, "_listed", lambda ort: [])
    monkeypatch.setattr("onnxruntime.register_execution_provider_library", lambda name, path: None)
    with pytest.raises(DeviceError, match=r"ZyfaExecutionProvider: HIP sees no GPU; run 'zyfa-ort doctor'"):
        zyfa_ort.session(toy, "gpu")
    with pytest.raises(InputError, match="device: expected 'auto', 'cpu' or 'gpu', got 'tpu'"):
        zyfa_ort.session(toy, "tpu")


def test_asking_for_the_cpu_says_nothing(toy, capfd):
    zyfa_ort.session(toy, "cpu")
    out, err = capfd.readouterr()
    assert out + err == ""


def test_a_misspelt_attribute_is_refused(toy, tmp_path):
    target = tmp_path / "fused.onnx"
    zyfa_ort.fuse(toy, target)
    model = onnx.load(target)
    node = next(node for node in model.graph.node if node.domain == "ai.zyfa")
    node.attribute.append(onnx.helper.make_attribute("window_lefft", 3))
    onnx.save(model, target)
    with pytest.raises(
        InputError,
        match=rf"{node.op_type} '{node.name}': attribute window_lefft is unknown, expected window_left",
    ):
        zyfa_ort.session(target)


def test_without_the_library_the_runtime_names_the_operator(toy, tmp_path):
    """The text that docs/cli.md explains."""
    target = tmp_path / "fused.onnx"
    zyfa_ort.fuse(toy, target)
    with pytest.raises(
        Exception, match=r"ai\.zyfa:ZyfaPrefillAttention\(-1\) is not a registered function/op"
    ):
        ort.InferenceSession(target, providers=["CPUExecutionProvider"])


def test_run_names_missing_and_unknown_inputs(toy):
    session = zyfa_ort.session(toy)
    ids = inputs()["input_ids"]
    with pytest.raises(InputError, match="input attention_mask: required by the model, got none"):
        zyfa_ort.run(session, {"input_ids": ids})
    with pytest.raises(InputError, match="input tokens: expected one of input_ids, attention_mask"):
        zyfa_ort.run(session, {**inputs(), "tokens": ids})
