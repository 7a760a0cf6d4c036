"""Where the queries, keys and values of a mutant come from, how key heads are repeated, and how the products are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from graph_passes.graph import Graph
from graph_passes.mutant_plans import HEAD_DIM, Plan

# Each gives (B, S, H*D) query, key and value.
Three = tuple[str, str, str]


def _inputs(graph: Graph, plan: Plan) -> Three:
    keys = "others" if plan.cross else "tokens"
    return (
        graph.input("query", np.float32, ["batch", "tokens", plan.heads * HEAD_DIM]),
        graph.input("key", np.float32, ["batch", keys, plan.kv_heads * HEAD_DIM]),
        graph.input("value", np.float32, ["batch", keys, plan.kv_heads * HEAD_DIM]),
    )


def _weights(seed: int, rows: int, columns: int) -> Any:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32) / math.sqrt(rows)


def _query_factor(plan: Plan) -> float:
    return plan.factor if plan.scale_at == "weights" else 1.0


def _projected(graph: Graph, plan: Plan) -> Three:
    """Three MatMuls of one input."""
    _inputs(graph, plan)
    wide = plan.heads * HEAD_DIM
    narrow = plan.kv_heads * HEAD_DIM
    query = graph.constant(2 * _query_factor(plan) * _weights(1, wide, wide), np.float32)
    key = graph.constant(2 * _weights(2, narrow, narrow), np.float32)
    return graph.op("MatMul", "query", query), graph.op("MatMul", "key", key), "value"


def _gemm(graph: Graph, plan: Plan) -> Three:
    """Queries from a Gemm over flattened rows, as Conv1D layers are exported."""
    _inputs(graph, plan)
    wide = plan.heads * HEAD_DIM
    weight = graph.constant(2 * _query_factor(plan) * _weights(1, wide, wide), np.float32)
    offset = graph.constant(np.zeros(wide), np.float32)
    rows = graph.op("Gemm", graph.reshape("query", -1, wide), weight, offset)
    return graph.op("Reshape", rows, graph.op("Shape", "query")), "key", "value"


def _packed(graph: Graph, plan: Plan) -> str:
    width = (plan.heads + 2 * plan.kv_heads) * HEAD_DIM
    return graph.input("packed", np.float32, ["batch", "tokens", width])


def _ends(plan: Plan) -> tuple[int, int, int]:
    wide, narrow = plan.heads * HEAD_DIM, plan.kv_heads * HEAD_DIM
    return wide, wide + narrow, wide + 2 * narrow


def _split(graph: Graph, plan: Plan) -> Three:
    packed = _packed(graph, plan)
    wide, narrow = plan.heads * HEAD_DIM, plan.kv_heads * HEAD_DIM
    names = [graph.fresh(stem) for stem in ("q", "k", "v")]
    graph.ops("Split", packed, graph.integers(wide, narrow, narrow), outputs=names, axis=2)
    return names[0], names[1], names[2]


def _slice(graph: Graph, plan: Plan) -> Three:
    packed = _packed(graph, plan)
    ends = (0, *_ends(plan))
    parts = [
        graph.op("Slice", packed, graph.integers(ends[at]), graph.integers(ends[at + 1]), graph.integers(-1))
        for at in range(3)
    ]
    return parts[0], parts[1], parts[2]


def _gather(graph: Graph, plan: Plan) -> Three:
    """(B, S, 3, H*D), then one of three; equal head counts only."""
    packed = graph.input("packed", np.float32, ["batch", "tokens", 3 * plan.heads * HEAD_DIM])
    apart = graph.reshape(packed, 0, 0, 3, plan.heads * HEAD_DIM)
    parts = [graph.op("Gather", apart, graph.constant(at, np.int64), axis=2) for at in range(3)]
    return parts[0], parts[1], parts[2]


SOURCES: Final[dict[str, Callable[[Graph, Plan], Three]]] = {
    "inputs": _inputs,
    "projected": _projected,
    "gemm": _gemm,
    "split": _split,
    "slice": _slice,
    "gather": _gather,
}


def _repeat_shape(graph: Graph, value: str, plan: Plan) -> list[str]:
    batch, length = (graph.length(value, axis) for axis in (0, 2))
    return [batch, graph.integers(plan.heads), length, graph.integers(HEAD_DIM)]


def _in_blocks(widen: Callable[[Graph, str, int], str]) -> Callable[[Graph, str, Plan], str]:
    def repeat(graph: Graph, value: str, plan: Plan) -> str:
        wide = widen(graph, graph.unsqueeze(value, 2), plan.heads // plan.kv_heads)
        target = graph.op("Concat", *_repeat_shape(graph, value, plan), axis=0)
        return graph.op("Reshape", wide, target)

    return repeat


def _expand(graph: Graph, wide: str, times: int) -> str:
    shape = graph.op("Shape", wide)
    head = graph.op("Slice", shape, graph.integers(0), graph.integers(2), graph.integers(0))
    tail = graph.op("Slice", shape, graph.integers(3), graph.integers(5), graph.integers(0))
    return graph.op("Expand", wide, graph.op("Concat", head, graph.integers(times), tail, axis=0))


def _expand_ones(graph: Graph, wide: str, times: int) -> str:
    return graph.op("Expand", wide, graph.integers(1, 1, times, 1, 1))


def _gather_heads(order: Callable[[int, int], Any]) -> Callable[[Graph, str, Plan], str]:
    def repeat(graph: Graph, value: str, plan: Plan) -> str:
        index = graph.constant(order(plan.heads, plan.kv_heads), np.int64)
        return graph.op("Gather", value, index, axis=1)

    return repeat


REPEATS: Final[dict[str, Callable[[Graph, str, Plan], str]]] = {
    "expand": _in_blocks(_expand),
    "expand ones": _in_blocks(_expand_ones),
    "tile": _in_blocks(lambda graph, wide, times: graph.op("Tile", wide, graph.integers(1, 1, times, 1, 1))),
    "concat": _in_blocks(lambda graph, wide, times: graph.op("Concat", *[wide] * times, axis=2)),
    "gather": _gather_heads(lambda heads, kv: np.arange(heads) // (heads // kv)),
    # other meaning
    "in turn": lambda graph, value, plan: graph.op(
        "Tile", value, graph.integers(1, plan.heads // plan.kv_heads, 1, 1)
    ),
    "in turn by concat": lambda graph, value, plan: graph.op(
        "Concat", *[value] * (plan.heads // plan.kv_heads), axis=1
    ),
    "in turn by expand": lambda graph, value, plan: graph.op(
        "Reshape",
        graph.op(
            "Expand",
            graph.unsqueeze(value, 1),
            graph.integers(1, plan.heads // plan.kv_heads, 1, 1, 1),
        ),
        graph.op("Concat", *_repeat_shape(graph, value, plan), axis=0),
    ),
    "backwards": _gather_heads(lambda heads, kv: kv - 1 - np.arange(heads) // (heads // kv)),
}


def _two_transposes(graph: Graph, k: str, plan: Plan) -> str:
    """(B, H, S, D) -> (B*H, S, D), a transpose of rank 3, and back: torch's dynamo exporter."""
    batch, length = graph.length(k, 0), graph.length(k, 2)
    flat = graph.transpose(graph.reshape(k, -1, length, HEAD_DIM), 0, 2, 1)
    return graph.reshape(flat, batch, plan.heads, HEAD_DIM, length)


