"""The nodes that GroupQueryAttention does inside and the operator wants done before: splitting one packed tensor, norms of
query and key heads, rotary embedding, the keys that exist, and the rows of a windowed cache.

Keys are numbered over the whole cache. In a first prompt (no past) a batch may be padded on the right: of each row the
first seqlens_k + 1 keys exist. Later every row must have all T tokens: with fewer the original puts new keys into the middle
of the cache, which the operator does not. Then the key mask made here is shorter than the keys, and the operator refuses the
run instead of answering something else; the same happens with a cache that has more room than tokens.

A windowed cache (sliding_window_cache) of capacity C for a window of W keeps the last L(T) of T tokens at its start,
  L(T) = T - G * ceil(max(T - C, 0) / G), G = C - W + 1,
and what stands behind them is not specified; here it is zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx_ir as ir

from .build import Builder
from .facts import Shape
from .values import CONTRIB_DOMAIN, attribute_float, attribute_int

EPSILON: Final = 1e-6  # the default of qk_norm_epsilon
INT64: Final = ir.DataType.INT64


@dataclass(frozen=True)
class GroupQuery:
    """One node with its inputs by name. `sizes`: (batch, queries, width) of the query in each run."""

    node: ir.Node
    inputs: dict[str, ir.Value]
    sizes: tuple[Shape | None, ...]

    def __getitem__(self, name: str) -> ir.Value:
        return self.inputs[name]

    def number(self, name: str, default: int = 0) -> int:
        return attribute_int(self.node, name, default)

    @property
    def window(self) -> int:
        """Keys that stay visible, the own one among them; not positive without a window."""
        return self.number("local_window_size", -1)

    @property
    def cache_is_windowed(self) -> bool:
        return bool(self.number("sliding_window_cache"))


@dataclass(frozen=True)
class StandIns:
    """What the operator reads and no value of the graph is."""

    tensors: tuple[ir.Value, ir.Value, ir.Value]
    head_dim: int
    dtype: ir.DataType | None
    mask: ir.Value
    past: tuple[ir.Value, ir.Value] | None = None
    sinks: ir.Value | None = None


class Lengths:
    """Numbers of tokens as int64 scalars of the graph; those that several nodes have in common are made once."""

    def __init__(self, gqa: GroupQuery, before: ir.Node, builder: Builder, scope: str) -> None:
        self.gqa, self.before, self.builder, self.scope = gqa, before, builder, scope

    def op(self, op_type: str, *inputs: ir.Value, dtype: ir.DataType = INT64, **attributes: int) -> ir.Value:
        return self.builder.node(self.before, op_type, inputs, dtype, self.scope, "", **attributes)

    def constant(self, numbers: int | list[int]) -> ir.Value:
        return self.builder.constant(self.before, np.asarray(numbers, np.int64), self.scope)

    def row(self, *numbers: ir.Value | int) -> ir.Value:
        """A vector of the given numbers, as Slice and Pad take them."""
        parts = [
            self.constant([one]) if isinstance(one, int) else self.op("Reshape", one, self.constant([1]))
            for one in numbers
        ]
        if len(parts) == 1:
            return parts[0]
        return self.builder.node(self.before, "Concat", parts, INT64, self.scope, axis=0)

    def shared(self, what: str, make: Callable[[], ir.Value], *of: object) -> ir.Value:
        return self.builder.shared(("group query", what, self.before.graph, *of), make)

    def counts(self) -> ir.Value:
        """(B): tokens of each batch row, past and new."""
        seqlens = self.gqa["seqlens_k"]

        def make() -> ir.Value:
            wide = self.op("Cast", self.builder.now(seqlens), to=int(INT64))  # (B) or (B, 1)
            return self.op("Add", self.op("Reshape", wide, self.constant([-1])), self.constant(1))

        return self.shared("counts", make, seqlens)

    def total(self) -> ir.Value:
        """T, tokens of the longest row."""
        total = self.gqa["total_sequence_length"]

        def make() -> ir.Value:
            wide = self.op("Cast", self.builder.now(total), to=int(INT64))
            return self.op("Reshape", wide, self.constant([]))

        return self.shared("total", make, total)

    def new(self) -> ir.Value:
        """S; the queries of two nodes are as long as each other if they are so in every run."""
        return self.shared("new", lambda: self._length(self.gqa["query"], 1), self.gqa.sizes)

    def before_new(self) -> ir.Value:
        """T - S"""
        return self.shared("before", lambda: self.op("Sub", self.total(), self.new()), *self._key())

    def capacity(self) -> ir.Value:
        """C"""
        past = self.gqa["past_key"]
        return self.shared("capacity", lambda: self._length(past, 2), past)

    def _length(self, value: ir.Value, axis: int) -> ir.Value:
        shape = self.op("Shape", self.builder.now(value))
        return self.op("Gather", shape, self.constant(axis), axis=0)

    def resident(self, tokens: ir.Value) -> ir.Value:
        """L(tokens) of a windowed cache."""
        capacity = self.capacity()
        step = self.op("Sub", capacity, self.constant(self.gqa.window - 1))
        over = self.op("Max", self.op("Sub", tokens, capacity), self.constant(0))
        steps = self.op("Div", self.op("Add", over, self.op("Sub", step, self.constant(1))), step)
        return self.op("Sub", tokens, self.op("Mul", step, steps))

    def past_rows(self) -> ir.Value:
        """Rows of the past that the operator gets."""
        if not self.gqa.cache_is_windowed:
            return self.before_new()
        key = (*self._key(), self.gqa["past_key"], self.gqa.window)
        return self.shared("past rows", lambda: self.resident(self.before_new()), *key)

    def key_mask(self) -> ir.Value:
        """(B, keys) bool; shorter than the keys where a row of a later run has fewer than T tokens."""
        own = (self.gqa["past_key"], self.gqa.window) if self.gqa.cache_is_windowed else ()
        return self.shared("key mask", self._key_mask, *self._key(), self.gqa["seqlens_k"], *own)

    def _key_mask(self) -> ir.Value:
        total, counts = self.total(), self.counts()
        is_first = self.op("Equal", total, self.new(), dtype=ir.DataType.BOOL)
        end = self.op("Where", is_first, total, self.op("ReduceMin", counts, keepdims=0))
        if self.gqa.cache_is_windowed:  # keys are numbered from the first resident one
            gone = self.op("Sub", self.before_new(), self.past_rows())
            end, counts = self.op("Sub", end, gone), self.op("Sub", counts, gone)
        keys = self.op("Range", self.constant(0), end, self.constant(1))
        return self.op(
            "Less",
            keys,
            self.builder.unsqueeze(self.before, counts, 1, self.scope),
            dtype=ir.DataType.BOOL,
        )

    def _key(self) -> tuple[object, ...]:
        return self.gqa["total_sequence_length"], self.gqa.sizes


def make(gqa: GroupQuery, made: StandIns, before: ir.Node, builder: Builder, scope: str) -> None:
    """Everything that `made` stands for."""
    lengths = Lengths(gqa, before, builder, scope)
    heads = (gqa.number("num_heads"), gqa.number("kv_num_heads"), gqa.number("kv_num_heads"))
    query = builder.now(gqa["query"])
    if "key" in gqa.inputs:
        tensors = [query, builder.now(gqa["key"]), builder.now(gqa["value"])]
    else:
        tensors = list(builder.split(before, query, [count * made.head_dim for count in heads], 2, scope))
    for at, which in ((0, "q"), (1, "k")):
        if f"{which}_norm_weight" in gqa.inputs:
            tensors[at] = _normed(gqa, which, tensors[at], made, lengths)
        if gqa.number("do_rotary"):
            tensors[at] = _rotated(gqa, tensors[at], heads[at], made, lengths)
    for old, new in zip(made.tensors, tensors, strict=True):
        builder.move(old, new)
    builder.move(made.mask, lengths.key_mask())
    if made.past is not None:
        rows = lengths.row(lengths.past_rows())
        for old, name in zip(made.past, ("past_key", "past_value"), strict=True):
            inputs = (builder.now(gqa[name]), lengths.constant([0]), rows, lengths.constant([2]))
            builder.move(old, builder.node(before, "Slice", inputs, made.dtype, scope))
    if made.sinks is not None:
        builder.move(made.sinks, builder.constant(before, np.zeros(heads[0], np.float32), scope))


def _normed(gqa: GroupQuery, which: str, tensor: ir.Value, made: StandIns, lengths: Lengths) -> ir.Value:
    """Each head divided by its root mean square, times a weight; in operators that every runtime has."""
    common = attribute_float(gqa.node, "qk_norm_epsilon", EPSILON)
    epsilon = attribute_float(gqa.node, f"{which}_norm_epsilon", common)
    before, builder, scope, wide = lengths.before, lengths.builder, lengths.scope, ir.DataType.FLOAT

    def op(op_type: str, *inputs: ir.Value) -> ir.Value:
        return builder.node(before, op_type, inputs, wide, scope)

    weight = builder.now(gqa[f"{which}_norm_weight"])
    heads = builder.reshape(before, tensor, (0, 0, -1, made.head_dim), scope)
    if made.dtype != wide:
        heads, weight = (builder.cast(before, one, wide, scope) for one in (heads, weight))
    mean = builder.mean(before, op("Mul", heads, heads), -1, scope)
    root = op("Sqrt", op("Add", mean, builder.constant(before, np.asarray(epsilon, np.float32), scope)))
    normed = op("Mul", op("Div", heads, root), weight)
    if made.dtype is not None and made.dtype != wide:
        normed = builder.cast(before, normed, made.dtype, scope)
    return builder.reshape(before, normed, (0, 0, -1), scope)


def _rotated(gqa: GroupQuery, tensor: ir.Value, heads: int, made: StandIns, lengths: Lengths) -> ir.Value:
    """RotaryEmbedding of positions T - S, T - S + 1, ..."""
    builder, cos, sin = lengths.builder, gqa["cos_cache"], gqa["sin_cache"]
    start = lengths.shared(
        "position", lambda: lengths.row(lengths.before_new()), gqa["total_sequence_length"], gqa.sizes
    )
    given = {"interleaved": gqa.number("rotary_interleaved")}
    if cos.shape is None or cos.shape[1] != made.head_dim // 2:  # a part of each head is rotated
        width = None if cos.shape is None else cos.shape[1]
        assert isinstance(width, int)
        given |= {"num_heads": heads, "rotary_embedding_dim": 2 * width}
    inputs = (tensor, start, builder.now(cos), builder.now(sin))
    return builder.node(
        lengths.before, "RotaryEmbedding", inputs, made.dtype, lengths.scope, CONTRIB_DOMAIN, **given
    )


def finish(
    gqa: GroupQuery,
    present: ir.Value,
    dtype: ir.DataType | None,
    before: ir.Node,
    builder: Builder,
    scope: str,
) -> ir.Value:
    """A windowed cache after the run: the last L(T) rows of past and new keys, then zeros up to the capacity."""
    lengths = Lengths(gqa, before, builder, scope)
    key = (gqa["total_sequence_length"], gqa.sizes, gqa["past_key"], gqa.window)
    kept = lengths.shared("kept", lambda: lengths.resident(lengths.total()), *key)
    rows = lengths.op("Add", lengths.past_rows(), lengths.new())
    inputs = (
        present,
        lengths.row(lengths.op("Sub", rows, kept)),
        lengths.row(rows),
        lengths.constant([2]),
    )
    last = builder.node(before, "Slice", inputs, dtype, scope)
    pads = lengths.row(0, 0, 0, 0, 0, 0, lengths.op("Sub", lengths.capacity(), kept), 0)
    return builder.node(before, "Pad", (last, pads), dtype, scope)
