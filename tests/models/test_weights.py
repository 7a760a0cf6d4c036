"""What may leave a graph as a weight, and what comes back."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from models import weights

RNG = np.random.Generator(np.random.Philox(1))


def model(values: np.ndarray, op_type: str, position: int) -> onnx.ModelProto:
    """One node that reads `values` as its input `position`."""
    inputs = ["x"] * position + ["held"]
    graph = helper.make_graph([helper.make_node(op_type, inputs, ["y"])], "graph", [], [])
    graph.initializer.append(numpy_helper.from_array(values, "held"))
    return helper.make_model(graph)


def stripped(values: np.ndarray, op_type: str, position: int) -> onnx.ModelProto:
    made = model(values, op_type, position)
    weights.strip(made)
    return made


def normal(*shape: int, deviation: float = 0.1) -> np.ndarray:
    return RNG.normal(0, deviation, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("values", "op_type", "position"),
    [
        (normal(16, 64), "MatMul", 1),
        (normal(64, 16), "Gather", 0),
        (normal(64), "Add", 1),
        (normal(64).astype(np.float16), "Gemm", 2),
    ],
)
def test_a_weight_comes_back_with_its_distribution(values, op_type, position):
    made = stripped(values, op_type, position)
    assert not made.graph.initializer[0].raw_data
    weights.fill(made)
    back = numpy_helper.to_array(made.graph.initializer[0])
    assert back.shape == values.shape and back.dtype == values.dtype
    assert back.std() == pytest.approx(values.std(), rel=0.3)
    assert not np.array_equal(back, values)


def test_an_untrained_norm_is_scattered_around_one():
    made = stripped(np.ones(64, np.float32), "LayerNormalization", 1)
    weights.fill(made)
    back = numpy_helper.to_array(made.graph.initializer[0])
    assert back.mean() == pytest.approx(1, abs=0.1) and back.std() == pytest.approx(0.1, rel=0.5)


def test_the_same_name_gives_the_same_weights():
    one, other = (stripped(normal(16, 64), "MatMul", 1) for _ in range(2))
    other.graph.initializer[0].CopyFrom(one.graph.initializer[0])
    for made in (one, other):
        weights.fill(made)
    assert one.graph.initializer[0] == other.graph.initializer[0]


MASK = np.triu(np.full((12, 12), np.finfo(np.float32).min, np.float32), 1)
FREQUENCIES = (10000.0 ** -(np.arange(32) / 32)).astype(np.float32)
ROTARY = np.cos(np.arange(64)[:, None] * FREQUENCIES).astype(np.float32)


@pytest.mark.parametrize(
    ("values", "op_type", "position"),
    [
        (MASK, "Add", 1),
        (FREQUENCIES, "Mul", 1),
        (ROTARY, "Gather", 0),
        (normal(64), "Mul", 1),
        (np.full(64, 0.125, np.float32), "Add", 1),
        (normal(8), "Add", 1),
        (np.arange(64), "Gather", 0),
        (np.tri(12, dtype=bool), "Gather", 0),
    ],
    ids=["mask", "frequencies", "rotary table", "factors", "constant", "few", "integers", "booleans"],
)
def test_what_carries_meaning_stays(values, op_type, position):
    before = model(values, op_type, position)
    after = stripped(values, op_type, position)
    assert after == before


def test_a_weight_that_something_else_reads_stays():
    made = model(normal(16, 64), "MatMul", 1)
    made.graph.node.append(helper.make_node("Softmax", ["held"], ["z"]))
    before = made.SerializeToString()
    weights.strip(made)
    assert made.SerializeToString() == before


def test_packed_integers_are_drawn_whole():
    made = stripped(RNG.integers(0, 256, (32, 16), np.uint8), "MatMulNBits", 1)
    assert made.graph.initializer[0].data_type == TensorProto.UINT8
    weights.fill(made)
    back = numpy_helper.to_array(made.graph.initializer[0])
    assert back.shape == (32, 16) and back.max() > 200