def _long_way(graph: Graph, k: str, plan: Plan) -> str:
    """(B, H, S, D) -> (B, S, D, H) -> (B, H, D, S)"""
    return graph.transpose(graph.transpose(k, 0, 2, 3, 1), 0, 3, 2, 1)


def scores_of(graph: Graph, q: str, k: str, plan: Plan) -> str:
    """(B, H, S, T) from (B, H, S, D) and (B, H, T, D)."""
    if plan.product == "einsum":
        return graph.op("Einsum", q, k, equation="bhqd,bhkd->bhqk")
    if plan.product == "einsum of lengths":
        q, k = (graph.transpose(one, 0, 2, 1, 3) for one in (q, k))
        return graph.op("Einsum", q, k, equation="bqhd,bkhd->bhqk")
    if plan.product == "fused":
        return graph.op("FusedMatMul", q, k, domain="com.microsoft", transB=1, alpha=1.0)
    return graph.op("MatMul", q, PRODUCTS[plan.product](graph, k, plan))


# K^T, for the forms that have one.
PRODUCTS: Final[dict[str, Callable[[Graph, str, Plan], str]]] = {
    "0132": lambda graph, k, plan: graph.transpose(k, 0, 1, 3, 2),
    "two": _two_transposes,
    "long way": _long_way,
}
OTHER_PRODUCTS: Final = ("einsum", "einsum of lengths", "fused")
