"""What a rewrite leaves without a reader goes, with all that only it read; nothing else does."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from zyfa_ort.graph_passes.sweep import remove_dead

from graph_passes.graph import Graph

EXAMPLES = settings(max_examples=200, deadline=None, derandomize=True)


def held(graph: Graph) -> ir.Model:
    return ir.serde.deserialize_model(graph.model())


def names(model: ir.Model) -> set[str]:
    return {node.name or "" for node in model.graph}


def nodes(model: ir.Model, *wanted: str) -> list[ir.Node]:
    return [node for node in model.graph if node.name in wanted]


def test_what_others_read_stays() -> None:
    """A chain with a reader in its middle, an initializer that is shared, one that is an input, one that is an output."""
    graph = Graph(ir_version=8)
    x = graph.input("x", np.float32, ["n"])
    own, shared, exposed = (graph.constant([1.0], np.float32, name) for name in ("own", "shared", "exposed"))
    graph.input("given", np.float32, [1])
    graph.constant([1.0], np.float32, "given")
    low = graph.op("Add", x, own, name="low")
    middle = graph.op("Add", low, shared, name="middle")
    high = graph.op("Add", middle, exposed, name="high")
    graph.op("Add", high, "given", name="top")
    graph.op("Mul", middle, shared, name="y")
    graph.op("Neg", x, name="unrelated")
    for name in ("y", "exposed"):
        graph.output(name, np.float32, ["n"])
    model = held(graph)
    assert remove_dead(nodes(model, "top")) == 2
    assert names(model) == {"low", "middle", "y", "unrelated"}
    assert set(model.graph.initializers) == {"own", "shared", "exposed", "given"}
    assert remove_dead(nodes(model, "low", "y")) == 0
    model.graph.outputs.pop(0)
    assert remove_dead(nodes(model, "y")) == 3
    assert names(model) == {"unrelated"}
    assert set(model.graph.initializers) == {"exposed", "given"}


def test_what_a_body_reads_goes_with_it() -> None:
    graph = Graph()
    x = graph.input("x", np.float32, ["n"])
    graph.input("c", np.bool_, [])
    outside = graph.op("Add", x, graph.constant([1.0], np.float32, "weight"), name="outside")

    def body(name: str) -> object:
        made = Graph()
        made.op("Neg", outside, name=name)
        made.output(name, np.float32, ["n"])
        return made.graph(name)

    graph.op("If", "c", name="chosen", then_branch=body("a"), else_branch=body("b"))
    graph.op("Identity", x, name="y")
    graph.output("y", np.float32, ["n"])
    model = held(graph)
    assert remove_dead(nodes(model, "outside")) == 0
    assert remove_dead(nodes(model, "chosen")) == 2
    assert names(model) == {"y"} and not model.graph.initializers


@EXAMPLES
@given(st.data())
def test_random_graphs(data: st.DataObject) -> None:
    """Against the definition: dead when nobody reads it, and either asked for or read by a dead node."""
    count = data.draw(st.integers(1, 9))
    reads = {
        at: data.draw(st.lists(st.integers(0, at - 1), min_size=1, max_size=2)) if at else []
        for at in range(count)
    }
    exposed = set(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=2)))
    asked = set(data.draw(st.lists(st.integers(0, count - 1), max_size=3)))
    made = [
        helper.make_node("Sum", [f"v{one}" for one in reads[at]] or ["x"], [f"v{at}"], name=f"v{at}")
        for at in range(count)
    ]
    graph = Graph()
    graph.input("x", np.float32, ["n"])
    graph.nodes.extend(made)
    for at in exposed:
        graph.output(f"v{at}", np.float32, ["n"])
    model = held(graph)
    dead: set[int] = set()
    for at in reversed(range(count)):
        readers = {one for one, sources in reads.items() if at in sources}
        if at not in exposed and readers <= dead and (at in asked or readers):
            dead.add(at)
    assert remove_dead(nodes(model, *(f"v{at}" for at in asked))) == len(dead)
    assert names(model) == {f"v{at}" for at in range(count) if at not in dead}
