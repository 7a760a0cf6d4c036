"""Runs in another environment, with nothing of the project but the library: argument 1 is its path.

Prints "name: right" per check, or what was wrong. Values are chosen so that the answers are known by hand.
"""

from __future__ import annotations

import ctypes
import sys

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

TYPES = {
    "float": (np.float32, None, TensorProto.FLOAT),
    "float16": (np.float16, None, TensorProto.FLOAT16),
    "bfloat16": (ml_dtypes.bfloat16, np.uint16, TensorProto.BFLOAT16),
    "float8e4m3fn": (ml_dtypes.float8_e4m3fn, np.uint8, TensorProto.FLOAT8E4M3FN),
    "int64": (np.int64, None, TensorProto.INT64),
}
BY_DTYPE = {np.dtype(dtype): (carrier, code) for dtype, carrier, code in TYPES.values()}
INPUTS = (
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
)
ROWS = 3


def session(inputs, outputs, attributes, op="ZyfaPrefillAttention", order=INPUTS, skipped=0):
    """`skipped` optional outputs are left out between the first and the others."""
    names = [name if name in inputs else "" for name in order]
    while names and not names[-1]:
        names.pop()
    first, *others = outputs
    node = helper.make_node(
        op, names, [first, *[""] * skipped, *others], domain="ai.zyfa", name="node", **attributes
    )
    values = [helper.make_tensor_value_info(n, BY_DTYPE[a.dtype][1], a.shape) for n, a in inputs.items()]
    results = [helper.make_tensor_value_info(n, code, None) for n, code in outputs.items()]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
    model = helper.make_model(
        helper.make_graph([node], "g", values, results), opset_imports=opsets, ir_version=10
    )
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(sys.argv[1])
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def to_value(array):
    carrier, code = BY_DTYPE[array.dtype]
    if carrier is None:
        return ort.OrtValue.ortvalue_from_numpy(array)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(carrier), code)


def from_value(value):
    dtype = np.dtype(TYPES[value.data_type()[len("tensor(") : -1]][0])
    shape = value.shape()
    data = ctypes.string_at(value.data_ptr(), int(np.prod(shape)) * dtype.itemsize)
    return np.frombuffer(data, dtype).reshape(shape).astype(np.float64)


def run(inputs, outputs, attributes, **kwargs):
    built = session(inputs, outputs, attributes, **kwargs)
    return [
        from_value(v)
        for v in built.run_with_ort_values(list(outputs), {n: to_value(a) for n, a in inputs.items()})
    ]


def uniform(dtype):
    """Equal scores, value row j = j: a causal row i gives i / 2."""
    zeros = np.zeros((1, ROWS, 1, 4), dtype)
    return {"query": zeros, "key": zeros, "value": np.arange(ROWS).astype(dtype).reshape(1, ROWS, 1, 1)}


def report(name, check):
    try:
        got, wanted = check()
    except Exception as error:
        print(f"{name}: {' '.join(str(error).split())}")
        return
    print(
        f"{name}: {'right' if np.allclose(got, wanted, atol=1e-6) else f'expected {wanted}, got {got.tolist()}'}"
    )


def main():
    print(f"version: {ort.__version__}")
    for name in ("float", "float16", "bfloat16"):
        dtype, _, code = TYPES[name]
        report(name, lambda d=dtype, c=code: (run(uniform(d), {"output": c}, {})[0].ravel(), [0, 0.5, 1]))
    one = np.ones(1, np.float32)
    scales = {"q_scale": one, "k_scale": one, "v_scale": 2 * one}
    coded = {**uniform(ml_dtypes.float8_e4m3fn), **scales}
    for name, code in (("float", TensorProto.FLOAT), ("bfloat16", TensorProto.BFLOAT16)):
        report(
            f"fp8 inputs, {name} output",
            lambda c=code: (run(coded, {"output": c}, {"out_dtype": c})[0].ravel(), [0, 1, 2]),
        )
    report(
        "fp8 precision",
        lambda: (run(uniform(np.float32), {"output": 1}, {"precision": "fp8"})[0].ravel(), [0, 0.5, 1]),
    )
    masked = {**uniform(np.float32), "key_mask": np.array([[0, 1, 1]])}
    report("key mask after absent inputs", lambda: (run(masked, {"output": 1}, {})[0].ravel(), [0, 1, 1.5]))
    cached = uniform(np.float32)
    cached |= {
        "past_key": np.zeros((1, 1, 1, 4), np.float32),
        "past_value": np.full((1, 1, 1, 1), 3, np.float32),
    }
    outputs = {"output": 1, "present_key": 1, "present_value": 1, "lse": 1}
    report("present value", lambda: (run(cached, outputs, {})[2].ravel(), [3, 0, 1, 2]))
    wanted = {"output": 1, "lse": 1}
    report("lse", lambda: (run(uniform(np.float32), wanted, {}, skipped=2)[1].ravel(), np.log([1, 2, 3])))
    x = {"x": np.array([[[[448.0, -1.0]]]], np.float32)}
    codes = {"y": TensorProto.FLOAT8E4M3FN, "scale": 1}
    quantise = {"op": "ZyfaQuantizeFp8", "order": ("x",)}
    report("quantise", lambda: (run(x, codes, {}, **quantise)[0].ravel(), [448, -1]))
    hadamard = {"op": "ZyfaHadamard", "order": ("x",)}
    report(
        "hadamard", lambda: (run(x, {"y": 1}, {}, **hadamard)[0].ravel(), np.array([447, 449]) / np.sqrt(2))
    )


if __name__ == "__main__":
    main()
