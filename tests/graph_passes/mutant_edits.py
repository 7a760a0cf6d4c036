"""Edits of a written graph that change no number: nodes inserted, operands exchanged, names and dimensions changed.

An edit takes an `Editor` and says whether it found a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import onnx
from numpy.random import Generator
from onnx import TensorProto, helper, numpy_helper

from graph_passes.graph import Graph

FLOAT: Final = TensorProto.FLOAT
COMMUTATIVE: Final = frozenset({"Add", "Mul", "And", "Or", "Max", "Min", "Equal"})
Edge = tuple[int, int]  # node, input


class Editor:
    """A graph, the choices of one mutant, and what is known of the graph's values."""

    def __init__(self, graph: Graph, rng: Generator) -> None:
        self.graph = graph
        self.rng = rng
        self.fixed: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        return self.graph.fresh(f"edit_{stem}")

    def types(self) -> dict[str, tuple[int, int]]:
        """Element type and rank of values, by onnx's shape inference."""
        model = proto(self.graph)
        inferred = onnx.shape_inference.infer_shapes(model).graph
        found: dict[str, tuple[int, int]] = {}
        for value in (*inferred.input, *inferred.value_info, *inferred.output):
            held = value.type.tensor_type
            if held.HasField("shape"):
                found[value.name] = (held.elem_type, len(held.shape.dim))
        for one in inferred.initializer:
            found[one.name] = (one.data_type, len(one.dims))
        return found

    def choose(self, found: Sequence[Any]) -> Any:
        return found[int(self.rng.integers(len(found)))]

    def nodes(self, *op_types: str) -> list[onnx.NodeProto]:
        return [node for node in self.graph.nodes if node.op_type in op_types]

    def edges(self, wanted: Callable[[str], bool]) -> list[Edge]:
        """Inputs of nodes that pass `wanted`, by position."""
        return [
            (at, slot)
            for at, node in enumerate(self.graph.nodes)
            for slot, name in enumerate(node.input)
            if name and node.op_type != "Shape" and wanted(name)
        ]

    def insert(self, edge: Edge, write: Callable[[str], str]) -> None:
        """New nodes on an edge, right before its reader."""
        at, slot = edge
        reader = self.graph.nodes[at]
        tail, self.graph.nodes[at:] = self.graph.nodes[at:], []
        result = write(reader.input[slot])
        self.graph.nodes.extend(tail)
        reader.input[slot] = result

    def number(self, name: str) -> np.ndarray[Any, Any] | None:
        """The content of a constant."""
        for one in self.graph.initializers:
            if one.name == name:
                return numpy_helper.to_array(one)
        for node in self.nodes("Constant"):
            if node.output[0] == name:
                return numpy_helper.to_array(node.attribute[0].t)
        return None


def proto(graph: Graph) -> onnx.ModelProto:
    """The model, not checked."""
    opsets = [helper.make_opsetid("", graph.opset), helper.make_opsetid("com.microsoft", 1)]
    opsets += [helper.make_opsetid(one, 1) for one in sorted({one.domain for one in graph.functions})]
    return helper.make_model(
        graph.graph(), ir_version=graph.ir_version, opset_imports=opsets, functions=graph.functions
    )


def swap_operands(edit: Editor) -> bool:
    found = [node for node in edit.nodes(*COMMUTATIVE) if len(node.input) == 2]
    if found:
        node = edit.choose(found)
        node.input[:] = reversed(node.input)
    return bool(found)


def swap_all_operands(edit: Editor) -> bool:
    for node in edit.nodes(*COMMUTATIVE):
        node.input[:] = reversed(node.input)
    return True


def reciprocal(edit: Editor) -> bool:
    """x * c as x / (1/c), x / c as x * (1/c)."""
    types = edit.types()
    found = []
    for node in edit.nodes("Mul", "Div"):
        data = edit.number(node.input[1])
        if data is not None and types[node.input[1]][0] == FLOAT and data.size == 1 and 0 < abs(data) < 1e30:
            found.append((node, data))
    if not found:
        return False
    node, data = edit.choose(found)
    at = edit.graph.nodes.index(node)
    tail, edit.graph.nodes[at:] = edit.graph.nodes[at:], []
    node.input[1] = edit.graph.constant(1 / data.astype(np.float64), np.float32)
    edit.graph.nodes.extend(tail)
    node.op_type = {"Mul": "Div", "Div": "Mul"}[node.op_type]
    return True


def _insert(
    edit: Editor, allowed: Callable[[int, int], bool], write: Callable[[Graph, str, int], str]
) -> bool:
    types = edit.types()
    edges = edit.edges(lambda name: name in types and allowed(*types[name]))
    if not edges:
        return False
    edge = edit.choose(edges)
    rank = types[edit.graph.nodes[edge[0]].input[edge[1]]][1]
    edit.insert(edge, lambda name: write(edit.graph, name, rank))
    return True


def identity(edit: Editor) -> bool:
    return _insert(edit, lambda kind, rank: True, lambda graph, name, rank: graph.op("Identity", name))


