"""Masks of mutants: one meaning written in many ways.

A `Mask` says which keys a query may see and how the graph writes that down. Tables hold the ways; a mutation picks
another entry. EXISTS_OTHERWISE changes the meaning, and so does a twist (mutant_twists).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from graph_passes import mask_builders
from graph_passes.graph import Graph
from graph_passes.mutant_twists import TWISTS, Place


@dataclass(frozen=True)
class Mask:
    """rule      which keys are visible by position; `window` keys for "window" and "local"; `shift` moves the diagonal;
             "twist": `twist` alone says it
    padding  an input attention_mask hides keys
    number   what hidden keys get; `dtype` is the type positions are counted in
    The other fields name entries of the tables below.
    """

    rule: Literal["none", "causal", "window", "local", "twist"] = "causal"
    window: int = 5
    shift: int = 0
    padding: bool = False
    number: float = mask_builders.LOWEST
    dtype: Any = np.int64
    mask_dtype: Any = np.int64
    count: str = "range"
    after: str = "greater"
    early: str = "less"
    join: str = "or"
    exists: str = "cast"
    apply: str = "add"
    twist: str = ""


def _range(graph: Graph, length: str) -> str:
    return graph.range(length)


def _cumsum(graph: Graph, length: str) -> str:
    ones = graph.op("Expand", graph.constant(1, np.int64), graph.unsqueeze(length, 0))
    total = graph.op("CumSum", ones, graph.constant(0, np.int64))
    return graph.op("Sub", total, graph.constant(1, np.int64))


def _nonzero(graph: Graph, length: str) -> str:
    ones = graph.op("Expand", graph.constant(1, np.int64), graph.unsqueeze(length, 0))
    return graph.reshape(graph.op("NonZero", ones), -1)


COUNT: Final[dict[str, Callable[[Graph, str], str]]] = {
    "range": _range,
    "cumsum": _cumsum,
    "nonzero": _nonzero,
}

# Keys after the query: key > row + shift.
AFTER: Final[dict[str, Callable[[Place, int], str]]] = {
    "greater": lambda at, by: at.op("Greater", at.key, at.moved(by)),
    "less": lambda at, by: at.op("Less", at.moved(by), at.key),
    "not less or equal": lambda at, by: at.op("Not", at.op("LessOrEqual", at.key, at.moved(by))),
    "not greater or equal": lambda at, by: at.op("Not", at.op("GreaterOrEqual", at.moved(by), at.key)),
    "difference": lambda at, by: at.op("Less", at.op("Sub", at.moved(by), at.key), at.number(0)),
    "one more": lambda at, by: at.op("GreaterOrEqual", at.key, at.moved(by + 1)),
    "trilu": lambda at, by: at.triangle(1, by + 1),
    "not lower trilu": lambda at, by: at.op("Not", at.triangle(0, by)),
}

# Keys before the window: row - key >= window.
EARLY: Final[dict[str, Callable[[Place, int], str]]] = {
    "less": lambda at, window: at.op("Less", at.key, at.moved(1 - window)),
    "far": lambda at, window: at.op("Greater", at.distance(), at.number(window - 1)),
    "at least": lambda at, window: at.op("GreaterOrEqual", at.distance(), at.number(window)),
    "not near": lambda at, window: at.op("Not", at.op("LessOrEqual", at.distance(), at.number(window - 1))),
    "between": lambda at, window: at.op(
        "LessOrEqual", at.op("Add", at.key, at.number(window)), at.op("Identity", at.row)
    ),
    "trilu": lambda at, window: at.triangle(0, -window),
}


def _de_morgan(graph: Graph, left: str, right: str) -> str:
    return graph.op("Not", graph.op("And", graph.op("Not", left), graph.op("Not", right)))


def _as_numbers(op_type: str, dtype: Any) -> Callable[[Graph, str, str], str]:
    """Max or Add of 0/1 numbers, nonzero where either is."""
    return lambda graph, left, right: graph.cast(
        graph.op(op_type, graph.cast(left, dtype), graph.cast(right, dtype)), np.bool_
    )


# Hidden by either of two conditions.
JOIN: Final[dict[str, Callable[[Graph, str, str], str]]] = {
    "or": lambda graph, left, right: graph.op("Or", left, right),
    "de morgan": _de_morgan,
    "where": lambda graph, left, right: graph.cast(
        graph.op("Where", left, graph.constant(1, np.int64), graph.cast(right, np.int64)), np.bool_
    ),
    "max": _as_numbers("Max", np.int32),
    "sum": _as_numbers("Add", np.int64),
    "sum of floats": _as_numbers("Add", np.float32),
}


def _compared(op_type: str, number: int, negated: bool = False) -> Callable[[Graph, str, Any], str]:
    def exists(graph: Graph, mask: str, dtype: Any) -> str:
        found = graph.op(op_type, mask, graph.constant(number, dtype))
        return graph.op("Not", found) if negated else found

    return exists


# Which keys an attention_mask of 0 and 1 lets through, (B, T) bool.
EXISTS: Final[dict[str, Callable[[Graph, str, Any], str]]] = {
    "cast": lambda graph, mask, dtype: graph.cast(mask, np.bool_),
    "greater": _compared("Greater", 0),
    "not zero": _compared("Equal", 0, negated=True),
    "equal": _compared("Equal", 1),
    "not below one": _compared("Less", 1, negated=True),
}


def _shifted(graph: Graph, mask: str, dtype: Any) -> str:
    """What exists is told by the next key's element."""
    shape = graph.op("Shape", mask)
    rest = graph.op("Slice", mask, graph.integers(1), graph.constant([1 << 30], np.int64), graph.integers(1))
    first = graph.op("Slice", mask, graph.integers(0), graph.integers(1), graph.integers(1))
    whole = graph.op("Concat", rest, first, axis=1)
    return graph.cast(graph.op("Reshape", whole, shape), np.bool_)


