"""Attention written out in standard operators, in the ways that exporters write it.

`attention` turns (B, S, H*D) queries, keys and values into a (B, S, H*Dv) output; a `Style` says how.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from custom_ops.problems import Sizes, gaussian

from graph_passes.graph import Array, Graph

Masking = Callable[[Graph, str], str]  # the scores -> the scores after a mask


@dataclass(frozen=True)
class Style:
    """How one attention is written.

    form        "eager": product, scale, mask; "sdpa": sqrt(scale) on Q and K^T, NaN guard after the Softmax
    keys        K^T by one transpose of (B,H,S,D), by one that also splits the heads, or by two
    scale       None: 1/sqrt(head_dim); 0.0 without `scale_op`: no scale node at all
    scale_op    eager only: how the scale is applied; "on query" before the product
    scale_shape of the constant
    repeat      how key heads become query heads: in blocks (expand), in blocks by repeat_interleave's Tile of an added
                axis (tile), or in turn (tile heads)
    swap        operands of Mul and Add exchanged
    softmax_in  type of the Softmax, reached by Casts
    mask        what hides keys
    merge       output back to (B, S, H*Dv)
    """

    form: Literal["eager", "sdpa"] = "eager"
    keys: Literal["0132", "0231", "two"] = "0132"
    scale: float | None = None
    scale_op: Literal["Mul", "Div", "on query", "none"] = "Mul"
    scale_shape: tuple[int, ...] = ()
    scale_dtype: Any = None
    repeat: Literal["expand", "tile", "tile heads"] = "expand"
    swap: bool = False
    softmax_in: Any = None
    cast_mask: bool = False
    mask: Masking | None = None
    merge: bool = True


def inputs(graph: Graph, sizes: Sizes, dtype: Any = np.float32, keys: str = "tokens") -> tuple[str, str, str]:
    """query, key and value as graph inputs (B, S, H*D) with free batch and length."""
    v_dim = sizes.v_head_dim or sizes.head_dim
    return (
        graph.input("query", dtype, ["batch", "tokens", sizes.heads * sizes.head_dim]),
        graph.input("key", dtype, ["batch", keys, sizes.kv_heads * sizes.head_dim]),
        graph.input("value", dtype, ["batch", keys, sizes.kv_heads * v_dim]),
    )


def feeds(sizes: Sizes, dtype: Any = np.float32, seed: int = 0) -> dict[str, Array]:
    """Values for `inputs`: an outlier channel in K and a sink at key 0."""
    return gaussian(sizes, dtype, seed=seed, rank=3)


def split_heads(graph: Graph, value: str, heads: int, head_dim: int) -> str:
    """(B, S, H*D) -> (B, H, S, D)"""
    return graph.transpose(graph.reshape(value, 0, 0, heads, head_dim), 0, 2, 1, 3)


def merge_heads(graph: Graph, value: str, width: int) -> str:
    """(B, H, S, D) -> (B, S, H*D)"""
    return graph.reshape(graph.transpose(value, 0, 2, 1, 3), 0, 0, width)


def repeat_heads(graph: Graph, value: str, sizes: Sizes, head_dim: int, how: str) -> str:
    """(B, Hkv, S, D) -> (B, Hq, S, D)"""
    times = sizes.heads // sizes.kv_heads
    if times == 1:
        return value
    if how == "tile heads":
        return graph.op("Tile", value, graph.integers(1, times, 1, 1))
    wide = graph.unsqueeze(value, 2)
    if how == "expand":
        batch, length = (graph.length(value, axis) for axis in (0, 2))
        target = [batch, graph.integers(sizes.kv_heads), graph.integers(times), length]
        shape = graph.op("Concat", *target, graph.integers(head_dim), axis=0)
        wide = graph.op("Expand", wide, shape)
    else:
        wide = graph.op("Tile", wide, graph.integers(1, 1, times, 1, 1))
    batch, length = (graph.length(value, axis) for axis in (0, 2))
    return graph.reshape(wide, batch, sizes.heads, length, head_dim)


def attention(
    graph: Graph, query: str, key: str, value: str, sizes: Sizes, style: Style, dtype: Any = np.float32
) -> str:
    """The output, (B, S, Hq*Dv), or (B, Hq, S, Dv) without `merge`."""
    v_dim = sizes.v_head_dim or sizes.head_dim
    q = split_heads(graph, query, sizes.heads, sizes.head_dim)
    v = split_heads(graph, value, sizes.kv_heads, v_dim)
    v = repeat_heads(graph, v, sizes, v_dim, style.repeat)
    return from_heads(graph, q, _transposed_keys(graph, key, sizes, style), v, sizes, style, dtype)


def from_heads(
    graph: Graph, q: str, k_t: str, v: str, sizes: Sizes, style: Style, dtype: Any = np.float32
) -> str:
    """`attention` from (B,Hq,S,D), (B,Hq,D,S) and (B,Hq,S,Dv) on."""
    factor = 1 / math.sqrt(sizes.head_dim) if style.scale is None else style.scale
    own = dtype if style.scale_dtype is None else style.scale_dtype

    def constant(number: float) -> str:
        return graph.constant(np.full(style.scale_shape, number, own))

    def times(left: str, right: str) -> str:
        return graph.op("Mul", *((right, left) if style.swap else (left, right)))

    if style.form == "sdpa":
        root = constant(math.sqrt(factor))
        q, k_t = times(q, root), times(k_t, root)
    elif style.scale_op == "on query":
        q = times(q, constant(factor))
    scores = graph.op("MatMul", q, k_t, name=graph.fresh("scores"))
    if style.softmax_in is not None and not style.cast_mask:
        scores = graph.cast(scores, style.softmax_in)
    if style.form == "eager" and style.scale_op == "Mul":
        scores = times(scores, constant(factor))
    elif style.form == "eager" and style.scale_op == "Div":
        scores = graph.op("Div", scores, constant(1 / factor))
    if style.mask is not None:
        scores = style.mask(graph, scores)
    if style.softmax_in is not None and style.cast_mask:
        scores = graph.cast(scores, style.softmax_in)
    weights = graph.op("Softmax", scores, axis=-1, name=graph.fresh("softmax"))
    if style.form == "sdpa":
        zero = graph.constant(0, style.softmax_in or dtype)
        weights = graph.op("Where", graph.op("IsNaN", weights), zero, weights)
    if style.softmax_in is not None:
        weights = graph.cast(weights, dtype)
    output = graph.op("MatMul", weights, v, name=graph.fresh("attended"))
    v_dim = sizes.v_head_dim or sizes.head_dim
    return merge_heads(graph, output, sizes.heads * v_dim) if style.merge else output


def _transposed_keys(graph: Graph, key: str, sizes: Sizes, style: Style) -> str:
    """(B, Hq, D, S)"""
    if style.keys == "0231" and sizes.heads == sizes.kv_heads:
        return graph.transpose(graph.reshape(key, 0, 0, sizes.kv_heads, sizes.head_dim), 0, 2, 3, 1)
    k = split_heads(graph, key, sizes.kv_heads, sizes.head_dim)
    k = repeat_heads(graph, k, sizes, sizes.head_dim, style.repeat)
    if style.keys != "two":
        return graph.transpose(k, 0, 1, 3, 2)
    # As torch's dynamo exporter writes it: (B*H, S, D), a transpose of rank 3, and back.
    batch, length = graph.length(k, 0), graph.length(k, 2)
    flat = graph.transpose(graph.reshape(k, -1, length, sizes.head_dim), 0, 2, 1)
    return graph.reshape(flat, batch, sizes.heads, sizes.head_dim, length)


def one_attention(
    sizes: Sizes, style: Style, dtype: Any = np.float32, graph: Graph | None = None, keys: str = "tokens"
) -> Graph:
    """A graph of one attention over `inputs`, its output called `output`."""
    graph = graph or Graph()
    q, k, v = inputs(graph, sizes, dtype, keys)
    result = attention(graph, q, k, v, sizes, style, dtype)
    graph.op("Identity", result, name="output")
    v_dim = sizes.v_head_dim or sizes.head_dim
    merged, apart = ["batch", "tokens", sizes.heads * v_dim], ["batch", sizes.heads, "tokens", v_dim]
    graph.output("output", dtype, merged if style.merge else apart)
    return graph


def layers(
    graph: Graph, sizes: Sizes, styles: Sequence[Style], dtype: Any = np.float32, seed: int = 0
) -> Graph:
    """Residual attention layers over an input `hidden` (B, S, 48), with random projections; result `output`."""
    rng = np.random.default_rng(seed)
    width, v_dim = 48, sizes.v_head_dim or sizes.head_dim
    hidden = graph.input("hidden", dtype, ["batch", "tokens", width])

    def project(value: str, before: int, after: int, spread: float) -> str:
        weight = rng.standard_normal((before, after)) * spread / math.sqrt(before)
        return graph.op("MatMul", value, graph.constant(weight, dtype))

    for style in styles:
        q = project(hidden, width, sizes.heads * sizes.head_dim, 2)
        k = project(hidden, width, sizes.kv_heads * sizes.head_dim, 2)
        v = project(hidden, width, sizes.kv_heads * v_dim, 1)
        out = attention(graph, q, k, v, sizes, style, dtype)
        hidden = graph.op("Add", hidden, project(out, sizes.heads * v_dim, width, 0.5))
    graph.op("Identity", hidden, name="output")
    graph.output("output", dtype, ["batch", "tokens", width])
    return graph


def hidden_feeds(batch: int = 2, tokens: int = 9, dtype: Any = np.float32) -> dict[str, Array]:
    """Values for `layers`, with an outlier channel and a loud first token."""
    hidden = np.random.default_rng(1).standard_normal((batch, tokens, 48))
    hidden[..., 5] += 4
    hidden[:, :1] *= 3
    return {"hidden": hidden.astype(dtype)}
