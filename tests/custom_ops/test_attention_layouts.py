"""The three layouts are the same attention, and inputs may lie anywhere in a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from custom_ops.expected import assert_close
from custom_ops.op_session import make_session, one_node_model, run_attention
from custom_ops.problems import Sizes, gaussian
from onnx import TensorProto, helper
from reference.attention import attention, from_bhsd, to_bhsd

import zyfa_ort

PRECISIONS = ("fp32", "bf16", "fp8")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_all_layouts_give_the_same_bits(precision: str) -> None:
    sizes = Sizes(q_len=90, kv_len=130, head_dim=16, v_head_dim=24)
    outputs = {}
    for layout, rank in (("BSHD", 4), ("BHSD", 4), ("BSHD", 3)):
        heads: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2} if rank == 3 else {"layout": layout}
        actual = run_attention(gaussian(sizes, layout=layout, rank=rank), precision=precision, **heads)
        outputs[layout, rank] = to_bhsd(actual["output"], layout, 4)
    for output in outputs.values():
        assert output.tobytes() == outputs["BHSD", 4].tobytes()


def test_packed_heads_are_split_before_they_are_transposed() -> None:
    """Tokens [1, 2] and [3, 4] with two heads of one channel, Q = 0: each head averages its own column."""
    inputs = {
        "query": np.zeros((1, 2, 2), np.float32),
        "key": np.zeros((1, 2, 2), np.float32),
        "value": np.array([[[1, 2], [3, 4]]], np.float32),
    }
    actual = run_attention(inputs, num_heads=2, kv_num_heads=2, is_causal=0)["output"]
    np.testing.assert_allclose(actual, [[[2, 3], [2, 3]]], rtol=1e-6)


@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_slices_of_one_packed_projection(layout: str, precision: str) -> None:
    """MatMul -> Split -> Reshape (-> Transpose) -> attention equals attention of the three slices."""
    batch, length, heads, head_dim = 2, 37, 2, 8
    hidden = heads * head_dim
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, length, hidden)).astype(np.float32)
    weight = (rng.standard_normal((hidden, 3 * hidden)) / np.sqrt(hidden)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["packed"]),
        helper.make_node("Split", ["packed"], ["q3", "k3", "v3"], axis=2, num_outputs=3),
    ]
    for name in "qkv":
        nodes.append(helper.make_node("Reshape", [f"{name}3", "shape"], [f"{name}4"]))
        if layout == "BHSD":
            nodes.append(helper.make_node("Transpose", [f"{name}4"], [f"{name}t"], perm=[0, 2, 1, 3]))
    ports = [f"{name}{'t' if layout == 'BHSD' else '4'}" for name in "qkv"]
    nodes.append(
        helper.make_node(
            "ZyfaPrefillAttention", ports, ["output"], domain="ai.zyfa", layout=layout, precision=precision
        )
    )
    graph = helper.make_graph(
        nodes,
        "packed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
        [
            helper.make_tensor("weight", TensorProto.FLOAT, weight.shape, weight.tobytes(), raw=True),
            helper.make_tensor("shape", TensorProto.INT64, [4], [0, 0, heads, head_dim]),
        ],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.zyfa", 1)]
    session = make_session(helper.make_model(graph, ir_version=10, opset_imports=opsets))
    actual = session.run(None, {"x": x})[0]

    slices = np.split(x @ weight, 3, axis=2)
    four = [part.reshape(batch, length, heads, head_dim) for part in slices]
    alone = [from_bhsd(to_bhsd(part, "BSHD", None), layout, 4) for part in four]
    if precision == "fp32":
        wanted = attention(*alone, layout=layout).output
        assert_close(actual, wanted, "fp32")
    else:
        inputs = dict(zip(("query", "key", "value"), map(np.ascontiguousarray, alone), strict=True))
        wanted = run_attention(inputs, layout=layout, precision=precision)["output"]
        assert_close(
            actual, wanted.astype(np.float64), "bf16" if precision == "bf16" else "fp8_model_bfloat16"
        )


@pytest.mark.parametrize("offset", [1, 3, 7])
def test_inputs_at_odd_offsets_of_one_buffer(offset: int) -> None:
    """IO binding at addresses that no vector load may assume to be aligned."""
    inputs = gaussian(Sizes(q_len=40, kv_len=40))
    wanted = run_attention(inputs)["output"]
    buffer = np.zeros(offset + sum(array.size for array in inputs.values()), np.float32)
    session = make_session(one_node_model("ZyfaPrefillAttention", inputs, {"output": np.float32}, {}))
    binding = session.io_binding()
    start = offset
    for name, array in inputs.items():
        view = buffer[start : start + array.size]
        view[:] = array.ravel()
        binding.bind_input(name, "cpu", 0, np.float32, array.shape, view.ctypes.data)
        start += array.size
    output = np.zeros(offset + wanted.size, np.float32)
    binding.bind_output("output", "cpu", 0, np.float32, wanted.shape, output[offset:].ctypes.data)
    session.run_with_iobinding(binding)
    assert output[offset:].tobytes() == wanted.tobytes()
    assert not output[:offset].any()


def test_the_library_is_what_the_package_says() -> None:
    """The session of these tests runs the library of zyfa_ort.library_path(), registered once per options."""
    options = ort.SessionOptions()
    options.register_custom_ops_library(zyfa_ort.library_path())
