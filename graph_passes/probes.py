"""Runs of a graph on small concrete shapes, without weights: what every value's shape is, and the content of every
value that follows from shapes, constants and integer inputs (masks, positions) alone.

Decisions about masks, layouts and scales are made on these runs: a hypothesis has to hold on each of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from .evaluate import Evaluator
from .facts import UNKNOWN, Conflicts, Fact, Shape
from .lengths import LengthModel
from .shapes import infer, shape_slice
from .values import BUFFER_BYTES, LEARNED_OPS, Array, constant, is_op, standard, tensor

EAGER_ELEMENTS: Final = 1 << 16
RESOLVE_ELEMENTS: Final = 1 << 26
KEEP_ELEMENTS: Final = 1 << 20
RANDOM_OPS: Final = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli"}
)


# Operators whose content says how long their output is.
BY_CONTENT: Final = ("NonZero", "Compress")


# How one input of numbers is filled to see whether it is a mask of 0 and 1: with other small numbers, with those that the
# mask names, or with positions that start again, run backwards, and lie far apart.
Wide = Literal["numbers", "named", "positions"]
NUMBERS: Final = (1, 2, 0, 3, -1, 1)
FRACTION: Final = 0.75  # float inputs hold multiples of it


def _wide(kind: Wide, batch: int, length: int, far: int, more: Sequence[int] = ()) -> npt.NDArray[np.int64]:
    at = np.arange(length)
    if length == 1:
        return np.asarray(
            [[far // (row + 2) if kind == "positions" else 2 + 3 * row] for row in range(batch)]
        )
    if kind != "positions":
        given = NUMBERS if kind == "numbers" else (*more, *NUMBERS[:3])
        return np.stack([np.resize(np.roll(given, row), max(length, 1)) for row in range(batch)])[:, :length]
    rows = [at % max(1, (length + 1) // 2), at * far, at[::-1]]
    return np.stack([rows[row % 3] for row in range(batch)])


# Visibility patterns of 0/1 inputs, as functions of the length. Row 0 of a batch is always `ones`.
PATTERNS: Final = ("ones", "left", "gaps", "right")


def pattern_row(pattern: str, length: int) -> npt.NDArray[np.int64]:
    """A 0/1 vector with at least one 1: all ones, padding left or right, or holes."""
    row = np.ones(length, np.int64)
    pad = min(2, length - 1)
    if pattern == "left":
        row[:pad] = 0
    elif pattern == "right":
        row[length - pad :] = 0
    elif pattern == "gaps":
        row[1 : length - 1 : 2] = 0
    return row


@dataclass
class Probe:
    """One run. `free` are the numbers chosen for the free lengths, `lengths` those of all of them; with `phase` 0
    the first row of every batch is unpadded, other phases pad every row in another way."""

    free: Mapping[str, int]
    lengths: Mapping[str, int]
    evaluator: Evaluator
    phase: int = 0
    facts: dict[ir.Value, Fact] = field(default_factory=dict)
    conflicts: Conflicts = field(default_factory=list)
    failures: int = 0
    _kept: dict[ir.Value, Array] = field(default_factory=dict)

    def fact(self, value: ir.Value | None) -> Fact:
        if value is None:
            return UNKNOWN
        known = self.facts.get(value)
        if known is None:
            leaves = self.evaluator.leaves
            known = leaves.get(value)
            if known is None:
                known = leaves[value] = _leaf_fact(value)
        return known

    def shape(self, value: ir.Value | None) -> Shape | None:
        return self.fact(value).shape

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        if value is None:
            return None
        return self.fact(value).dtype or value.dtype

    def scalar(self, value: ir.Value | None) -> float | None:
        """The number in a one-element value, when known."""
        fact = self.fact(value)
        data = fact.data
        if data is None or data.size != 1 or data.dtype.kind == "b" or fact.filled:
            return None
        return float(data.astype(np.float64).reshape(()))

    def resolve(self, value: ir.Value) -> Array | None:
        """The content of `value` if it can be told, however large (up to RESOLVE_ELEMENTS per tensor)."""
        fact = self.fact(value)
        if fact.data is not None:
            return fact.data
        if not fact.knowable:
            return None
        order = self._order(value)
        last_use = {one: at for at, node in enumerate(order) for one in node.inputs if one is not None}
        local: dict[ir.Value, Array | None] = {}
        for at, node in enumerate(order):
            for one in node.inputs:
                if one is not None and one not in local:
                    local[one] = self._stored(one)
            self._run_into(local, node)
            for one in node.inputs:  # a mask of 4096 x 4096 passes through a dozen nodes: free them early
                if one is not None and last_use[one] == at and one is not value:
                    data = local.pop(one, None)
                    if data is not None and data.size <= KEEP_ELEMENTS:
                        self._kept[one] = data
        result = local[value] if value in local else self._stored(value)
        if result is not None and result.size <= KEEP_ELEMENTS:
            self._kept[value] = result
        return result

    def _order(self, value: ir.Value) -> list[ir.Node]:
        """The nodes to run for `value`, inputs before users."""
        order: list[ir.Node] = []
        done: set[ir.Node] = set()
        stack: list[tuple[ir.Value, bool]] = [(value, False)]
        while stack:
            one, expanded = stack.pop()
            node = one.producer()
            if node is None or node in done or self._is_stored(one):
                continue
            if expanded:
                done.add(node)
                order.append(node)
            else:
                stack.append((one, True))
                asked = node.inputs[:1] if is_op(node, "CastLike") else node.inputs
                stack.extend((above, False) for above in asked if above is not None)
        return order

    def _is_stored(self, value: ir.Value) -> bool:
        return self.fact(value).data is not None or value in self._kept or tensor(value) is not None

    def _stored(self, value: ir.Value) -> Array | None:
        data = self.fact(value).data
        if data is None:
            data = self._kept.get(value)
        return data if data is not None else constant(value, BUFFER_BYTES)

    def _run_into(self, local: dict[ir.Value, Array | None], node: ir.Node) -> None:
        inputs = [None if one is None else local[one] for one in node.inputs]
        if is_op(node, "CastLike"):
            inputs[1] = _type_only(self.fact(node.inputs[1])).data
        size = math.prod(self.fact(node.outputs[0]).shape or (0,))
        complete = all(
            data is not None for one, data in zip(node.inputs, inputs, strict=True) if one is not None
        )
        found = self.evaluator.run(node, inputs) if complete and size <= RESOLVE_ELEMENTS else None
        for at, output in enumerate(node.outputs):
            local[output] = None if found is None or at >= len(found) else found[at]


def _leaf_fact(value: ir.Value) -> Fact:
    """What is known of an initializer or Constant without running anything."""
    held = tensor(value)
    if held is None and value.is_initializer() and value.const_value is not None:
        held = value.const_value  # callers may override it: shape and type hold, the content does not
        return Fact(tuple(int(length) for length in held.shape.numpy()), held.dtype)
    if held is None or held.dtype == ir.DataType.STRING:
        return UNKNOWN
    shape = tuple(int(dim) for dim in held.shape.numpy())
    # A large float tensor may be a mask buffer only when it is square; anything else of that size is a weight.
    square = len(shape) >= 2 and shape[-1] == shape[-2]
    buffer = held.nbytes <= BUFFER_BYTES and (square or not held.dtype.is_floating_point())
    return Fact(shape, held.dtype, constant(value), knowable=buffer, constant=True)


def _type_only(fact: Fact) -> Fact:
    """What CastLike takes of its second input: its content does not matter."""
    if fact.dtype is None:
        return fact
    return Fact((), fact.dtype, np.zeros((), fact.dtype.numpy()), constant=True)


def _fill(value: ir.Value, shape: Shape, at: int, phase: int, flipped: bool) -> Array | None:
    """Content for a graph input: 0/1 patterns for rank-2 integer, bool and float inputs, differing by input."""
    if len(shape) != 2 or value.dtype is None:
        return None
    names = [PATTERNS[0 if row + phase == 0 else 1 + (row + at + phase - 1) % 3] for row in range(shape[0])]
    rows = [np.roll(pattern_row(name, shape[1]), at // 3) ^ int(flipped) for name in names]
    if value.shape is not None and value.shape[1] == 1:  # a number per batch row, not a mask of keys
        rows = [np.asarray([(row + phase + 1) % 2]) for row in range(shape[0])]
    return np.asarray(np.stack(rows) if rows else np.zeros(shape, np.int64)).astype(value.dtype.numpy())


def _run_graph(probe: Probe, graph: ir.Graph, conflicts: Conflicts) -> None:
    for node in graph:
        if is_op(node, "Constant"):
            continue
        _run_node(probe, node, conflicts)


def _run_node(probe: Probe, node: ir.Node, conflicts: Conflicts) -> None:
    facts = [probe.fact(value) for value in node.inputs]
    if is_op(node, "CastLike"):
        facts[1] = _type_only(facts[1])
    present = [fact for value, fact in zip(node.inputs, facts, strict=True) if value is not None]
    bodies = [body for attribute in node.attributes.values() for body in _graphs(attribute)]
    if bodies:
        ignored: Conflicts = []  # branches see lengths the model never runs them with
        for body in bodies:
            _run_graph(probe, body, ignored)
        _store(probe, node, _agreed(probe, node, bodies), False, False)
        return
    if is_op(node, "Shape") and facts[0].shape is not None:
        data = np.asarray(shape_slice(node, facts[0].shape), np.int64)
        probe.facts[node.outputs[0]] = Fact(data.shape, ir.DataType.INT64, data)
        return
    shapes = infer(node, facts, probe.evaluator.opset, conflicts)
    may_run = standard(node) and node.op_type not in LEARNED_OPS and node.op_type not in RANDOM_OPS
    knowable = may_run and all(fact.data is not None or fact.knowable for fact in present)
    fixed = may_run and all(fact.constant for fact in present) and bool(present)
    filled = any(fact.filled for fact in present)
    if knowable and all(fact.data is not None for fact in present):
        shape = shapes[0][0]
        if shape is None and is_op(node, *BY_CONTENT):
            shape = present[0].shape  # as many elements at most
        if shape is not None and math.prod(shape) <= EAGER_ELEMENTS:
            found = probe.evaluator.run(node, [fact.data for fact in facts])
            if found is not None and len(found) == len(node.outputs):
                for output, result in zip(node.outputs, found, strict=True):
                    dtype = shapes[0][1] if len(found) == 1 and shapes[0][1] else _dtype_of(result)
                    probe.facts[output] = Fact(result.shape, dtype, result, constant=fixed, filled=filled)
                return
            probe.failures += 1
            knowable = False
    _store(probe, node, shapes, knowable, fixed)


def _dtype_of(data: Array) -> ir.DataType | None:
    try:
        return ir.DataType.from_numpy(data.dtype)
    except TypeError:
        return None


def _graphs(attribute: ir.Attr) -> Iterable[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        yield attribute.as_graph()
    elif attribute.type == ir.AttributeType.GRAPHS:
        yield from attribute.as_graphs()


def _agreed(
    probe: Probe, node: ir.Node, bodies: Sequence[ir.Graph]
) -> list[tuple[Shape | None, ir.DataType | None]]:
    """Output shapes of an If that all branches agree on; of any other node with bodies nothing is known."""
    result: list[tuple[Shape | None, ir.DataType | None]] = []
    for at in range(len(node.outputs)):
        facts = {
            (f.shape, f.dtype)
            for f in (probe.fact(body.outputs[at]) for body in bodies if at < len(body.outputs))
        }
        result.append(next(iter(facts)) if len(facts) == 1 and is_op(node, "If") else (None, None))
    return result


def _store(
    probe: Probe,
    node: ir.Node,
    shapes: Sequence[tuple[Shape | None, ir.DataType | None]],
    knowable: bool,
    fixed: bool,
) -> None:
    for output, (shape, dtype) in zip(node.outputs, shapes, strict=True):
        known = shape if shape is not None else _declared(output, probe.lengths)
        probe.facts[output] = Fact(known, dtype or output.dtype, None, knowable and shape is not None, fixed)


def _declared(value: ir.Value, lengths: Mapping[str, int]) -> Shape | None:
    """The shape the file declares, when every dimension is a number or a length of this probe."""
    if value.shape is None:
        return None
    dims = [dim if isinstance(dim, int) else lengths.get(dim.value or "") for dim in value.shape]
    return None if any(dim is None for dim in dims) else tuple(dim for dim in dims if dim is not None)


def run_probe(
    graph: ir.Graph,
    model: LengthModel,
    free: Mapping[str, int],
    evaluator: Evaluator,
    phase: int = 0,
    longer: Mapping[str, int] | None = None,
    flipped: bool = False,
    leads: Mapping[str, int] | None = None,
    wide: Mapping[str, tuple[Wide, int, tuple[int, ...]]] | None = None,
) -> Probe:
    """Run `graph` once with the given free lengths.

    longer: added to the second length of inputs, by name. flipped: 0 for 1 and 1 for 0 in what inputs are filled with.
    leads: first lengths by their symbols, instead of the batch.
    wide: inputs that hold no 0/1 pattern but this, positions so far apart, and these numbers among the others.
    """
    probe = Probe(free, model.resolve(free), evaluator, phase)
    integer_at = 0
    for value in graph.inputs:
        if value.is_initializer() or value.shape is None:
            continue
        shape = tuple(
            dim if isinstance(dim, int) else probe.lengths[model.dims[value.name or "", axis]]
            for axis, dim in enumerate(value.shape)
        )
        if leads and len(shape) > 1 and not isinstance(value.shape[0], int):
            shape = (leads.get(value.shape[0].value or "", shape[0]), *shape[1:])
        if longer and value.name in longer and value.name is not None:
            shape = (shape[0], shape[1] + longer[value.name], *shape[2:])
        data = _fill(value, shape, integer_at, phase, flipped)
        if data is not None and wide and value.name is not None and value.name in wide and shape[0] > 0:
            kind, far, more = wide[value.name]
            numbers = _wide(kind, shape[0], shape[1], far, more)
            is_float = value.dtype is not None and value.dtype.is_floating_point()
            data = (numbers * FRACTION if is_float else numbers).astype(data.dtype)
        integer_at += data is not None
        probe.facts[value] = Fact(shape, value.dtype, data, filled=data is not None)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _run_graph(probe, graph, probe.conflicts)
    return probe
