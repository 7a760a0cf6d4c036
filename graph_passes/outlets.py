"""Where the operator's output can go: the values behind the product with V that hold it in one of the operator's forms.

Before                                        After
  P x V -> Transpose -> Reshape(B,S,H*D) -> x   operator output -> x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import onnx_ir as ir

from .facts import Shape
from .layouts import BHSD, BSHD, MAX_CHAIN, PACKED, PREFERENCE, RESHAPES, Form, step
from .scenarios import ProbeSet
from .values import is_op, passes_all
from .views import Atom, View, dense, merged

MAX_READERS: Final = 64


@dataclass(frozen=True)
class Outlet:
    """A value that the operator's output can replace; with `flat` after (B,H,S,D) became (B*H,S,D)."""

    value: ir.Value
    form: Form
    dtype: ir.DataType
    flat: bool = False


@dataclass(frozen=True)
class Result:
    """Where a result (lead.., S, D) first appears: a value, and the axes of it in that order. With `packed_heads` the
    value is (B, S, heads * D) instead."""

    value: ir.Value
    axes: tuple[int, ...] = ()
    packed_heads: int = 0

    def view(self, shape: Shape) -> tuple[View, int, int] | None:
        """The value as a view of the dense (B, H, S, D) result, with S and D."""
        if self.packed_heads:
            batch, length, width = shape
            head_dim = width // self.packed_heads
            ordered = dense((batch, self.packed_heads, length, head_dim)).transpose((0, 2, 1, 3))
            packed = View((ordered.dims[0], ordered.dims[1], (*ordered.dims[2], *ordered.dims[3])))
            return packed, length, head_dim
        ordered_shape = tuple(shape[axis] for axis in self.axes)
        inverse = [self.axes.index(axis) for axis in range(len(shape))]
        return dense(ordered_shape).transpose(inverse), ordered_shape[-2], ordered_shape[-1]


def outlets(result: Result, heads: int, batches: Sequence[int], probes: ProbeSet) -> list[Outlet]:
    """Values that hold a result in one of the forms, from where it first appears on down."""
    found: list[Outlet] = []
    path: list[ir.Node] = []
    value = result.value
    for _ in range(MAX_CHAIN):
        dtype = probes.first.dtype(value)
        form = _outlet_form(result, path, value, heads, batches, probes)
        if form is not None and dtype is not None and not _shape_is_read(result.value, path):
            found.append(Outlet(value, form, dtype))
        node = _next_move(value)
        if node is None:
            break
        path.append(node)
        value = node.outputs[0]
    return found


def _next_move(value: ir.Value) -> ir.Node | None:
    """The only reader of the content of `value`, if it just moves elements."""
    readers = [use.node for use in value.uses() if not is_op(use.node, "Shape")]
    if value.is_graph_output() or len(readers) != 1:
        return None
    node = readers[0]
    moves = is_op(node, "Transpose", "Cast", "Identity", *RESHAPES) or passes_all(node)
    return node if moves and node.inputs[0] is value else None


def _shape_is_read(value: ir.Value, path: Sequence[ir.Node]) -> bool:
    """Whether a value that the outlet at the end of `path` would make superfluous is still needed for its shape."""
    before = [value, *(node.outputs[0] for node in path)][: len(path)]
    allowed = set(path)
    return any(
        not _only_feeds(use.node, allowed) for one in before for use in one.uses() if use.node not in allowed
    )


def _only_feeds(node: ir.Node, allowed: set[ir.Node]) -> bool:
    """Everything computed from `node` ends in `allowed`."""
    seen, pending = {node}, [node]
    while pending:
        current = pending.pop()
        for output in current.outputs:
            if output.is_graph_output():
                return False
            for use in output.uses():
                if use.node in allowed or use.node in seen:
                    continue
                seen.add(use.node)
                pending.append(use.node)
                if len(seen) > MAX_READERS:
                    return False
    return all(list(output.uses()) for one in seen for output in one.outputs)


def _outlet_form(
    result: Result,
    path: Sequence[ir.Node],
    value: ir.Value,
    heads: int,
    batches: Sequence[int],
    probes: ProbeSet,
) -> Form | None:
    common: set[Form] | None = None
    for probe, batch in zip(probes.probes, batches, strict=True):
        shape = probe.shape(result.value)
        if shape is None or 0 in shape or batch == 0:
            continue
        start = result.view(shape)
        if start is None:
            return None
        view: View | None = start[0]
        for node in path:
            before, after = probe.shape(node.inputs[0]), probe.shape(node.outputs[0])
            if view is None or before is None or after is None:
                return None
            view = step(view, node, before, after)
        if view is None:
            return None
        forms = _written_forms(view, batch, heads, start[1], start[2])
        common = forms if common is None else common & forms
    return next((form for form in PREFERENCE if common and form in common), None)


def _written_forms(view: View, batch: int, heads: int, length: int, width: int) -> set[Form]:
    b, h = (batch, heads * length * width), (heads, length * width)
    s, d = (length, width), (width, 1)
    wanted: dict[Form, list[list[Atom]]] = {
        BHSD: [[b], [h], [s], [d]],
        BSHD: [[b], [s], [h], [d]],
        PACKED: [[b], [s], [h, d]],
    }
    have = [merged(atoms) for atoms in view.dims]
    return {form for form, dims in wanted.items() if have == [merged(atoms) for atoms in dims]}
