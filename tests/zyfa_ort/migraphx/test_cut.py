"""Where models are cut, what is a constant before, and what a segment holds. MIGraphX itself is not needed."""

from __future__ import annotations

import os

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from migraphx_programs.models import Graph, by_onnxruntime, decoder_inputs, write_decoder
from onnx import TensorProto
from reference.toy_model import write_toy
from zyfa_ort.graph_passes import model_file

import zyfa_ort
from zyfa_ort.errors import MigraphxError
from zyfa_ort.migraphx import cut
from zyfa_ort.migraphx.cut import SegmentPlan, onnx_model, steps
from zyfa_ort.migraphx.settled import settle

FLOAT = TensorProto.FLOAT


def settled_toy(tmp_path, **options):
    zyfa_ort.fuse(write_toy(tmp_path / "m.onnx", layers=2), tmp_path / "f.onnx", precision="fp32", **options)
    return settle(model_file.load(tmp_path / "f.onnx"), {"batch": 2, "sequence": 9}, {})


def names(values) -> list[str]:
    return [value.name for value in values]


def test_segments_and_nodes_take_turns(tmp_path):
    plan = steps(settled_toy(tmp_path))
    assert [isinstance(step, SegmentPlan) for step in plan] == [True, False, True, False, True]
    first, _, second, _, last = plan
    assert names(first.inputs) == ["input_ids"]
    assert "hidden_0" in names(first.outputs) and "hidden_0" in names(second.inputs)
    assert names(last.outputs) == ["logits"]


def test_the_portable_function_is_for_others(tmp_path):
    plan = steps(settled_toy(tmp_path, portable=True))
    assert [isinstance(step, SegmentPlan) for step in plan] == [True, False, True, False, True]


def test_what_follows_from_shapes_is_no_node_any_more(tmp_path):
    """The targets of Reshape nodes come from Shape nodes of other segments."""
    path = write_decoder(tmp_path / "m.onnx", quantize_nodes=True, cache=False)
    settled = settle(model_file.load(path), {"batch": 2, "tokens": 33}, {})
    segments = [step for step in steps(settled) if isinstance(step, SegmentPlan)]
    left = {node.op_type for segment in segments for node in segment.nodes}
    assert left == {"Gather", "Mul", "ReduceMean", "Add", "Sqrt", "Div", "MatMul", "Reshape"}
    folded = {value.name: held.numpy() for value, held in settled.constants.items()}
    assert folded["batch_tokens"].tolist() == [2, 33]
    assert folded["l1_q_to"].tolist() == [2, 33, 4, 32] and folded["l0_flat_to"].tolist() == [2, 33, 128]


def test_segments_are_models_by_themselves(tmp_path):
    """Run one after the other in ONNX Runtime, with the attention beside them, they are the whole model."""
    path = write_decoder(tmp_path / "m.onnx", cache=False)
    inputs = decoder_inputs(2, 9, 0)
    settled = settle(model_file.load(path), {"batch": 2, "tokens": 9}, {})
    values = dict(inputs)
    for at, step in enumerate(steps(settled)):
        if isinstance(step, SegmentPlan):
            proto = onnx.ModelProto.FromString(onnx_model(settled, step))
            onnx.checker.check_model(onnx.shape_inference.infer_shapes(proto), full_check=True)
        else:
            proto = one_node_model(settled, step)
        part = tmp_path / f"{at}.onnx"
        proto = onnx.shape_inference.infer_shapes(proto) if isinstance(step, SegmentPlan) else proto
        onnx.save(proto, part)
        values |= by_onnxruntime(part, {value.name: values[value.name] for value in proto.graph.input})
    assert np.array_equal(values["logits"], by_onnxruntime(path, inputs)["logits"])


