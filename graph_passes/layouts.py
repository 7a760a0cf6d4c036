"""Which tensors the operator can read directly, and where its output can go.

Before                                                   After
  linear -> Reshape(B,S,H,D) -> Transpose -> x scale -> Q  query = linear, num_heads = H, scale in the attribute
  key (B,Hkv,S,D) -> Unsqueeze -> Expand -> Reshape -> K^T   key = (B,Hkv,S,D), kv_num_heads = Hkv
  P x V -> Transpose -> Reshape(B,S,H*D)                   output = (B,S,H*D)

From an operand of the product the walk goes up through operators that only move elements. Every value on the way is a
candidate; it is one when, on every run, the operand is exactly the (B,H,S,D) reading of it, with each key head
repeated in one block of query heads. Heads tiled in turn (0,1,0,1) are a different index map and never match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import onnx_ir as ir

from .probes import Probe
from .products import Product, arrange
from .scenarios import ProbeSet
from .schema import Layout
from .shapes import Shape, permutation
from .values import is_op, operand, source
from .views import Atom, View, dense, merged, size

RESHAPES: Final = frozenset({"Reshape", "Unsqueeze", "Squeeze", "Flatten"})
COPIES: Final = frozenset({"Identity", "Dropout"})
MAX_CHAIN: Final = 24
# Bits of significand; a cast to more of them loses nothing.
SIGNIFICAND: Final = {
    ir.DataType.BFLOAT16: 8,
    ir.DataType.FLOAT16: 11,
    ir.DataType.FLOAT: 24,
    ir.DataType.DOUBLE: 53,
}


@dataclass(frozen=True)
class Form:
    """How a tensor holds heads: (B,S,H,D), (B,H,S,D), or packed as (B,S,H*D)."""

    layout: Layout
    packed: bool = False


PACKED: Final = Form("BSHD", True)
BSHD: Final = Form("BSHD")
BHSD: Final = Form("BHSD")
# Fewest nodes left in the graph first.
PREFERENCE: Final = (PACKED, BSHD, BHSD)


@dataclass(frozen=True)
class Candidate:
    """A value that can be handed to the operator in place of an operand of the product.

    batches  batch length in each run (0 where the run does not say)
    repeat   query heads per head of this tensor
    scale    factor between this value and the operand
    """

    value: ir.Value
    form: Form
    dtype: ir.DataType
    batches: tuple[int, ...]
    heads: int
    head_dim: int
    repeat: int
    scale: float = 1.0
    slack: float = 0.0


@dataclass(frozen=True)
class Link:
    """One value on the way up from an operand; `node` leads from it to the value below."""

    value: ir.Value
    node: ir.Node | None
    scale: float
    slack: float


def chain(value: ir.Value, probes: ProbeSet, scales: bool) -> list[Link]:
    """Values above `value` that hold the same elements, nearest first; factors are passed only with `scales`."""
    links = [Link(value, None, 1.0, 0.0)]
    while len(links) <= MAX_CHAIN:
        last = links[-1]
        node = source(last.value)
        above = None if node is None else _moves(node, last.value, probes, scales)
        if node is None or above is None:
            return links
        value, factor, slack = above
        links.append(Link(value, node, last.scale * factor, last.slack + slack))
    return links


def _moves(node: ir.Node, value: ir.Value, probes: ProbeSet, scales: bool) -> tuple[ir.Value, float, float] | None:
    first = operand(node, 0)
    if first is None or node.outputs[0] is not value:
        return None
    if is_op(node, "Transpose", "Expand", "Tile", *RESHAPES, *COPIES):
        return first, 1.0, 0.0
    if is_op(node, "Concat") and len(node.inputs) == 1:
        return first, 1.0, 0.0
    if is_op(node, "Cast"):
        before, after = (SIGNIFICAND.get(dtype) if dtype else None for dtype in _dtypes(first, value, probes))
        return (first, 1.0, 0.0) if before is not None and after is not None and after >= before else None
    if scales and is_op(node, "Mul", "Div"):
        return _factor(node, probes)
    return None


def _dtypes(first: ir.Value, value: ir.Value, probes: ProbeSet) -> tuple[ir.DataType | None, ir.DataType | None]:
    return probes.first.dtype(first), probes.first.dtype(value)


def _factor(node: ir.Node, probes: ProbeSet) -> tuple[ir.Value, float, float] | None:
    left, right = node.inputs[0], node.inputs[1]
    if left is None or right is None:
        return None
    number = probes.scalar(right)
    if number is not None and node.op_type == "Mul":
        return left, number.value, number.slack
    if number is not None and number.value != 0:
        return left, 1.0 / number.value, number.slack
    number = probes.scalar(left) if node.op_type == "Mul" else None
    return None if number is None else (right, number.value, number.slack)


def step(view: View, node: ir.Node, before: Shape, after: Shape) -> View | None:
    """The view after one node of a chain."""
    if is_op(node, "Transpose"):
        return view.transpose(permutation(node, len(before)))
    if is_op(node, "Expand"):
        return view.expand(after)
    if is_op(node, "Tile"):
        fits = len(before) == len(after) and all(have and want % have == 0 for have, want in zip(before, after, strict=True))
        return view.tile([want // have for have, want in zip(before, after, strict=True)]) if fits else None
    return view if view.shape == after else view.reshape(after)


def view_down(links: Sequence[Link], at: int, probe: Probe) -> View | None:
    """The first value of `links` as a view of `links[at]` in one run."""
    shape = probe.shape(links[at].value)
    if shape is None or 0 in shape:
        return None
    view: View | None = dense(shape)
    for upper, lower in zip(range(at, 0, -1), range(at - 1, -1, -1), strict=True):
        node = links[upper].node
        before, after = probe.shape(links[upper].value), probe.shape(links[lower].value)
        if node is None or before is None or after is None or view is None:
            return None
        view = step(view, node, before, after)
    return view


@dataclass(frozen=True)
class _Reading:
    form: Form
    heads: int
    head_dim: int
    repeat: int
    batch: int


def _readings(shape: Shape, lead: Sequence[Atom], rows: Sequence[Atom], columns: Sequence[Atom]) -> list[_Reading]:
    """The forms under which a tensor of `shape` is read by these steps."""
    width = size(columns)
    forms: list[tuple[Form, int, int, int]] = []  # form, heads, step between heads, step between rows
    if len(shape) == 4:
        _, second, third, last = shape
        forms = [(BHSD, second, third * last, last), (BSHD, third, last, third * last)]
    elif len(shape) == 3 and width and shape[2] % width == 0:
        forms = [(PACKED, shape[2] // width, width, shape[2])]
    found: list[_Reading] = []
    for form, heads, head_step, row_step in forms:
        batch, length = shape[0], shape[2] if form == BHSD else shape[1]
        batch_step = shape[1] * shape[2] * (shape[3] if len(shape) == 4 else 1)
        repeat, rest = divmod(size(lead), batch * heads)
        if rest:
            continue
        wanted = (
            merged([(batch, batch_step), (heads, head_step), (repeat, 0)]),
            merged([(length, row_step)]),
            merged([(width, 1)]),
        )
        if wanted == (merged(lead), merged(rows), merged(columns)):
            found.append(_Reading(form, heads, width, repeat, batch))
    return found


def candidates(
    value: ir.Value,
    axes: Sequence[int | None],
    lead_of: Callable[[Probe], Shape | None],
    probes: ProbeSet,
    scales: bool,
) -> list[Candidate]:
    """Values that can stand for the operand `value`, nearest first.

    axes     arranges the operand into (lead.., row, column): (.., S, D)
    lead_of  the lead lengths of the product in a run; the operand broadcasts to them
    """
    links = chain(value, probes, scales)
    found: list[Candidate] = []
    for at, link in enumerate(links):
        dtype = probes.first.dtype(link.value)
        if dtype is None:
            continue
        for reading, batches in _common(links, at, axes, lead_of, probes):
            found.append(
                Candidate(
                    link.value,
                    reading.form,
                    dtype,
                    batches,
                    reading.heads,
                    reading.head_dim,
                    reading.repeat,
                    link.scale,
                    link.slack,
                )
            )
    return found


def _common(
    links: Sequence[Link],
    at: int,
    axes: Sequence[int | None],
    lead_of: Callable[[Probe], Shape | None],
    probes: ProbeSet,
) -> list[tuple[_Reading, tuple[int, ...]]]:
    """Readings of `links[at]` that hold in every run that has a say."""
    batches: list[int] = []
    common: set[tuple[Form, int, int, int]] | None = None
    example: dict[tuple[Form, int, int, int], _Reading] = {}
    for probe in probes.probes:
        lead, shape = lead_of(probe), probe.shape(links[at].value)
        if lead is None or shape is None or 0 in shape:
            batches.append(0)
            continue
        view = view_down(links, at, probe)
        placed = None if view is None else _placed(view, axes, lead)
        if placed is None:
            return []
        flat = [atom for atoms in placed.dims[:-2] for atom in atoms]
        readings = _readings(shape, flat, placed.dims[-2], placed.dims[-1])
        keys = {(one.form, one.heads, one.head_dim, one.repeat): one for one in readings}
        example.update(keys)
        common = set(keys) if common is None else common & set(keys)
        batches.append(shape[0])
    return [(example[key], tuple(batches)) for key in sorted(common or (), key=lambda key: PREFERENCE.index(key[0]))]


def _placed(view: View, axes: Sequence[int | None], lead: Shape) -> View | None:
    arranged = arrange(view, axes)
    tail = arranged.shape[-2:]
    return arranged.expand((*lead, *tail))


def lead_lengths(product: Product) -> Callable[[Probe], Shape | None]:
    """Lead lengths of a product's result, per run."""

    def lead_of(probe: Probe) -> Shape | None:
        shape = probe.shape(product.output)
        return None if shape is None else tuple(shape[axis] for axis in product.out_axes[:-2])

    return lead_of


