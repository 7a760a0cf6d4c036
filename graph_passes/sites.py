"""Finding attention: from each Softmax back to the product that made its scores and on to the product that uses its
probabilities.

Before                                             After (see fuse_attention.py)
  scores = Q x K^T                                   output = ZyfaPrefillAttention(Q, K, V, ...)
  scores -> scale, softcap, masks -> Softmax
  Softmax -> casts, NaN guard -> probabilities
  output = probabilities x V

Everything between the products is read for what it does to a score. One node that is not understood, or one reader of
an intermediate value outside the site, declines the whole site, with the node and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import onnx_ir as ir

from .guards import HIDDEN, row_guard
from .layouts import undone
from .products import Product, product_of
from .scenarios import ProbeSet
from .values import (
    CONTRIB_DOMAIN,
    attribute_int,
    constant,
    is_op,
    label,
    operand,
    passes_all,
    source,
    standard,
)

MAX_STEPS: Final = 24
SHAPELESS: Final = "the shapes of its operands are not known"
SINK_NOT_LAST: Final = "the sink column is not the last thing that is done to the scores"
FLOATS: Final = frozenset((ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE))
RESHAPES: Final = frozenset({"Reshape", "Unsqueeze", "Squeeze"})
MOVES: Final = RESHAPES | {"Transpose"}


@dataclass(frozen=True)
class Step:
    """One operation on the scores, in graph order.

    scale  multiply by `number`, which is exact up to `slack` (relative; the rounding of the constant's type)
    tanh   hyperbolic tangent
    floor  nothing below `number`
    add    add `sign` times `value`
    where  replace by `number` where `value` is `hides_when`
    later: factor on the scores after an addition or replacement
    """

    kind: Literal["scale", "tanh", "floor", "add", "where"]
    node: ir.Node
    value: ir.Value | None = None
    number: float = 1.0
    slack: float = 0.0
    sign: int = 1
    hides_when: bool = True
    later: float = 1.0


@dataclass(frozen=True)
class Scores:
    """The way from Q x K^T to the Softmax."""

    product: Product
    steps: tuple[Step, ...]
    sinks: ir.Value | None = None


@dataclass(frozen=True)
class Obstacle:
    """Where a walk ended, and why."""

    node: ir.Node
    reason: str


@dataclass(frozen=True)
class Site:
    """One attention that was understood from product to product."""

    softmax: ir.Node
    graph: ir.Graph
    where: str
    scores: Scores
    values: Product

    @property
    def output(self) -> ir.Value:
        return self.values.output


@dataclass(frozen=True)
class Declined:
    """A candidate that is left as it is."""

    node: ir.Node
    at: ir.Node
    reason: str
    where: str


@dataclass(frozen=True)
class AttentionNode:
    """An attention that already is one operator, of the standard or of a runtime."""

    node: ir.Node
    where: str


CONTRIB: Final = frozenset({"Attention", "MultiHeadAttention", "GroupQueryAttention"})
Found = Site | AttentionNode | Declined


def find_sites(graph: ir.Graph, probes: ProbeSet, where: str = "") -> Iterator[Found]:
    """All attention candidates of `graph` and of the bodies inside it, in graph order."""
    for node in graph:
        for attribute in node.attributes.values():
            for body in bodies(attribute):
                yield from find_sites(body, probes, f"{where}{label(node)}/{attribute.name}/")
        if is_op(node, "Softmax"):
            found = _site(node, graph, probes, where)
            if found is not None:
                yield found
        elif is_op(node, "Attention") or (node.domain == CONTRIB_DOMAIN and node.op_type in CONTRIB):
            yield AttentionNode(node, where)


def bodies(attribute: ir.Attr) -> tuple[ir.Graph, ...]:
    """The graphs an attribute holds (If branches, Loop bodies)."""
    if attribute.is_ref():
        return ()
    if attribute.type == ir.AttributeType.GRAPH:
        return (attribute.as_graph(),)
    return tuple(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else ()


def _site(softmax: ir.Node, graph: ir.Graph, probes: ProbeSet, where: str) -> Site | Declined | None:
    start = operand(softmax, 0)
    if start is None:
        return None
    scores = _trace_scores(start, softmax, probes, MAX_STEPS)
    values = _trace_values(softmax, scores, probes)
    if isinstance(scores, Obstacle):
        # A Softmax with neither product is a router or a classifier, not an attention.
        return None if isinstance(values, Obstacle) else Declined(softmax, scores.node, scores.reason, where)
    if isinstance(values, Obstacle):
        return Declined(softmax, values.node, values.reason, where)
    shape = probes.first_shape(start)
    axis = attribute_int(softmax, "axis", 1 if probes.opset < 13 else -1)
    if shape is None or axis not in (-1, len(shape) - 1):
        reason = f"Softmax runs over axis {axis}, not over the keys (the last axis)"
        return Declined(softmax, softmax, reason, where)
    return Site(softmax, graph, where, scores, values)


def near_miss(softmax: ir.Node, probes: ProbeSet) -> Obstacle:
    """What stands in the way of a Softmax that looks like attention from afar and that `find_sites` left out."""
    start = operand(softmax, 0)
    found = (
        Obstacle(softmax, "it has no input")
        if start is None
        else _trace_scores(start, softmax, probes, MAX_STEPS)
    )
    if isinstance(found, Obstacle):
        return found
    values = _trace_values(softmax, found, probes)
    return values if isinstance(values, Obstacle) else Obstacle(softmax, SHAPELESS)


def _shapeless(node: ir.Node, probes: ProbeSet) -> bool:
    """A product that cannot be read because the shape of an operand is not known."""
    product = is_op(node, "MatMul", "Einsum") or node.op_type == "FusedMatMul"
    return product and any(probes.first_shape(operand(node, at)) is None for at in (0, 1))


def _trace_scores(value: ir.Value, reader: ir.Node, probes: ProbeSet, budget: int) -> Scores | Obstacle:
    """Walk from a Softmax's input up to the product; `reader` is the node of the site that reads `value`."""
    steps: list[Step] = []
    sinks: ir.Value | None = None
    while budget > 0:
        budget -= 1
        node = source(value)
        if node is None:
            return Obstacle(reader, "the scores do not come from a product of queries and keys")
        outside = _outside_reader(value, reader, probes)
        if outside is not None:
            return outside
        product = _activation_product(node, probes)
        if product is not None:
            if not product.in_order:
                product = product.flipped()
            if not product.in_order:
                return Obstacle(node, "the product puts queries and keys on unusual axes")
            if product.factor != 1.0:
                steps.append(Step("scale", node, number=product.factor))
            return Scores(product, tuple(reversed(steps)), sinks)
        if _shapeless(node, probes):
            return Obstacle(node, SHAPELESS)
        if is_op(node, "Add"):
            return _after_add(node, steps, sinks, probes, budget)
        taken = _score_step(node, probes)
        if isinstance(taken, Obstacle):
            return taken
        step, above, sink = taken
        steps.extend(() if step is None else (step,))
        if sink is not None and (sinks is not None or steps):
            return Obstacle(node, SINK_NOT_LAST)
        sinks = sink or sinks
        reader = _reader_of(above, node)
        value = above
    return Obstacle(reader, f"no product within {MAX_STEPS} nodes before the Softmax")


def _after_add(
    node: ir.Node, steps: list[Step], sinks: ir.Value | None, probes: ProbeSet, budget: int
) -> Scores | Obstacle:
    """One operand of an Add is the scores, the other is a mask or bias. Which one, the walk itself finds out."""
    left, right = node.inputs[0], node.inputs[1]
    assert left is not None and right is not None
    results: list[Scores | Obstacle] = []
    for scores, other in sorted(((left, right), (right, left)), key=lambda pair: probes.knows(pair[0])):
        rest = _trace_scores(scores, node, probes, budget)
        if isinstance(rest, Scores) and rest.sinks is not None:
            return Obstacle(node, SINK_NOT_LAST)
        if isinstance(rest, Scores):
            added = Step("add", node, other)
            return Scores(rest.product, (*rest.steps, added, *reversed(steps)), rest.sinks or sinks)
        results.append(rest)
    return results[0]


Taken = tuple[Step | None, ir.Value, ir.Value | None]


def _score_step(node: ir.Node, probes: ProbeSet) -> Taken | Obstacle:
    """What `node` does to the scores, the scores before it, and a sink column if it appends one."""
    first, second = operand(node, 0), operand(node, 1)
    if first is None or not standard(node):
        return _not_understood(node)
    if _keeps_numbers(node, probes):
        return None, first, None
    if node.op_type in MOVES:
        if node.op_type in RESHAPES and probes.same_tail(first, node.outputs[0]):
            return None, first, None
        above = undone(node.outputs[0], probes)
        if above is not None:
            return None, above, None
        mixes = f"{node.op_type} mixes queries and keys of the scores"
        return Obstacle(node, mixes) if node.op_type in RESHAPES else _not_understood(node)
    if node.op_type == "Tanh":
        return Step("tanh", node), first, None
    if node.op_type in ("Mul", "Div") and second is not None:
        return _scale_step(node, first, second, probes)
    if node.op_type == "Sub" and second is not None:
        if _is_row_maximum(second, first, probes):
            return None, first, None  # x - max(x): the Softmax is the same
        return Step("add", node, second, sign=-1), first, None
    if node.op_type == "Where":
        return _where_step(node, probes)
    if node.op_type in ("Max", "Clip"):
        return _floor_step(node, probes)
    if node.op_type == "Concat" and second is not None and len(node.inputs) == 2:
        return _sink_step(node, first, second, probes)
    return _not_understood(node)


def _is_row_maximum(value: ir.Value, scores: ir.Value, probes: ProbeSet) -> bool:
    """The largest of `scores`, one number for all keys of a row."""
    node = source(value)
    largest = node is not None and is_op(node, "ReduceMax") and operand(node, 0) is scores
    return largest and probes.last_length_is_one(value)


def _keeps_numbers(node: ir.Node, probes: ProbeSet) -> bool:
    """Whether the first output is the first input, up to the rounding of a float type of at least 16 bits."""
    if is_op(node, "Cast", "CastLike"):
        return probes.first.dtype(node.outputs[0]) in FLOATS
    return is_op(node, "Identity") or passes_all(node)


def _not_understood(node: ir.Node) -> Obstacle:
    return Obstacle(node, f"{node.op_type} between the product and the Softmax is not understood")


def _scale_step(node: ir.Node, first: ir.Value, second: ir.Value, probes: ProbeSet) -> Taken | Obstacle:
    number = probes.scalar(second)
    if number is not None and (number.value != 0 or node.op_type == "Mul"):
        factor = number.value if node.op_type == "Mul" else 1.0 / number.value
        return Step("scale", node, number=factor, slack=number.slack), first, None
    number = probes.scalar(first) if node.op_type == "Mul" else None
    if number is not None:
        return Step("scale", node, number=number.value, slack=number.slack), second, None
    if probes.one_element(second) or probes.one_element(first):
        return Obstacle(node, "the scale of the scores is computed at run time")
    return Obstacle(node, f"{node.op_type} of the scores with a tensor is not a scale")


def _where_step(node: ir.Node, probes: ProbeSet) -> Taken | Obstacle:
    condition, taken, otherwise = node.inputs[0], node.inputs[1], node.inputs[2]
    if condition is None or taken is None or otherwise is None:
        return _not_understood(node)
    for fill, scores, hides_when in ((taken, otherwise, True), (otherwise, taken, False)):
        number = probes.scalar(fill)
        if number is not None and number.value <= HIDDEN:
            step = Step("where", node, condition, number=number.value, hides_when=hides_when)
            return step, scores, None
    return Obstacle(node, "Where on the scores does not fill in a large negative number")


def _floor_step(node: ir.Node, probes: ProbeSet) -> Taken | Obstacle:
    """max(x, -1e38) only tells rows without any visible key from others."""
    if node.op_type == "Max" and len(node.inputs) == 2:
        for scores, floor in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
            number = probes.scalar(floor)
            if scores is not None and number is not None and number.value <= HIDDEN:
                return Step("floor", node, number=number.value), scores, None
    if node.op_type == "Clip" and node.inputs[0] is not None:
        low, high = probes.scalar(operand(node, 1)), probes.scalar(operand(node, 2))
        open_above = operand(node, 2) is None or (high is not None and high.value >= -HIDDEN)
        if low is not None and low.value <= HIDDEN and open_above:
            return Step("floor", node, number=low.value), node.inputs[0], None
    return Obstacle(node, f"{node.op_type} changes scores of visible keys")


def _sink_step(node: ir.Node, first: ir.Value, second: ir.Value, probes: ProbeSet) -> Taken | Obstacle:
    shape = probes.first_shape(node.outputs[0])
    last = shape is not None and attribute_int(node, "axis", 0) in (-1, len(shape) - 1)
    if not last or not probes.last_length_is_one(second):
        return Obstacle(node, "Concat on the scores does not append one sink column")
    return None, first, second


def _activation_product(node: ir.Node, probes: ProbeSet) -> Product | None:
    """`node` as a product of two tensors that are not weights."""
    product = product_of(node, probes.first_shape(operand(node, 0)), probes.first_shape(operand(node, 1)))
    if product is None or probes.is_weight(product.lhs) or probes.is_weight(product.rhs):
        return None
    return product


def _outside_reader(value: ir.Value, reader: ir.Node, probes: ProbeSet) -> Obstacle | None:
    """A use of an intermediate value that would be lost, if any. Reading only the shape does not count."""
    if value.is_graph_output():
        return Obstacle(reader, f"the intermediate value {value.name} is an output of the model")
    for use in value.uses():
        if use.node is reader or is_op(use.node, "Shape"):
            continue
        if is_op(reader, "Sub") and _is_row_maximum(use.node.outputs[0], value, probes):
            continue
        return Obstacle(use.node, f"the intermediate value {value.name} is also read by {label(use.node)}")
    return None


def _trace_values(softmax: ir.Node, scores: Scores | Obstacle, probes: ProbeSet) -> Product | Obstacle:
    """Walk from the Softmax on to the product with V."""
    sinks = isinstance(scores, Scores) and scores.sinks is not None
    steps = scores.steps if isinstance(scores, Scores) else ()
    masks = {step.value for step in steps if step.kind == "add" and step.sign > 0}
    value = softmax.outputs[0]
    sliced = False
    for _ in range(MAX_STEPS):
        readers = [use.node for use in value.uses() if not is_op(use.node, "Shape")]
        if value.is_graph_output():
            return Obstacle(
                value.producer() or softmax, f"the probabilities {value.name} are an output of the model"
            )
        guard = row_guard(value, readers, masks, probes)
        if guard is not None:
            value = guard.outputs[0]
            continue
        if len(readers) != 1:
            names = ", ".join(label(node) for node in readers) or "nothing"
            return Obstacle(readers[-1] if readers else softmax, f"the probabilities are read by {names}")
        node = readers[0]
        kept = _keeps_numbers(node, probes) and node.inputs[0] is value
        if kept or (is_op(node, *RESHAPES) and probes.same_tail(value, node.outputs[0])):
            value = node.outputs[0]
        elif sinks and not sliced and _drops_last_column(node, value, probes):
            value, sliced = node.outputs[0], True
        elif (below := _redone(value, node, probes)) is not None:
            value = below
        else:
            product = _activation_product(node, probes)
            if product is None:
                reason = f"{node.op_type} after the Softmax is not the product with V"
                return Obstacle(node, SHAPELESS if _shapeless(node, probes) else reason)
            if sinks != sliced:
                return Obstacle(node, "the sink column is not cut off before the product with V")
            if product.lhs is not value:
                product = product.flipped()
            if not product.lhs_in_order:
                return Obstacle(node, "the product with V transposes the probabilities")
            return product
    return Obstacle(softmax, f"no product within {MAX_STEPS} nodes after the Softmax")


def _reader_of(value: ir.Value, node: ir.Node) -> ir.Node:
    """The node that reads `value` on the way to `node`, both ends of a detour of moves."""
    for _ in range(MAX_STEPS):
        if any(one is value for one in node.inputs):
            break
        node = source(node.inputs[0]) or node
    return node


def _redone(value: ir.Value, node: ir.Node, probes: ProbeSet) -> ir.Value | None:
    """The value below a chain of moves from `node` on that gives `value` back."""
    for _ in range(MAX_STEPS):
        if not is_op(node, *MOVES):
            return None
        below = node.outputs[0]
        if undone(below, probes) is value:
            return below
        readers = [use.node for use in below.uses() if not is_op(use.node, "Shape")]
        if len(readers) != 1:
            return None
        node = readers[0]
    return None


def _drops_last_column(node: ir.Node, value: ir.Value, probes: ProbeSet) -> bool:
    if not is_op(node, "Slice", "Split"):
        return False
    if not probes.cuts_last_by_one(value, node.outputs[0]):
        return False
    if is_op(node, "Split"):
        return all(not list(output.uses()) for output in node.outputs[1:])
    starts = constant(operand(node, 1))
    return starts is not None and starts.size == 1 and int(starts.reshape(-1)[0]) == 0
