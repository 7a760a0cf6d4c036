"""How far a mask has to be looked at: the length from which on it may follow another rule.

A mask compares positions. Runs on short lengths do not show what begins at a length that is written into the graph: a
window of 600, a chunk of 64, a rule for long inputs. The bound follows the positions through the graph: a constant c
that meets them matters at c; after a division by d positions move d times slower, and c matters at c * d. Operators
through which no such bound is known end the walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx_ir as ir

from .guards import HIDDEN
from .scenarios import ProbeSet
from .values import Array, constant, is_op, operand, standard, tensor

MAX_LENGTH: Final = 1 << 24  # what a model can hold as a length; larger numbers mean "all" or "hidden"
TABLE_FROM: Final = 8  # elements; a shorter constant is a shape or a list of axes
# Positions go through these unchanged, are compared, or only move up or down.
STRAIGHT: Final = frozenset(
    {"Identity", "Cast", "CastLike", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Transpose", "Expand"}
    | {"Tile", "Concat", "Split", "Slice", "Gather", "GatherND", "GatherElements", "ScatterND", "Pad"}
    | {"ScatterElements", "ConstantOfShape", "Constant", "Range", "CumSum", "NonZero", "Compress", "EyeLike"}
    | {"Add", "Sub", "Neg", "Abs", "Sign", "Min", "Max", "Clip", "Where", "Trilu", "Floor", "Ceil", "Round"}
    | {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN"}
    | {"IsInf", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "Shape", "Size", "Sum", "Relu", "OneHot"}
)
# Whole numbers are not exact any more (floats) or begin again (integers) from here on.
EXACT_TO: Final = {
    ir.DataType.INT8: 256,
    ir.DataType.UINT8: 256,
    ir.DataType.INT16: 1 << 16,
    ir.DataType.UINT16: 1 << 16,
    ir.DataType.FLOAT16: 2048,
    ir.DataType.BFLOAT16: 256,
}
SHAPERS: Final = {
    "Reshape": 1,
    "Unsqueeze": 1,
    "Squeeze": 1,
    "Expand": 1,
    "Tile": 1,
    "ReduceMax": 1,
    "ReduceMin": 1,
    "ReduceSum": 1,
    "ReduceProd": 1,
    "Split": 1,
    "CumSum": 1,
}  # input whose constant is a shape, axes or repeats


@dataclass(frozen=True)
class Bound:
    """length  from which on nothing new begins; infinite when that is not known, because of `node`
    slow     positions move this many times slower here
    """

    length: float = 0.0
    slow: float = 1.0
    node: ir.Node | None = None


def bound_of(value: ir.Value, probes: ProbeSet) -> Bound:
    """The bound of everything `value` is made from."""
    known: dict[ir.Value, Bound] = {}
    for one in reversed(_inputs_last(value)):
        known[one] = _bound(one, known, probes)
    return known[value]


def _inputs_last(value: ir.Value) -> list[ir.Value]:
    """`value` and what it is made from, readers before what they read. What only gives its shape is left out."""
    order: list[ir.Value] = []
    done: set[ir.Value] = set()
    stack: list[tuple[ir.Value, bool]] = [(value, False)]
    while stack:
        one, expanded = stack.pop()
        if expanded:
            order.append(one)
            continue
        if one in done:
            continue
        done.add(one)
        stack.append((one, True))
        node = one.producer()
        if node is not None and not is_op(node, "Shape", "Size"):
            stack.extend((above, False) for above in node.inputs if above is not None)
    return order[::-1]


def _bound(value: ir.Value, known: dict[ir.Value, Bound], probes: ProbeSet) -> Bound:
    node = value.producer()
    if node is None or is_op(node, "Shape", "Size", "Constant") or probes.is_weight(value):
        return Bound()
    above = [known[one] for one in node.inputs if one is not None and not probes.is_weight(one)]
    worst = max(above, key=lambda bound: bound.length, default=Bound())
    slow = max((bound.slow for bound in above), default=1.0)
    written = [_written(node, at, probes) for at in range(len(node.inputs))]
    length = max([worst.length, _rounds_from(node, probes) * slow, *(one * slow for one in written)])
    faster = _slows(node, probes)
    if faster is None:
        return Bound(float("inf"), slow, worst.node or node)
    slower = slow * faster
    return Bound(max(length, slower if faster > 1 else 0.0), slower, worst.node)


def _slows(node: ir.Node, probes: ProbeSet) -> float | None:
    """How many times slower positions move after `node`; None when that cannot be told."""
    if not standard(node) or _at_one_length(node, probes):
        return None
    if node.op_type in STRAIGHT:
        return 1.0
    numbers = [None if one is None else _constants(one, probes) for one in node.inputs]
    if node.op_type == "Mul":
        given = [one for one in numbers if one is not None]
        small = [float(np.abs(one[one != 0]).min()) for one in given if np.any(one)]
        return max(1.0, *(1 / one for one in small)) if small else 1.0
    second = numbers[1] if len(numbers) > 1 else None
    if second is None or second.size == 0:
        return 1.0 if node.op_type == "Div" and _counts(node, probes) else None
    if node.op_type in ("Div", "Mod"):
        return max(1.0, float(np.abs(second).max()))
    if node.op_type == "BitShift":
        return float(2.0 ** min(64.0, float(second.max())))
    if node.op_type == "Pow" and second.min() >= 1:
        return 1.0
    return None


def _rounds_from(node: ir.Node, probes: ProbeSet) -> float:
    """The position from which on a Cast is not exact; 0 for a Cast of zeros and ones, and for other nodes."""
    limit = EXACT_TO.get(probes.first.dtype(node.outputs[0]) or ir.DataType.FLOAT, 0)
    if not limit or not is_op(node, "Cast", "CastLike", "Range"):
        return 0.0
    data = probes.first.resolve(node.inputs[0]) if node.op_type != "Range" and node.inputs[0] else None
    plain = data is not None and (data.size == 0 or data.dtype.kind == "b" or bool(np.abs(data).max() <= 1))
    return 0.0 if plain else float(limit)


def _at_one_length(node: ir.Node, probes: ProbeSet) -> bool:
    """A length compared with a number (1 is usual: it broadcasts), or its rest after a division: no run is sure to meet it."""
    if not is_op(node, "Equal", "Mod") or not probes.one_element(node.outputs[0]):
        return False
    return any(_written(node, at, probes) >= 2 for at in range(len(node.inputs)))


def _counts(node: ir.Node, probes: ProbeSet) -> bool:
    """Arithmetic on lengths, as in a length of keys that is computed from others: whole numbers of one element."""
    dtype = probes.first.dtype(node.outputs[0])
    return dtype is not None and dtype.is_integer() and probes.one_element(node.outputs[0])


def _constants(value: ir.Value, probes: ProbeSet) -> Array | None:
    """The content of a constant, computed ones included."""
    data = constant(value) if tensor(value) is not None else probes.first.resolve(value)
    known = data is not None and probes.is_weight(value) and data.dtype.kind in "iuf"
    return data.astype(np.float64) if known and data is not None else None


def _written(node: ir.Node, at: int, probes: ProbeSet) -> float:
    """The largest number in a constant input that could be a length, or the length of a table."""
    value = operand(node, at)
    if value is None or not probes.is_weight(value) or SHAPERS.get(node.op_type) == at:
        return 0.0
    shape = probes.first_shape(value) or ()
    length = float(max(shape, default=0)) if np.prod(shape) > TABLE_FROM else 0.0
    data = _constants(value, probes)
    if data is None or data.size > TABLE_FROM:
        return length
    numbers = np.abs(data[np.isfinite(data)])
    dtype = probes.first.dtype(value)
    hides = node.op_type in ("Mul", "Div") or (node.op_type == "Where" and at > 0)
    limit = -HIDDEN if dtype is not None and dtype.is_floating_point() and hides else float(MAX_LENGTH)
    return max([length, *(float(one) for one in numbers if 2 <= one < limit)])
