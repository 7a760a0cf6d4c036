"""The rewrite: one understood site becomes one ZyfaPrefillAttention node.

Before                                                       After
  Q x K^T -> scale, softcap, masks -> Softmax -> ... x V       ZyfaPrefillAttention(query, key, value, past_key,
  with transposes, head splits, repeated key heads,            past_value, key_mask, attn_bias, sinks)
  Concat(past, new) around it

The new node stands where the product with V stood, its output takes over name, type, shape and metadata of the value it
replaces, and present keys and values keep the names of the model outputs. Nodes that other readers need stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import onnx_ir as ir

from .build import Builder
from .fusion import Fusion
from .kv_cache import Cache
from .scenarios import ProbeSet
from .schema import DOMAIN, FP8_ONLY_ATTRIBUTES, INPUTS, PREFILL_ATTENTION, Fp8Edges, Precision, Rotation
from .sweep import remove_dead

SCOPES_KEY: Final = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True)
class Format:
    """Number format of one fused node."""

    precision: Precision
    rotation: Rotation
    fp8_edges: Fp8Edges


def scope_of(node: ir.Node) -> str:
    """The module a node belongs to, with a trailing separator, as its exporter wrote it: in the node's name
    (/model/layers.0/self_attn/Softmax) or in torch's name scopes. Empty when there is none."""
    name = node.name or ""
    if "/" in name:
        return name[: name.rindex("/") + 1]
    scopes = [part.strip(" '\"[]") for part in node.metadata_props.get(SCOPES_KEY, "").split(",")]
    modules = [part for part in scopes if "." in part]
    return f"{modules[-1]}/" if modules else ""


def node_name(softmax: ir.Node) -> str:
    """What the fused node is called, before it is made unique."""
    return f"{scope_of(softmax)}{PREFILL_ATTENTION}"


def attributes(fusion: Fusion, fmt: Format) -> dict[str, int | float | str]:
    """All attributes that say how to read the node; those the operator would refuse are left out."""
    query = fusion.query
    found: dict[str, int | float | str] = {
        "num_heads": query.heads,
        "kv_num_heads": fusion.kv_heads,
        "is_causal": int(fusion.masking.structure.is_causal),
        "causal_alignment": fusion.masking.structure.alignment,
        "window_left": fusion.masking.structure.window_left,
        "softcap": float(fusion.softcap),
        "layout": query.form.layout,
        "precision": fmt.precision,
        "fp8_edges": fmt.fp8_edges,
        "rotation": fmt.rotation,
    }
    if fusion.scale is not None:
        found["scale"] = float(fusion.scale)
    if fmt.precision != "fp8":
        for name in FP8_ONLY_ATTRIBUTES:
            del found[name]
    return found


def rewrite(fusion: Fusion, fmt: Format, name: str, builder: Builder, probes: ProbeSet) -> ir.Node:
    """Put the fused node in, move readers over, and remove what nobody reads any more."""
    site = fusion.site
    before = site.values.node
    graph = before.graph
    assert isinstance(graph, ir.Graph)
    scope = scope_of(site.softmax)
    dtype = fusion.query.dtype
    inputs: dict[str, ir.Value | None] = {
        "query": fusion.query.value,
        "key": fusion.key.new.value,
        "value": fusion.value.new.value,
        "past_key": fusion.key.cache.past if fusion.key.cache else None,
        "past_value": fusion.value.cache.past if fusion.value.cache else None,
        "key_mask": _key_mask(fusion, before, builder, probes, scope),
        "attn_bias": _bias(fusion, before, builder, probes, scope),
        "sinks": _sinks(fusion, before, builder, probes, scope),
    }
    ordered = [inputs.get(one) for one in INPUTS]
    while ordered and ordered[-1] is None:
        ordered.pop()
    node = ir.Node(
        DOMAIN,
        PREFILL_ATTENTION,
        ordered,
        [ir.convenience.convert_attribute(key, given) for key, given in attributes(fusion, fmt).items()],
        num_outputs=3 if any(_exposed(side.cache) for side in (fusion.key, fusion.value)) else 1,
        name=name,
        metadata_props=dict(site.softmax.metadata_props),
    )
    for output in node.outputs:
        output.type = ir.TensorType(dtype)
    graph.insert_before(before, node)

    outlet = fusion.outlet
    result = node.outputs[0]
    if outlet.dtype != dtype:
        result.name = builder.names.new(f"{name}_output")
        result.shape = outlet.value.shape
        result = builder.cast(before, result, outlet.dtype, scope)
    stale: list[ir.Node] = [site.values.node, *_take_over(outlet.value, result, builder)]
    for present, side in zip(node.outputs[1:], (fusion.key, fusion.value), strict=False):
        if side.cache is not None:
            stale += _move_present(side.cache, present, builder)
    joins = [side.cache.present.producer() for side in (fusion.key, fusion.value) if side.cache is not None]
    stale += [join for join in joins if join is not None]
    remove_dead(stale)
    return node


