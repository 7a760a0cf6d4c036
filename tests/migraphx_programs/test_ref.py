"""Programs of the real MIGraphX's ref target against ONNX Runtime's CPU session of the same fused model."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from models import corpus
from onnx import TensorProto
from zyfa_ort.graph_passes.upcast import upcast_bfloat16

import zyfa_ort
from migraphx_programs.models import Graph, by_onnxruntime, decoder_inputs, write_decoder
from migraphx_programs.remote import Refused
from zyfa_ort.numerics import TOLERANCES

pytestmark = pytest.mark.migraphx

# Precision of the attention -> entry of the table. Codes of FP8 are those of inputs whose last bits differ.
FLOAT_MODELS = {"fp32": "fp32_layers", "bf16": "bf16_layers", "fp8": "fp8_model"}


def expect_close(got: dict[str, Any], wanted: dict[str, Any], entry: str) -> None:
    assert list(got) == list(wanted)
    for name in wanted:
        assert got[name].dtype == wanted[name].dtype
        assert not TOLERANCES[entry].violations(got[name], wanted[name]), name


@pytest.mark.parametrize("precision", FLOAT_MODELS)
@pytest.mark.parametrize(("tokens", "past"), [(33, 0), (1, 40), (7, 9)])
def test_decoder_with_a_cache(ref, tmp_path, precision, tokens, past):
    path = write_decoder(tmp_path / "m.onnx", precision=precision)
    inputs = decoder_inputs(2, tokens, past)
    if not past:
        inputs |= {
            f"past_{one}_{layer}": np.zeros((2, 2, 0, 32), np.float32) for one in "kv" for layer in range(2)
        }
    program = ref.compile(path, dims={"batch": 2, "tokens": tokens, "past": past})
    assert program.kinds == ["SegmentStep", "NodeStep"] * 2 + ["SegmentStep"]
    expect_close(program.run(inputs), by_onnxruntime(path, inputs), FLOAT_MODELS[precision])


def test_present_of_one_program_is_past_of_the_next(ref, tmp_path):
    """Prefill and decode are two programs, as shapes are fixed; together they are one prefill."""
    path = write_decoder(tmp_path / "m.onnx")
    whole = decoder_inputs(1, 20, 0)
    empty = {f"past_{one}_{layer}": np.zeros((1, 2, 0, 32), np.float32) for one in "kv" for layer in range(2)}
    prefill = ref.compile(path, dims={"batch": 1, "tokens": 19, "past": 0})
    decode = ref.compile(path, dims={"batch": 1, "tokens": 1, "past": 19})
    first = prefill.run(
        {"input_ids": whole["input_ids"][:, :19], "attention_mask": np.ones((1, 19), np.int64), **empty}
    )
    cache = {name.replace("present", "past"): value for name, value in first.items() if "present" in name}
    second = decode.run(
        {"input_ids": whole["input_ids"][:, 19:], "attention_mask": np.ones((1, 20), np.int64), **cache}
    )
    expect_close(
        second,
        {n: v[:, -1:] if n == "logits" else v for n, v in by_onnxruntime(path, whole | empty).items()},
        "fp32_layers",
    )


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_decoder_in_a_narrow_type(ref, tmp_path, kind):
    """ONNX Runtime's CPU has no kernels for bfloat16: the same model in float stands beside it."""
    path = write_decoder(
        tmp_path / "m.onnx",
        kind=kind,
        precision="bf16" if kind == TensorProto.BFLOAT16 else "fp32",
        cache=False,
    )
    inputs = decoder_inputs(2, 24, 0)
    got = ref.compile(path, dims={"batch": 2, "tokens": 24}).run(inputs)
    if kind == TensorProto.BFLOAT16:
        model = ir.load(path)
        assert upcast_bfloat16(model)
        path = tmp_path / "float.onnx"
        ir.save(model, path)
        assert got["logits"].dtype == ml_dtypes.bfloat16
    wanted = by_onnxruntime(path, inputs)
    entry = "bfloat16_model" if kind == TensorProto.BFLOAT16 else "float16_model"
    assert not TOLERANCES[entry].violations(
        got["logits"].astype(np.float32), wanted["logits"].astype(np.float32)
    )


