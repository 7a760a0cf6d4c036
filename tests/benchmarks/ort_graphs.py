"""Attention in ONNX Runtime: our operator, its contrib and standard operators, and the unfused graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from custom_ops.op_session import attention_outputs, one_node_model, onnx_type
from onnx import TensorProto, helper

import zyfa_ort
from benchmarks.prepared import Prepared, Unavailable
from benchmarks.problem import Array, Problem
from zyfa_ort.tensors import from_ortvalue, to_ortvalue

OPSETS = {"": 23, "com.microsoft": 1}
IR_VERSION = 11
FLOAT = TensorProto.FLOAT


def session(model: onnx.ModelProto | str, threads: int) -> ort.InferenceSession:
    """A CPU session whose workers stop spinning when a run is over, so that they do not slow the next contender down.

    Raises:
        Unavailable: ONNX Runtime refuses the model.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1")
    zyfa_ort.register(options)
    source = model if isinstance(model, str) else model.SerializeToString()
    try:
        return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the binding raises a different type per cause
        raise Unavailable(_reason(error)) from error


def zyfa(problem: Problem, threads: int) -> Prepared:
    """ZyfaPrefillAttention, BHSD; fp8 takes float8e4m3fn and gives bfloat16. Decoding: the cache is its past."""
    query, key, value = problem.tensors
    inputs = {"query": query, "key": key, "value": value}
    if problem.shape.decode:
        for name, whole in (("key", key), ("value", value)):
            inputs[f"past_{name}"], inputs[name] = whole[:, :, :-1], whole[:, :, -1:]
    attributes: dict[str, Any] = {"layout": "BHSD"}
    if problem.precision == "fp8":
        inputs |= {f"{x}_scale": np.array([problem.scale], np.float32) for x in "qkv"}
        attributes["out_dtype"] = TensorProto.BFLOAT16
    outputs = attention_outputs(inputs, attributes, ("output",))
    model = one_node_model("ZyfaPrefillAttention", inputs, outputs, attributes)
    return _bound(problem, model, inputs, {"output": outputs["output"]}, threads, bhsd=True)


def group_query(problem: Problem, threads: int) -> Prepared:
    """com.microsoft GroupQueryAttention; decoding writes its row into the cache in place, as its users do."""
    s = problem.shape
    if s.qk_dim != s.v_dim:
        raise Unavailable("takes one head dim for keys and values")
    query, key, value = (_packed(x) for x in problem.tensors)
    inputs = {"query": query, "key": key, "value": value}
    names = ["query", "key", "value", "", "", "seqlens_k", "total"]
    if s.decode:
        names[3:5] = ["past_key", "past_value"]
        inputs["past_key"], inputs["past_value"] = (x.copy() for x in problem.tensors[1:])
        inputs["key"], inputs["value"] = key[:, -1:], value[:, -1:]
    inputs["seqlens_k"] = np.full(s.batch, s.keys - 1, np.int32)
    inputs["total"] = np.array([s.keys], np.int32)
    node = helper.make_node(
        "GroupQueryAttention",
        names,
        ["output", "present_key", "present_value"],
        domain="com.microsoft",
        num_heads=s.heads,
        kv_num_heads=s.kv_heads,
    )
    outputs = {name: np.float32 for name in ("output", "present_key", "present_value")}
    shared = {"present_key": "past_key", "present_value": "past_value"} if s.decode else {}
    return _bound(problem, _model([node], inputs, outputs), inputs, outputs, threads, shared=shared)


def multi_head(problem: Problem, threads: int) -> Prepared:
    """com.microsoft MultiHeadAttention, causal by `unidirectional`; one row sees every key without it."""
    query = problem.tensors[0]
    key, value = _repeated(problem)
    inputs = {"query": _packed(query), "key": _packed(key), "value": _packed(value)}
    node = helper.make_node(
        "MultiHeadAttention",
        list(inputs),
        ["output"],
        domain="com.microsoft",
        num_heads=problem.shape.heads,
        unidirectional=int(not problem.shape.decode),
    )
    outputs = {"output": np.float32}
    return _bound(problem, _model([node], inputs, outputs), inputs, outputs, threads)


