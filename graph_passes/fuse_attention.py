"""The rewrite: one understood site becomes one ZyfaPrefillAttention node.

Before                                                       After
  Q x K^T -> scale, softcap, masks -> Softmax -> ... x V       ZyfaPrefillAttention(query, key, value, past_key,
  with transposes, head splits, repeated key heads,            past_value, key_mask, attn_bias, sinks)
  Concat(past, new) around it

The new node stands where the product with V stood, its output takes over name, type, shape and metadata of the value it
replaces, and present keys and values keep the names of the model outputs. Nodes that other readers need stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import onnx_ir as ir

from .build import Builder, Term
from .fold_rotation import Projection, rotated
from .fusion import Fusion
from .layouts import Candidate
from .operands import Operands
from .quantize_nodes import quantised
from .scenarios import ProbeSet
from .schema import DOMAIN, FP8_ONLY_ATTRIBUTES, INPUTS, PREFILL_ATTENTION, Fp8Edges, Precision, Rotation
from .sweep import remove_dead

SCOPES_KEY: Final = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True)
class Format:
    """Number format of one fused node. explicit: its FP8 codes are made by other nodes.
    folded: how query and key are projected, where the rotation becomes part of that."""

    precision: Precision
    rotation: Rotation
    fp8_edges: Fp8Edges
    explicit: bool = False
    folded: tuple[Projection, Projection] | None = None


def scope_of(node: ir.Node) -> str:
    """The module a node belongs to, with a trailing separator, as its exporter wrote it: in the node's name
    (/model/layers.0/self_attn/Softmax) or in torch's name scopes. Empty when there is none."""
    name = node.name or ""
    if "/" in name:
        return name[: name.rindex("/") + 1]
    scopes = [part.strip(" '\"[]") for part in node.metadata_props.get(SCOPES_KEY, "").split(",")]
    modules = [part for part in scopes if "." in part]
    return f"{modules[-1]}/" if modules else ""


def node_name(fusion: Fusion) -> str:
    """What the fused node is called, before it is made unique."""
    return f"{scope_of(fusion.head)}{PREFILL_ATTENTION}"


def attributes(fusion: Fusion, fmt: Format, explicit_scale: bool = False) -> dict[str, int | float | str]:
    """All attributes that say how to read the node; those the operator would refuse are left out.

    explicit_scale: the default scale too, which a function body cannot derive.
    """
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
    elif explicit_scale:
        found["scale"] = 1.0 / math.sqrt(query.head_dim)
    if fmt.precision != "fp8":
        for name in FP8_ONLY_ATTRIBUTES:
            del found[name]
    if fmt.folded is not None:
        found["rotation"] = "none"
    if fmt.explicit:
        del found["rotation"]
        found["out_dtype"] = int(query.dtype)
    return found


def used_presents(fusion: Fusion) -> tuple[ir.Value, ...]:
    """The present keys and values, if the fused node has to give them."""
    # What was joined outside of the If or Loop body that the attention is in stays there.
    inside = all(one.graph is fusion.last.graph for one in fusion.presents)
    return fusion.presents if inside and any(_exposed(one, fusion.last) for one in fusion.presents) else ()


