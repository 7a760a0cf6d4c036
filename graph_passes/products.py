"""Matrix products, however they are written (MatMul, FusedMatMul, Einsum), as one canonical form:
(lead, row, contract) x (lead, column, contract) -> (lead, row, column)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from .facts import Shape
from .values import CONTRIB_DOMAIN, attribute_float, attribute_int, attribute_string, is_op
from .views import Atoms, View

# One entry per canonical axis: the tensor's axis it comes from, or None for a length-1 axis that broadcasts.
Axes = tuple[int | None, ...]


@dataclass(frozen=True)
class Product:
    """A product of two tensors.

    lhs_axes, rhs_axes  how each operand is arranged into (lead.., row, contract) and (lead.., column, contract)
    out_axes            how the node's output is arranged into (lead.., row, column)
    factor              number the node multiplies the product with
    """

    node: ir.Node
    lhs: ir.Value
    rhs: ir.Value
    lhs_axes: Axes
    rhs_axes: Axes
    out_axes: tuple[int, ...]
    factor: float = 1.0

    @property
    def output(self) -> ir.Value:
        return self.node.outputs[0]

    @property
    def in_order(self) -> bool:
        """The output is already (lead.., row, column)."""
        return self.out_axes == tuple(range(len(self.out_axes)))

    @property
    def lhs_in_order(self) -> bool:
        """The left operand is already (lead.., row, contract)."""
        axes = [axis for axis in self.lhs_axes if axis is not None]
        return axes == list(range(len(axes)))

    def flipped(self) -> Product:
        """The same node read with its operands exchanged: (column x contract) times (row x contract)."""
        out = (*self.out_axes[:-2], self.out_axes[-1], self.out_axes[-2])
        return Product(self.node, self.rhs, self.lhs, self.rhs_axes, self.lhs_axes, out, self.factor)


def arrange(view: View, axes: Sequence[int | None]) -> View:
    """`view` with its dimensions in the order `axes`; None adds a dimension of length 1."""
    empty: Atoms = ()
    return View(tuple(empty if axis is None else view.dims[axis] for axis in axes))


def product_of(node: ir.Node, left: Shape | None, right: Shape | None) -> Product | None:
    """`node` as a product of tensors with these shapes; None when it is none, or one with other index patterns."""
    lhs, rhs = (node.inputs[0], node.inputs[1]) if len(node.inputs) >= 2 else (None, None)
    if lhs is None or rhs is None or left is None or right is None:
        return None
    if is_op(node, "Einsum") and len(node.inputs) == 2:
        return _einsum(node, lhs, rhs)
    fused = node.domain == CONTRIB_DOMAIN and node.op_type == "FusedMatMul"
    if not (fused or is_op(node, "MatMul")) or len(left) < 2 or len(right) < 2:
        return None
    if fused and (attribute_int(node, "transBatchA", 0) or attribute_int(node, "transBatchB", 0)):
        return None
    rank = max(len(left), len(right))
    lhs_axes = _padded(len(left), rank, swap=fused and attribute_int(node, "transA", 0) == 1)
    rhs_axes = _padded(len(right), rank, swap=not (fused and attribute_int(node, "transB", 0) == 1))
    factor = attribute_float(node, "alpha", 1.0) if fused else 1.0
    return Product(node, lhs, rhs, lhs_axes, rhs_axes, tuple(range(rank)), factor)


def _padded(rank: int, wanted: int, swap: bool) -> Axes:
    lead: Axes = (None,) * (wanted - rank) + tuple(range(rank - 2))
    return (*lead, rank - 1, rank - 2) if swap else (*lead, rank - 2, rank - 1)


def _einsum(node: ir.Node, lhs: ir.Value, rhs: ir.Value) -> Product | None:
    equation = attribute_string(node, "equation", "").replace(" ", "")
    terms, arrow, out = equation.partition("->")
    parts = terms.split(",")
    if not arrow or len(parts) != 2 or "." in equation or any(len(set(p)) != len(p) for p in (*parts, out)):
        return None
    left, right = parts
    contract = [label for label in left if label in right and label not in out]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    # A label of the output that only one operand has is a row or a column; a lead label that the other lacks
    # (keys of one head) cannot be told from a row, except that rows come last.
    if len(contract) != 1 or not rows or not columns or any(label not in out for label in (*rows, *columns)):
        return None
    row, column = max(rows, key=out.index), max(columns, key=out.index)
    lead = [label for label in out if label not in (row, column)]
    return Product(
        node,
        lhs,
        rhs,
        tuple(left.index(label) if label in left else None for label in (*lead, row, contract[0])),
        tuple(right.index(label) if label in right else None for label in (*lead, column, contract[0])),
        tuple(out.index(label) for label in (*lead, row, column)),
    )
