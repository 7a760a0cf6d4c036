"""Running single nodes on known inputs.

A legacy export computes every Reshape target with a dozen one-element nodes, so the common integer operators have
direct NumPy forms here; all others go to onnx's reference implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from .facts import Fact
from .shapes import anonymous_proto
from .values import Array, attribute_int, standard

Inputs = Sequence[Array | None]
Direct = Callable[[ir.Node, Sequence[Array]], Array | None]


def _gather_nd(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    # The reference loops over all indices in Python; a mask of 4096 x 4096 needs this form.
    if attribute_int(node, "batch_dims", 0):
        return None
    return np.asarray(inputs[0][tuple(np.moveaxis(inputs[1], -1, 0))])


def _gather(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    return np.asarray(np.take(inputs[0], inputs[1].astype(np.int64), axis=attribute_int(node, "axis", 0)))


def _concat(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    return np.concatenate(inputs, axis=attribute_int(node, "axis", 0))


def _where(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    return np.where(inputs[0].astype(bool), inputs[1], inputs[2])


def _same_kind(operation: Callable[[Array, Array], Array]) -> Direct:
    def run(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
        return np.asarray(operation(inputs[0], inputs[1])).astype(inputs[0].dtype, copy=False)

    return run


def _compare(operation: Callable[[Array, Array], Array]) -> Direct:
    def run(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
        return np.asarray(operation(inputs[0], inputs[1]))

    return run


def _cast(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    to = ir.DataType(attribute_int(node, "to", 0))
    plain = {ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL, ir.DataType.FLOAT}
    if (
        to not in plain
        or inputs[0].dtype.kind not in "iubf"
        or (inputs[0].dtype.kind == "f" and to.is_integer())
    ):
        return None  # narrow floats and float to integer have rounding rules that the reference knows
    return inputs[0].astype(to.numpy())


def _unsqueeze(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    if len(inputs) != 2:
        return None  # opset < 13 keeps the axes in an attribute
    return np.expand_dims(inputs[0], tuple(int(axis) for axis in inputs[1].reshape(-1)))


def _div(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    """Integers round towards zero; the reference of older onnx rounds down."""
    left, right = inputs
    if left.dtype.kind not in "iu" or not np.all(right):
        return None
    quotient = np.abs(left) // np.abs(right)
    return np.asarray(np.sign(left) * np.sign(right) * quotient, left.dtype)


def _identity(node: ir.Node, inputs: Sequence[Array]) -> Array | None:
    return inputs[0]


DIRECT: Final[dict[str, Direct]] = {
    "GatherND": _gather_nd,
    "Gather": _gather,
    "Concat": _concat,
    "Where": _where,
    "Cast": _cast,
    "Unsqueeze": _unsqueeze,
    "Identity": _identity,
    "Add": _same_kind(np.add),
    "Sub": _same_kind(np.subtract),
    "Mul": _same_kind(np.multiply),
    "Div": _div,
    "And": _compare(np.logical_and),
    "Or": _compare(np.logical_or),
    "Equal": _compare(np.equal),
    "Greater": _compare(np.greater),
    "GreaterOrEqual": _compare(np.greater_equal),
    "Less": _compare(np.less),
    "LessOrEqual": _compare(np.less_equal),
}


class Evaluator:
    """Runs nodes of one model; keeps what does not change between runs.

    leaves: facts about initializers and constants, read once.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.leaves: dict[ir.Value, Fact] = {}
        self._prepared: dict[ir.Node, ReferenceEvaluator | None] = {}

    def run(self, node: ir.Node, inputs: Inputs) -> list[Array] | None:
        """Outputs of `node`, or None when it cannot run on these inputs."""
        direct = DIRECT.get(node.op_type) if standard(node) else None
        given = [data for data in inputs if data is not None]
        if direct is not None and len(given) == len(inputs):
            try:
                found = direct(node, given)
            except (IndexError, ValueError):
                return None
            if found is not None:
                return [found]
        prepared = self._prepare(node)
        if prepared is None:
            return None
        feeds = {f"i{at}": data for at, data in enumerate(inputs) if data is not None}
        try:
            return [np.asarray(data) for data in prepared.run(None, feeds)]
        except Exception:  # shapes that do not fit in this run; unknown is the safe answer
            return None

    def _prepare(self, node: ir.Node) -> ReferenceEvaluator | None:
        if node not in self._prepared:
            try:
                self._prepared[node] = ReferenceEvaluator(self._alone(node), opsets={"": self.opset})
            except Exception:  # an operator onnx has no reference for: its output stays unknown
                self._prepared[node] = None
        return self._prepared[node]

    def _alone(self, node: ir.Node) -> onnx.GraphProto:
        """The node in a graph: of a bare node the reference takes the newest version, whatever opset it is told."""
        proto = anonymous_proto(node)
        inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(proto.input) if name]
        outputs = [onnx.ValueInfoProto(name=name) for name in proto.output if name]
        return onnx.GraphProto(name="alone", node=[proto], input=inputs, output=outputs)
