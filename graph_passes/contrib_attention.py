"""Attention and MultiHeadAttention of ONNX Runtime (com.microsoft), as its optimizer and onnxscript write them.

Before                                                After
  MultiHeadAttention(q, k, v, bias, masks, past)        ZyfaPrefillAttention(q + bias, k + bias, v + bias, ...)
  Attention(x, W, b, mask)                              MatMul(x, W) + b -> Split -> ZyfaPrefillAttention

Their masks are -10000 or another large number added to the scores; what the mask is made of tells what it means. Both
number query row i from the first new key on.
"""

from __future__ import annotations

from typing import Final

import onnx_ir as ir

from .build import Builder
from .facts import Shape
from .guards import HIDDEN
from .masks import FULL, KeyMask, Structure
from .probes import Probe
from .readings import Prelude, Reading, ShapeOf, Sizes, packed, read_outputs, same_shape, stand_in
from .scenarios import ProbeSet
from .sites import SHAPELESS, Obstacle, Step
from .values import attribute_float, attribute_int, operand

Tensors = tuple[ir.Value, ir.Value, ir.Value]
MULTI_HEAD_ATTRIBUTES: Final = frozenset({"mask_filter_value", "num_heads", "scale", "unidirectional"})
ATTENTION_ATTRIBUTES: Final = MULTI_HEAD_ATTRIBUTES | {
    *("do_rotary", "past_present_share_buffer", "qkv_hidden_sizes", "rotary_embedding_dim")
}
MASK_FILL: Final = -10000.0  # the default of mask_filter_value


def read_multi_head(node: ir.Node, probes: ProbeSet) -> Reading | Obstacle:
    """MultiHeadAttention(query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value)."""
    query, key, value = (operand(node, at) for at in range(3))
    past_key, past_value = operand(node, 6), operand(node, 7)
    if query is None or key is None or value is None:
        return Obstacle(node, "query, key and value in one tensor are not read by this version")
    if (past_key is None) != (past_value is None):
        return Obstacle(node, "one half of the past is missing")
    if operand(node, 8) is not None or operand(node, 9) is not None:
        return Obstacle(node, "a past in a shared buffer is not read by this version")
    problem = _problem(node, MULTI_HEAD_ATTRIBUTES, outputs=3)
    if problem is not None:
        return problem
    shapes = [probes.first_shape(one) for one in (query, key, value)]
    if None in shapes:
        return Obstacle(node, SHAPELESS)
    if len(shapes[0] or ()) != 3 or any(len(shape or ()) not in (3, 4) for shape in shapes):
        return Obstacle(
            node, f"expected a query of rank 3 and keys of rank 3 or 4, got {shapes[0]}, {shapes[1]}"
        )

    def sizes(probe: Probe) -> tuple[int, int, int] | None:
        queries, keys = probe.shape(query), probe.shape(key)
        return None if queries is None or keys is None else (queries[0], queries[-2], keys[-2])

    heads = attribute_int(node, "num_heads", 0)
    past = None if past_key is None or past_value is None else (past_key, past_value)
    masks = _key_mask(node, operand(node, 4), past, sizes, probes)
    if isinstance(masks, Obstacle):
        return masks
    structure = _structure(node, sizes, probes)
    if isinstance(structure, Obstacle):
        return structure
    tensors: Tensors = (query, key, value)
    prelude: Prelude | None = None
    bias, is_split = operand(node, 3), [len(shape or ()) == 4 for shape in shapes]
    if bias is not None and any(is_split):
        return Obstacle(node, "a bias on keys of rank 4 is not read by this version")
    if bias is not None:
        tensors, prelude = _with_bias(tensors, bias, probes)
    if all(is_split[1:]):
        tensors, prelude = _joined_heads(tensors, heads, sizes, probes)
    return Reading(
        *tensors,
        heads,
        heads,
        sizes,
        _bias(node),
        structure,
        masks,
        _scale(node),
        past=past,
        presents=tuple(node.outputs[1:3]),
        prelude=prelude,
    )


def read_attention(node: ir.Node, probes: ProbeSet) -> Reading | Obstacle:
    """Attention(input, weights, bias, mask_index, past, attention_bias): the projection is part of the node."""
    source, weights, bias = (operand(node, at) for at in range(3))
    if source is None or weights is None:
        return Obstacle(node, "input or weights are missing")
    if operand(node, 4) is not None or read_outputs(node.outputs[1:]):
        return Obstacle(node, "keys and values of a past in one tensor are not read by this version")
    problem = _problem(node, ATTENTION_ATTRIBUTES, outputs=1)
    if problem is not None:
        return problem
    if attribute_int(node, "past_present_share_buffer", 0):
        return Obstacle(node, "a past in a shared buffer is not read by this version")
    if attribute_int(node, "do_rotary", 0):
        return Obstacle(node, "its own rotary embedding is not read by this version")
    heads, shape = attribute_int(node, "num_heads", 0), probes.first_shape(weights)
    widths = _widths(node, shape)
    if (
        probes.first_shape(source) is None
        or not heads
        or widths is None
        or any(one % heads for one in widths)
    ):
        return Obstacle(node, SHAPELESS)

    def sizes(probe: Probe) -> tuple[int, int, int] | None:
        shape = probe.shape(source)
        return None if shape is None or len(shape) != 3 else (shape[0], shape[1], shape[1])

    masks = _key_mask(node, operand(node, 3), None, sizes, probes)
    if isinstance(masks, Obstacle):
        return masks
    dtype = probes.first.dtype(source)
    query, key, value = (
        stand_in(name, dtype, packed(sizes, width), probes)
        for name, width in zip(("query", "key", "value"), widths, strict=True)
    )

    def project(before: ir.Node, builder: Builder, scope: str) -> None:
        whole = builder.node(before, "MatMul", [builder.now(source), builder.now(weights)], dtype, scope)
        if bias is not None:
            whole = builder.node(before, "Add", [whole, builder.now(bias)], dtype, scope)
        parts = builder.split(before, whole, widths, 2, scope)
        for old, new in zip((query, key, value), parts, strict=True):
            builder.move(old, new)

    return Reading(
        query,
        key,
        value,
        heads,
        heads,
        sizes,
        _bias(node),
        Structure(is_causal=bool(attribute_int(node, "unidirectional", 0))),
        masks,
        _scale(node),
        prelude=project,
    )


