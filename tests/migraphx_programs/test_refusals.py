"""What cannot be a program, and in which words that is said."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from migraphx_programs.models import Graph, decoder_inputs, write_decoder
from migraphx_programs.remote import Refused

pytestmark = pytest.mark.migraphx

FLOAT, FP8 = TensorProto.FLOAT, TensorProto.FLOAT8E4M3FN


def expect_refusal(ref, path, text: str, **options: Any) -> None:
    with pytest.raises(Refused) as refused:
        ref.compile(path, **options)
    assert str(refused.value) == text


def test_an_operator_that_migraphx_does_not_know(ref, tmp_path):
    g = Graph()
    x = g.node("Relu", [g.input("x", FLOAT, [2, 2])], "r")
    g.node("Unheard", [x], "y", domain="com.microsoft")
    path = g.save(tmp_path / "m.onnx", {"y": FLOAT})
    expect_refusal(
        ref,
        path,
        "MigraphxError: Unheard 'Unheard_y': MIGraphX cannot import this node: Unknown operator: Unheard",
    )


def test_the_node_is_named_wherever_it_is(ref, tmp_path):
    """Behind an attention, among good ones, in a form that MIGraphX has not."""
    g = Graph()
    x = g.input("x", FLOAT, [1, 4, 2, 8])
    y = g.node("Relu", [g.node("ZyfaPrefillAttention", [x, x, x], "a")], "r")
    for at in range(5):
        y = g.node("Abs", [y], f"abs{at}")
    length = g.node("Cast", [g.node("ReduceMax", [y], "m", keepdims=0)], "n", to=TensorProto.INT64)
    y = g.node("Tile", [y, length], "t")
    g.node("Neg", [y], "y")
    path = g.save(tmp_path / "m.onnx", {"y": FLOAT})
    with pytest.raises(Refused, match=r"^MigraphxError: Tile 'Tile_t': MIGraphX cannot import this node: \S"):
        ref.compile(path)


def test_operators_that_the_ref_target_gets_wrong(ref, tmp_path):
    g = Graph()
    k = g.constant("k", np.array([2], np.int64))
    g.node("TopK", [g.input("x", FLOAT, [24, 32]), k], ["y", "i"])
    expect_refusal(
        ref,
        g.save(tmp_path / "m.onnx", {"y": FLOAT}),
        "MigraphxError: TopK 'TopK_y': MIGraphX's ref target computes its rows in threads that share memory, so that numbers"
        " change from run to run; use target 'gpu'",
    )


@pytest.mark.parametrize("place", ["made", "read"])
def test_a_float8_tensor_that_would_enter_a_segment(ref, tmp_path, place):
    g = Graph()
    x = g.input("x", FLOAT, [1, 4, 2, 64])
    if place == "made":
        codes = g.node("Cast", [x], "codes", to=FP8)
        one = g.constant("one", np.ones(1, np.float32))
        g.node("ZyfaPrefillAttention", [codes] * 3 + [""] * 4 + [one] * 3, "y", out_dtype=FLOAT)
        op = "Cast 'Cast_codes'"
    else:
        codes = g.node("ZyfaQuantizeFp8", [x], ["codes", "scale"])
        g.node("Reshape", [codes, g.constant("to", np.array([-1], np.int64))], "y")
        op = "Reshape 'Reshape_y'"
    path = g.save(tmp_path / "m.onnx", {"y": FLOAT if place == "made" else FP8})
    expect_refusal(
        ref,
        path,
        f"MigraphxError: {op}: tensor codes is float8e4m3fn, which MIGraphX does not import; expected such tensors only"
        " between nodes of ai.zyfa, as fuse(quantize_nodes='explicit') makes them",
    )


def test_our_operators_refuse_in_their_own_words(ref, tmp_path):
    g = Graph()
    x = g.input("x", FLOAT, [1, 4, 2, 64])
    g.node("ZyfaPrefillAttention", [x, x, x], "y", softmax_scale=1.0)
    path = g.save(tmp_path / "m.onnx", {"y": FLOAT})
    expect_refusal(
        ref,
        path,
        "MigraphxError: ZyfaPrefillAttention 'ZyfaPrefillAttention_y': attribute softmax_scale is unknown, expected scale",
    )
    g.nodes[0].attribute[0].CopyFrom(helper.make_attribute("num_heads", 3))
    g.save(tmp_path / "m.onnx", {"y": FLOAT})
    expect_refusal(
        ref,
        path,
        "MigraphxError: ZyfaPrefillAttention 'ZyfaPrefillAttention_y': num_heads: expected 2 as in the shape 1x4x2x64 of"
        " query, got 3",
    )


def test_our_node_in_a_body(ref, tmp_path):
    inner = Graph()
    inner.node("ZyfaHadamard", ["x"], "h")
    body = helper.make_graph(inner.nodes, "body", [], [helper.make_tensor_value_info("h", FLOAT, None)])
    g = Graph()
    g.input("x", FLOAT, [4, 8])
    g.node("If", [g.input("c", TensorProto.BOOL, [])], "y", then_branch=body, else_branch=body)
    path = g.save(tmp_path / "m.onnx", {"y": FLOAT})
    expect_refusal(
        ref,
        path,
        "MigraphxError: ZyfaHadamard 'ZyfaHadamard_h': expected at the top level of the model, got inside a body of"
        " If 'If_y'; MIGraphX programs are cut at such nodes",
    )


def test_dimensions_without_numbers(ref, tmp_path):
    path = write_decoder(tmp_path / "m.onnx", layers=1)
    shape = (
        "input attention_mask: dimension 1 of (batch, past + tokens) has no number; give dims={'past': ...}"
    )
    expect_refusal(ref, path, f"InputError: {shape}", dims={"batch": 1, "tokens": 3})
    known = "batch, tokens, past"
    expect_refusal(ref, path, f"InputError: dims: expected names of {known}, got seq", dims={"seq": 3})


def test_a_length_of_zero_for_migraphx(ref, tmp_path):
    g = Graph()
    g.node("Relu", [g.input("x", FLOAT, ["n", 2])], "y")
    path = g.save(tmp_path / "m.onnx", {"y": FLOAT})
    text = "MigraphxError: segment 0: x has no elements, which MIGraphX has no tensors for"
    expect_refusal(ref, path, text, dims={"n": 0})


def test_options(ref, tmp_path):
    path = write_decoder(tmp_path / "m.onnx", layers=1)
    expect_refusal(ref, path, "InputError: target: expected 'gpu' or 'ref', got 'cpu'", target="cpu")
    expect_refusal(
        ref, path, "InputError: precision: expected one of fp32, bf16, fp8, got 'fp16'", precision="fp16"
    )
    missing = tmp_path / "none.onnx"
    expect_refusal(ref, missing, f"ModelFileError: {missing}: cannot be read: no such file or directory")


def test_the_gpu_target_where_there_is_none(ref, tmp_path):
    """The ref worker has neither HIP nor the libraries of the gpu target."""
    path = write_decoder(tmp_path / "m.onnx", layers=1, cache=False)
    with pytest.raises(Refused, match=r"^MigraphxError: migraphx_target_create \(gpu\): \S"):
        ref.compile(path, target="gpu", dims={"batch": 1, "tokens": 3})


def test_inputs_of_a_run(ref, tmp_path):
    program = ref.compile(write_decoder(tmp_path / "m.onnx", cache=False), dims={"batch": 2, "tokens": 9})
    inputs = decoder_inputs(2, 9, 0)
    for changed, text in (
        ({"input_ids": inputs["input_ids"]}, "input attention_mask: required by the program, got none"),
        (inputs | {"ids": inputs["input_ids"]}, "input ids: expected one of input_ids, attention_mask"),
        (
            inputs | {"input_ids": inputs["input_ids"].astype(np.int32)},
            "input input_ids: expected int64 2x9, got int32 2x9; a program has the shapes that it was compiled for",
        ),
        (
            decoder_inputs(2, 8, 0),
            "input input_ids: expected int64 2x9, got int64 2x8; a program has the shapes that it was compiled for",
        ),
    ):
        with pytest.raises(Refused) as refused:
            program.run(changed)
        assert str(refused.value) == f"InputError: {text}"


def test_launching_a_program_of_the_host(ref, tmp_path):
    program = ref.compile(write_decoder(tmp_path / "m.onnx", cache=False), dims={"batch": 2, "tokens": 9})
    with pytest.raises(Refused) as refused:
        program.launch_with({})
    assert (
        str(refused.value)
        == "InputError: launch: expected a program for target 'gpu', this is for 'ref'; use run"
    )
    assert program.run(decoder_inputs(2, 9, 0))


@pytest.fixture
def saved(ref, tmp_path):
    path = tmp_path / "m.mgx"
    ref.compile(write_decoder(tmp_path / "m.onnx", cache=False), dims={"batch": 2, "tokens": 9}).save(path)
    return path


def test_files_that_are_no_programs(ref, saved):
    def refusal(path) -> str:
        with pytest.raises(Refused) as refused:
            ref.load(path)
        return str(refused.value)

    assert (
        refusal(saved.with_name("none"))
        == f"MigraphxError: {saved.with_name('none')}: cannot be read: No such file or directory"
    )
    content = saved.read_bytes()
    saved.write_bytes(content[: len(content) // 2])
    damaged = f"MigraphxError: {saved}: expected a program that Program.save wrote, got a damaged file: "
    assert refusal(saved).startswith(damaged)
    saved.write_bytes(content)
    with zipfile.ZipFile(saved) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["manifest.json"])

    def rewritten(changes: dict[str, Any], **others: bytes) -> None:
        with zipfile.ZipFile(saved, "w") as archive:
            for name, part in (
                parts | {"manifest.json": json.dumps(manifest | changes).encode()} | others
            ).items():
                archive.writestr(name, part)

    rewritten({"format": 99})
    assert refusal(saved).startswith(f"MigraphxError: {saved}: expected format 1, got 99 of zyfa_ort ")
    rewritten({"steps": [*manifest["steps"][:-1], {}]})
    assert refusal(saved).startswith(damaged)
    rewritten({}, **{"segment_0.mxr": b"nothing"})
    assert refusal(saved).startswith("MigraphxError: migraphx_load (segment_0.mxr): ")
    rewritten({})
    assert ref.load(saved).kinds == ["SegmentStep", "NodeStep"] * 2 + ["SegmentStep"]


def test_saving_where_there_is_no_folder(ref, saved, tmp_path):
    program, path = ref.load(saved), tmp_path / "none" / "m.mgx"
    with pytest.raises(Refused) as refused:
        program.save(path)
    assert str(refused.value) == f"MigraphxError: {path}: cannot be written: No such file or directory"


def test_types_that_pass(ref, tmp_path):
    """bool, int8 to int64, float16, bfloat16, double in a segment."""
    kinds = (np.bool_, np.int8, np.uint8, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.float64)
    g = Graph()
    outputs, inputs = {}, {}
    for at, kind in enumerate(kinds):
        number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        g.node("Transpose", [g.input(f"x{at}", number, [2, 3])], f"y{at}")
        outputs[f"y{at}"] = number
        inputs[f"x{at}"] = np.array([[0, 1, 1], [1, 0, 1]]).astype(kind)
    got = ref.compile(g.save(tmp_path / "m.onnx", outputs)).run(inputs)
    for at, kind in enumerate(kinds):
        assert got[f"y{at}"].dtype == kind and np.array_equal(got[f"y{at}"], inputs[f"x{at}"].T)
    assert onnx.load(tmp_path / "m.onnx").graph.output
