"""A model with fixed input shapes: what is known of every value, and what is a constant because of it.

Exporters compute the targets of Reshape nodes from the shapes of other values. MIGraphX wants them as constants, and a cut
between the two would make them inputs; so everything that follows from shapes is computed here, before the cut.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from zyfa_ort.errors import MigraphxError
from zyfa_ort.graph_passes import schema, sites
from zyfa_ort.graph_passes.evaluate import Evaluator
from zyfa_ort.graph_passes.facts import UNKNOWN, Fact
from zyfa_ort.graph_passes.shapes import infer, shape_slice
from zyfa_ort.graph_passes.values import constant, is_op, standard, tensor
from zyfa_ort.migraphx.lengths import input_shapes
from zyfa_ort.migraphx.own_nodes import is_ours, output_facts

# Elements of what is computed here. Integers are shapes, positions and masks; floats beyond a few are tables that MIGraphX
# computes as well, once per run.
MOST_INTEGERS: Final = 1 << 16
MOST_FLOATS: Final = 1 << 10
_DRAWN: Final = ("Random", "Bernoulli", "Multinomial")  # not the same at each run


@dataclass
class Settled:
    """inputs: those that callers give. facts: of every value. constants: values that are the same in every run."""

    model: ir.Model
    inputs: tuple[ir.Value, ...]
    facts: dict[ir.Value, Fact] = field(default_factory=dict)
    constants: dict[ir.Value, ir.TensorProtocol] = field(default_factory=dict)

    @property
    def opset(self) -> int:
        return self.model.opset_imports.get("", 1)

    def fact(self, value: ir.Value | None) -> Fact:
        return UNKNOWN if value is None else self.facts.get(value, UNKNOWN)

    def learn(self, node: ir.Node) -> None:
        """Facts about the outputs of a node from those about its inputs."""
        facts = [self.fact(value) for value in node.inputs]
        if is_ours(node):
            found = output_facts(node, facts)
        else:
            found = [Fact(shape, dtype) for shape, dtype in infer(node, facts, self.opset, [])]
        for value, fact in zip(node.outputs, found, strict=False):
            if self.fact(value).shape is None:
                self.facts[value] = fact


def settle(model: ir.Model, dims: Mapping[str, int], shapes: Mapping[str, Sequence[int]]) -> Settled:
    """Changes the model: functions are inlined, nodes sorted.

    Raises:
        InputError: an input has a dimension without a number.
        MigraphxError: a node of ours is not at the top level, where a cut could free it.
    """
    for identifier in [one for one in model.functions if one[0] == schema.DOMAIN]:
        del model.functions[identifier]  # what --portable wrote for others
    if model.functions:
        InlinePass()(model)
    graph = model.graph
    graph.sort()
    _refuse_inner_nodes(graph)
    inputs = tuple(value for value in graph.inputs if not value.is_initializer())
    settled = Settled(model, inputs)
    for name, shape in input_shapes(inputs, dims, shapes).items():
        value = next(one for one in inputs if one.name == name)
        settled.facts[value] = Fact(shape, value.dtype)
    for value in graph.initializers.values():
        held = value.const_value
        if held is not None:
            _keep_tensor(settled, value, held)
    evaluator = Evaluator(settled.opset)
    for node in graph:
        if is_op(node, "Constant") and (held := tensor(node.outputs[0])) is not None:
            _keep_tensor(settled, node.outputs[0], held)
            continue
        settled.learn(node)
        _fold(settled, node, evaluator)
    return settled


def _keep_tensor(settled: Settled, value: ir.Value, held: ir.TensorProtocol) -> None:
    shape = tuple(int(length) for length in held.shape.numpy())
    data = None
    if held.dtype not in (ir.DataType.STRING, ir.DataType.UNDEFINED) and math.prod(shape) <= MOST_INTEGERS:
        data = constant(value, MOST_INTEGERS * 8) if value.is_initializer() else np.asarray(held.numpy())
    settled.facts[value] = Fact(shape, held.dtype, data)
    settled.constants[value] = held


def _fold(settled: Settled, node: ir.Node, evaluator: Evaluator) -> None:
    if is_ours(node) or not standard(node) or bodies(node) or node.op_type.startswith(_DRAWN):
        return
    found = _shape_data(settled, node)
    if found is None:
        facts = [settled.fact(value) for value in node.inputs]
        if any(
            value is not None and fact.data is None for value, fact in zip(node.inputs, facts, strict=True)
        ):
            return
        if any(_too_large(settled.fact(value)) for value in node.outputs):
            return
        found = evaluator.run(node, [fact.data for fact in facts])
    for value, data in zip(node.outputs, found or (), strict=False):
        kept = np.ascontiguousarray(data).reshape(np.shape(data))
        dtype = ir.DataType.from_numpy(kept.dtype)
        if _too_large(Fact(kept.shape, dtype)):
            continue
        settled.facts[value] = Fact(kept.shape, dtype, kept)
        settled.constants[value] = ir.Tensor(kept, name=value.name)


def _too_large(fact: Fact) -> bool:
    if fact.shape is None:
        return False
    floats = fact.dtype is not None and fact.dtype.is_floating_point()
    return math.prod(fact.shape) > (MOST_FLOATS if floats else MOST_INTEGERS)


def _shape_data(settled: Settled, node: ir.Node) -> list[Any] | None:
    """What Shape and Size say, whose input need not be known itself."""
    if not is_op(node, "Shape", "Size"):
        return None
    shape = settled.fact(node.inputs[0]).shape
    if shape is None:
        return None
    return [np.array(shape_slice(node, shape) if node.op_type == "Shape" else math.prod(shape), np.int64)]


def bodies(node: ir.Node) -> list[ir.Graph]:
    return [body for attribute in node.attributes.values() for body in sites.bodies(attribute)]


def _refuse_inner_nodes(graph: ir.Graph) -> None:
    for node in graph:
        for body in bodies(node):
            for inner in body.all_nodes():
                if is_ours(inner):
                    raise MigraphxError(
                        f"{inner.op_type} '{inner.name}': expected at the top level of the model, got inside a body of"
                        f" {node.op_type} '{node.name}'; MIGraphX programs are cut at such nodes"
                    )


def reads(node: ir.Node) -> Iterator[ir.Value]:
    """Values that a node reads, those that its bodies take from outside included."""
    for value in node.inputs:
        if value is not None:
            yield value
    for body in bodies(node):
        inside = {*body.inputs, *body.initializers.values(), *(v for n in body for v in n.outputs)}
        for inner in body:
            yield from (value for value in reads(inner) if value not in inside)
        yield from (value for value in body.outputs if value not in inside)