def rewrite(
    fusion: Fusion, fmt: Format, name: str, builder: Builder, probes: ProbeSet, explicit_scale: bool = False
) -> ir.Node:
    """Put the fused node in, move readers over, and remove what nobody reads any more."""
    before, operands = fusion.last, fusion.operands
    graph = before.graph
    assert isinstance(graph, ir.Graph)
    scope = scope_of(fusion.head)
    dtype = fusion.query.dtype
    if fusion.prelude is not None:
        fusion.prelude(before, builder, scope)
    inputs: dict[str, ir.Value | None] = {
        "query": _projected(operands.query, fmt, 0, before, builder, scope),
        "key": _projected(operands.key.new, fmt, 1, before, builder, scope),
        "value": _prepared(operands.value.new, before, builder, scope),
        "past_key": builder.now(fusion.past[0]) if fusion.past else None,
        "past_value": builder.now(fusion.past[1]) if fusion.past else None,
        "key_mask": None,  # below: it may need the length of the key
        "attn_bias": _bias(fusion, before, builder, probes, scope),
        "sinks": _sinks(fusion, before, builder, probes, scope),
    }
    inputs["key_mask"] = _key_mask(fusion, inputs["key"], before, builder, probes, scope)
    if fmt.explicit:
        heads = {"query": fusion.query.heads, "key": fusion.kv_heads, "value": fusion.kv_heads}
        rotation: Rotation = "none" if fmt.folded is not None else fmt.rotation
        inputs = quantised(inputs, heads, fusion.query.form, dtype, rotation, before, builder, scope)
    ordered = [inputs.get(one) for one in INPUTS]
    while ordered[-1] is None:
        ordered.pop()
    said = attributes(fusion, fmt, explicit_scale)
    presents = used_presents(fusion)
    node = ir.Node(
        DOMAIN,
        PREFILL_ATTENTION,
        ordered,
        [ir.convenience.convert_attribute(key, given) for key, given in said.items()],
        num_outputs=1 + len(presents),
        name=name,
        metadata_props=dict(fusion.head.metadata_props),
    )
    for output in node.outputs:
        output.type = ir.TensorType(dtype)
    graph.insert_before(before, node)

    result = node.outputs[0]
    if fmt.explicit and fusion.query.form.packed:
        result.name = builder.names.new(f"{name}_output")
        width = fusion.query.heads * operands.value.new.head_dim
        result = builder.reshape(before, result, (0, 0, width), scope)
    result = _restored(operands, result, name, before, builder, scope)
    stale: list[ir.Node] = [fusion.last, *_take_over(operands.outlet.value, result, builder)]
    for old, new in zip(presents, _finished(fusion, node.outputs[1:], before, builder, scope), strict=True):
        stale += _move_present(old, new, fusion.last, builder)
    stale += [join for one in fusion.presents if (join := one.producer()) is not None]
    remove_dead(stale)
    return node


def _finished(
    fusion: Fusion, presents: Sequence[ir.Value], before: ir.Node, builder: Builder, scope: str
) -> list[ir.Value]:
    if fusion.finish is None:
        return list(presents)
    for present in presents:
        present.name = builder.names.new(f"{scope}present")
    return [fusion.finish(present, before, builder, scope) for present in presents]


def _projected(
    one: Candidate, fmt: Format, which: int, before: ir.Node, builder: Builder, scope: str
) -> ir.Value:
    if fmt.folded is None:
        return _prepared(one, before, builder, scope)
    return rotated(one, fmt.folded[which], before, builder, scope)


def _prepared(one: Candidate, before: ir.Node, builder: Builder, scope: str) -> ir.Value:
    """The candidate's value as the operator takes it."""
    value, prepare = builder.now(one.value), one.prepare
    if prepare is None:
        return value
    if prepare.perm:
        value = builder.node(before, "Transpose", [value], one.dtype, scope, perm=prepare.perm)
    if prepare.flat_heads:  # (B*H, S, D) -> (B*H, 1, S, D) -> (B, H, S, D)
        value = builder.reshape(
            before, builder.unsqueeze(before, value, 1, scope), (-1, prepare.flat_heads, 0, 0), scope
        )
    return value


def _restored(
    operands: Operands, result: ir.Value, name: str, before: ir.Node, builder: Builder, scope: str
) -> ir.Value:
    """The operator's output in the form and type of the outlet."""
    outlet, query = operands.outlet, operands.query
    same_form = not outlet.flat and outlet.form == query.form
    if same_form and outlet.dtype == result.dtype:
        return result
    result.name = builder.names.new(f"{name}_output")
    if outlet.flat:  # (B, H, S, D) -> (B*H, 1, S, D) -> (B*H, S, D)
        result = builder.squeeze(before, builder.reshape(before, result, (-1, 1, 0, 0), scope), 1, scope)
    elif not same_form:
        heads, width = query.heads, operands.value.new.head_dim
        if query.form.layout != outlet.form.layout:
            result = builder.node(before, "Transpose", [result], result.dtype, scope, perm=(0, 2, 1, 3))
        lengths = (0, 0, heads * width) if outlet.form.packed else (0, 0, heads, width)
        result = builder.reshape(before, result, lengths, scope)
    if outlet.dtype != result.dtype:
        result = builder.cast(before, result, outlet.dtype, scope)
    return result


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
    builder.move(old, new)
    return [] if producer is None else [producer]


