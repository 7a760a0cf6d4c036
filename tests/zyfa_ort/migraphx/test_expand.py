"""What stands for newer operators, run by onnx's reference beside the operators themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from migraphx_programs.models import Graph
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from zyfa_ort.graph_passes.facts import Fact

from zyfa_ort.migraphx.expand import expanded

OPSET = [helper.make_opsetid("", 23)]
# Names of the model that are also names inside the expansion.
NAMES = ("x1", "cos", "heads", "at_0")


def run_both(inputs: dict[str, np.ndarray], **attributes: Any) -> tuple[np.ndarray, np.ndarray, list[str]]:
    g = Graph()
    for name, array in inputs.items():
        g.input(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    g.node("RotaryEmbedding", list(inputs), "y1", **attributes)
    shape = next(iter(inputs.values())).shape
    graph = helper.make_graph(
        g.nodes, "g", g.inputs, [helper.make_tensor_value_info("y1", TensorProto.FLOAT, shape)]
    )
    model = helper.make_model(graph, opset_imports=OPSET, ir_version=10)
    (wanted,) = ReferenceEvaluator(model).run(None, inputs)
    (node,) = ir.from_proto(model).graph
    nodes, tensors = expanded(node, Fact(shape))
    graph = helper.make_graph(nodes, "g", g.inputs, graph.output, tensors)
    model = helper.make_model(graph, opset_imports=OPSET, ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    (got,) = ReferenceEvaluator(model).run(None, inputs)
    return got, wanted, [one.op_type for one in nodes]


@pytest.mark.parametrize("rotated", [16, 12])
@pytest.mark.parametrize("positions", [False, True])
def test_rotary_embedding(rotated, positions):
    rng = np.random.default_rng(0)
    tables = (30, rotated // 2) if positions else (2, 5, rotated // 2)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 5, 16), tables, tables)]
    inputs = dict(zip(NAMES, arrays, strict=False))
    if positions:
        inputs[NAMES[3]] = rng.integers(0, 30, (2, 5))
    got, wanted, ops = run_both(inputs, rotary_embedding_dim=0 if rotated == 16 else rotated)
    assert "RotaryEmbedding" not in ops
    np.testing.assert_array_equal(got, wanted)


def test_other_forms_stay():
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 5, 16), (2, 5, 8), (2, 5, 8))
    ]
    assert run_both(dict(zip(NAMES, arrays, strict=False)), interleaved=1)[2] == ["RotaryEmbedding"]
    flat = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 48), (2, 5, 8), (2, 5, 8))]
    assert run_both(dict(zip(NAMES, flat, strict=False)), num_heads=3)[2] == ["RotaryEmbedding"]


def test_rms_norm_under_its_older_name():
    for axis, op in (
        (-1, "SimplifiedLayerNormalization"),
        (2, "SimplifiedLayerNormalization"),
        (1, "RMSNormalization"),
    ):
        node = ir.node(
            "RMSNormalization", [ir.Value(name="x"), ir.Value(name="w")], attributes={"axis": axis}
        )
        nodes, tensors = expanded(node, Fact((2, 3, 4)))
        assert [one.op_type for one in nodes] == [op] and not tensors
