"""ZyfaQuantizeFp8 and ZyfaHadamard on the emulated MI355X: the CPU operators' bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.gpu_session import gpu_session, placement, run_op_on_gpu
from custom_ops.op_session import run_op, run_session
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto, helper

CODES = {"y": float8_e4m3fn, "scale": np.float32}


@pytest.mark.parametrize("granularity", ["tensor", "head", "batch_head"])
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
def test_quantise(dtype: Any, layout: str, granularity: str) -> None:
    x = (np.random.default_rng(0).standard_normal((2, 3, 40, 128)) * 5).astype(dtype)
    x[0, 1, 2, 3] = np.inf
    attributes = {"granularity": granularity, "layout": layout, "rotation": "hadamard"}
    got, wanted = (run("ZyfaQuantizeFp8", {"x": x}, CODES, attributes) for run in (run_op_on_gpu, run_op))
    for name, array in wanted.items():
        assert got[name].shape == array.shape
        np.testing.assert_array_equal(got[name].astype(np.float32), array.astype(np.float32))


@pytest.mark.parametrize("shape", [(5, 64), (2, 3, 192), (1, 256), (0, 128), (3, 0, 64)])
@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_hadamard(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    got, wanted = (run("ZyfaHadamard", {"x": x}, {"y": dtype}, {}) for run in (run_op_on_gpu, run_op))
    assert got["y"].tobytes() == wanted["y"].tobytes()


@pytest.mark.parametrize("shape", [(0, 3, 2, 64), (2, 0, 2, 64), (2, 3, 0, 64)])
def test_quantise_nothing(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    got, wanted = (run("ZyfaQuantizeFp8", {"x": x}, CODES, {}) for run in (run_op_on_gpu, run_op))
    np.testing.assert_array_equal(got["scale"], wanted["scale"])
    assert got["y"].shape == shape


def test_quantised_codes_stay_on_the_device() -> None:
    """Rotate, quantise, attend: six nodes, one after the other, and nothing on the CPU."""
    names = ("query", "key", "value")
    nodes = [helper.make_node("ZyfaHadamard", [name], [f"{name}_r"], domain="ai.zyfa") for name in names[:2]]
    for name in names:
        source = f"{name}_r" if name != "value" else name
        outputs = [f"{name}_codes", f"{name}_scale"]
        nodes.append(helper.make_node("ZyfaQuantizeFp8", [source], outputs, domain="ai.zyfa"))
    slots = [f"{name}_codes" for name in names] + [""] * 4 + [f"{name}_scale" for name in names]
    nodes.append(
        helper.make_node(
            "ZyfaPrefillAttention", slots, ["output"], domain="ai.zyfa", out_dtype=TensorProto.FLOAT
        )
    )
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", "s", 2, 128]) for name in names],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
    model = helper.make_model(graph, ir_version=10, opset_imports=opsets)
    session = gpu_session(model)
    assert {provider for provider, _ in placement(session)} == {"ZyfaExecutionProvider"}
    assert sum(placement(session).values()) == 6
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal((1, 40, 2, 128)).astype(np.float32) for name in names}
    attributes = {"precision": "fp8", "rotation": "hadamard"}
    folded = run_op_on_gpu("ZyfaPrefillAttention", inputs, {"output": np.float32}, attributes)
    assert run_session(session, inputs)["output"].tobytes() == folded["output"].tobytes()
