"""A bfloat16 model moved to float is the float model with rounded weights, node for node; what cannot be moved is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from custom_ops.problems import Sizes
from ml_dtypes import bfloat16
from onnx import TensorProto, helper, numpy_helper
from zyfa_ort.graph_passes import model_file
from zyfa_ort.graph_passes.errors import GraphPassError
from zyfa_ort.graph_passes.schema import DOMAIN, VERSION
from zyfa_ort.graph_passes.upcast import TYPE_ATTRIBUTES, upcast_bfloat16

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, hidden_feeds, layers
from graph_passes.graph import Graph
from graph_passes.running import FP32, assert_untouched, attention_nodes, attribute, fuse, original_session

SIZES = Sizes(batch=2, heads=4, kv_heads=2, q_len=9, kv_len=9)
BF16, FLOAT = TensorProto.BFLOAT16, TensorProto.FLOAT
FORMS = ("sdpa", "eager")


def decoder(dtype: Any, form: Any, constants_as_nodes: bool = False) -> onnx.ModelProto:
    """Two attentions with a Softmax in float, reached by Casts from `dtype` and back."""
    mask = masks.causal(-1e9, dtype=np.float32)
    styles = [Style(form=form, mask=mask, softmax_in=np.float32)] * 2
    graph = Graph(constants_as_nodes=constants_as_nodes)
    return layers(graph, SIZES, styles, dtype).model()


def upcast(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model after the pass, which has to change it and to leave no bfloat16."""
    held = ir.serde.deserialize_model(model)
    assert upcast_bfloat16(held)
    assert not upcast_bfloat16(held)
    made = ir.serde.serialize_model(held)
    onnx.checker.check_model(made)
    return made


