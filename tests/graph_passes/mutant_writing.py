"""The graph of a plan: operands, products, and what happens to the scores in between."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from graph_passes.decomposed import merge_heads, split_heads
from graph_passes.graph import Graph
from graph_passes.mutant_edits import rename
from graph_passes.mutant_masks import masked
from graph_passes.mutant_operands import REPEATS, SOURCES, scores_of
from graph_passes.mutant_plans import HEAD_DIM, Plan

SEEN: Final = "seen"


def number(graph: Graph, value: float) -> str:
    return graph.constant(value, np.float32)


def _times(graph: Graph, value: str, factor: float) -> str:
    return graph.op("Mul", value, number(graph, factor))


def _scaled_operands(graph: Graph, q: str, k: str, plan: Plan) -> tuple[str, str]:
    if plan.scale_at == "query":
        return _times(graph, q, plan.factor), k
    if plan.scale_at == "key":
        return q, graph.op("Div", k, number(graph, 1 / plan.factor))
    if plan.scale_at == "both":
        root = math.sqrt(plan.factor)
        return _times(graph, q, root), _times(graph, k, root)
    if plan.scale_at == "twice":
        return _times(graph, q, 2.0), k
    if plan.scale_at == "root":  # 1 / sqrt(D) by the shape of q, as torchscript writes it
        wide = graph.cast(graph.length(q, -1), np.float32)
        factor = graph.op("Sqrt", graph.op("Div", number(graph, 1.0), graph.op("Sqrt", wide)))
        return graph.op("Mul", q, factor), graph.op("Mul", k, factor)
    return q, k


def _scaled_scores(graph: Graph, scores: str, plan: Plan) -> str:
    if plan.scale_at == "mul":
        return _times(graph, scores, plan.factor)
    if plan.scale_at == "div":
        return graph.op("Div", scores, number(graph, 1 / plan.factor))
    if plan.scale_at == "twice":
        return graph.op("Div", _times(graph, scores, plan.factor), number(graph, 2.0))
    return scores


def _by_length(graph: Graph, scores: str, length: int) -> str:
    """Times max(1, keys / length): a scale that grows beyond a length."""
    keys = graph.cast(graph.scalar_length(scores, -1), np.float32)
    grown = graph.op("Div", keys, number(graph, length))
    return graph.op("Mul", scores, graph.op("Max", grown, number(graph, 1)))


def _biased(graph: Graph, scores: str, plan: Plan) -> str:
    if plan.bias == "alibi":
        slopes = graph.constant((0.5 ** np.arange(1, plan.heads + 1)).reshape(1, -1, 1, 1), np.float32)
        key = graph.cast(graph.range(graph.scalar_length(scores, -1)), np.float32)
        return graph.op("Add", scores, graph.op("Mul", slopes, key))
    dims: dict[str, list[int | str]] = {
        "whole": ["batch", plan.heads, "tokens", "keys"],
        "heads": [1, plan.heads, "tokens", "keys"],
        "rows": ["tokens", "keys"],
    }
    name, _, change = plan.bias.partition(" ")
    if not any(value.name == "bias" for value in graph.inputs):
        graph.input("bias", np.float32, dims[name])
    given = "bias"
    if change == "backwards":
        given = reversed_along(graph, given, -1)
    elif change == "rolled":
        given = rolled(graph, given, -1)
    elif change == "of one key":  # the first column for all keys
        given = graph.op("Slice", given, graph.integers(0), graph.integers(1), graph.integers(-1))
    return graph.op("Add", scores, given)


END: Final = (1 << 63) - 1


def reversed_along(graph: Graph, value: str, axis: int) -> str:
    return graph.op(
        "Slice",
        value,
        graph.integers(-1),
        graph.constant([-END], np.int64),
        graph.integers(axis),
        graph.integers(-1),
    )


def rolled(graph: Graph, value: str, axis: int) -> str:
    """The first element goes to the end."""
    rest = graph.op("Slice", value, graph.integers(1), graph.integers(END), graph.integers(axis))
    first = graph.op("Slice", value, graph.integers(0), graph.integers(1), graph.integers(axis))
    return graph.op("Concat", rest, first, axis=axis)


def _with_sinks(graph: Graph, scores: str, plan: Plan) -> str:
    column = graph.constant(np.linspace(-1, 4, plan.heads).reshape(1, -1, 1, 1), np.float32)
    lengths = [graph.length(scores, 0), graph.integers(plan.heads), graph.length(scores, 2)]
    shape = graph.op("Concat", *lengths, graph.integers(1), axis=0)
    return graph.op("Concat", scores, graph.op("Expand", column, shape), axis=-1)


def _reduced(graph: Graph, scores: str, axis: str) -> str:
    axes = {"keys": [-1], "rows": [-2], "heads and keys": [1, -1]}[axis]
    return graph.op("Sub", scores, graph.over("ReduceMax", scores, *axes, keepdims=1))


def _softmax(graph: Graph, scores: str, plan: Plan) -> str:
    if plan.sinks:
        scores = _with_sinks(graph, scores, plan)
    if plan.subtract_max:
        scores = _reduced(graph, scores, plan.subtract_max)
    weights = graph.op("Softmax", scores, axis=plan.axis, name=graph.fresh("softmax"))
    if plan.guard is not None:
        weights = graph.op("Where", graph.op("IsNaN", weights), number(graph, plan.guard), weights)
    if plan.sinks:
        weights = graph.op("Slice", weights, graph.integers(0), graph.integers(-1), graph.integers(-1))
    return weights


def dropout(graph: Graph, value: str) -> str:
    return graph.op("Dropout", value, number(graph, 0.5), graph.constant(True, np.bool_), seed=1)


def _attended(graph: Graph, weights: str, v: str, plan: Plan) -> str:
    if plan.train == "probabilities":
        weights = dropout(graph, weights)
    if plan.probabilities == "transposed":
        weights = graph.transpose(weights, 0, 1, 3, 2)
    if plan.probabilities == "scaled":
        weights = _times(graph, weights, 0.9)
    if plan.product == "einsum of lengths":
        out = graph.op("Einsum", weights, graph.transpose(v, 0, 2, 1, 3), equation="bhqk,bkhd->bqhd")
        return graph.transpose(out, 0, 2, 1, 3)
    if plan.product == "fused":
        return graph.op("FusedMatMul", weights, v, domain="com.microsoft")
    return graph.op("MatMul", weights, v)


def _joined(graph: Graph, new: str, name: str, plan: Plan) -> str:
    """Past and new keys or values; the joined ones are an output."""
    if not plan.past:
        return new
    other = {"key": "value", "value": "key"}[name]
    past = f"past_{other if plan.past_order == 'swapped' else name}"
    dims: list[int | str] = ["batch", plan.kv_heads, "past", HEAD_DIM]
    if plan.past_order == "heads":
        dims[2] = "tokens"
    graph.input(past, np.float32, dims)
    parts = [past, new]
    if plan.past_order in ("after", f"{name} after"):
        parts.reverse()
    axis = 1 if plan.past_order == "heads" else -2
    joined = graph.op("Concat", *parts, axis=axis, name=f"present_{name}")
    total: int | str = 2 * plan.kv_heads if axis == 1 else plan.kv_heads
    graph.output(joined, np.float32, ["batch", total, f"total_{name}", HEAD_DIM])
    return joined


def _moved(graph: Graph, value: str, how: str) -> str:
    """Keys or values (B, H, S, D) from elsewhere."""
    if how == "backwards":
        return reversed_along(graph, value, 2)
    if how == "rolled":
        return rolled(graph, value, 2)
    if how == "other heads":
        return rolled(graph, value, 1)
    return value


def write(plan: Plan) -> Graph:
    """The graph of a plan, not checked yet. Its first output is `output`."""
    graph = Graph(plan.opset, 8 if plan.opset < 21 else 10, plan.constants_as_nodes)
    query, key, value = SOURCES[plan.source](graph, plan)
    if plan.scale_at == "before heads":
        query = _times(graph, query, plan.factor)
    q = split_heads(graph, query, plan.heads, HEAD_DIM)
    k, v = (split_heads(graph, one, plan.kv_heads, HEAD_DIM) for one in (key, value))
    k, v = _joined(graph, k, "key", plan), _joined(graph, v, "value", plan)
    if plan.kv_heads != plan.heads and plan.past_order != "heads":
        k = REPEATS[plan.repeat](graph, k, plan)
        v = REPEATS[plan.repeat_values or plan.repeat](graph, v, plan)
    k, v = _moved(graph, k, plan.keys), _moved(graph, v, plan.values)
    if plan.train == "keys":
        k = dropout(graph, k)
    q, k = _scaled_operands(graph, q, k, plan)
    shared: list[str] = []
    outs = [_site(graph, q, k, v, plan, shared) for _ in range(plan.sites)]
    out = outs[0]
    for at, other in enumerate(outs[1:]):
        graph.op("Identity", other, name=f"other_{at}")
        graph.output(f"other_{at}", np.float32, _dims(plan))
    if plan.train == "output":
        out = dropout(graph, out)
    graph.op("Identity", out, name="output")
    graph.output("output", np.float32, _dims(plan))
    graph.outputs.insert(0, graph.outputs.pop())
    return graph


def _dims(plan: Plan) -> list[int | str]:
    merged: list[int | str] = ["batch", "tokens", plan.heads * HEAD_DIM]
    return merged if plan.merge else ["batch", plan.heads, "tokens", HEAD_DIM]


def _site(graph: Graph, q: str, k: str, v: str, plan: Plan, shared: list[str]) -> str:
    scores = _scaled_scores(graph, scores_of(graph, q, k, plan), plan)
    if plan.clip:
        scores = graph.op("Clip", scores, number(graph, -plan.clip), number(graph, plan.clip))
    if plan.long_scale:
        scores = _by_length(graph, scores, plan.long_scale)
    if plan.softcap:
        cap = number(graph, plan.softcap)
        scores = graph.op("Mul", graph.op("Tanh", graph.op("Div", scores, cap)), cap)
    if plan.bias:
        scores = _biased(graph, scores, plan)
    if plan.mask is not None:
        scores = _masked(graph, scores, plan, shared)
    if plan.scale_at == "late":
        scores = _times(graph, scores, plan.factor)
    scores = _seen(graph, scores)
    out = _attended(graph, _softmax(graph, scores, plan), v, plan)
    return merge_heads(graph, out, plan.heads * HEAD_DIM) if plan.merge else out


def _seen(graph: Graph, scores: str) -> str:
    """The masked scores under a name that the check knows: it looks at them."""
    name = graph.fresh(SEEN)
    rename(graph, {scores: name})
    return name


def _masked(graph: Graph, scores: str, plan: Plan, shared: list[str]) -> str:
    """With two sites and no `copies` the second adds the tensor that the first has made, where it made one."""
    assert plan.mask is not None
    if shared and not plan.copies:
        return graph.op("Add", scores, shared[0])
    result = masked(graph, scores, plan.mask, plan.meet)
    last = graph.nodes[-1]
    one_step = plan.meet != "steps" or not (plan.mask.padding and plan.mask.rule != "none")
    if last.op_type == "Add" and scores in last.input and one_step:
        shared.extend(name for name in last.input if name != scores)
    return result
