"""Our operators in the tools of onnx and ONNX Runtime: the checker, shape inference, symbolic shapes."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper
from zyfa_ort.graph_passes import schema

from zyfa_ort import schemas, symbolic_shapes

FLOAT, BF16, FP8 = TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN


@pytest.fixture(autouse=True, scope="module")
def registered():
    for _ in range(2):
        schemas.register()
        symbolic_shapes.register()


def model(op, inputs, outputs, **attributes):
    """One node; inputs are name -> (type, shape), outputs names."""
    names = (
        [name if name in inputs else "" for name in schema.INPUTS]
        if op == schema.PREFILL_ATTENTION
        else list(inputs)
    )
    while not names[-1]:
        names.pop()
    node = helper.make_node(op, names, outputs, domain=schema.DOMAIN, name="node", **attributes)
    # The last node turns everything into graph outputs of unknown shape.
    ends = [name for name in outputs if name]
    tail = [helper.make_node("Identity", [name], [f"{name}_end"]) for name in ends]
    graph = helper.make_graph(
        [node, *tail],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name=f"{name}_end") for name in ends],
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid(schema.DOMAIN, schema.VERSION)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def by_onnx(made):
    return onnx.shape_inference.infer_shapes(made, strict_mode=True)


def by_symbols(made):
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    for value in made.graph.output:
        value.type.tensor_type.elem_type = FLOAT
    return SymbolicShapeInference.infer_shapes(made, auto_merge=True)


def found(made, name):
    value = next(v for v in made.graph.value_info if v.name == name)
    tensor = value.type.tensor_type
    return tensor.elem_type, [
        d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim
    ]


QKV_BHSD = {
    "query": (FLOAT, ["b", 4, "s", 64]),
    "key": (FLOAT, ["b", 2, "t", 64]),
    "value": (FLOAT, ["b", 2, "t", 32]),
}
ATTENTION = {
    "BHSD": (
        QKV_BHSD,
        {"layout": "BHSD"},
        {"output": (FLOAT, ["b", 4, "s", 32]), "lse": (FLOAT, ["b", 4, "s"])},
    ),
    "BSHD": (
        {
            "query": (BF16, ["b", "s", 4, 8]),
            "key": (BF16, ["b", "s", 2, 8]),
            "value": (BF16, ["b", "s", 2, 8]),
        },
        {},
        {"output": (BF16, ["b", "s", 4, 8]), "present_key": (BF16, ["b", 2, "s", 8])},
    ),
    "packed": (
        {"query": (FLOAT, ["b", "s", 32]), "key": (FLOAT, ["b", "s", 16]), "value": (FLOAT, ["b", "s", 8])},
        {"num_heads": 4, "kv_num_heads": 2},
        {
            "output": (FLOAT, ["b", "s", 16]),
            "present_value": (FLOAT, ["b", 2, "s", 4]),
            "lse": (FLOAT, ["b", 4, "s"]),
        },
    ),
    "past": (
        {**QKV_BHSD, "past_key": (FLOAT, ["b", 2, "p", 64]), "past_value": (FLOAT, ["b", 2, "p", 32])},
        {"layout": "BHSD"},
        {"present_key": (FLOAT, ["b", 2, "p + t", 64]), "present_value": (FLOAT, ["b", 2, "p + t", 32])},
    ),
    "float8": (
        {
            **{name: (FP8, shape) for name, (_, shape) in QKV_BHSD.items()},
            **{name: (FLOAT, [1]) for name in ("q_scale", "k_scale", "v_scale")},
        },
        {"layout": "BHSD", "out_dtype": BF16},
        {"output": (BF16, ["b", 4, "s", 32]), "present_key": (FP8, ["b", 2, "t", 64])},
    ),
}


@pytest.mark.parametrize("infer", [by_onnx, by_symbols])
@pytest.mark.parametrize("case", ATTENTION)
def test_attention_shapes(case, infer):
    inputs, attributes, wanted = ATTENTION[case]
    inferred = infer(model(schema.PREFILL_ATTENTION, inputs, list(schema.OUTPUTS), **attributes))
    for name, answer in wanted.items():
        assert found(inferred, name) == answer


@pytest.mark.parametrize("infer", [by_onnx, by_symbols])
@pytest.mark.parametrize(
    ("attributes", "scale"),
    [
        ({}, ["b", 4]),
        ({"granularity": "head"}, [4]),
        ({"granularity": "tensor"}, [1]),
        ({"layout": "BHSD"}, ["b", "s"]),
    ],
)
def test_quantise_shapes(infer, attributes, scale):
    inferred = infer(
        model(schema.QUANTIZE_FP8, {"x": (FLOAT, ["b", "s", 4, 8])}, ["y", "scale"], **attributes)
    )
    assert found(inferred, "y") == (FP8, ["b", "s", 4, 8])
    assert found(inferred, "scale") == (FLOAT, scale)


@pytest.mark.parametrize("infer", [by_onnx, by_symbols])
def test_hadamard_shape(infer):
    inferred = infer(model(schema.HADAMARD, {"x": (BF16, ["b", "s", 128])}, ["y"]))
    assert found(inferred, "y") == (BF16, ["b", "s", 128])


def test_the_checker_refuses_what_the_operator_does_not_have():
    right = model(schema.HADAMARD, {"x": (FLOAT, ["b", 128])}, ["y"])
    for value, shape in zip(right.graph.output, (["b", 128],), strict=True):
        value.CopyFrom(helper.make_tensor_value_info(value.name, FLOAT, shape))
    onnx.checker.check_model(right)
    right.graph.node[0].attribute.append(helper.make_attribute("window", 3))
    with pytest.raises(onnx.checker.ValidationError, match="Unrecognized attribute: window"):
        onnx.checker.check_model(right)


def test_schemas_agree_with_the_contract():
    for op, attributes in schema.ATTRIBUTES_OF.items():
        registered = onnx.defs.get_schema(op, schema.VERSION, schema.DOMAIN)
        assert set(registered.attributes) == set(attributes)
    attention = onnx.defs.get_schema(schema.PREFILL_ATTENTION, schema.VERSION, schema.DOMAIN)
    assert [value.name for value in attention.inputs] == list(schema.INPUTS)
    assert [value.name for value in attention.outputs] == list(schema.OUTPUTS)
