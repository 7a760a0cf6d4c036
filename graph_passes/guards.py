"""Guards after a Softmax that turn rows without a visible key into zeros, as our operator does by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import onnx_ir as ir

from .scenarios import ProbeSet
from .values import attribute_int, constant, is_op, operand, single_use, source

# Scores this far below the others have probability zero: exporters write -1e4, -1e9, the type's minimum or -inf.
HIDDEN: Final = -9999.0
# What must be left of such a number when the scores are scaled after it: exp(-104) is zero in float.
STILL_HIDDEN: Final = -1000.0


def row_guard(
    value: ir.Value, readers: Sequence[ir.Node], masks: Collection[ir.Value | None], probes: ProbeSet
) -> ir.Node | None:
    """The Where among the `readers` of probabilities `value` that zeroes rows without a visible key; None if there is
    none, or if somebody else reads them too.

    masks: what was added to the scores; a row of one of them at -inf has no visible key.
    """
    guards = [node for node in readers if is_op(node, "Where")]
    if len(guards) != 1:
        return None
    guard = guards[0]
    test, fill = _test_behind(guard.inputs[0]), probes.scalar(guard.inputs[1])
    if test is None or guard.inputs[2] is not value or fill is None or fill.value != 0:
        return None
    if not (_finds_nan(test, value, guard) or _finds_hidden_rows(test, masks, probes)):
        return None
    others = [node for node in readers if node not in (guard, test) and not _asks_the_type(node, value)]
    return None if others else guard


def _finds_nan(test: ir.Node, value: ir.Value, guard: ir.Node) -> bool:
    """IsNaN(p), read by the guard alone."""
    alone = guard.inputs[0] is not test.outputs[0] or all(use.node is guard for use in test.outputs[0].uses())
    return is_op(test, "IsNaN") and test.inputs[0] is value and alone


def _test_behind(condition: ir.Value | None) -> ir.Node | None:
    """The node that gives `condition`, past copies and casts of a bool that nobody else reads."""
    node = source(condition)
    while node is not None and is_op(node, "Identity", "Cast"):
        above = node.inputs[0]
        if above is None or single_use(above) is not node:
            break
        node = source(above)
    return node


def _asks_the_type(node: ir.Node, value: ir.Value) -> bool:
    return is_op(node, "CastLike") and operand(node, 0) is not value


def _finds_hidden_rows(test: ir.Node, masks: Collection[ir.Value | None], probes: ProbeSet) -> bool:
    """max(mask) == -inf over the keys, for one of `masks`."""
    if not is_op(test, "Equal"):
        return False
    for largest, number in (test.inputs, tuple(reversed(test.inputs))):
        limit, reduced = probes.scalar(number), source(largest)
        if limit is None or limit.value > HIDDEN or not is_op(reduced, "ReduceMax") or reduced is None:
            continue
        shape, axes = probes.first_shape(reduced.inputs[0]), _axes(reduced)
        over_keys = shape is not None and axes in ((-1,), (len(shape) - 1,))
        if over_keys and attribute_int(reduced, "keepdims", 1) and reduced.inputs[0] in masks:
            return True
    return False


def _axes(node: ir.Node) -> tuple[int, ...]:
    """Axes of a reduction, an attribute up to opset 17 and an input since."""
    if "axes" in node.attributes:
        return tuple(node.attributes["axes"].as_ints())
    given = constant(operand(node, 1))
    return () if given is None else tuple(int(axis) for axis in given.reshape(-1))
