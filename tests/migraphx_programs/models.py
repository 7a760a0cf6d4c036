"""Models for programs, and what ONNX Runtime's CPU session makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

import zyfa_ort

Array = NDArray[Any]
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
TYPES = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    TensorProto.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
}


class Graph:
    """A model in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self._rng = np.random.default_rng(0)

    def input(self, name: str, kind: int, shape: Sequence[int | str]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, name: str, values: Array) -> str:
        kind = helper.np_dtype_to_tensor_dtype(values.dtype)
        self.initializers.append(helper.make_tensor(name, kind, values.shape, values.tobytes(), raw=True))
        return name

    def weight(self, name: str, rows: int, columns: int, dtype: Any = np.float32) -> str:
        return self.constant(name, (self._rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(dtype))

    def node(self, op: str, inputs: Sequence[str], output: str | Sequence[str], **attributes: Any) -> str:
        outputs = [output] if isinstance(output, str) else list(output)
        domain = "ai.zyfa" if op.startswith("Zyfa") else attributes.pop("domain", "")
        self.nodes.append(
            helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", domain=domain, **attributes)
        )
        return outputs[0]

    def save(self, path: Path, outputs: Mapping[str, int], opsets: Sequence[Any] = OPSETS) -> Path:
        given = {value.name: value for value in self.inputs}
        results = [
            given.get(name) or helper.make_tensor_value_info(name, kind, None)
            for name, kind in outputs.items()
        ]
        graph = helper.make_graph(self.nodes, "test", self.inputs, results, self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=list(opsets), ir_version=10), path)
        return path


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def write_decoder(
    path: Path,
    *,
    kind: int = TensorProto.FLOAT,
    precision: str = "fp32",
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 32,
    layers: int = 2,
    cache: bool = True,
    quantize_nodes: bool = False,
) -> Path:
    """A language model: embedding, RMS norms, projections in 3-D, attention with a mask and a cache, logits.

    The attention of `quantize_nodes` takes codes of ZyfaQuantizeFp8 nodes, and has no cache.
    """
    g, dtype, hidden, vocabulary = Graph(), TYPES[kind], heads * head_dim, 64
    ids = g.input("input_ids", TensorProto.INT64, ["batch", "tokens"])
    mask = g.input("attention_mask", TensorProto.INT64, ["batch", "past + tokens" if cache else "tokens"])
    eps = g.constant("eps", np.array(1e-5, dtype))
    x = g.node("Gather", [g.weight("table", vocabulary, hidden, dtype), ids], "x")
    shape = g.node("Shape", [ids], "shape")
    batch = g.node(
        "Slice", [shape, g.constant("zero", integers(0)), g.constant("two", integers(2))], "batch_tokens"
    )
    outputs = {"logits": kind}
    for layer in range(layers):
        at = f"l{layer}_"
        square = g.node("Mul", [x, x], at + "square")
        mean = g.node("ReduceMean", [square, g.constant(at + "axis", integers(-1))], at + "mean")
        root = g.node("Sqrt", [g.node("Add", [mean, eps], at + "mean_eps")], at + "root")
        normed = g.node("Div", [x, root], at + "normed")
        q = g.node("MatMul", [normed, g.weight(at + "wq", hidden, hidden, dtype)], at + "q")
        k = g.node("MatMul", [normed, g.weight(at + "wk", hidden, kv_heads * head_dim, dtype)], at + "k")
        v = g.node("MatMul", [normed, g.weight(at + "wv", hidden, kv_heads * head_dim, dtype)], at + "v")
        if quantize_nodes:
            attended = _quantised(g, at, (q, k, v), mask, batch, (heads, kv_heads, head_dim), kind)
        else:
            past = [""] * 2
            made = [at + "attended"]
            if cache:
                past = [
                    g.input(f"past_{one}_{layer}", kind, ["batch", kv_heads, "past", head_dim])
                    for one in "kv"
                ]
                made += [f"present_{one}_{layer}" for one in "kv"]
                outputs |= dict.fromkeys(made[1:], kind)
            attended = g.node(
                "ZyfaPrefillAttention",
                [q, k, v, *past, mask],
                made,
                num_heads=heads,
                kv_num_heads=kv_heads,
                precision=precision,
            )
        projected = g.node("MatMul", [attended, g.weight(at + "wo", hidden, hidden, dtype)], at + "projected")
        x = g.node("Add", [x, projected], at + "out")
    g.node("MatMul", [x, g.weight("head", hidden, vocabulary, dtype)], "logits")
    return g.save(path, outputs)


def _quantised(
    g: Graph,
    at: str,
    qkv: tuple[str, str, str],
    mask: str,
    batch: str,
    sizes: tuple[int, int, int],
    kind: int,
) -> str:
    heads, kv_heads, head_dim = sizes
    codes, scales = [], []
    for name, value, count in zip("qkv", qkv, (heads, kv_heads, kv_heads), strict=True):
        target = g.node(
            "Concat",
            [batch, g.constant(f"{at}{name}_split", integers(count, head_dim))],
            f"{at}{name}_to",
            axis=0,
        )
        split = g.node("Reshape", [value, target], f"{at}{name}_heads")
        if name != "v":
            split = g.node("ZyfaHadamard", [split], f"{at}{name}_rotated")
        codes.append(g.node("ZyfaQuantizeFp8", [split], [f"{at}{name}_codes", f"{at}{name}_scale"]))
        scales.append(f"{at}{name}_scale")
    attended = g.node(
        "ZyfaPrefillAttention", [*codes, "", "", mask, "", *scales], at + "attended_heads", out_dtype=kind
    )
    flat = g.node(
        "Concat", [batch, g.constant(at + "flat", integers(heads * head_dim))], at + "flat_to", axis=0
    )
    return g.node("Reshape", [attended, flat], at + "attended")


def decoder_inputs(
    batch: int,
    tokens: int,
    past: int,
    kind: int = TensorProto.FLOAT,
    layers: int = 2,
    kv_heads: int = 2,
    head_dim: int = 32,
) -> dict[str, Array]:
    """The second row of a batch is padded on the left."""
    rng = np.random.default_rng(1)
    mask = np.ones((batch, past + tokens), np.int64)
    mask[1:, : (past + tokens) // 4] = 0
    made: dict[str, Array] = {"input_ids": rng.integers(0, 64, (batch, tokens)), "attention_mask": mask}
    if past:
        for layer in range(layers):
            for one in "kv":
                values = rng.standard_normal((batch, kv_heads, past, head_dim))
                made[f"past_{one}_{layer}"] = values.astype(TYPES[kind])
    return made


def by_onnxruntime(path: Path, inputs: Mapping[str, Array]) -> dict[str, Array]:
    return zyfa_ort.run(zyfa_ort.session(path, device="cpu"), inputs)
