"""One-node models around an operator of ai.zyfa and their sessions on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper

import zyfa_ort
from zyfa_ort.tensors import from_ortvalue, to_ortvalue

Array = NDArray[Any]

ATTENTION = "ZyfaPrefillAttention"
INPUTS: dict[str, tuple[str, ...]] = {
    ATTENTION: (
        "query",
        "key",
        "value",
        "past_key",
        "past_value",
        "key_mask",
        "attn_bias",
        "q_scale",
        "k_scale",
        "v_scale",
        "sinks",
    ),
    "ZyfaQuantizeFp8": ("x",),
    "ZyfaHadamard": ("x",),
}
OUTPUTS: dict[str, tuple[str, ...]] = {
    ATTENTION: ("output", "present_key", "present_value", "lse"),
    "ZyfaQuantizeFp8": ("y", "scale"),
    "ZyfaHadamard": ("y",),
}
ONNX_TYPES: dict[np.dtype[Any], int] = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16,
    np.dtype(ml_dtypes.float8_e4m3fn): TensorProto.FLOAT8E4M3FN,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.uint8): TensorProto.UINT8,
}


def onnx_type(dtype: Any) -> int:
    """The ONNX element type of a NumPy or ml_dtypes type."""
    return ONNX_TYPES[np.dtype(dtype)]


def one_node_model(
    op: str,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Any],
    attributes: Mapping[str, Any],
    static_shapes: bool = False,
) -> onnx.ModelProto:
    """IR 10, opset 18, ai.zyfa 1. `inputs` give types and ranks (and shapes, if static), `outputs` types."""

    def port(names: Sequence[str], present: Mapping[str, Any]) -> list[str]:
        slots = [name if name in present else "" for name in names]
        while slots and not slots[-1]:
            slots.pop()
        return slots

    node = helper.make_node(
        op, port(INPUTS[op], inputs), port(OUTPUTS[op], outputs), domain="ai.zyfa", name="node", **attributes
    )
    graph = helper.make_graph(
        [node],
        "one_node",
        [
            helper.make_tensor_value_info(
                name,
                onnx_type(array.dtype),
                array.shape if static_shapes else [f"{name}_{axis}" for axis in range(array.ndim)],
            )
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info(name, onnx_type(dtype), None) for name, dtype in outputs.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets)


def make_session(model: onnx.ModelProto, threads: int = 1) -> ort.InferenceSession:
    """A CPU session with the operator library registered."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    zyfa_ort.register(options)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run_session(session: ort.InferenceSession, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """One run; every output by name, ml_dtypes types included."""
    names = [output.name for output in session.get_outputs()]
    values = session.run_with_ort_values(names, {name: to_ortvalue(array) for name, array in inputs.items()})
    return {name: from_ortvalue(value) for name, value in zip(names, values, strict=True)}


def run_op(
    op: str,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Any],
    attributes: Mapping[str, Any],
    *,
    static_shapes: bool = False,
    threads: int = 1,
) -> dict[str, Array]:
    """Build the model, make the session, run once."""
    return run_session(
        make_session(one_node_model(op, inputs, outputs, attributes, static_shapes), threads), inputs
    )


def attention_outputs(
    inputs: Mapping[str, Array], attributes: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """Types of the attention outputs called `names`."""
    query = inputs["query"].dtype
    out = attributes.get("out_dtype")
    output = query if out is None else next(dtype for dtype, code in ONNX_TYPES.items() if code == out)
    types = {"output": output, "present_key": query, "present_value": query, "lse": np.float32}
    return {name: types[name] for name in names}


def run_attention(
    inputs: Mapping[str, Array],
    outputs: Sequence[str] = ("output",),
    *,
    static_shapes: bool = False,
    threads: int = 1,
    **attributes: Any,
) -> dict[str, Array]:
    """ZyfaPrefillAttention on arrays named as its inputs; the named outputs come back."""
    types = attention_outputs(inputs, attributes, outputs)
    return run_op(ATTENTION, inputs, types, attributes, static_shapes=static_shapes, threads=threads)