def arrays(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Initializers and the tensors of Constant nodes."""
    nodes = {node.output[0]: node.attribute[0].t for node in model.graph.node if node.op_type == "Constant"}
    stored = {one.name: one for one in model.graph.initializer} | nodes
    return {name: numpy_helper.to_array(one) for name, one in stored.items()}


@pytest.mark.parametrize("constants_as_nodes", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_model_as_written_in_float(form: str, constants_as_nodes: bool) -> None:
    """Node for node, input for input, and weight for weight up to the rounding they had."""
    made = upcast(decoder(bfloat16, form, constants_as_nodes))
    plain = decoder(np.float32, form, constants_as_nodes)
    others = [[node for node in one.graph.node if node.op_type != "Constant"] for one in (made, plain)]
    for got, wanted in zip(*others, strict=True):
        assert (got.op_type, got.input, got.output) == (wanted.op_type, wanted.input, wanted.output)
        assert sorted(map(str, got.attribute)) == sorted(map(str, wanted.attribute))
    assert (made.graph.input, made.graph.output) == (plain.graph.input, plain.graph.output)
    got, wanted = arrays(made), arrays(plain)
    assert set(got) == set(wanted)
    for name, array in wanted.items():
        rounded = array.astype(bfloat16).astype(np.float32) if array.dtype == np.float32 else array
        if not np.array_equal(got[name], array):  # constants of the float parts were not rounded
            np.testing.assert_array_equal(got[name], rounded, name)
        assert got[name].dtype == array.dtype


@pytest.mark.parametrize("form", FORMS)
def test_the_same_numbers_as_in_float(form: str) -> None:
    made, plain = upcast(decoder(bfloat16, form)), decoder(np.float32, form)
    weights = arrays(made)
    for one in plain.graph.initializer:
        one.CopyFrom(numpy_helper.from_array(weights[one.name], one.name))
    got, wanted = (zyfa_ort.run(original_session(one), hidden_feeds()) for one in (made, plain))
    np.testing.assert_array_equal(got["output"], wanted["output"])


def test_every_bfloat16_keeps_its_value() -> None:
    """All 65,536 of them; NaN stays NaN."""
    graph = Graph()
    patterns = np.arange(1 << 16, dtype=np.uint16)
    table = graph.constant(patterns.view(bfloat16), bfloat16, name="table")
    graph.op("Gather", table, graph.input("at", np.int64, ["n"]), name="y")
    graph.output("y", bfloat16, ["n"])
    got = arrays(upcast(graph.model()))["table"]
    wanted = (patterns.astype(np.uint32) << 16).view(np.float32)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(got.view(np.uint32)[number], wanted.view(np.uint32)[number])
    assert np.isnan(got[~number]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_other_types_stay(dtype: Any) -> None:
    """The CPU provider runs float16 itself."""
    model = decoder(dtype, "sdpa")
    held = ir.serde.deserialize_model(model)
    assert not upcast_bfloat16(held)
    assert_untouched(ir.serde.serialize_model(held), model)


def test_fused_nodes_keep_their_precision() -> None:
    """Written down by our rewrite; added where it followed from the type, whichever of query and output declares it."""
    fused, report = fuse(decoder(bfloat16, "sdpa"), FP32)
    assert report.fused == 2
    assert [attribute(node, "precision") for node in attention_nodes(upcast(fused))] == ["fp32", "fp32"]

    def one(declare: str) -> onnx.ModelProto:
        graph = Graph()
        query = graph.input("q", bfloat16, ["batch", "tokens", 4, 16])
        if declare == "output":
            query = graph.op("Odd", query, domain="custom")
        graph.op("ZyfaPrefillAttention", query, query, query, name="y", domain=DOMAIN)
        name = "y" if declare == "output" else graph.op("Odd", "y", domain="custom")
        graph.output(name, bfloat16, ["batch", "tokens", 4, 16])
        imports = {"": 18, DOMAIN: VERSION, "custom": 1}
        opsets = [helper.make_opsetid(domain, version) for domain, version in imports.items()]
        return helper.make_model(graph.graph(), opset_imports=opsets, ir_version=9)

    for declare in ("query", "output"):
        assert attribute(attention_nodes(upcast(one(declare)))[0], "precision") == "bf16"


def with_nodes(*nodes: onnx.NodeProto, functions: Any = ()) -> onnx.ModelProto:
    """Nodes over a bfloat16 input `x` (2, 4), a bool `c` and a float `f` (2, 4)."""
    graph = Graph(opset=24)
    graph.input("x", bfloat16, [2, 4])
    graph.input("f", np.float32, [2, 4])
    graph.input("c", np.bool_, [])
    graph.nodes.extend(nodes)
    for node in nodes:
        for name in node.output:
            graph.outputs.append(onnx.ValueInfoProto(name=name))
    opsets = [helper.make_opsetid("", 24), *(helper.make_opsetid(one.domain, 1) for one in functions)]
    return helper.make_model(graph.graph(), opset_imports=opsets, ir_version=10, functions=functions)


def body(name: str) -> onnx.GraphProto:
    weight = numpy_helper.from_array(np.ones((2, 4), bfloat16), f"{name}_weight")
    nodes = [helper.make_node("Add", ["x", weight.name], [name])]
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, BF16, [2, 4])], [weight])


def tensor(*numbers: float) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, bfloat16), "t")


PLACES = {
    "to": helper.make_node("Cast", ["f"], ["y"], to=BF16),
    "dtype": helper.make_node("EyeLike", ["f"], ["y"], dtype=BF16),
    "output_datatype": helper.make_node("HannWindow", ["size"], ["y"], output_datatype=BF16),
    "stash_type": helper.make_node("LayerNormalization", ["x", "scale"], ["y"], stash_type=BF16),
    "softmax_precision": helper.make_node("Attention", ["q", "q", "q"], ["y"], softmax_precision=BF16),
    "output_dtype": helper.make_node("DequantizeLinear", ["bytes", "f1"], ["y"], output_dtype=BF16),
    "value": helper.make_node("Constant", [], ["y"], value=tensor(1, 2)),
    "shape's value": helper.make_node("ConstantOfShape", ["size1"], ["y"], value=tensor(1)),
    "bodies": helper.make_node("If", ["c"], ["y"], then_branch=body("a"), else_branch=body("b")),
    "sequence": helper.make_node("SequenceConstruct", ["x"], ["y"]),
    "empty sequence": helper.make_node("SequenceEmpty", [], ["y"], dtype=BF16),
}


def feed(graph: onnx.GraphProto, name: str) -> None:
    """Initializers that some nodes of PLACES read."""
    held = {
        "size": np.array(4),
        "size1": np.array([4]),
        "scale": np.ones(4, bfloat16),
        "q": np.ones((1, 2, 3, 8), bfloat16),
        "bytes": np.ones(4, np.int8),
        "f1": np.array(0.5, np.float32),
    }
    if name in held:
        graph.initializer.append(numpy_helper.from_array(held[name], name))


@pytest.mark.parametrize("place", PLACES)
def test_every_place_that_names_a_type(place: str) -> None:
    """After the pass onnx's strict inference finds float in every value and no bfloat16."""
    model = with_nodes(PLACES[place])
    for name in dict.fromkeys(model.graph.node[0].input):
        feed(model.graph, name)
    made = ir.serde.deserialize_model(model)
    assert upcast_bfloat16(made)
    proto = ir.serde.serialize_model(made)
    inferred = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    output = inferred.graph.output[0].type
    kind = output.sequence_type.elem_type if output.HasField("sequence_type") else output
    assert kind.tensor_type.elem_type == FLOAT
    assert f"elem_type: {BF16}\n" not in str(inferred) and f"data_type: {BF16}\n" not in str(inferred)
    for node in proto.graph.node:
        assert not any(one.i == BF16 for one in node.attribute)


def test_types_of_all_standard_operators_are_known() -> None:
    """Integer attributes that name an element type, by what onnx writes about them."""
    kind = onnx.defs.OpSchema.AttrType.INT
    for schema in onnx.defs.get_all_schemas_with_history():
        for one in schema.attributes.values() if schema.domain == "" else ():
            if one.type == kind and ("type" in one.name or "DataType" in one.description):
                assert one.name in TYPE_ATTRIBUTES, (schema.name, one.name)


def test_an_integer_that_happens_to_be_16_stays() -> None:
    model = with_nodes(helper.make_node("Flatten", ["x"], ["y"], axis=1))
    model.graph.node.append(helper.make_node("Odd", ["x"], ["z"], domain="custom", heads=int(BF16)))
    held = ir.serde.deserialize_model(model)
    assert upcast_bfloat16(held)
    assert ir.serde.serialize_model(held).graph.node[1].attribute[0].i == BF16


def function_of_type() -> onnx.FunctionProto:
    """Cast(to=@target)"""
    cast = helper.make_node("Cast", ["a"], ["b"], name="inner")
    cast.attribute.add(name="to", ref_attr_name="target", type=onnx.AttributeProto.INT)
    opsets = [helper.make_opsetid("", 24)]
    return helper.make_function("local", "To", ["a"], ["b"], [cast], opsets, ["target"])


def optional() -> onnx.NodeProto:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(BF16, [2]))
    return helper.make_node("Optional", [], ["y"], name="maybe", type=kind)


