"""Numbers for symbols, and what is said when there are none."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from zyfa_ort.errors import InputError
from zyfa_ort.migraphx.lengths import input_shapes


def value(name: str, *dims: int | str | None) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(dims), type=ir.TensorType(ir.DataType.FLOAT))


@pytest.mark.parametrize(
    ("symbol", "number"),
    [
        ("tokens", 7),
        ("past + tokens", 12),
        ("past+tokens-1", 11),
        ("2*tokens", 14),
        ("(past + tokens)//5", 2),
        ("past sequence/length", 3),
    ],
)
def test_symbols(symbol, number):
    dims = {"tokens": 7, "past": 5, "past sequence/length": 3}
    used = (
        {name: length for name, length in dims.items() if name in symbol}
        if "/l" not in symbol
        else {symbol: 3}
    )
    assert input_shapes([value("x", 2, symbol)], used, {}) == {"x": (2, number)}


def test_shapes_of_inputs():
    inputs = [value("x", "b", None), value("y", 3)]
    assert input_shapes(inputs, {}, {"x": (4, 5)}) == {"x": (4, 5), "y": (3,)}
    assert input_shapes(inputs, {"b": 4}, {"x": (4, 5)}) == {"x": (4, 5), "y": (3,)}
    assert input_shapes([ir.Value(name="z")], {}, {"z": (1,)}) == {"z": (1,)}


@pytest.mark.parametrize(
    ("inputs", "dims", "shapes", "text"),
    [
        ([value("x", "b")], {}, {}, "input x: dimension 0 of (b) has no number; give dims={'b': ...}"),
        (
            [value("x", 1, None)],
            {},
            {},
            "input x: dimension 1 of (1, ?) has no number; give shapes={'x': ...}",
        ),
        (
            [value("x", "p + s")],
            {"p": 1},
            {},
            "input x: dimension 0 of (p + s) has no number; give dims={'s': ...}",
        ),
        (
            [value("x", "p - 4")],
            {"p": 1},
            {},
            "input x: dimension 0 of (p - 4) has no number; give shapes={'x': ...}",
        ),
        ([value("x", "b")], {"c": 1}, {}, "dims: expected names of b, got c"),
        ([value("x", 1)], {"c": 1}, {}, "dims: expected names of nothing, got c"),
        ([value("x", "b")], {"b": -1}, {}, "dims: expected a length of b, got -1"),
        ([value("x", "b")], {}, {"y": (1,)}, "shapes: expected names of x, got y"),
        ([value("x", "b", 2)], {}, {"x": (1, 3)}, "input x: expected a shape like (b, 2), got (1, 3)"),
        ([value("x", "b", 2)], {"b": 4}, {"x": (1, 2)}, "input x: expected a shape like (b, 2), got (1, 2)"),
        ([value("x", "b")], {}, {"x": (1, 3)}, "input x: expected a shape like (b), got (1, 3)"),
        ([ir.Value(name="x")], {}, {}, "input x: has no shape in the model; give shapes={'x': ...}"),
    ],
)
def test_refusals(inputs, dims, shapes, text):
    with pytest.raises(InputError) as refused:
        input_shapes(inputs, dims, shapes)
    assert str(refused.value) == text
