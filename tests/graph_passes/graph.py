"""Writing small ONNX graphs by hand, in the form that each opset wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from ml_dtypes import bfloat16
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

TYPES: dict[np.dtype[Any], int] = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(bfloat16): TensorProto.BFLOAT16,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
}
AXES_AS_INPUT = {"Unsqueeze": 13, "Squeeze": 13, "ReduceMax": 18, "ReduceMean": 18}


def onnx_type(dtype: Any) -> int:
    return TYPES[np.dtype(dtype)]


class Graph:
    """Nodes are called op_0, op_1, ... by kind; every method returns the name of the value it makes."""

    def __init__(self, opset: int = 18, ir_version: int = 8, constants_as_nodes: bool = False) -> None:
        self.opset = opset
        self.ir_version = ir_version
        self.constants_as_nodes = constants_as_nodes
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.value_info: list[onnx.ValueInfoProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.prefix = ""
        self._count: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        number = self._count[stem] = self._count.get(stem, -1) + 1
        return f"{self.prefix}{stem}_{number}"

    def input(self, name: str, dtype: Any, dims: Sequence[int | str] | None) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, onnx_type(dtype), dims))
        return name

    def output(self, name: str, dtype: Any, dims: Sequence[int | str | None] | None = None) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, onnx_type(dtype), dims))

    def constant(self, data: Any, dtype: Any = None, name: str = "") -> str:
        array = np.asarray(data) if dtype is None else np.asarray(data, dtype)
        name = name or self.fresh("constant")
        tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        if self.constants_as_nodes:
            self.nodes.append(helper.make_node("Constant", [], [name], name=f"node_{name}", value=tensor))
        else:
            self.initializers.append(tensor)
        return name

    def integers(self, *numbers: int) -> str:
        return self.constant(numbers, np.int64)

    def op(self, op_type: str, *inputs: str, name: str = "", domain: str = "", **attributes: Any) -> str:
        """A node with one output, which has the node's name."""
        name = name or self.fresh(op_type)
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def ops(self, op_type: str, *inputs: str, outputs: Sequence[str], **attributes: Any) -> None:
        """A node with the given outputs."""
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=self.fresh(op_type), **attributes))

    def over(self, op_type: str, value: str, *axes: int, **attributes: Any) -> str:
        """Unsqueeze, Squeeze or a reduction, whose axes moved from an attribute to an input."""
        if self.opset < AXES_AS_INPUT[op_type]:
            return self.op(op_type, value, axes=list(axes), **attributes)
        return self.op(op_type, value, self.integers(*axes), **attributes)

    def unsqueeze(self, value: str, *axes: int) -> str:
        return self.over("Unsqueeze", value, *axes)

    def reshape(self, value: str, *lengths: int | str) -> str:
        """Lengths are numbers (0 copies) or names of one-element values."""
        if all(isinstance(length, int) for length in lengths):
            return self.op("Reshape", value, self.integers(*(int(length) for length in lengths)))
        parts = [length if isinstance(length, str) else self.integers(length) for length in lengths]
        return self.op("Reshape", value, self.op("Concat", *parts, axis=0))

    def transpose(self, value: str, *perm: int) -> str:
        return self.op("Transpose", value, perm=perm)

    def cast(self, value: str, dtype: Any) -> str:
        return self.op("Cast", value, to=onnx_type(dtype))

    def length(self, value: str, axis: int) -> str:
        """One length of a value, shape (1)."""
        return self.op("Gather", self.op("Shape", value), self.integers(axis), axis=0)

    def scalar_length(self, value: str, axis: int) -> str:
        return self.op("Gather", self.op("Shape", value), self.constant(axis, np.int64), axis=0)

    def range(self, end: str) -> str:
        """0, 1, ... up to a scalar."""
        return self.op("Range", self.constant(0, np.int64), end, self.constant(1, np.int64))

    def graph(self, name: str = "graph") -> onnx.GraphProto:
        return helper.make_graph(
            self.nodes, name, self.inputs, self.outputs, self.initializers, value_info=self.value_info
        )

    def model(self) -> onnx.ModelProto:
        """Checked by onnx."""
        opsets = [helper.make_opsetid("", self.opset)]
        opsets += [helper.make_opsetid(one.domain, 1) for one in self.functions[:1]]
        model = helper.make_model(
            self.graph(), ir_version=self.ir_version, opset_imports=opsets, functions=self.functions
        )
        onnx.checker.check_model(model)
        return model


Array = NDArray[Any]
