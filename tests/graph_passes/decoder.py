"""A decoder as exporters write it, of any number of layers and of any size: weights are holes in a sparse data file.

Per layer RMS norm, projections, rotary embedding, a cache joined before the key heads are repeated, attention under one
mask shared by all layers, and a gated MLP.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from custom_ops.problems import Sizes
from onnx import TensorProto, helper

from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, from_heads, repeat_heads, split_heads
from graph_passes.graph import Graph, onnx_type

ALIGNMENT = 4096


@dataclass(frozen=True)
class Decoder:
    """Sizes of a model; the defaults make 8 GB of weights. form: how torch's ("sdpa") or the older exporters write it."""

    layers: int = 32
    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 8
    head_dim: int = 128
    inner: int = 7168
    vocabulary: int = 32_000
    dtype: Any = np.float16
    form: Literal["eager", "sdpa"] = "sdpa"
    past: bool = True
    apart: bool = False  # one data file per tensor

    @property
    def sizes(self) -> Sizes:
        return Sizes(1, self.heads, self.kv_heads, 1, 1, head_dim=self.head_dim)


@dataclass
class Weights:
    """Tensors that lie in data files of the right length without having been written."""

    folder: Path
    apart: bool
    ends: dict[str, int] = field(default_factory=dict)

    def add(self, graph: Graph, name: str, shape: tuple[int, ...], dtype: Any) -> str:
        location = f"{name}.bin" if self.apart else "weights.bin"
        start, length = self.ends.get(location, 0), math.prod(shape) * np.dtype(dtype).itemsize
        tensor = TensorProto(name=name, dims=shape, data_type=onnx_type(dtype))
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", start), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        graph.initializers.append(tensor)
        self.ends[location] = -(-(start + length) // ALIGNMENT) * ALIGNMENT
        return name

    def write(self) -> None:
        for location, end in self.ends.items():
            (self.folder / location).touch()
            os.truncate(self.folder / location, end)


def write_decoder(path: Path, decoder: Decoder) -> Path:
    """Writes the model and its data files into the folder of `path`."""
    graph, weights = Graph(), Weights(path.parent, decoder.apart)
    ids = graph.input("input_ids", np.int64, ["batch", "tokens"])
    graph.input("attention_mask", np.int64, ["batch", "total" if decoder.past else "tokens"])
    table = weights.add(graph, "embedding", (decoder.vocabulary, decoder.hidden), decoder.dtype)
    value = graph.op("Gather", table, ids)
    shared = _Shared(decoder, weights)
    for layer in range(decoder.layers):
        value = _layer(graph, value, layer, shared)
    value = _norm(graph, value, "norm", shared)
    graph.op("MatMul", value, shared.weight(graph, "head", decoder.hidden, decoder.vocabulary), name="logits")
    graph.output("logits", decoder.dtype, ["batch", "tokens", decoder.vocabulary])
    weights.write()
    opset = [helper.make_opsetid("", graph.opset)]
    path.write_bytes(helper.make_model(graph.graph(), opset_imports=opset, ir_version=8).SerializeToString())
    onnx.checker.check_model(path)
    return path


@dataclass
class _Shared:
    """What all layers use: made with the first."""

    decoder: Decoder
    weights: Weights
    values: dict[str, str] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], str]) -> str:
        if name not in self.values:
            self.values[name] = make()
        return self.values[name]

    def weight(self, graph: Graph, name: str, *shape: int) -> str:
        return self.weights.add(graph, name, shape, self.decoder.dtype)


def _norm(graph: Graph, value: str, name: str, shared: _Shared) -> str:
    decoder = shared.decoder
    wide = graph.cast(value, np.float32)
    square = graph.op("Pow", wide, graph.constant(2, np.float32))
    mean = graph.over("ReduceMean", square, -1)
    root = graph.op("Sqrt", graph.op("Add", mean, graph.constant(1e-5, np.float32)))
    normed = graph.cast(graph.op("Div", wide, root), decoder.dtype)
    return graph.op("Mul", normed, shared.weight(graph, f"{name}.weight", decoder.hidden))