def test_codes_pass_between_our_nodes_alone(ref, tmp_path):
    """Hadamard, quantise and attention nodes behind each other: no float8 tensor in any segment."""
    path = write_decoder(tmp_path / "m.onnx", quantize_nodes=True, cache=False)
    inputs = decoder_inputs(2, 33, 0)
    program = ref.compile(path, dims={"batch": 2, "tokens": 33})
    layer = ["SegmentStep", *["NodeStep"] * 6]
    assert program.kinds == [*layer, *layer, "SegmentStep"]
    expect_close(program.run(inputs), by_onnxruntime(path, inputs), "fp8_model")


def test_codes_as_inputs_and_outputs_of_the_program(ref, tmp_path):
    g = Graph()
    shape, fp8 = ["batch", "rows", 2, 64], TensorProto.FLOAT8E4M3FN
    q, k, v = (g.input(name, fp8, shape) for name in "qkv")
    scale = g.constant("scale", np.full((2,), 0.25, np.float32))
    nothing = g.constant("nothing", np.ones(1, np.float32))
    g.node(
        "ZyfaPrefillAttention",
        [q, k, v, "", "", "", "", scale, scale, nothing],
        ["y", "present_key", "present_value"],
        out_dtype=TensorProto.FLOAT,
    )
    path = g.save(tmp_path / "m.onnx", {"y": TensorProto.FLOAT, "present_key": fp8, "present_value": fp8})
    rng = np.random.default_rng(2)
    inputs = {n: rng.standard_normal((2, 70, 2, 64)).astype(ml_dtypes.float8_e4m3fn) for n in "qkv"}
    program = ref.compile(path, dims={"batch": 2, "rows": 70})
    assert program.kinds == ["NodeStep"]
    got, wanted = program.run(inputs), by_onnxruntime(path, inputs)
    for name in wanted:
        assert got[name].tobytes() == wanted[name].tobytes(), name


def test_every_optional_input_and_output(ref, tmp_path):
    """Bias (a constant), sinks, mask of int32, lse; rows that see nothing, and a NaN that stays where it is."""
    g = Graph()
    q, k, v = (
        g.input(name, TensorProto.FLOAT, [2, 9, heads, 32])
        for name, heads in zip("qkv", (4, 2, 2), strict=True)
    )
    mask = g.input("mask", TensorProto.INT32, [2, 9])
    rng = np.random.default_rng(3)
    bias = g.constant("bias", rng.standard_normal((4, 1, 9)).astype(np.float32))
    sinks = g.constant("sinks", rng.standard_normal(4).astype(np.float32))
    g.node(
        "ZyfaPrefillAttention",
        [q, k, v, "", "", mask, bias, "", "", "", sinks],
        ["y", "", "", "lse"],
        softcap=5.0,
        window_left=4,
    )
    path = g.save(tmp_path / "m.onnx", {"y": TensorProto.FLOAT, "lse": TensorProto.FLOAT})
    inputs = {
        n: rng.standard_normal((2, 9, h, 32)).astype(np.float32)
        for n, h in zip("qkv", (4, 2, 2), strict=True)
    }
    inputs["v"][0, 8, 0, 3] = np.nan
    inputs["mask"] = np.ones((2, 9), np.int32)
    inputs["mask"][1, :3] = 0
    got, wanted = ref.compile(path).run(inputs), by_onnxruntime(path, inputs)
    assert np.isnan(got["y"]).sum() == 2 and np.array_equal(np.isnan(got["y"]), np.isnan(wanted["y"]))
    assert np.array_equal(np.isinf(got["lse"]), np.isinf(wanted["lse"]))
    for results in (got, wanted):
        for name in results:
            results[name] = np.where(np.isfinite(results[name]), results[name], 0)
    expect_close(got, wanted, "fp32")


EXPORTED = (
    ("llama__optimum__sdpa_past", "2x7+5"),
    ("gpt2__ts17__sdpa_mask_dyn_fp32", "2x12 left3"),
    (
        "gemma2__dynamo23__eager_mask_dyn_fp32",
        "1x12 left3",
    ),  # RMSNormalization and RotaryEmbedding of opset 23
    ("whisper__dynamo18__sdpa_whisper_dyn_fp32", "2x12"),
)

