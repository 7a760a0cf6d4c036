"""Weights out of a graph and back in: a weight is stored as its distribution and drawn again from its name.

Nothing that carries meaning may go: masks, rotary tables, scales, constants and integers stay to the bit. What goes is a
tensor that only weight inputs read and that looks random (or is an untrained norm: all ones, all zeros).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final
from zlib import crc32

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

LOCATION: Final = "philox"  # stands where ONNX has the name of a data file
SMALLEST: Final = 32  # elements; below that a tensor costs less than the words about it
DEVIATION_OF_CONSTANTS: Final = 0.1

DTYPES: Final[dict[int, Any]] = {
    TensorProto.FLOAT: np.float32,
    TensorProto.FLOAT16: np.float16,
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.UINT8: np.uint8,
}

# Operator -> inputs that hold weights.
WEIGHT_INPUTS: Final[dict[str, frozenset[int]]] = {
    "MatMul": frozenset({1}),
    "MatMulNBits": frozenset({1, 2}),
    "Gemm": frozenset({1, 2}),
    "Conv": frozenset({1, 2}),
    "MoE": frozenset({2, 3, 4, 5}),
    "Gather": frozenset({0}),
    "GatherND": frozenset({0}),
    "Add": frozenset({0, 1}),
    "BiasGelu": frozenset({1}),
    "Concat": frozenset({0, 1, 2}),
    "Expand": frozenset({0}),
    "Identity": frozenset({0}),
    "Attention": frozenset({1, 2}),
    "GroupQueryAttention": frozenset({14, 15}),
    "LayerNormalization": frozenset({1, 2}),
    "RMSNormalization": frozenset({1}),
    "SimplifiedLayerNormalization": frozenset({1}),
    "SkipLayerNormalization": frozenset({2, 3, 4}),
    "SkipSimplifiedLayerNormalization": frozenset({2, 3}),
    "EmbedLayerNormalization": frozenset({2, 3, 4, 5, 6}),
}
# An RMS norm that was not fused multiplies by its weight, as rotary embedding does by its frequencies.
ONLY_CONSTANTS: Final[dict[str, frozenset[int]]] = {"Mul": frozenset({0, 1})}

Use = tuple[str, int]


def strip(model: onnx.ModelProto) -> None:
    """Replaces the weights of `model` by their distributions, in place."""
    uses = _uses(model.graph.node)
    for tensor in model.graph.initializer:
        distribution = _distribution(tensor, uses[tensor.name])
        if distribution is not None:
            _describe(tensor, *distribution)


def fill(model: onnx.ModelProto) -> None:
    """Draws the weights that `strip` took out, in place. The same NumPy gives the same weights; another one may not."""
    for tensor in model.graph.initializer:
        facts = {entry.key: entry.value for entry in tensor.external_data}
        if facts.get("location") == LOCATION:
            values = _draw(tensor, float(facts["mean"]), float(facts["deviation"]))
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _uses(nodes: Iterable[onnx.NodeProto]) -> defaultdict[str, set[Use]]:
    uses: defaultdict[str, set[Use]] = defaultdict(set)
    for node in nodes:
        for position, name in enumerate(node.input):
            uses[name].add((node.op_type, position))
        for name in _captured(node):
            uses[name].add(("a nested graph", 0))
    return uses


def _captured(node: onnx.NodeProto) -> Iterator[str]:
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from inner.input
            yield from _captured(inner)


def _all_in(uses: set[Use], table: dict[str, frozenset[int]]) -> bool:
    return bool(uses) and all(position in table.get(op_type, ()) for op_type, position in uses)


def _distribution(tensor: TensorProto, uses: set[Use]) -> tuple[float, float] | None:
    """Mean and standard deviation of a weight; None for what has to stay."""
    if tensor.data_type not in DTYPES or math.prod(tensor.dims) < SMALLEST:
        return None
    values = numpy_helper.to_array(tensor).astype(np.float64)
    if tensor.data_type == TensorProto.UINT8:
        return (0.0, 0.0) if uses == {("MatMulNBits", 1)} else None
    low, high = float(values.min()), float(values.max())
    if low == high:
        known = _all_in(uses, WEIGHT_INPUTS | ONLY_CONSTANTS) and low in (0.0, 1.0)
        return (low, DEVIATION_OF_CONSTANTS) if known else None
    deviation = float(values.std())
    looks_random = abs(values.mean()) < 5 * deviation / math.sqrt(values.size) and high - low < 20 * deviation
    if not _all_in(uses, WEIGHT_INPUTS) or not looks_random or high > 100:
        return None
    return 0.0, float(f"{deviation:.2g}")


def _describe(tensor: TensorProto, mean: float, deviation: float) -> None:
    name, data_type, dims = tensor.name, tensor.data_type, list(tensor.dims)
    tensor.Clear()
    tensor.name, tensor.data_type, tensor.data_location = name, data_type, TensorProto.EXTERNAL
    tensor.dims.extend(dims)
    for key, value in (("location", LOCATION), ("mean", f"{mean:g}"), ("deviation", f"{deviation:g}")):
        tensor.external_data.add(key=key, value=value)


def _draw(tensor: TensorProto, mean: float, deviation: float) -> NDArray[Any]:
    generator = np.random.Generator(np.random.Philox(crc32(tensor.name.encode())))
    shape, dtype = tuple(tensor.dims), DTYPES[tensor.data_type]
    if dtype is np.uint8:  # packed integers of four bits
        return generator.integers(0, 256, shape, np.uint8)
    return generator.normal(mean, deviation, shape).astype(dtype)