def _of_all_rows(graph: Graph, mask: str, dtype: Any) -> str:
    """A key exists for everyone when it exists in any batch row."""
    return graph.cast(graph.over("ReduceMax", mask, 0, keepdims=1), np.bool_)


EXISTS_OTHERWISE: Final[dict[str, Callable[[Graph, str, Any], str]]] = {
    "only one": _compared("Equal", 1),
    "over one": _compared("Greater", 1),
    "not two": _compared("Equal", 2, negated=True),
    "not negative": _compared("GreaterOrEqual", 0),
    "shifted": _shifted,
    "of all rows": _of_all_rows,
}

Apply = Callable[[Graph, str, str, float], str]


def _low(graph: Graph, number: float) -> str:
    return graph.constant(number, np.float32)


def _fill(graph: Graph, hidden: str, number: float) -> str:
    return mask_builders.fill(graph, hidden, number, np.float32)


def _times(graph: Graph, scores: str, hidden: str, number: float) -> str:
    """0/1 times a large number; infinity would make 0 * inf."""
    number = max(number, mask_builders.LOWEST)
    return graph.op("Add", scores, graph.op("Mul", graph.cast(hidden, np.float32), _low(graph, number)))


def _one_minus(graph: Graph, scores: str, hidden: str, number: float) -> str:
    visible = graph.cast(graph.op("Not", hidden), np.float32)
    hides = graph.op("Sub", graph.constant(1, np.float32), visible)
    return graph.op("Add", graph.op("Mul", hides, _low(graph, max(number, mask_builders.LOWEST))), scores)


def _subtracted(graph: Graph, scores: str, hidden: str, number: float) -> str:
    return graph.op("Sub", scores, _fill(graph, hidden, -number))


def _masked_twice(graph: Graph, scores: str, hidden: str, number: float) -> str:
    """A bool mask, filled into zeros first: ones times 0, then the large number where hidden."""
    visible = graph.op("Not", hidden)
    zeros = graph.op("Where", visible, graph.constant(0, np.float32), _low(graph, number))
    return graph.op("Add", scores, zeros)


APPLY: Final[dict[str, Apply]] = {
    "add": lambda graph, scores, hidden, number: graph.op("Add", scores, _fill(graph, hidden, number)),
    "added to": lambda graph, scores, hidden, number: graph.op("Add", _fill(graph, hidden, number), scores),
    "add visible": _masked_twice,
    "times": _times,
    "one minus": _one_minus,
    "subtract": _subtracted,
    "where": lambda graph, scores, hidden, number: graph.op("Where", hidden, _low(graph, number), scores),
    "where visible": lambda graph, scores, hidden, number: graph.op(
        "Where", graph.op("Not", hidden), scores, _low(graph, number)
    ),
}
# How structure and padding meet: one bool mask, the sum or minimum of two additive ones, or two steps on the scores.
MEET: Final = ("bool", "sum", "min", "steps")


def place(graph: Graph, scores: str, mask: Mask) -> Place:
    """Positions, counted so that the last query stands at the last key."""
    rows, keys = graph.scalar_length(scores, -2), graph.scalar_length(scores, -1)
    row = graph.op("Add", COUNT[mask.count](graph, rows), graph.op("Sub", keys, rows))
    key = COUNT[mask.count](graph, keys)
    if mask.dtype != np.int64:
        row, key = graph.cast(row, mask.dtype), graph.cast(key, mask.dtype)
    return Place(graph, scores, graph.unsqueeze(row, 1), graph.unsqueeze(key, 0), mask.dtype)


def hidden_by_position(at: Place, mask: Mask) -> str:
    """(S, T) bool, or with more axes for a twist; empty when nothing is hidden by position."""
    found: list[str] = []
    if mask.rule in ("causal", "window"):
        found.append(AFTER[mask.after](at, mask.shift))
    if mask.rule in ("window", "local"):
        found.append(EARLY[mask.early](at, mask.window))
    if mask.twist:
        found.append(TWISTS[mask.twist].write(at))
    whole = ""
    for one in found:
        whole = JOIN[mask.join](at.graph, whole, one) if whole else one
    return whole


def padding(graph: Graph, mask: Mask) -> str:
    """(B, 1, 1, T) bool, True where hidden."""
    if not any(value.name == "attention_mask" for value in graph.inputs):
        graph.input("attention_mask", mask.mask_dtype, ["batch", "keys"])
    ways = EXISTS | EXISTS_OTHERWISE
    return graph.op("Not", graph.unsqueeze(ways[mask.exists](graph, "attention_mask", mask.mask_dtype), 1, 2))


def masked(graph: Graph, scores: str, mask: Mask, meet: str = "bool") -> str:
    """The scores after the mask."""
    conditions = [hidden_by_position(place(graph, scores, mask), mask)] if mask.rule != "none" else []
    conditions += [padding(graph, mask)] if mask.padding else []
    if meet == "bool" and len(conditions) == 2:
        conditions = [JOIN[mask.join](graph, *conditions)]
    if meet in ("sum", "min") and len(conditions) == 2:
        both = [_fill(graph, one, mask.number) for one in conditions]
        return graph.op("Add", scores, graph.op("Add" if meet == "sum" else "Min", *both))
    for condition in conditions:
        scores = APPLY[mask.apply](graph, scores, condition, mask.number)
    return scores
