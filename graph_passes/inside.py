"""Attention where the passes cannot follow it: in model-local functions and Loop or Scan bodies, and in places where
shapes are not known. It is found by its outline only, so that it is reported instead of overlooked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import onnx_ir as ir

from .scenarios import ProbeSet
from .sites import Declined, Found, Obstacle, Site, bodies, near_miss
from .values import is_op, label, tensor

PRODUCTS: Final = ("MatMul", "Einsum", "FusedMatMul")
NEAR: Final = 12
PASSING: Final = frozenset(
    {
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Where",
        "Cast",
        "Identity",
        "Dropout",
        "Reshape",
        "Unsqueeze",
        "Squeeze",
        "Tanh",
    }
    | {"Max", "Clip", "Concat", "Slice", "Transpose", "IsNaN"}
)


def hidden_candidates(model: ir.Model, found: Iterable[Found], probes: ProbeSet) -> Iterator[Declined]:
    """Softmax nodes that look like attention and that the search did not report."""
    known = {one.softmax if isinstance(one, Site) else one.node for one in found}
    yield from _in_graph(model.graph, known, "", lambda softmax: near_miss(softmax, probes))
    for function in model.functions.values():
        where = f"function {function.domain}::{function.name}/"
        reason = f"inside function {function.name}; inline functions first"
        yield from _in_graph(function, known, where, _always(reason), frozenset(function.inputs))


Why = Callable[[ir.Node], Obstacle]


def _always(reason: str) -> Why:
    return lambda softmax: Obstacle(softmax, reason)


def _in_graph(
    nodes: Iterable[ir.Node],
    known: set[ir.Node],
    where: str,
    why: Why,
    inputs: frozenset[ir.Value] = frozenset(),
) -> Iterator[Declined]:
    """inputs: of a function; one that reaches the Softmax may hold scores."""
    for node in nodes:
        for attribute in node.attributes.values():
            for body in bodies(attribute):
                unknown = f"inside a {node.op_type} body, whose lengths are not known"
                inner = why if is_op(node, "If") else _always(unknown)
                yield from _in_graph(body, known, f"{where}{label(node)}/{attribute.name}/", inner, inputs)
        if is_op(node, "Softmax") and node not in known and _before(node, inputs) and _after(node):
            obstacle = why(node)
            yield Declined(node, obstacle.node, obstacle.reason, where)


def _product(node: ir.Node) -> bool:
    return node.op_type in PRODUCTS and not any(tensor(value) is not None for value in node.inputs)


def _before(softmax: ir.Node, inputs: frozenset[ir.Value]) -> bool:
    """A product of two activations, or one of `inputs`, reaches the Softmax through operators that scores pass."""
    frontier = [softmax]
    for _ in range(NEAR):
        if any(value in inputs for node in frontier for value in node.inputs):
            return True
        above = [value.producer() for node in frontier for value in node.inputs if value is not None]
        nodes = [node for node in above if node is not None]
        if any(_product(node) for node in nodes):
            return True
        frontier = [node for node in nodes if node.op_type in PASSING]
    return False


def _after(softmax: ir.Node) -> bool:
    """The probabilities reach a product of two activations."""
    frontier = [softmax]
    for _ in range(NEAR):
        nodes = [use.node for node in frontier for value in node.outputs for use in value.uses()]
        if any(_product(node) for node in nodes):
            return True
        frontier = [node for node in nodes if node.op_type in PASSING]
    return False