# Operators of exported models that MIGraphX 7.1 has not, or not in the form that ONNX gives them.
UNKNOWN = ("EmbedLayerNormalization", "BiasGelu")
WRONG = (("NonZero", "how much it makes depends on values"), ("TopK", "numbers change from run to run"))


def check_exported(ref, folder, entry, words) -> None:
    """Shapes are those of the inputs, as exporters' names for dimensions say little."""
    onnx.save(corpus.model(entry), folder / "m.onnx")
    assert zyfa_ort.fuse(folder / "m.onnx", folder / "f.onnx", precision="fp32").fused
    inputs = corpus.feeds(entry, words)
    program = ref.compile(folder / "f.onnx", shapes={name: array.shape for name, array in inputs.items()})
    assert program.kinds.count("NodeStep") == len(entry.sites)
    assert (
        program.kinds.count("SegmentStep") <= len(entry.sites) + 1
    )  # fewer: encoder and decoder side by side
    bound = "fp32_large_scores" if entry.family == "t5" else "fp32_layers"  # T5 does not scale its scores
    expect_close(program.run(inputs), by_onnxruntime(folder / "f.onnx", inputs), bound)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [e for e in corpus.entries() if e.dtype == "fp32" and e.runnable], ids=str)
def test_all_exported_models(ref, tmp_path, entry):
    try:
        check_exported(ref, tmp_path, entry, entry.runnable[-1])
    except Refused as reason:
        known = [(name, "MIGraphX cannot import this node") for name in UNKNOWN]
        assert any(f": {name} '" in str(reason) and text in str(reason) for name, text in (*known, *WRONG)), (
            reason
        )


@pytest.mark.parametrize(("file", "words"), EXPORTED, ids=[file for file, _ in EXPORTED])
def test_exported_models(ref, tmp_path, file, words):
    check_exported(ref, tmp_path, next(one for one in corpus.entries() if one.file == file), words)


def test_without_our_nodes_it_is_one_segment(ref, tmp_path):
    g = Graph()
    g.node("Relu", [g.input("x", TensorProto.FLOAT, ["n", 4])], "y")
    program = ref.compile(g.save(tmp_path / "m.onnx", {"y": TensorProto.FLOAT}), dims={"n": 3})
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    assert program.kinds == ["SegmentStep"]
    assert np.array_equal(program.run({"x": x})["y"], np.maximum(x, 0))


def test_outputs_that_nothing_computes(ref, tmp_path):
    """Inputs and constants may be outputs as they are; a transposed output comes back in order."""
    g = Graph()
    x = g.input("x", TensorProto.FLOAT, [2, 3])
    g.constant("c", np.array([1.5, 2.5], np.float32))
    g.node("Shape", [x], "s")
    g.node("Transpose", [x], "t")
    path = g.save(
        tmp_path / "m.onnx",
        {"x": TensorProto.FLOAT, "c": TensorProto.FLOAT, "s": TensorProto.INT64, "t": TensorProto.FLOAT},
    )
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = ref.compile(path).run({"x": data})
    assert got["x"].tolist() == data.tolist() and got["c"].tolist() == [1.5, 2.5]
    assert got["s"].tolist() == [2, 3] and np.array_equal(got["t"], data.T)
    assert got["t"].flags["C_CONTIGUOUS"]


def test_saved_programs_give_the_same_bits(ref, tmp_path):
    path = write_decoder(tmp_path / "m.onnx", quantize_nodes=True, cache=False)
    inputs = decoder_inputs(2, 33, 0)
    program = ref.compile(path, dims={"batch": 2, "tokens": 33})
    program.save(tmp_path / "m.mgx")
    loaded = ref.load(tmp_path / "m.mgx")
    assert loaded.facts == program.facts
    first, second, again = program.run(inputs), loaded.run(inputs), loaded.run(inputs)
    assert first["logits"].tobytes() == second["logits"].tobytes() == again["logits"].tobytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.mgx", "m.onnx"]


def test_the_worker_never_saw_onnx_runtime(ref, tmp_path):
    test_without_our_nodes_it_is_one_segment(ref, tmp_path)
    assert "onnxruntime" not in ref.ask("modules")
    assert "libonnxruntime" not in ref.ask("mapped")
    assert "libmigraphx_ref" in ref.ask("mapped")
