"""Our operators through the C functions, on the CPU: the same bits as the operators in ONNX Runtime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from migraphx_programs.models import TYPES, Graph, by_onnxruntime
from onnx import TensorProto, helper

from zyfa_ort.errors import MigraphxError
from zyfa_ort.migraphx.direct import Node, empty
from zyfa_ort.migraphx.tensor_type import TensorType

FLOAT, FP8 = TensorProto.FLOAT, TensorProto.FLOAT8E4M3FN


def run(op: str, inputs: list[Any], outputs: list[TensorType | None], **attributes: Any) -> list[Any]:
    types = [None if array is None else TensorType(array.dtype, array.shape) for array in inputs]
    made = [None if kind is None else empty(kind) for kind in outputs]
    node = Node(op, "n", attributes, types, outputs)
    address = [
        [None if array is None else array.ctypes.data for array in arrays] for arrays in (inputs, made)
    ]
    node.run(*address)
    return made


def in_session(tmp_path, op: str, inputs: list[Any], outputs: dict[str, int], **attributes: Any) -> list[Any]:
    g = Graph()
    given = {f"i{at}": array for at, array in enumerate(inputs) if array is not None}
    for name, array in given.items():
        g.input(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    g.node(
        op,
        [f"i{at}" if array is not None else "" for at, array in enumerate(inputs)],
        list(outputs),
        **attributes,
    )
    kept = {name: kind for name, kind in outputs.items() if name}
    return list(by_onnxruntime(g.save(tmp_path / "m.onnx", kept), given).values())


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_attention(tmp_path, precision):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 130, heads, 64)).astype(np.float32) for heads in (4, 2, 2))
    past = [rng.standard_normal((2, 2, 30, 64)).astype(np.float32) for _ in range(2)]
    mask = np.ones((2, 160), bool)
    mask[1, :50] = False
    inputs = [q, k, v, *past, mask]
    types = [
        TensorType(q.dtype, q.shape),
        *[TensorType(q.dtype, (2, 2, 160, 64))] * 2,
        TensorType(q.dtype, (2, 4, 130)),
    ]
    got = run("ZyfaPrefillAttention", inputs, types, precision=precision, window_left=100, scale=0.2)
    wanted = in_session(
        tmp_path,
        "ZyfaPrefillAttention",
        inputs,
        dict.fromkeys(("y", "pk", "pv", "lse"), FLOAT),
        precision=precision,
        window_left=100,
        scale=0.2,
    )
    for one, other in zip(got, wanted, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("kind", [FLOAT, TensorProto.FLOAT16])
@pytest.mark.parametrize("granularity", ["tensor", "head", "batch_head"])
def test_quantise(tmp_path, kind, granularity):
    x = np.random.default_rng(1).standard_normal((2, 40, 3, 64)).astype(TYPES[kind])
    scale = {"tensor": (1,), "head": (3,), "batch_head": (2, 3)}[granularity]
    types = [TensorType(np.dtype(ml_dtypes.float8_e4m3fn), x.shape), TensorType(np.dtype(np.float32), scale)]
    got = run("ZyfaQuantizeFp8", [x], types, granularity=granularity, rotation="hadamard")
    wanted = in_session(
        tmp_path, "ZyfaQuantizeFp8", [x], {"y": FP8, "s": FLOAT}, granularity=granularity, rotation="hadamard"
    )
    for one, other in zip(got, wanted, strict=True):
        assert one.tobytes() == other.tobytes()


def test_hadamard(tmp_path):
    x = np.random.default_rng(2).standard_normal((3, 1000, 192)).astype(np.float32)
    (got,) = run("ZyfaHadamard", [x], [TensorType(x.dtype, x.shape)])
    assert got.tobytes() == in_session(tmp_path, "ZyfaHadamard", [x], {"y": FLOAT})[0].tobytes()


F32 = np.dtype(np.float32)
X = TensorType(F32, (1, 4, 2, 8))
CODES = TensorType(np.dtype(ml_dtypes.float8_e4m3fn), X.shape)
INTEGERS = {bits: TensorType(np.dtype(f"int{bits}"), (8,)) for bits in (16, 32)}
ATTENTION, QUANTIZE, HADAMARD = "ZyfaPrefillAttention", "ZyfaQuantizeFp8", "ZyfaHadamard"


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "attributes", "text"),
    [
        ("Other", [X], [X], {}, f"operator: expected {ATTENTION}, {QUANTIZE} or {HADAMARD}, got Other"),
        (ATTENTION, [X, X], [X], {}, "value: required, got none"),
        (ATTENTION, [None, X, X], [X], {}, "query: required, got none"),
        (ATTENTION, [X, X, X], [], {}, "output: expected float 1x4x2x8, got no such output"),
        (ATTENTION, [X] * 12, [X], {}, "inputs: expected at most 11, got 12"),
        (ATTENTION, [X, X, X], [CODES], {}, "output: expected float 1x4x2x8, got float8e4m3fn 1x4x2x8"),
        (
            ATTENTION,
            [X, X, X],
            [X],
            {"is_causal": 1.0},
            "is_causal: expected an attribute of type int, got float",
        ),
        (ATTENTION, [X, X, X], [X], {"scale": 1}, "scale: expected an attribute of type float, got int"),
        (ATTENTION, [X, X, X], [X], {"layout": 1}, "layout: expected an attribute of type string, got int"),
        (HADAMARD, [None], [X], {}, "x: required, got none"),
        (HADAMARD, [INTEGERS[32]], [X], {}, "x type: expected float, float16 or bfloat16, got int32"),
        (HADAMARD, [INTEGERS[16]], [X], {}, "input 0: element type 5 is not one this operator takes"),
        (QUANTIZE, [X], [CODES], {}, "scale: expected float 1x2, got no such output"),
    ],
)
def test_refusals(op, inputs, outputs, attributes, text):
    with pytest.raises(MigraphxError) as refused:
        Node(op, "n", attributes, inputs, outputs)
    assert str(refused.value) == f"{op} 'n': {text}"


def test_a_device_that_is_not_there(monkeypatch):
    """Without HIP, in a process that has not opened one."""
    import subprocess
    import sys

    program = "from zyfa_ort.migraphx.direct import Gpu; Gpu.open(0)"
    monkeypatch.setenv("ZYFA_HIP_LIBRARY", "/nowhere/libamdhip64.so")
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MigraphxError: HIP: expected one of /nowhere/libamdhip64.so, none can be loaded" in done.stderr
