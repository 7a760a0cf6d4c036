"""Where nodes would go on a machine that is not here: our provider's rule and that of the MIGraphX provider, applied by hand.

Only ONNX Runtime knows; what comes from here is called predicted. The rule for MIGraphX is that of onnxruntime-migraphx
1.27.1, as measured: types and operators that MIGraphX itself does not know are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import onnx_ir as ir

from zyfa_ort.hosts import CPU, MIGRAPHX, ROCM, Host
from zyfa_ort.kernel_choice import NodeKernels, is_ours
from zyfa_ort.placement import MOST_UNKNOWN, Node, Placement

# A segment is worth MIGraphX's while with one of these in it ...
_RECURRENT = ("RNN", "GRU", "LSTM")
_HEAVY = ("AveragePool", "Conv", "Gemm", "LRN", "MatMul", "MaxPool")
# ... of which no input is larger than this; dimensions that are not known count as 1.
MOST_ELEMENTS = 300


def predict(model: ir.Model, kernels: Sequence[NodeKernels], host: Host) -> Placement:
    """Placement on a GPU, bodies included; `kernels` are those of ``node_kernels``, empty when every node of ours has some."""
    graphs = (model.graph, *model.graph.subgraphs())
    taken: set[ir.Node] = set()
    if MIGRAPHX in host.others:
        taken = {node for graph in graphs for node in _for_migraphx(list(graph))}
    rest = ROCM if host.provider == ROCM else CPU
    refused = iter([bool(one.refusal) for one in kernels])
    placed = []
    for node in model.graph.all_nodes():
        provider = MIGRAPHX if node in taken else rest
        if is_ours(node):
            provider = CPU if next(refused, False) else host.provider
        placed.append(Node(provider, node.op_type, node.name or "", node.domain))
    return Placement(tuple(placed))


def _for_migraphx(nodes: Sequence[ir.Node]) -> set[ir.Node]:
    unknown = sum(map(is_ours, nodes))
    if unknown == 0:
        return set(nodes)
    if unknown > MOST_UNKNOWN:
        return set()
    return {node for segment in _segments(nodes) if any(map(_worth_it, segment)) for node in segment}


def _segments(nodes: Sequence[ir.Node]) -> Iterator[list[ir.Node]]:
    segment: list[ir.Node] = []
    for node in nodes:
        if is_ours(node):
            yield segment
            segment = []
        else:
            segment.append(node)
    yield segment


def _worth_it(node: ir.Node) -> bool:
    if node.op_type in _RECURRENT:
        return True
    return node.op_type in _HEAVY and all(_elements(value) <= MOST_ELEMENTS for value in node.inputs)


def _elements(value: ir.Value | None) -> int:
    if value is None or value.shape is None:
        return 1
    return prod(size if isinstance(size, int) else 1 for size in value.shape)