def cast_there_and_back(edit: Editor) -> bool:
    """float -> double -> float."""
    return _insert(
        edit,
        lambda kind, rank: kind == FLOAT,
        lambda graph, name, rank: graph.cast(graph.cast(name, np.float64), np.float32),
    )


def bool_there_and_back(edit: Editor) -> bool:
    """bool -> int32 -> bool."""
    return _insert(
        edit,
        lambda kind, rank: kind == TensorProto.BOOL,
        lambda graph, name, rank: graph.cast(graph.cast(name, np.int32), np.bool_),
    )


def reshape_pair(edit: Editor) -> bool:
    """To one axis and back."""

    def write(graph: Graph, name: str, rank: int) -> str:
        return _reshaped_back(graph, graph.reshape(name, -1), name)

    return edit.graph.opset >= 14 and _insert(edit, lambda kind, rank: rank > 1, write)


def _reshaped_back(graph: Graph, value: str, original: str) -> str:
    """In the shape of `original`, zero lengths (an empty past) included."""
    return graph.op("Reshape", value, graph.op("Shape", original), allowzero=1)


def merge_first_axes(edit: Editor) -> bool:
    """(a, b, c, d) -> (a*b, c, d) and back."""

    def write(graph: Graph, name: str, rank: int) -> str:
        shape = graph.op("Shape", name)
        rest = graph.op("Slice", shape, graph.integers(2), graph.integers(rank), graph.integers(0))
        first = graph.op("Slice", shape, graph.integers(0), graph.integers(2), graph.integers(0))
        target = graph.op("Concat", graph.op("ReduceProd", first), rest, axis=0)
        return _reshaped_back(graph, graph.op("Reshape", name, target, allowzero=1), name)

    return edit.graph.opset >= 14 and _insert(edit, lambda kind, rank: rank > 2, write)


def transpose_pair(edit: Editor) -> bool:
    def write(graph: Graph, name: str, rank: int) -> str:
        perm = [int(axis) for axis in edit.rng.permutation(rank)]
        back = [perm.index(axis) for axis in range(rank)]
        return graph.transpose(graph.transpose(name, *perm), *back)

    return _insert(edit, lambda kind, rank: rank > 1, write)


def unsqueeze_squeeze(edit: Editor) -> bool:
    def write(graph: Graph, name: str, rank: int) -> str:
        axis = int(edit.rng.integers(rank + 1))
        return graph.over("Squeeze", graph.unsqueeze(name, axis), axis)

    return _insert(edit, lambda kind, rank: rank > 0, write)


def constants_to_nodes(edit: Editor) -> bool:
    graph = edit.graph
    moved = [
        helper.make_node("Constant", [], [one.name], name=f"held_{one.name}", value=one)
        for one in graph.initializers
    ]
    graph.initializers.clear()
    graph.nodes[:0] = moved
    return bool(moved)


def nodes_to_constants(edit: Editor) -> bool:
    found = edit.nodes("Constant")
    for node in found:
        held = onnx.TensorProto.FromString(node.attribute[0].t.SerializeToString())
        held.name = node.output[0]
        edit.graph.initializers.append(held)
        edit.graph.nodes.remove(node)
    return bool(found)


def declared_shapes(edit: Editor) -> bool:
    """value_info for everything, as exporters leave it."""
    inferred = onnx.shape_inference.infer_shapes(proto(edit.graph)).graph
    edit.graph.value_info = list(inferred.value_info)
    return True


def nodes_without_names(edit: Editor) -> bool:
    for node in edit.graph.nodes:
        node.name = ""
    return True


def rename(graph: Graph, names: dict[str, str]) -> None:
    """Values under other names, everywhere."""
    for node in graph.nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for one in (*graph.initializers, *graph.inputs, *graph.outputs, *graph.value_info):
        one.name = names.get(one.name, one.name)


def colliding_names(edit: Editor) -> bool:
    """Values and nodes called as the fused node and its helpers would be."""
    kept = {value.name for value in (*edit.graph.inputs, *edit.graph.outputs)}
    made = [name for node in edit.graph.nodes for name in node.output if name not in kept]
    made = [name for name in made if not name.startswith("seen_")]
    wanted = ["ZyfaPrefillAttention", "ZyfaPrefillAttention_output", "Constant_output", "Reshape_output"]
    wanted += ["Cast_output", "Transpose", "Constant", "ZyfaPrefillAttention_1", "output_unfused"]
    places = edit.rng.permutation(len(made))[: len(wanted)]
    rename(edit.graph, {made[place]: name for place, name in zip(places, wanted, strict=False)})
    for node, name in zip(edit.graph.nodes, wanted, strict=False):
        node.name = name
    return True


def _dims(edit: Editor) -> list[onnx.TensorShapeProto.Dimension]:
    return [
        dim
        for value in (*edit.graph.inputs, *edit.graph.outputs)
        for dim in value.type.tensor_type.shape.dim
        if dim.HasField("dim_param")
    ]


