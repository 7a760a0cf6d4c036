"""Masks with another meaning: rules that begin beyond a length, or differ by batch row, head, query or caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from graph_passes.graph import Graph


@dataclass(frozen=True)
class Place:
    """Where a mask is being written: the graph, the scores, and positions (S, 1) and (1, T) in `dtype`."""

    graph: Graph
    scores: str
    row: str
    key: str
    dtype: Any

    def number(self, number: float) -> str:
        return self.graph.constant(number, self.dtype)

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        return self.graph.op(op_type, *inputs, **attributes)

    def moved(self, by: int) -> str:
        """Query positions plus a number."""
        return self.row if by == 0 else self.op("Add", self.row, self.number(by))

    def distance(self) -> str:
        return self.op("Sub", self.row, self.key)

    def real(self, value: str) -> str:
        return self.graph.cast(value, np.float32)

    def triangle(self, upper: int, diagonal: int) -> str:
        """(S, T) bool by Trilu, its diagonal counted from the last query at the last key."""
        graph = self.graph
        lengths = [graph.length(self.scores, axis) for axis in (-2, -1)]
        ones = self.op("Expand", graph.constant(1, np.float32), self.op("Concat", *lengths, axis=0))
        offset = self.op("Sub", graph.scalar_length(self.scores, -1), graph.scalar_length(self.scores, -2))
        at = self.op("Add", offset, graph.constant(diagonal, np.int64))
        return graph.cast(self.op("Trilu", ones, at, upper=upper), np.bool_)


def _other_chunk(at: Place, chunk: Callable[[str], str]) -> str:
    return at.op("Not", at.op("Equal", chunk(at.row), chunk(at.key)))


def _divided(at: Place, *numbers: int) -> str:
    def chunk(value: str) -> str:
        for number in numbers:
            value = at.op("Div", value, at.number(number))
        return value

    return _other_chunk(at, chunk)


def _by_reciprocal(at: Place, number: int) -> str:
    factor = at.graph.constant(1.0 / number + 1e-6, np.float32)
    return _other_chunk(at, lambda value: at.op("Floor", at.op("Mul", at.real(value), factor)))


def _by_bits(at: Place, bits: int) -> str:
    shift = at.graph.constant(np.uint64(bits), np.uint64)

    def chunk(value: str) -> str:
        wide = at.op("Cast", value, to=13)  # UINT64, the type that BitShift takes
        return at.op("Cast", at.op("BitShift", wide, shift, direction="RIGHT"), to=7)

    return _other_chunk(at, chunk)


def _by_table(at: Place, border: int, length: int) -> str:
    table = at.graph.constant(np.arange(length) >= border, np.int64)
    top = at.graph.constant(length - 1, np.int64)
    return _other_chunk(
        at, lambda value: at.op("Gather", table, at.op("Min", at.graph.cast(value, np.int64), top))
    )


def _narrow(at: Place, kind: int) -> str:
    """Other keys that are the own one in a narrow type (3: int8, 10: half)."""
    row, key = (at.op("Cast", at.op("Cast", one, to=kind), to=1) for one in (at.row, at.key))
    return at.op("And", at.op("Equal", key, row), at.op("Less", at.key, at.row))


def _square(at: Place, number: int) -> str:
    far = at.distance()
    return at.op("Greater", at.op("Mul", far, far), at.number(number * number))


def _power(at: Place, number: int) -> str:
    far = at.real(at.distance())
    squares = at.op("Pow", far, at.graph.constant(2, np.float32))
    return at.op("Greater", squares, at.graph.constant(number * number + 0.5, np.float32))


def _logarithm(at: Place, number: int) -> str:
    far = at.op("Max", at.real(at.distance()), at.graph.constant(0, np.float32))
    logarithm = at.op("Log", at.op("Add", far, at.graph.constant(1, np.float32)))
    return at.op("Greater", logarithm, at.graph.constant(np.log(number + 1.5), np.float32))


def _first_key(at: Place, when: str) -> str:
    """Key 0, hidden when `when`."""
    return at.op("And", at.op("Equal", at.key, at.number(0)), when)


def _longer(at: Place, axis: int, number: int) -> str:
    length = at.graph.scalar_length(at.scores, axis)
    return _first_key(at, at.op("Greater", length, at.graph.constant(number, np.int64)))


def _when_length(at: Place, op_type: str, number: int) -> str:
    """Key 0 hidden at a length of its own, or at every so many."""
    length = at.graph.scalar_length(at.scores, -1)
    held = at.graph.constant(number, np.int64)
    if op_type == "Equal":
        return _first_key(at, at.op("Equal", length, held))
    return _first_key(at, at.op("Not", at.graph.cast(at.op("Mod", length, held), np.bool_)))


def _index(at: Place, axis: int, wide: int) -> str:
    """0, 1, ... along an axis of the scores, `wide` axes before the keys."""
    axes = [number for number in range(4) if number != 3 - wide]
    number = at.graph.range(at.graph.scalar_length(at.scores, axis))
    return at.graph.unsqueeze(at.graph.cast(number, at.dtype), *axes)


def _later_batch(at: Place) -> str:
    """Row b of the batch sees b keys less."""
    return at.op("Greater", at.op("Add", at.key, _index(at, 0, 3)), at.row)


def _fifth_batch(at: Place) -> str:
    return _first_key(at, at.op("GreaterOrEqual", _index(at, 0, 3), at.number(4)))


def _one_head(at: Place, last: bool) -> str:
    """Everything (or all but the own key) hidden from one head."""
    head = at.op("Equal", _index(at, 1, 2), at.number(1))
    return at.op("And", head, at.op("Not", at.op("Equal", at.key, at.row)) if last else head)


def _activations(at: Place) -> str:
    """Keys hidden by the first channel of the queries of the same position."""
    query = at.op("Slice", "query", at.graph.integers(0), at.graph.integers(1), at.graph.integers(-1))
    loud = at.op("Greater", query, at.graph.constant(0.5, np.float32))  # (B, S, 1)
    return at.op("And", at.graph.unsqueeze(loud, 1), at.op("Less", at.key, at.row))


def _positions(at: Place, window: int) -> str:
    """By positions that the caller gives, (B, S); sequences may be packed one after the other."""
    name = "position_ids"
    if not any(value.name == name for value in at.graph.inputs):
        at.graph.input(name, np.int64, ["batch", "tokens"])
    row, key = at.graph.unsqueeze(name, 1, 3), at.graph.unsqueeze(name, 1, 2)
    far = at.op("Sub", row, key)
    early = at.op("Greater", far, at.graph.constant(window, np.int64))
    return early if window < 1000 else at.op("Or", early, at.op("Less", far, at.graph.constant(0, np.int64)))


def _dilated(at: Place) -> str:
    return at.op("Equal", at.op("Mod", at.distance(), at.number(2)), at.number(1))


def _stored(at: Place, length: int, odd: tuple[int, int]) -> str:
    """A stored triangle with one element that is different, cut to the lengths; it ends at 110 keys."""
    table = np.triu(np.ones((length, length), np.bool_), 1)
    table[odd] ^= True
    held = at.graph.constant(table)
    keys, rows = (at.graph.length(at.scores, axis) for axis in (-1, -2))
    first = at.op("Sub", keys, rows)
    held = at.op("Slice", held, first, keys, at.graph.integers(0))
    return at.op("Slice", held, at.graph.integers(0), keys, at.graph.integers(1))


@dataclass(frozen=True)
class Twist:
    """Keys that are hidden as well, or with `alone` instead of those after the query.

    reach: a length at which it shows. batch: a batch at which it does.
    """

    write: Callable[[Place], str]
    reach: int = 20
    batch: int = 3
    alone: bool = False
    opset: int = 13


TWISTS: Final[dict[str, Twist]] = {
    "positions that wrap": Twist(lambda at: _narrow(at, 3), 270),
    "positions in half precision": Twist(lambda at: _narrow(at, 10), 2060),
    "chunks of 4": Twist(lambda at: _divided(at, 4)),
    "chunks of 64": Twist(lambda at: _divided(at, 64), 70),
    "chunks of 600": Twist(lambda at: _divided(at, 600), 620),
    "chunks of 600 by two divisions": Twist(lambda at: _divided(at, 30, 20), 620),
    "chunks of 64 by a reciprocal": Twist(lambda at: _by_reciprocal(at, 64), 70),
    "chunks of 600 by a reciprocal": Twist(lambda at: _by_reciprocal(at, 600), 620),
    "chunks of 64 by bits": Twist(lambda at: _by_bits(at, 6), 70),
    "segments in a table": Twist(lambda at: _by_table(at, 64, 1024), 70),
    "segments in a long table": Twist(lambda at: _by_table(at, 600, 1024), 620),
    "window of squares": Twist(lambda at: _square(at, 30), 40),
    "window of powers": Twist(lambda at: _power(at, 64), 80),
    "window of logarithms": Twist(lambda at: _logarithm(at, 64), 80),
    "window in halves": Twist(
        lambda at: at.op("Greater", at.real(at.distance()), at.graph.constant(63.5, np.float32)), 70
    ),
    "no key after 63": Twist(lambda at: at.op("Greater", at.key, at.op("Min", at.row, at.number(63))), 80),
    "longer than 64 keys": Twist(lambda at: _longer(at, -1, 64), 70),
    "longer than 64 queries": Twist(lambda at: _longer(at, -2, 64), 70),
    "other rule in each batch row": Twist(_later_batch),
    "other rule in the fifth batch row": Twist(_fifth_batch, batch=6),
    "all hidden from one head": Twist(lambda at: _one_head(at, last=False)),
    "one head sees itself": Twist(lambda at: _one_head(at, last=True)),
    "activations": Twist(_activations),
    "positions of the caller": Twist(lambda at: _positions(at, 1000)),
    "window of the caller's positions": Twist(lambda at: _positions(at, 64), 80),
    "dilated": Twist(_dilated),
    "exactly 50 keys": Twist(lambda at: _when_length(at, "Equal", 50), 50),
    "every seventh length": Twist(lambda at: _when_length(at, "Mod", 7), 49),
    # Division rounds towards zero: -3..3 are all 0.
    "divided distances": Twist(
        lambda at: at.op("Not", at.op("Equal", at.op("Div", at.distance(), at.number(4)), at.number(0))),
        alone=True,
    ),
    "a table with one odd element": Twist(lambda at: _stored(at, 110, (50, 20)), 70, alone=True),
    "a table odd near its end": Twist(lambda at: _stored(at, 110, (101, 2)), 105, alone=True),
    "a table odd above its diagonal": Twist(lambda at: _stored(at, 110, (98, 102)), 105, alone=True),
}
