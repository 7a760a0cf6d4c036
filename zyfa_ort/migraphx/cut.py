"""A settled model in steps: segments for MIGraphX, and our nodes between them.

Segment 0, nodes 0, segment 1, nodes 1, ...: each node stands in the first place that its inputs allow. Values pass between
steps by name; constants are part of every segment that reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
import onnx_ir as ir

from zyfa_ort.errors import MigraphxError
from zyfa_ort.graph_passes.model_file import PROTOBUF_LIMIT
from zyfa_ort.graph_passes.values import is_op, label
from zyfa_ort.migraphx.expand import expanded
from zyfa_ort.migraphx.own_nodes import is_ours
from zyfa_ort.migraphx.settled import Settled, bodies, reads

# No tensor of these can enter or leave what MIGraphX imports (get_type in its onnx_parser.cpp).
REFUSED_TYPES: Final = frozenset(
    {ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT8E5M2, ir.DataType.FLOAT8E5M2FNUZ}
)
# MIGraphX looks at no domain: of another one it would take a node for the operator of the same name that it knows. Of these
# standard operators it knows ONNX Runtime's of the same name, whose inputs are in another order.
KNOWN_DOMAINS: Final = ("", "ai.onnx", "com.microsoft")
TAKEN_FOR_OTHERS: Final = frozenset({"Attention", "RotaryEmbedding"})
# Operators whose results have as many elements as values say. MIGraphX imports them with the most there can be, filled up with
# zeros (NonZero of 1, 0, 2, 0 gives 0, 2, 0, 0), and Loop with at most 10 steps: other numbers without a word.
FREE_LENGTHS: Final = frozenset({"NonZero", "Unique", "Compress", "NonMaxSuppression", "Loop"})
# Operators whose rows the ref target computes in threads that share memory: of 2,000 rows of TopK some are wrong in 28 of 30
# runs, of 24 in 1 (7.1.1).
RACING_ON_REF: Final = frozenset({"TopK"})


@dataclass(frozen=True)
class SegmentPlan:
    """Nodes in order; `inputs` are made elsewhere, `outputs` are wanted elsewhere."""

    number: int
    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]


Step = SegmentPlan | ir.Node


def steps(settled: Settled) -> list[Step]:
    """Raises MigraphxError: a segment would have to hold a float8 tensor."""
    nodes = _needed(settled)
    places = _places(settled, nodes)
    results = set(settled.model.graph.outputs)
    wanted_in: dict[ir.Value, set[int]] = {}
    for node in nodes:
        for value in reads(node):
            wanted_in.setdefault(value, set()).add(-1 if is_ours(node) else places[node])
    made: list[Step] = []
    for place in range(max(places.values(), default=-1) + 1):
        here = [node for node in nodes if places[node] == place]
        inside = tuple(node for node in here if not is_ours(node))
        if inside:
            outputs = (value for node in inside for value in node.outputs)
            made.append(
                _segment(
                    settled,
                    place,
                    inside,
                    [value for value in outputs if value in results or wanted_in.get(value, set()) - {place}],
                )
            )
        made += [node for node in here if is_ours(node)]
    return made


def _needed(settled: Settled) -> list[ir.Node]:
    """Nodes that outputs of the model hang on, in order, where they are no constants."""
    needed: set[ir.Node] = set()
    open_values = list(settled.model.graph.outputs)
    while open_values:
        value = open_values.pop()
        node = value.producer()
        if node is not None and node not in needed and value not in settled.constants:
            needed.add(node)
            open_values += reads(node)
    return [node for node in settled.model.graph if node in needed]


def _places(settled: Settled, nodes: Iterable[ir.Node]) -> dict[ir.Node, int]:
    places: dict[ir.Node, int] = {}
    for node in nodes:
        place = 0
        for value in reads(node):
            producer = value.producer()
            if producer is None or value in settled.constants:
                continue
            after = is_ours(producer) and not is_ours(node)
            place = max(place, places[producer] + after)
        places[node] = place
    return places


def _segment(
    settled: Settled, number: int, nodes: tuple[ir.Node, ...], outputs: Iterable[ir.Value]
) -> SegmentPlan:
    _refuse_float8(settled, nodes)
    for node in nodes:
        for one in (node, *(inner for body in bodies(node) for inner in body.all_nodes())):
            _refuse_misread(one, may_expand=one is node)
    own = {value for node in nodes for value in node.outputs} | settled.constants.keys()
    inputs = dict.fromkeys(value for node in nodes for value in reads(node) if value not in own)
    kept = tuple(value for value in outputs if value not in settled.constants)
    return SegmentPlan(number, nodes, tuple(inputs), kept)


def beginning(settled: Settled, plan: SegmentPlan, count: int) -> SegmentPlan:
    """The first `count` nodes of a segment as a segment by themselves, with all that they make as outputs."""
    nodes = plan.nodes[:count]
    return _segment(
        settled, plan.number, nodes, (value for node in nodes for value in node.outputs if value.name)
    )


def _refuse_float8(settled: Settled, nodes: Iterable[ir.Node]) -> None:
    for node in nodes:
        for value in (*reads(node), *node.outputs):
            dtype = settled.fact(value).dtype or value.dtype
            if dtype in REFUSED_TYPES:
                raise MigraphxError(
                    f"{node.op_type} '{label(node)}': tensor {value.name} is {dtype.name.lower()}, which MIGraphX does not"
                    " import; expected such tensors only between nodes of ai.zyfa, as fuse(quantize_nodes='explicit')"
                    " makes them"
                )


def _refuse_misread(node: ir.Node, may_expand: bool) -> None:
    """What MIGraphX would import as something else."""
    if is_op(node, *FREE_LENGTHS):
        why = "how much it makes depends on values, and programs of MIGraphX have fixed shapes"
    elif node.domain not in KNOWN_DOMAINS:
        why = f"MIGraphX knows no operators of the domain {node.domain}"
    elif is_op(node, *TAKEN_FOR_OTHERS) and not may_expand:
        why = "MIGraphX takes it for ONNX Runtime's operator of this name"
    else:
        return
    raise MigraphxError(f"{node.op_type} '{label(node)}': {why}; export the model without it")


def refuse_on_ref(plan: SegmentPlan) -> None:
    """Raises MigraphxError: the segment has an operator that the ref target gets wrong."""
    for node in plan.nodes:
        for one in (node, *(inner for body in bodies(node) for inner in body.all_nodes())):
            if is_op(one, *RACING_ON_REF):
                raise MigraphxError(
                    f"{one.op_type} '{label(one)}': MIGraphX's ref target computes its rows in threads that share memory, so"
                    " that numbers change from run to run; use target 'gpu'"
                )


def onnx_model(settled: Settled, plan: SegmentPlan) -> bytes:
    """The segment as a model by itself.

    Raises MigraphxError: the shape of an input is not known, or it exceeds the 2 GB of a protobuf.
    """
    graph = onnx.GraphProto(name=f"segment_{plan.number}")
    for node in plan.nodes:
        nodes, tensors = expanded(node, settled.fact(node.inputs[0] if node.inputs else None))
        if len(nodes) == 1:
            _refuse_misread(node, may_expand=False)
        graph.node.extend(nodes)
        graph.initializer.extend(tensors)
    size = 0
    for value in dict.fromkeys(value for node in plan.nodes for value in reads(node)):
        if value in settled.constants:
            held = settled.constants[value]
            size += held.nbytes
            if size > PROTOBUF_LIMIT:
                raise MigraphxError(
                    f"segment {plan.number}: expected at most {PROTOBUF_LIMIT} bytes of constants between two nodes of"
                    f" ai.zyfa, got more with {value.name}"
                )
            graph.initializer.append(tensor_proto(held, value.name or ""))
    for value in plan.inputs:
        fact = settled.fact(value)
        if fact.shape is None or fact.dtype is None:
            raise MigraphxError(f"segment {plan.number}: the shape of {value.name} is not known")
        graph.input.append(onnx.helper.make_tensor_value_info(value.name or "", int(fact.dtype), fact.shape))
    graph.output.extend(onnx.ValueInfoProto(name=value.name) for value in plan.outputs)
    made = onnx.ModelProto(graph=graph, ir_version=settled.model.ir_version)
    for domain, version in settled.model.opset_imports.items():
        made.opset_import.append(onnx.helper.make_opsetid(domain, version))
    content: bytes = made.SerializeToString()
    return content


def tensor_proto(held: ir.TensorProtocol, name: str) -> onnx.TensorProto:
    """With its bytes inside, wherever they are now."""
    made = onnx.TensorProto(name=name, data_type=int(held.dtype))
    made.dims.extend(int(length) for length in held.shape.numpy())
    if held.dtype == ir.DataType.STRING:
        made.string_data.extend(held.string_data())  # type: ignore[attr-defined]
    else:
        made.raw_data = raw_bytes(held)
    return made


def raw_bytes(held: ir.TensorProtocol) -> bytes:
    """As ONNX stores them. onnx_ir refuses data files that are links, which model caches are made of."""
    if not isinstance(held, ir.ExternalTensor):
        return held.tobytes()
    with Path(held.path).open("rb") as stream:
        stream.seek(held.offset or 0)
        return stream.read(held.nbytes)