def dims_of_their_own(edit: Editor) -> bool:
    """Every free dimension gets a name that nothing else has."""
    for at, dim in enumerate(_dims(edit)):
        dim.dim_param = f"s{at}"
    edit.graph.value_info = []
    return True


def dims_without_names(edit: Editor) -> bool:
    for dim in _dims(edit):
        dim.ClearField("dim_param")
    edit.graph.value_info = []
    return True


def dims_as_numbers(edit: Editor) -> bool:
    """All lengths fixed, where dimensions still have the names they were written with."""
    sizes = {"batch": 2, "tokens": 12, "past": 7, "others": 5}
    known = {dim.dim_param for value in edit.graph.inputs for dim in value.type.tensor_type.shape.dim}
    if not known <= {*sizes, "keys", ""}:
        return False
    new = sizes["others" if "others" in known else "tokens"]
    sizes["keys"] = new + (sizes["past"] if "past" in known else 0)
    for dim in _dims(edit):
        if dim.dim_param in sizes:
            dim.dim_value = sizes[dim.dim_param]
        else:
            dim.ClearField("dim_param")
    edit.graph.value_info = []
    edit.fixed = sizes
    return True


def scores_output(edit: Editor) -> bool:
    """The scores are read by somebody else."""
    (softmax, *_) = edit.nodes("Softmax")
    edit.graph.op("Abs", softmax.input[0], name="extra")
    edit.graph.output("extra", np.float32, [None] * 4)
    return True


def probabilities_output(edit: Editor) -> bool:
    (softmax, *_) = edit.nodes("Softmax")
    edit.graph.output(softmax.output[0], np.float32, [None] * 4)
    return True


def operand_output(edit: Editor) -> bool:
    """Query, K^T or values of the products are read by somebody else too."""
    types = edit.types()
    names = [
        name
        for node in edit.nodes("MatMul", "Einsum", "FusedMatMul")
        for name in node.input
        if types.get(name) == (FLOAT, 4) and not edit.number(name)
    ]
    softmaxes = {name for node in edit.nodes("Softmax", "Where", "Slice", "Dropout") for name in node.output}
    names = [name for name in names if name not in softmaxes]
    if not names:
        return False
    name = edit.choose(names)
    edit.graph.op("Neg", name, name=edit.fresh("negative"))
    edit.graph.output(edit.graph.nodes[-1].output[0], np.float32, [None] * 4)
    return True


def axis_from_the_front(edit: Editor) -> bool:
    found = edit.nodes("Softmax")
    for node in found:
        node.attribute[0].i %= 4
    return bool(found)


def product_as_einsum(edit: Editor) -> bool:
    types = edit.types()
    found = [node for node in edit.nodes("MatMul") if all(types.get(x) == (FLOAT, 4) for x in node.input)]
    if not found:
        return False
    node = edit.choose(found)
    node.op_type = "Einsum"
    node.attribute.append(helper.make_attribute("equation", "abij, abjk -> abik"))
    return True


def product_as_fused(edit: Editor) -> bool:
    """FusedMatMul that takes over the Transpose before it where there is one."""
    types = edit.types()
    found = [node for node in edit.nodes("MatMul") if all(types.get(x) == (FLOAT, 4) for x in node.input)]
    if not found:
        return False
    node = edit.choose(found)
    node.op_type, node.domain = "FusedMatMul", "com.microsoft"
    swapped = {
        one.output[0]: one.input[0]
        for one in edit.nodes("Transpose")
        if list(one.attribute[0].ints) == [0, 1, 3, 2]
    }
    above = swapped.get(node.input[1])
    if above is not None:
        node.input[1] = above
        node.attribute.append(helper.make_attribute("transB", 1))
    return True


EDITS: Final[dict[str, Callable[[Editor], bool]]] = {
    "swap operands": swap_operands,
    "swap all operands": swap_all_operands,
    "reciprocal": reciprocal,
    "identity": identity,
    "float to double and back": cast_there_and_back,
    "bool to int and back": bool_there_and_back,
    "reshape pair": reshape_pair,
    "merge the first axes and back": merge_first_axes,
    "transpose pair": transpose_pair,
    "unsqueeze and squeeze": unsqueeze_squeeze,
    "constants to nodes": constants_to_nodes,
    "nodes to constants": nodes_to_constants,
    "declared shapes": declared_shapes,
    "nodes without names": nodes_without_names,
    "colliding names": colliding_names,
    "dims of their own": dims_of_their_own,
    "dims without names": dims_without_names,
    "dims as numbers": dims_as_numbers,
    "an operand is read elsewhere": operand_output,
    "axis from the front": axis_from_the_front,
    "product as Einsum": product_as_einsum,
    "product as FusedMatMul": product_as_fused,
}
# Edits after which a site must stay: an intermediate value is wanted.
KEEPING: Final[dict[str, Callable[[Editor], bool]]] = {
    "scores are read elsewhere": scores_output,
    "probabilities are an output": probabilities_output,
}