def _angles(graph: Graph, shared: _Shared, function: str) -> str:
    """(B, 1, S, D) cosines or sines of the last S positions, which follow from the padding."""
    decoder = shared.decoder

    def positions() -> str:
        counted = graph.op("CumSum", "attention_mask", graph.constant(1, np.int64))
        from_zero = graph.op("Sub", counted, graph.constant(1, np.int64))
        new = graph.op("Neg", graph.length("input_ids", 1))
        end = graph.integers(np.iinfo(np.int64).max)
        return graph.op("Slice", from_zero, new, end, graph.integers(1))

    def make() -> str:
        at = graph.cast(shared.once("positions", positions), np.float32)
        steps = np.arange(0, decoder.head_dim, 2) / decoder.head_dim
        speeds = graph.constant(10_000.0**-steps, np.float32)
        angles = graph.op("Mul", graph.unsqueeze(at, 2), speeds)
        both = graph.op("Concat", angles, angles, axis=-1)
        return graph.unsqueeze(graph.cast(graph.op(function, both), decoder.dtype), 1)

    return shared.once(function, make)


def _rotated(graph: Graph, value: str, shared: _Shared) -> str:
    """Rotary embedding of (B, H, S, D)."""
    half, axis = shared.decoder.head_dim // 2, graph.integers(3)
    low = graph.op("Slice", value, graph.integers(0), graph.integers(half), axis)
    high = graph.op("Slice", value, graph.integers(half), graph.integers(2 * half), axis)
    turned = graph.op("Concat", graph.op("Neg", high), low, axis=-1)
    straight = graph.op("Mul", value, _angles(graph, shared, "Cos"))
    return graph.op("Add", straight, graph.op("Mul", turned, _angles(graph, shared, "Sin")))


def _visible(graph: Graph, scores: str, shared: _Shared) -> str:
    """The mask of all layers: causal and padding, filled with the lowest number."""
    decoder = shared.decoder

    def make() -> str:
        total = graph.scalar_length("attention_mask", 1)
        new = graph.scalar_length("input_ids", 1)
        row = graph.op("Add", graph.range(new), graph.op("Sub", total, new))
        visible = graph.op("LessOrEqual", graph.unsqueeze(graph.range(total), 0), graph.unsqueeze(row, 1))
        exists = graph.unsqueeze(graph.cast("attention_mask", np.bool_), 1, 2)
        lowest = float(np.finfo(decoder.dtype).min)
        return masks.fill(graph, graph.op("Not", graph.op("And", visible, exists)), lowest, decoder.dtype)

    return masks.add(graph, scores, shared.once("mask", make))


def _attention(graph: Graph, value: str, layer: int, shared: _Shared) -> str:
    decoder, sizes = shared.decoder, shared.decoder.sizes
    scope, parts = f"layers.{layer}.self_attn", {}
    for kind, heads in (("q", decoder.heads), ("k", decoder.kv_heads), ("v", decoder.kv_heads)):
        weight = shared.weight(graph, f"{scope}.{kind}", decoder.hidden, heads * decoder.head_dim)
        parts[kind] = split_heads(graph, graph.op("MatMul", value, weight), heads, decoder.head_dim)
        if kind != "v":
            parts[kind] = _rotated(graph, parts[kind], shared)
    for kind in ("k", "v"):
        if decoder.past:
            dims: list[int | str] = ["batch", decoder.kv_heads, "past", decoder.head_dim]
            past = graph.input(f"past.{layer}.{kind}", decoder.dtype, dims)
            parts[kind] = graph.op("Concat", past, parts[kind], name=f"present.{layer}.{kind}", axis=-2)
            graph.output(parts[kind], decoder.dtype, [*dims[:2], "total", decoder.head_dim])
        parts[kind] = repeat_heads(graph, parts[kind], sizes, decoder.head_dim, "expand")
    style = Style(form=decoder.form, mask=lambda graph, scores: _visible(graph, scores, shared))
    k_t = graph.transpose(parts["k"], 0, 1, 3, 2)
    out = from_heads(graph, parts["q"], k_t, parts["v"], sizes, style, decoder.dtype)
    weight = shared.weight(graph, f"{scope}.o", decoder.heads * decoder.head_dim, decoder.hidden)
    return graph.op("MatMul", out, weight)


def _layer(graph: Graph, value: str, layer: int, shared: _Shared) -> str:
    decoder = shared.decoder
    normed = _norm(graph, value, f"layers.{layer}.input_norm", shared)
    value = graph.op("Add", value, _attention(graph, normed, layer, shared))
    normed = _norm(graph, value, f"layers.{layer}.post_norm", shared)

    def project(value: str, kind: str, before: int, after: int) -> str:
        return graph.op("MatMul", value, shared.weight(graph, f"layers.{layer}.mlp.{kind}", before, after))

    gate, up = (project(normed, kind, decoder.hidden, decoder.inner) for kind in ("gate", "up"))
    inner = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
    return graph.op("Add", value, project(inner, "down", decoder.inner, decoder.hidden))