def _problem(node: ir.Node, known: frozenset[str], outputs: int) -> Obstacle | None:
    unknown = sorted(set(node.attributes) - known)
    if unknown:
        return Obstacle(node, f"its attribute {unknown[0]} is not understood")
    if read_outputs(node.outputs[outputs:]):
        return Obstacle(node, f"its output {outputs}, the scores, is used")
    return None


def _structure(node: ir.Node, sizes: Sizes, probes: ProbeSet) -> Structure | Obstacle:
    """Row i sees the past and the new keys up to i."""
    if not attribute_int(node, "unidirectional", 0):
        return FULL
    lengths = [found for probe in probes.probes if (found := sizes(probe)) is not None]
    if all(queries == keys for _, queries, keys in lengths):
        return Structure(is_causal=True)
    return Obstacle(node, "its causal rule needs as many new keys as queries")


def _scale(node: ir.Node) -> float | None:
    """0 means the default."""
    return attribute_float(node, "scale", 0.0) or None


def _bias(node: ir.Node) -> tuple[Step, ...]:
    bias = operand(node, 5)
    return () if bias is None else (Step("add", node, bias),)


def _widths(node: ir.Node, weights: Shape | None) -> list[int] | None:
    """Columns of the weights that make Q, K and V."""
    if "qkv_hidden_sizes" in node.attributes:
        widths = [int(one) for one in node.attributes["qkv_hidden_sizes"].as_ints()]
        return widths if len(widths) == 3 and weights is not None and sum(widths) == weights[-1] else None
    if weights is None or len(weights) != 2 or weights[1] % 3:
        return None
    return [weights[1] // 3] * 3


def _key_mask(
    node: ir.Node,
    mask: ir.Value | None,
    past: tuple[ir.Value, ir.Value] | None,
    sizes: Sizes,
    probes: ProbeSet,
) -> tuple[KeyMask, ...] | Obstacle:
    """A mask (B, keys), nonzero where visible, or (B) numbers of keys."""
    if mask is None or _is_unset(mask):
        return ()
    fill = attribute_float(node, "mask_filter_value", MASK_FILL)
    if fill > HIDDEN:
        return Obstacle(node, f"a key mask that adds {fill:g} does not hide keys")
    for probe in probes.probes:
        shape, lengths = probe.shape(mask), sizes(probe)
        before = (0, 0, 0, 0) if past is None else probe.shape(past[0])
        if shape is None or lengths is None or before is None:
            return Obstacle(node, "the shape of its key mask is not known")
        keys = before[2] + lengths[2]
        if shape not in ((lengths[0], keys), (lengths[0],)) or (len(shape) == 1 and past is not None):
            return Obstacle(node, f"expected a key mask (batch, keys) or (batch), got {list(shape)}")
    is_counts = len(probes.first_shape(mask) or ()) == 1
    return (KeyMask(mask, counts=is_counts, positive=not is_counts),)


def _is_unset(mask: ir.Value) -> bool:
    """EmbedLayerNormalization without a mask counts no tokens at all; hiding every key alike hides none."""
    node = mask.producer()
    return node is not None and node.op_type == "EmbedLayerNormalization" and operand(node, 7) is None


def _joined_heads(tensors: Tensors, heads: int, sizes: Sizes, probes: ProbeSet) -> tuple[Tensors, Prelude]:
    """Keys and values (B,H,S,D), a cache of cross attention, as (B,S,H*D) like the query."""
    query, *split = tensors
    dtype = probes.first.dtype(query)

    def shape_of(tensor: ir.Value) -> ShapeOf:
        width = (probes.first_shape(tensor) or (0,))[-1] * heads

        def shape(probe: Probe) -> Shape | None:
            found = sizes(probe)
            return None if found is None else (found[0], found[2], width)

        return shape

    key, value = (
        stand_in(name, dtype, shape_of(one), probes)
        for name, one in zip(("key", "value"), split, strict=True)
    )

    def join(before: ir.Node, builder: Builder, scope: str) -> None:
        for old, tensor in zip((key, value), split, strict=True):
            rows = builder.node(before, "Transpose", [builder.now(tensor)], dtype, scope, perm=(0, 2, 1, 3))
            builder.move(old, builder.reshape(before, rows, (0, 0, -1), scope))

    return (query, key, value), join


def _with_bias(tensors: Tensors, bias: ir.Value, probes: ProbeSet) -> tuple[Tensors, Prelude]:
    """Query, key and value with their part of the projections' bias added."""
    dtype = probes.first.dtype(tensors[0])
    names = ("query", "key", "value")
    query, key, value = (
        stand_in(name, dtype, same_shape(one), probes) for name, one in zip(names, tensors, strict=True)
    )
    widths = [(probes.first_shape(one) or (0,))[-1] for one in tensors]

    def add(before: ir.Node, builder: Builder, scope: str) -> None:
        biases = builder.split(before, builder.now(bias), widths, 0, scope)
        for old, tensor, own in zip((query, key, value), tensors, biases, strict=True):
            builder.move(old, builder.node(before, "Add", [builder.now(tensor), own], dtype, scope))

    return (query, key, value), add