def one_node_model(settled, node) -> onnx.ModelProto:
    from zyfa_ort import schemas

    schemas.register()
    inputs = [value for value in node.inputs if value is not None]
    infos = [
        onnx.helper.make_tensor_value_info(v.name, int(settled.fact(v).dtype), settled.fact(v).shape)
        for v in inputs
    ]
    output = onnx.helper.make_tensor_value_info(node.outputs[0].name, FLOAT, None)
    graph = onnx.helper.make_graph([ir.serde.serialize_node(node)], "node", infos, [output])
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("ai.zyfa", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_weights_in_files_that_are_links(tmp_path, link):
    """As in the caches that models are downloaded to."""
    source = write_decoder(tmp_path / "plain.onnx", cache=False)
    (tmp_path / "m").mkdir()
    onnx.save(
        onnx.load(source), tmp_path / "m.onnx", save_as_external_data=True, location="data", size_threshold=0
    )
    (tmp_path / "m.onnx").rename(tmp_path / "m" / "m.onnx")
    link(tmp_path / "data", tmp_path / "m" / "data")
    plain, linked = (
        settle(model_file.load(path), {"batch": 2, "tokens": 9}, {})
        for path in (source, tmp_path / "m" / "m.onnx")
    )
    for one, other in zip(steps(plain), steps(linked), strict=True):
        if isinstance(one, SegmentPlan):
            assert onnx_model(plain, one) == onnx_model(linked, other)


def test_more_constants_than_a_protobuf_holds(tmp_path, monkeypatch):
    settled = settled_toy(tmp_path)
    monkeypatch.setattr(cut, "PROTOBUF_LIMIT", 4000)
    with pytest.raises(MigraphxError) as refused:
        onnx_model(settled, steps(settled)[0])
    assert str(refused.value) == (
        "segment 0: expected at most 4000 bytes of constants between two nodes of ai.zyfa, got more with embedding"
    )


def test_a_shape_that_nobody_knows(tmp_path):
    """Before MIGraphX has said what it makes of an operator that ONNX has no rules for."""
    g = Graph()
    x = g.node("Unheard", [g.input("x", FLOAT, [1, 4, 2, 8])], "u", domain="com.microsoft")
    g.node("Relu", [g.node("ZyfaPrefillAttention", [x, x, x], "a")], "y")
    settled = settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": FLOAT})), {}, {})
    with pytest.raises(MigraphxError, match=r"^segment 1: the shape of a is not known$"):
        onnx_model(settled, steps(settled)[-1])


def test_side_by_side_nodes_share_a_place(tmp_path):
    """Two attentions that do not need each other are behind one segment, and a chain of our nodes needs none between."""
    g = Graph()
    x = g.node("Relu", [g.input("x", FLOAT, [1, 4, 2, 8])], "r")
    a = g.node("ZyfaPrefillAttention", [x, x, x], "a")
    b = g.node("ZyfaPrefillAttention", [x, g.node("Neg", [x], "n"), x], "b")
    c = g.node("ZyfaHadamard", [g.node("ZyfaHadamard", [b], "h")], "hh")
    g.node("Add", [a, c], "y")
    settled = settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": FLOAT})), {}, {})
    plan = steps(settled)
    assert [getattr(step, "op_type", "segment") for step in plan] == [
        "segment",
        "ZyfaPrefillAttention",
        "ZyfaPrefillAttention",
        "ZyfaHadamard",
        "ZyfaHadamard",
        "segment",
    ]


def test_what_nobody_needs_is_left_out(tmp_path):
    g = Graph()
    x = g.input("x", FLOAT, [2, 2])
    g.node("Neg", [g.node("Abs", [x], "unread")], "unread_too")
    g.node("Relu", [x], "y")
    (only,) = steps(settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": FLOAT})), {}, {}))
    assert [node.op_type for node in only.nodes] == ["Relu"]


def test_values_that_bodies_take_from_outside(tmp_path):
    """They are inputs of the segment, and keep what makes them alive."""
    inner = Graph()
    inner.node("Mul", ["a", "a"], "m")
    body = onnx.helper.make_graph(
        inner.nodes, "body", [], [onnx.helper.make_tensor_value_info("m", FLOAT, None)]
    )
    g = Graph()
    x = g.node("Relu", [g.input("x", FLOAT, [1, 4, 2, 8])], "r")
    g.node("ZyfaPrefillAttention", [x, x, x], "a")
    g.node("If", [g.input("c", TensorProto.BOOL, [])], "y", then_branch=body, else_branch=body)
    plan = steps(settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": FLOAT})), {}, {}))
    assert [getattr(step, "op_type", "segment") for step in plan] == [
        "segment",
        "ZyfaPrefillAttention",
        "segment",
    ]
    assert set(names(plan[2].inputs)) == {"c", "a"}


def test_random_numbers_are_drawn_at_each_run(tmp_path):
    g = Graph()
    g.node("RandomNormal", [], "n", shape=[2, 2])
    g.node("Add", ["n", g.input("x", FLOAT, [2, 2])], "y")
    settled = settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": FLOAT})), {}, {})
    (only,) = steps(settled)
    assert [node.op_type for node in only.nodes] == ["RandomNormal", "Add"]


def test_lengths_that_depend_on_values(tmp_path):
    """What MIGraphX would fill up with zeros; on constants it is one itself."""
    g = Graph()
    g.node("NonZero", [g.node("Relu", [g.input("x", FLOAT, [3])], "r")], "y")
    settled = settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": TensorProto.INT64})), {}, {})
    with pytest.raises(
        MigraphxError, match=r"^NonZero 'NonZero_y': how much it makes depends on values, and programs"
    ):
        steps(settled)
    g = Graph()
    g.node("NonZero", [g.node("Shape", [g.input("x", FLOAT, [3, 0, 2])], "s")], "y")
    settled = settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": TensorProto.INT64})), {}, {})
    assert steps(settled) == []
    assert {value.name: held.numpy().tolist() for value, held in settled.constants.items()}["y"] == [[0, 2]]


@pytest.mark.parametrize(
    ("op", "options", "text"),
    [
        ("Relu", {"domain": "com.example"}, "MIGraphX knows no operators of the domain com.example"),
        ("Attention", {}, "MIGraphX takes it for ONNX Runtime's operator of this name"),
    ],
)
def test_operators_that_would_be_taken_for_others(tmp_path, op, options, text):
    g = Graph()
    x = g.input("x", FLOAT, [1, 2, 4, 8])
    g.node(op, [x] * (3 if op == "Attention" else 1), "y", **options)
    opsets = [onnx.helper.make_opsetid(*one) for one in (("", 23), ("com.example", 1))]
    settled = settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": FLOAT}, opsets)), {}, {})
    with pytest.raises(MigraphxError) as refused:
        onnx_model(settled, steps(settled)[0])
    assert str(refused.value) == f"{op} '{op}_y': {text}; export the model without it"


def test_float8_in_a_segment(tmp_path):
    g = Graph()
    codes = g.node("ZyfaQuantizeFp8", [g.input("x", FLOAT, [1, 4, 2, 64])], ["codes", "scale"])
    g.node("Cast", [codes], "y", to=FLOAT)
    settled = settle(model_file.load(g.save(tmp_path / "m.onnx", {"y": FLOAT})), {}, {})
    with pytest.raises(
        MigraphxError, match=r"^Cast 'Cast_y': tensor codes is float8e4m3fn, which MIGraphX does not import"
    ):
        steps(settled)
