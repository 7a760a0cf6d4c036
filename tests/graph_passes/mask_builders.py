"""Masks as graphs build them; each function returns what `Style.mask` wants: scores in, masked scores out."""

from __future__ import annotations

from typing import Any

import numpy as np

from graph_passes.decomposed import Masking
from graph_passes.graph import Graph

LOWEST = float(np.finfo(np.float32).min)


def positions(graph: Graph, scores: str) -> tuple[str, str]:
    """Query positions (S, 1), counted so that the last query stands at the last key, and key positions (1, T)."""
    rows, keys = graph.scalar_length(scores, -2), graph.scalar_length(scores, -1)
    row = graph.op("Add", graph.range(rows), graph.op("Sub", keys, rows))
    return graph.unsqueeze(row, 1), graph.unsqueeze(graph.range(keys), 0)


def hidden_by_position(graph: Graph, scores: str, window: int | None = None, causal: bool = True) -> str:
    """(S, T) bool: keys after the query; with `window` also those at least so many before it."""
    row, key = positions(graph, scores)
    hidden = graph.op("Greater", key, row) if causal else ""
    if window is not None:
        oldest = graph.op("Sub", row, graph.constant(window - 1, np.int64))
        early = graph.op("Less", key, oldest)
        hidden = graph.op("Or", hidden, early) if hidden else early
    return hidden


def fill(graph: Graph, condition: str, number: float, dtype: Any) -> str:
    """`number` where the condition holds, else 0."""
    return graph.op("Where", condition, graph.constant(number, dtype), graph.constant(0, dtype))


def add(graph: Graph, scores: str, mask: str, swap: bool = False) -> str:
    return graph.op("Add", *((mask, scores) if swap else (scores, mask)), name=graph.fresh("masked"))


def causal(
    number: float = LOWEST, window: int | None = None, dtype: Any = np.float32, swap: bool = False
) -> Masking:
    """An additive mask by position."""
    return lambda graph, scores: add(
        graph, scores, fill(graph, hidden_by_position(graph, scores, window), number, dtype), swap
    )


def causal_where(number: float = -np.inf, window: int | None = None, dtype: Any = np.float32) -> Masking:
    """Scores replaced where a key is hidden."""
    return lambda graph, scores: graph.op(
        "Where", hidden_by_position(graph, scores, window), graph.constant(number, dtype), scores
    )


def key_padding(name: str = "attention_mask", number: float = LOWEST, dtype: Any = np.float32) -> Masking:
    """A (B, T) 0/1 input `name` as (1 - mask) * number, broadcast over heads and rows; not causal."""

    def masked(graph: Graph, scores: str) -> str:
        return add(graph, scores, padding(graph, name, number, dtype))

    return masked


def padding(graph: Graph, name: str, number: float, dtype: Any) -> str:
    """(B, 1, 1, T): 0 where the mask is 1, else `number`."""
    if not any(value.name == name for value in graph.inputs):
        graph.input(name, np.int64, ["batch", "keys"])
    wide = graph.cast(graph.unsqueeze(name, 1, 2), dtype)
    return graph.op("Mul", graph.op("Sub", graph.constant(1, dtype), wide), graph.constant(number, dtype))


def causal_and_padding(
    name: str = "attention_mask", number: float = LOWEST, window: int | None = None, dtype: Any = np.float32
) -> Masking:
    """One boolean mask of both, then filled: what transformers builds."""

    def masked(graph: Graph, scores: str) -> str:
        graph.input(name, np.int64, ["batch", "keys"])
        visible = graph.op("Not", hidden_by_position(graph, scores, window))
        exists = graph.unsqueeze(graph.cast(name, np.bool_), 1, 2)
        both = graph.op("And", visible, exists)
        zero, low = graph.constant(0, dtype), graph.constant(number, dtype)
        return add(graph, scores, graph.op("Where", both, zero, low))

    return masked


def bias(name: str, dims: list[int | str], dtype: Any = np.float32, swap: bool = False) -> Masking:
    """A float input added to the scores."""

    def masked(graph: Graph, scores: str) -> str:
        return add(graph, scores, graph.input(name, dtype, dims), swap)

    return masked
