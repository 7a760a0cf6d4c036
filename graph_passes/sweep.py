"""Removing what a rewrite left without a reader, and only that."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from .sites import bodies


def _unread(value: ir.Value) -> bool:
    return not value.is_graph_output() and next(iter(value.uses()), None) is None


def _outer_inputs(node: ir.Node) -> Iterable[ir.Value | None]:
    """Values a node reads, those read inside its If/Loop bodies included."""
    yield from node.inputs
    for attribute in node.attributes.values():
        for body in bodies(attribute):
            for inner in body:
                yield from _outer_inputs(inner)


def _let_go(node: ir.Node) -> None:
    """Let the bodies of a removed node read nothing: their uses of values outside would stay."""
    for attribute in node.attributes.values():
        for body in bodies(attribute):
            for inner in body:
                for at in range(len(inner.inputs)):
                    inner.replace_input_with(at, None)
                _let_go(inner)


def in_order(graph: ir.Graph) -> bool:
    """Whether every node comes after those that make what it reads."""
    done: set[ir.Node] = set()
    for node in graph:
        for value in _outer_inputs(node):
            producer = None if value is None else value.producer()
            if producer is not None and producer.graph is graph and producer not in done:
                return False
        done.add(node)
    return True


def remove_dead(candidates: Iterable[ir.Node]) -> int:
    """Remove those `candidates` that nobody reads, then whatever only they read. Returns the number of nodes.

    Initializers go with their last reader unless they are an input or output of the graph.
    """
    removed = 0
    pending = list(candidates)
    while pending:
        node = pending.pop()
        graph = node.graph
        if not isinstance(graph, ir.Graph) or not all(_unread(output) for output in node.outputs):
            continue
        read = [value for value in _outer_inputs(node) if value is not None]
        graph.remove(node, safe=True)
        _let_go(node)
        removed += 1
        for value in read:
            producer = value.producer()
            if producer is not None:
                pending.append(producer)
            elif value.is_initializer() and _unread(value) and not value.is_graph_input():
                owner = value.graph
                if owner is not None and value.name is not None and value.name in owner.initializers:
                    del owner.initializers[value.name]
    return removed
