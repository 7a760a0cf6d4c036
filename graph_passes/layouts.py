"""Which tensors the operator can read directly; where its output can go is in outlets.py.

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
from dataclasses import dataclass, replace
from typing import Final

import onnx_ir as ir

from .facts import Shape
from .probes import Probe
from .products import Product, arrange
from .scenarios import ProbeSet
from .schema import Layout
from .shapes import permutation
from .values import is_op, operand, passes_all, source
from .views import Atom, View, dense, merged, size

RESHAPES: Final = frozenset({"Reshape", "Unsqueeze", "Squeeze", "Flatten"})
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
class Prepare:
    """Nodes that bring a value into (B,H,S,D) where no value of the graph has that form: a Transpose, then for a
    tensor (B*H,S,D) of `flat_heads` heads the split of its first axis."""

    perm: tuple[int, ...] = ()
    flat_heads: int = 0


@dataclass(frozen=True)
class Candidate:
    """A value that can be handed to the operator in place of an operand of the product.

    batches  batch length in each run (0 where the run does not say)
    repeat   query heads per head of this tensor
    scale    factor between this value and the operand
    prepare  what has to be done to the value first
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
    prepare: Prepare | None = None

    def transposed(self) -> Candidate:
        """A (B,S,H,D) candidate as (B,H,S,D), at the price of a Transpose."""
        return replace(self, form=BHSD, prepare=Prepare((0, 2, 1, 3)))


# How an operand, seen as a view of some base, is arranged into (lead.., S, D).
Place = Callable[[View], View | None]
Lengths = Callable[[Probe], Shape | None]


def placed_by(axes: Sequence[int | None]) -> Place:
    """The arrangement of an operand of a `Product`."""
    return lambda view: arrange(view, axes)


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


def _moves(
    node: ir.Node, value: ir.Value, probes: ProbeSet, scales: bool
) -> tuple[ir.Value, float, float] | None:
    first = operand(node, 0)
    if first is None or node.outputs[0] is not value:
        return None
    if is_op(node, "Transpose", "Expand", "Tile", "Identity", *RESHAPES) or passes_all(node):
        return first, 1.0, 0.0
    if is_op(node, "Concat") and len(node.inputs) == 1:
        return first, 1.0, 0.0
    if is_op(node, "Cast"):
        before, after = (SIGNIFICAND.get(dtype) if dtype else None for dtype in _dtypes(first, value, probes))
        return (first, 1.0, 0.0) if before is not None and after is not None and after >= before else None
    if scales and is_op(node, "Mul", "Div"):
        return _factor(node, probes)
    return None


def _dtypes(
    first: ir.Value, value: ir.Value, probes: ProbeSet
) -> tuple[ir.DataType | None, ir.DataType | None]:
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
        fits = len(before) == len(after) and all(
            have and want % have == 0 for have, want in zip(before, after, strict=True)
        )
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


def undone(value: ir.Value, probes: ProbeSet) -> ir.Value | None:
    """The value above a chain of Transposes and Reshapes that cancel out; None when the nodes above `value` do not.

    Values in between have no other reader but for their shape.
    """
    links = chain(value, probes, scales=False)
    for at in range(1, len(links)):
        node, above = links[at].node, links[at].value
        if not is_op(node, "Transpose", *RESHAPES):
            return None
        if all(_is_dense(links, at, probe) for probe in probes.probes):
            return above
        if above.is_graph_output() or len([use for use in above.uses() if not is_op(use.node, "Shape")]) > 1:
            return None
    return None


def _is_dense(links: Sequence[Link], at: int, probe: Probe) -> bool:
    """The first of `links` has the shape and the elements of `links[at]`, in one run."""
    shape, own = probe.shape(links[at].value), probe.shape(links[0].value)
    if shape is None or own is None or 0 in shape:
        return shape == own
    view = view_down(links, at, probe)
    return view is not None and [merged(dim) for dim in view.dims] == [
        merged(dim) for dim in dense(shape).dims
    ]


@dataclass(frozen=True)
class _Reading:
    form: Form
    heads: int
    head_dim: int
    repeat: int


def _readings(
    shape: Shape, lead: Sequence[Atom], rows: Sequence[Atom], columns: Sequence[Atom]
) -> list[_Reading]:
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
            found.append(_Reading(form, heads, width, repeat))
    return found