def without_precision() -> onnx.ModelProto:
    odd = helper.make_node("Odd", ["x"], ["q"], domain="custom")
    ours = helper.make_node("ZyfaPrefillAttention", ["q", "q", "q"], ["y"], name="ours", domain=DOMAIN)
    return with_nodes(odd, ours)


def bit_cast() -> onnx.ModelProto:
    return with_nodes(helper.make_node("BitCast", ["x"], ["y"], name="bits", to=TensorProto.INT16))


REFUSED = {
    "bits": (bit_cast(), "bits: expected no look at the bits of a bfloat16, got BitCast"),
    "function": (
        with_nodes(
            helper.make_node("To", ["f"], ["y"], domain="local", target=BF16), functions=[function_of_type()]
        ),
        "inner: expected a type in to, got that of the function's attribute target; inline functions first",
    ),
    "optional": (
        with_nodes(optional()),
        "maybe: expected no element type in type, got one; it is not converted from bfloat16",
    ),
    "unknown precision": (
        without_precision(),
        "ours: expected a precision or a declared type of its output, got neither; infer shapes first",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_any_change(case: str) -> None:
    model, message = REFUSED[case]
    held = ir.serde.deserialize_model(model)
    with pytest.raises(GraphPassError) as caught:
        upcast_bfloat16(held)
    assert str(caught.value) == message
    assert_untouched(ir.serde.serialize_model(held), model)


def test_weights_are_converted_from_their_data_file(tmp_path: Path) -> None:
    """A model whose weights are in a data file, written again with files of its own; the old ones stay."""
    source, target = tmp_path / "m.onnx", tmp_path / "out" / "m.onnx"
    target.parent.mkdir()
    model = decoder(bfloat16, "sdpa")
    onnx.save(model, source, save_as_external_data=True, location="w.bin", size_threshold=1000)
    before = source.with_name("w.bin").read_bytes()
    held = model_file.load(source)
    assert upcast_bfloat16(held)
    ir.save(held, target, external_data="w.bin")
    assert source.with_name("w.bin").read_bytes() == before
    expected = arrays(upcast(decoder(bfloat16, "sdpa")))
    for name, array in arrays(onnx.load(target)).items():
        np.testing.assert_array_equal(array, expected[name])
