"""Where ONNX Runtime puts the nodes of a model, and what is wrong with that (docs/gpu.md, "Where nodes run")."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from zyfa_ort.graph_passes import schema
from zyfa_ort.hosts import CPU, MIGRAPHX, ROCM, Host

# The MIGraphX provider of the 1.27.1 wheel takes nothing from a graph with more nodes than this that it does not know.
MOST_UNKNOWN = 10
REMEDIES = (
    "what helps: AMD's plugin MIGraphX provider, zyfa_ort.migraphx, or 'zyfa-ort fuse --portable' and a session without the "
    "operator library (docs/gpu.md)"
)
_COPIES = ("MemcpyFromHost", "MemcpyToHost")
_UNNAMED = "unnamed"
_HEADING = re.compile(r"(All nodes|Node\(s\)) placed on \[(\w+)\]\. Number of nodes: (\d+)")
_LISTED = re.compile(r"VerifyEachNodeIsAssignedToAnEp\w*\]   (\w+) \((.*)\)$")
_SHOWN = 4  # kinds of nodes that a sentence names


@dataclass(frozen=True)
class Node:
    """A node and its provider. Nodes that a provider has compiled into one are listed one by one where it is known."""

    provider: str
    op: str
    name: str
    domain: str = ""

    @property
    def ours(self) -> bool:
        return self.domain == schema.DOMAIN or self.op in schema.ATTRIBUTES_OF


@dataclass(frozen=True)
class Placement:
    """`copies` are those between host and device that ONNX Runtime put into the graph, None where it does not say."""

    nodes: tuple[Node, ...]
    copies: int | None = None

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(node.provider for node in self.nodes))

    def ours(self, provider: str | None = None) -> list[Node]:
        return [node for node in self.nodes if node.ours and provider in (None, node.provider)]

    def others(self, provider: str) -> list[Node]:
        return [node for node in self.nodes if not node.ours and node.provider == provider]


def of_session(session: Any) -> Placement | None:
    """Of a session that was made with ``hosts.RECORD``; None before ONNX Runtime 1.24."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    return Placement(
        tuple(
            Node(graph.ep_name, node.op_type, node.name, node.domain)
            for graph in session.get_provider_graph_assignment_info()
            for node in graph.get_nodes()
        )
    )


def of_log(text: str, ours: Sequence[tuple[str, str]]) -> Placement:
    """Of what a session has said at severity 0, in any version of ONNX Runtime.

    `ours` are operator and name of the model's nodes of ai.zyfa: when all nodes are on one provider the log names none.
    Raises ValueError when the log says nothing of it.
    """
    nodes: list[Node] = []
    provider = ""
    for line in text.splitlines():
        if heading := _HEADING.search(line):
            provider = heading[2]
            if heading[1] == "All nodes":
                others = max(int(heading[3]) - len(ours), 0)
                nodes += [
                    *(Node(provider, *one) for one in ours[: int(heading[3])]),
                    *[Node(provider, _UNNAMED, "")] * others,
                ]
        elif provider and (one := _LISTED.search(line)):
            nodes.append(Node(provider, one[1], one[2]))
    if not provider:
        raise ValueError("ONNX Runtime's log does not say where the nodes are")
    copies = sum(node.op in _COPIES for node in nodes)
    return Placement(tuple(node for node in nodes if node.op not in _COPIES), copies)


def complaints(placement: Placement, host: Host, device: str) -> list[str]:
    """One sentence for each thing that does not run where it was asked to; empty when all is well."""
    return [*_misplaced(placement, host), *_migraphx(placement, host), *_without_code(placement, host)] + (
        _on_cpu(placement) if device == "gpu" else []
    )


def _misplaced(placement: Placement, host: Host) -> list[str]:
    away = [node for node in placement.ours() if node.provider != host.provider]
    if not away:
        return []
    where = ", ".join(sorted({node.provider for node in away}))
    return [
        f"{len(away)} of {len(placement.ours())} nodes of {schema.DOMAIN} run on {where} instead of {host.provider}"
        f" ({named([node.name or _UNNAMED for node in away])})"
    ]


def _migraphx(placement: Placement, host: Host) -> list[str]:
    left = placement.others(CPU)
    if MIGRAPHX not in host.others or not left:
        return []
    return [migraphx_sentence(len(placement.ours()), placement.counts.get(MIGRAPHX, 0), left)]


def migraphx_sentence(unknown: int, taken: int, left: Iterable[Node]) -> str:
    """Why MIGraphX leaves nodes to the CPU, with the counts and what to do."""
    left = list(left)
    what = f"{MIGRAPHX} takes {taken or 'none'} of {taken + len(left)} nodes, {len(left)} run on the CPU"
    if unknown > MOST_UNKNOWN:
        why = f"it takes none from a graph with more than {MOST_UNKNOWN} nodes it does not know, and here are {unknown}"
    elif unknown:
        why = (
            f"beside nodes it does not know (here {unknown}) it takes only segments in which some matrix product, "
            "convolution or pool has no input of more than 300 elements"
        )
    else:
        why = "the log at severity 0 says more"
    return f"{what}: {why}; {REMEDIES}"


def _without_code(placement: Placement, host: Host) -> list[str]:
    """The ROCm provider's own kernels, which were compiled before gfx950."""
    there = placement.others(ROCM)
    if host.provider != ROCM or not there:
        return []
    return [
        f"{len(there)} nodes run on {ROCM}, whose wheel (onnxruntime-rocm 1.22) has no code for gfx950 ({_kinds(there)}): "
        "on an MI355X their first launch is an error; use onnxruntime 1.24 or later, or your own build"
    ]


def _on_cpu(placement: Placement) -> list[str]:
    on_cpu = placement.others(CPU)
    if not on_cpu:
        return []
    return [f"{len(on_cpu)} of {len(placement.nodes)} nodes run on the CPU ({_kinds(on_cpu)})"]


def _kinds(nodes: Iterable[Node]) -> str:
    counted = Counter(node.op for node in nodes).most_common()
    shown = [f"{count} {op}" for op, count in counted[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(counted) > _SHOWN else "")


def named(names: Sequence[str]) -> str:
    """The first of them."""
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