def candidates(
    value: ir.Value, place: Place, lead_of: Lengths, probes: ProbeSet, scales: bool
) -> list[Candidate]:
    """Values that can stand for the operand `value`, nearest first.

    place    arranges the operand into (lead.., S, D)
    lead_of  the lead lengths of the product in a run; the operand broadcasts to them
    scales   whether constant factors on the way may be taken over into `Candidate.scale`
    """
    links = chain(value, probes, scales)
    found: list[Candidate] = []
    for at, link in enumerate(links):
        dtype = probes.first.dtype(link.value)
        if dtype is None:
            continue
        for one, batches in _common(links, at, place, lead_of, probes):
            size_of = (one.heads, one.head_dim, one.repeat)
            found.append(Candidate(link.value, one.form, dtype, batches, *size_of, link.scale, link.slack))
    return found


def _common(
    links: Sequence[Link], at: int, place: Place, lead_of: Lengths, probes: ProbeSet
) -> list[tuple[_Reading, tuple[int, ...]]]:
    """Readings of `links[at]` that hold in every run that has a say."""
    batches: list[int] = []
    common: set[_Reading] | None = None
    for probe in probes.probes:
        lead, shape = lead_of(probe), probe.shape(links[at].value)
        if lead is None or shape is None or 0 in shape:
            batches.append(0)
            continue
        view = view_down(links, at, probe)
        arranged = None if view is None else place(view)
        placed = None if arranged is None else arranged.expand((*lead, *arranged.shape[-2:]))
        if placed is None:
            return []
        flat = [atom for atoms in placed.dims[:-2] for atom in atoms]
        readings = set(_readings(shape, flat, placed.dims[-2], placed.dims[-1]))
        common = readings if common is None else common & readings
        batches.append(shape[0])
    ordered = sorted(common or (), key=lambda one: PREFERENCE.index(one.form))
    return [(one, tuple(batches)) for one in ordered]


def raw_candidate(
    value: ir.Value, axes: Sequence[int | None], lead_of: Lengths, batches: Sequence[int], probes: ProbeSet
) -> Candidate | None:
    """The operand itself, brought into (B,H,S,D) by a Transpose and, for a lead of one length, a Reshape.

    batches: batch length in each run, which a lead of B*H alone does not tell.
    """
    shape, dtype, lead = probes.first_shape(value), probes.first.dtype(value), lead_of(probes.first)
    if shape is None or dtype is None or lead is None or None in axes or len(shape) != len(axes):
        return None
    perm = tuple(axis for axis in axes if axis is not None)
    moved = () if perm == tuple(range(len(perm))) else perm
    if len(lead) == 2:
        heads = shape[perm[1]]
        whole = lead[1] % heads == 0 and shape[perm[0]] == lead[0]
        if not whole or heads not in (1, lead[1]):
            return None
        own = tuple(0 if (one := probe.shape(value)) is None else one[perm[0]] for probe in probes.probes)
        prepare = Prepare(moved) if moved else None
        return Candidate(value, BHSD, dtype, own, heads, shape[perm[-1]], lead[1] // heads, prepare=prepare)
    heads = flat_heads(value, perm[0], batches, probes) if len(lead) == 1 else 0
    if not heads:
        return None
    return Candidate(
        value,
        BHSD,
        dtype,
        tuple(batches),
        heads,
        shape[perm[-1]],
        1,
        prepare=Prepare(moved, flat_heads=heads),
    )


def flat_heads(value: ir.Value, axis: int, batches: Sequence[int], probes: ProbeSet) -> int:
    """Heads per batch element of an axis of length B*H; 0 when it is not the same number in all runs."""
    found: set[int] = set()
    for probe, batch in zip(probes.probes, batches, strict=True):
        shape = probe.shape(value)
        if shape is not None and batch:
            found.add(shape[axis] // batch if shape[axis] % batch == 0 else 0)
    return found.pop() if len(found) == 1 else 0


def lead_lengths(product: Product) -> Lengths:
    """Lead lengths of a product's result, per run."""

    def lead_of(probe: Probe) -> Shape | None:
        shape = probe.shape(product.output)
        return None if shape is None else tuple(shape[axis] for axis in product.out_axes[:-2])

    return lead_of