@dataclass(frozen=True)
class Outlet:
    """A value that the operator's output can replace."""

    value: ir.Value
    form: Form
    dtype: ir.DataType


def outlets(product: Product, heads: int, batches: Sequence[int], probes: ProbeSet) -> list[Outlet]:
    """Values below the product with V that hold its result in one of the forms, nearest first."""
    found: list[Outlet] = []
    path: list[ir.Node] = []
    value = product.output
    for _ in range(MAX_CHAIN):
        dtype = probes.first.dtype(value)
        form = _outlet_form(product, path, value, heads, batches, probes)
        if form is not None and dtype is not None:
            found.append(Outlet(value, form, dtype))
        readers = [use.node for use in value.uses()]
        if value.is_graph_output() or len(readers) != 1:
            break
        node = readers[0]
        if not is_op(node, "Transpose", "Cast", *RESHAPES, *COPIES) or node.inputs[0] is not value:
            break
        path.append(node)
        value = node.outputs[0]
    return found


def _outlet_form(
    product: Product,
    path: Sequence[ir.Node],
    value: ir.Value,
    heads: int,
    batches: Sequence[int],
    probes: ProbeSet,
) -> Form | None:
    common: set[Form] | None = None
    for probe, batch in zip(probes.probes, batches, strict=True):
        shape = probe.shape(product.output)
        if shape is None or 0 in shape or batch == 0:
            continue
        ordered = tuple(shape[axis] for axis in product.out_axes)
        inverse = [product.out_axes.index(axis) for axis in range(len(shape))]
        view: View | None = dense(ordered).transpose(inverse)
        for node in path:
            before, after = probe.shape(node.inputs[0]), probe.shape(node.outputs[0])
            if view is None or before is None or after is None:
                return None
            view = step(view, node, before, after)
        if view is None:
            return None
        forms = _written_forms(view, batch, heads, ordered[-2], ordered[-1])
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