def attention(problem: Problem, threads: int) -> Prepared:
    """The standard Attention operator of opset 23."""
    inputs = dict(zip(("query", "key", "value"), problem.tensors, strict=True))
    node = helper.make_node("Attention", list(inputs), ["output"], is_causal=int(not problem.shape.decode))
    outputs = {"output": np.float32}
    return _bound(problem, _model([node], inputs, outputs), inputs, outputs, threads, bhsd=True)


def unfused(problem: Problem, threads: int) -> Prepared:
    """MatMul, Mul, Add of a causal mask, Softmax, MatMul, as exporters write them."""
    s = problem.shape
    key, value = _repeated(problem)
    inputs = {
        "query": problem.tensors[0],
        "key": np.ascontiguousarray(key.swapaxes(2, 3)),
        "value": value,
        "scale": np.array(s.qk_dim**-0.5, np.float32),
        "mask": np.triu(np.full((s.rows, s.keys), -np.inf, np.float32), s.keys - s.rows + 1),
    }
    nodes = [
        helper.make_node("MatMul", ["query", "key"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "value"], ["output"]),
    ]
    outputs = {"output": np.float32}
    return _bound(problem, _model(nodes, inputs, outputs), inputs, outputs, threads, bhsd=True)


def _packed(x: Array) -> Array:
    """(B, H, S, D) -> (B, S, H * D)."""
    batch, heads, rows, dim = x.shape
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(batch, rows, heads * dim)


def _repeated(problem: Problem) -> tuple[Array, Array]:
    group = problem.shape.heads // problem.shape.kv_heads
    key, value = (np.repeat(x, group, axis=1) for x in problem.tensors[1:])
    return key, value


def _model(
    nodes: list[onnx.NodeProto], inputs: Mapping[str, Array], outputs: Mapping[str, Any]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info(n, onnx_type(x.dtype), x.shape) for n, x in inputs.items()],
        [helper.make_tensor_value_info(n, onnx_type(dtype), None) for n, dtype in outputs.items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets)


def _bound(
    problem: Problem,
    model: onnx.ModelProto,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Any],
    threads: int,
    *,
    bhsd: bool = False,
    shared: Mapping[str, str] | None = None,
) -> Prepared:
    """Inputs and outputs are bound once: no copies and no allocation in the timed call. Outputs start as ones, since
    pages of zeros become resident at the first write only.

    `shared` outputs are written into the named inputs.
    """
    s = problem.shape
    values = {name: to_ortvalue(x) for name, x in inputs.items()}
    shape = (s.batch, s.heads, s.rows, s.v_dim) if bhsd else (s.batch, s.rows, s.heads * s.v_dim)
    cache = {"present_key": s.qk_dim, "present_value": s.v_dim}
    opened = session(model, threads)
    binding = opened.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for name, dtype in outputs.items():
        size = shape if name == "output" else (s.batch, s.kv_heads, s.keys, cache[name])
        source = (shared or {}).get(name)
        values[f"{name} of the run"] = values[source] if source else to_ortvalue(np.ones(size, dtype))
        binding.bind_ortvalue_output(name, values[f"{name} of the run"])

    def run() -> None:
        try:
            opened.run_with_iobinding(binding)
        except Exception as error:  # the binding raises a different type per cause
            raise Unavailable(_reason(error)) from error

    return Prepared(run, partial(_output, values["output of the run"], problem, bhsd), values)


def _output(value: Any, problem: Problem, bhsd: bool) -> Array:
    s = problem.shape
    array = from_ortvalue(value)
    return array if bhsd else array.reshape(s.batch, s.rows, s.heads, s.v_dim).transpose(0, 2, 1, 3)


def _reason(error: Exception) -> str:
    """The sentence at the end of ONNX Runtime's message."""
    return (
        " ".join(str(error).split()).rsplit("Status Message: ", 1)[-1].removeprefix("[ONNXRuntimeError] : ")
    )