def _take_over(old: ir.Value, new: ir.Value, builder: Builder) -> Sequence[ir.Node]:
    """`new` becomes `old` for every reader: same name, type, shape, metadata. Returns the node that made `old`."""
    new.shape = old.shape
    new.type = old.type or new.type
    new.doc_string = old.doc_string
    new.metadata_props.update(old.metadata_props)
    name, producer = old.name, old.producer()
    assert name is not None
    old.name = builder.names.new(f"{name}_unfused")
    new.name = name
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    return [] if producer is None else [producer]


def _copies(cache: Cache) -> list[ir.Node]:
    """Identity nodes through which the joined keys reach a model output."""
    readers = [use.node for use in cache.present.uses()]
    return [node for node in readers if node.op_type == "Identity" and node.outputs[0].is_graph_output()]


def _exposed(cache: Cache | None) -> bool:
    return cache is not None and (cache.present.is_graph_output() or bool(_copies(cache)))


def _move_present(cache: Cache, present: ir.Value, builder: Builder) -> Sequence[ir.Node]:
    """Model outputs that were the joined keys (or a copy of them) come from the operator."""
    joined = cache.present
    producers: list[ir.Node] = []
    if joined.is_graph_output():
        name = joined.name
        assert name is not None
        joined.name = builder.names.new(f"{name}_unfused")
        present.name, present.shape, present.type = name, joined.shape, joined.type or present.type
        present.metadata_props.update(joined.metadata_props)
        _replace_output(joined, present)
    elif copies := _copies(cache):
        producers += _take_over(copies[0].outputs[0], present, builder)
    else:
        present.name, present.shape = builder.names.new(f"{joined.name}_present"), joined.shape
    producer = joined.producer()
    return producers if producer is None else [*producers, producer]


def _replace_output(old: ir.Value, new: ir.Value) -> None:
    """Exchange a graph output and leave other readers of `old` alone: one may lie before the new node."""
    graph = old.graph
    assert graph is not None
    for at, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[at] = new


def _key_mask(
    fusion: Fusion, before: ir.Node, builder: Builder, probes: ProbeSet, scope: str
) -> ir.Value | None:
    masks = fusion.masking.key_masks
    if not masks:
        return None
    ranks = [len(probes.first_shape(mask.value) or ()) for mask in masks]
    dtypes = [probes.first.dtype(mask.value) or ir.DataType.BOOL for mask in masks]
    return builder.key_mask(before, masks, ranks, dtypes, scope)


def _bias(fusion: Fusion, before: ir.Node, builder: Builder, probes: ProbeSet, scope: str) -> ir.Value | None:
    steps = fusion.masking.biases
    if not steps:
        return None
    flat: list[int] = []
    for step in steps:
        bias, scores = probes.first_shape(step.value), probes.first_shape(step.node.outputs[0])
        own = bias is not None and scores is not None and len(scores) == 3 and len(bias) == 3 and bias[0] != 1
        flat.append(fusion.query.heads if own else 0)
    own_types = [probes.first.dtype(step.value) for step in steps]
    return builder.bias(before, list(zip(steps, own_types, flat, strict=True)), fusion.query.dtype, scope)


def _sinks(fusion: Fusion, before: ir.Node, builder: Builder, probes: ProbeSet, scope: str) -> ir.Value | None:
    sinks = fusion.sinks
    if sinks is None:
        return None
    if probes.first.dtype(sinks) != ir.DataType.FLOAT:
        sinks = builder.cast(before, sinks, ir.DataType.FLOAT, scope)
    if len(probes.first_shape(fusion.sinks) or ()) != 1:
        sinks = builder.reshape(before, sinks, (-1,), scope)
    return sinks

