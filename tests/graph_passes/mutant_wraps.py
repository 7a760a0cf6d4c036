"""Moving the nodes of a graph, from a random one before the first Softmax on, into a function, an If, or a Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import onnx
from numpy.random import Generator
from onnx import TensorProto, helper

from graph_passes.graph import Graph


def _parts(graph: Graph, rng: Generator) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """The nodes cut in two at a random place before the first Softmax; none of the first reads the second."""
    first = next(at for at, node in enumerate(graph.nodes) if node.op_type == "Softmax")
    at = int(rng.integers(first + 1))
    return graph.nodes[:at], graph.nodes[at:]


def _made(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    return [name for node in nodes for name in node.output if name]


def _read_from_outside(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    inside = set(_made(nodes))
    read = [name for node in nodes for name in node.input if name and name not in inside]
    return list(dict.fromkeys(read))


def _wanted(graph: Graph, inside: Sequence[onnx.NodeProto]) -> list[onnx.ValueInfoProto]:
    made = set(_made(inside))
    return [value for value in graph.outputs if value.name in made]


def _renamed(nodes: Sequence[onnx.NodeProto], prefix: str) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    names = {name: prefix + name for name in _made(nodes)}
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    for node in copies:
        node.name = prefix + node.name if node.name else ""
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    return copies, names


def into_function(graph: Graph, rng: Generator) -> None:
    outside, inside = _parts(graph, rng)
    held = {one.name: one for one in graph.initializers}
    read = _read_from_outside(inside)
    inputs = [name for name in read if name not in held]
    constants = [
        helper.make_node("Constant", [], [name], name="", value=held[name]) for name in read if name in held
    ]
    outputs = [value.name for value in _wanted(graph, inside)]
    opsets = [helper.make_opsetid("", graph.opset), helper.make_opsetid("com.microsoft", 1)]
    body, names = _renamed(inside, "in_")
    graph.functions = [
        helper.make_function(
            "local", "attend", inputs, [names[name] for name in outputs], [*constants, *body], opsets
        )
    ]
    graph.nodes = [*outside, helper.make_node("attend", inputs, outputs, name="call", domain="local")]
    still = set(_read_from_outside(outside))
    graph.initializers = [one for one in graph.initializers if one.name in still]
    graph.value_info = []


def into_branches(graph: Graph, rng: Generator) -> None:
    """An If with the same attention in both branches."""
    outside, inside = _parts(graph, rng)
    wanted = _wanted(graph, inside)
    bodies = {}
    for name in ("then", "else"):
        body, names = _renamed(inside, f"{name}_")
        outputs = []
        for value in wanted:
            copy = onnx.ValueInfoProto.FromString(value.SerializeToString())
            copy.name = names[value.name]
            outputs.append(copy)
        bodies[f"{name}_branch"] = helper.make_graph(body, name, [], outputs)
    graph.input("first", np.bool_, [])
    outputs_of = [value.name for value in wanted]
    graph.nodes = [*outside, helper.make_node("If", ["first"], outputs_of, name="chosen", **bodies)]
    graph.value_info = []


def into_loop(graph: Graph, rng: Generator) -> None:
    """A Loop that runs once; its scan outputs have an axis too many."""
    outside, inside = _parts(graph, rng)
    wanted = _wanted(graph, inside)
    body, names = _renamed(inside, "in_")
    body.append(helper.make_node("Identity", ["go"], ["go_on"]))
    outputs = [helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])]
    for value in wanted:
        copy = onnx.ValueInfoProto.FromString(value.SerializeToString())
        copy.name = names[value.name]
        outputs.append(copy)
    starts = [
        helper.make_tensor_value_info("round", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
    ]
    once, go = graph.constant(1, np.int64, name="once"), graph.constant(True, np.bool_, name="start")
    made = [node for node in graph.nodes if node.output[0] in ("once", "start")]
    loop = helper.make_node(
        "Loop",
        [once, go],
        [f"all_{value.name}" for value in wanted],
        name="loop",
        body=helper.make_graph(body, "body", starts, outputs),
    )
    graph.nodes = [*[node for node in outside if node not in made], *made, loop]
    for value in wanted:
        axes = graph.integers(0)
        graph.nodes.append(
            helper.make_node("Squeeze", [f"all_{value.name}", axes], [value.name], name=f"one_{value.name}")
        )
    graph.value_info = []


WRAPS: Final[dict[str, Callable[[Graph, Generator], None]]] = {
    "into a function": into_function,
    "into branches": into_branches,
    "into a loop": into_loop,
}