def _copies(joined: ir.Value) -> list[ir.Node]:
    """Identity nodes through which joined keys reach a model output."""
    readers = [use.node for use in joined.uses()]
    return [node for node in readers if node.op_type == "Identity" and node.outputs[0].is_graph_output()]


def _exposed(joined: ir.Value, last: ir.Node) -> bool:
    own = joined.producer() is last and next(iter(joined.uses()), None) is not None
    return own or joined.is_graph_output() or bool(_copies(joined))


def _move_present(joined: ir.Value, present: ir.Value, last: ir.Node, builder: Builder) -> Sequence[ir.Node]:
    """Model outputs that were the joined keys (or a copy of them) come from the operator.

    Other readers of a Concat keep it: one of them may lie before the new node. An attention node's own outputs move
    with all their readers.
    """
    if joined.producer() is last and joined.name:
        return _take_over(joined, present, builder)
    if joined.is_graph_output():
        name, graph = joined.name, joined.graph
        assert name is not None and graph is not None
        joined.name = builder.names.new(f"{name}_unfused")
        present.name, present.shape, present.type = name, joined.shape, joined.type or present.type
        present.metadata_props.update(joined.metadata_props)
        for at, output in enumerate(graph.outputs):
            if output is joined:
                graph.outputs[at] = present
        return ()
    if copies := _copies(joined):
        return _take_over(copies[0].outputs[0], present, builder)
    present.name, present.shape = builder.names.new(f"{joined.name or 'keys'}_present"), joined.shape
    return ()


def _key_mask(
    fusion: Fusion, key: ir.Value | None, before: ir.Node, builder: Builder, probes: ProbeSet, scope: str
) -> ir.Value | None:
    masks = fusion.masking.key_masks
    if not masks:
        return None
    ranks = [len(probes.first_shape(mask.value) or ()) for mask in masks]
    dtypes = [probes.first.dtype(mask.value) or ir.DataType.BOOL for mask in masks]
    keys = [(builder.now(fusion.past[0]), 2)] if fusion.past else []
    if key is not None:
        keys.append((key, 2 if fusion.operands.key.new.form.layout == "BHSD" else 1))
    return builder.key_mask(before, masks, ranks, dtypes, keys, scope)


def _bias(fusion: Fusion, before: ir.Node, builder: Builder, probes: ProbeSet, scope: str) -> ir.Value | None:
    terms: list[Term] = []
    for step in fusion.masking.biases:
        bias, scores = probes.first_shape(step.value), fusion.scores(probes.first)
        staged = probes.first_shape(step.node.outputs[0])
        flat = (
            staged is not None and len(staged) == 3 and bias is not None and len(bias) == 3 and bias[0] != 1
        )
        own_heads = fusion.query.heads if flat and scores is not None else 0
        terms.append((step, probes.first.dtype(step.value), own_heads))
    return builder.bias(before, terms, fusion.query.dtype, scope) if terms else None


def _sinks(
    fusion: Fusion, before: ir.Node, builder: Builder, probes: ProbeSet, scope: str
) -> ir.Value | None:
    if fusion.sinks is None:
        return None
    sinks = builder.now(fusion.sinks)
    if probes.first.dtype(sinks) != ir.DataType.FLOAT:
        sinks = builder.cast(before, sinks, ir.DataType.FLOAT, scope)
    if len(probes.first_shape(fusion.sinks) or ()) != 1:
        sinks = builder.reshape(before, sinks, (-1,), scope)
    return sinks
