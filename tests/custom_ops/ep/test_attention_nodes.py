"""Attention nodes on the emulated MI355X through ONNX Runtime, against the CPU operator.

Device memory faults when the host touches it: a session that runs to its end has copied what it had to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from custom_ops.expected import assert_close, assert_lse_close
from custom_ops.gpu_session import gpu_session, run_attention_on_gpu
from custom_ops.op_session import (
    ATTENTION,
    Array,
    attention_outputs,
    one_node_model,
    run_attention,
    run_session,
)
from kernels.select.cases import tensors
from kernels.select.emulated_host import run as run_choice
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto, numpy_helper


def compare(
    inputs: Mapping[str, Array], outputs: tuple[str, ...] = ("output", "lse"), **attributes: Any
) -> dict[str, Array]:
    """On both; precision decides the tolerance, past and present are the same bits."""
    got = run_attention_on_gpu(inputs, outputs, **attributes)
    wanted = run_attention(inputs, outputs, **attributes)
    fp8 = attributes.get("precision") == "fp8" or inputs["query"].dtype == float8_e4m3fn
    narrow = got["output"].dtype != np.float32
    assert_close(
        got["output"], wanted["output"], ("fp8_model_bfloat16" if narrow else "fp8_model") if fp8 else "bf16"
    )
    for name in set(outputs) - {"output"}:
        if name == "lse":
            assert_lse_close(got["lse"], wanted["lse"], "fp8_model" if fp8 else "bf16")
        else:
            assert got[name].tobytes() == wanted[name].tobytes()
    return got


@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize(
    ("dtype", "precision"),
    [(bfloat16, "bf16"), (bfloat16, "fp8"), (np.float32, "bf16"), (np.float16, "fp8"), (np.float32, "fp8")],
)
def test_prefill(dtype: Any, precision: str, layout: str) -> None:
    inputs = tensors(70, 140, (128, 128), dtype, heads=(4, 2), batch=2, layout=layout)
    compare(inputs, layout=layout, precision=precision)


@pytest.mark.parametrize("out", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_quantised_inputs(out: int) -> None:
    compare(tensors(40, 90, (192, 128), float8_e4m3fn, heads=(4, 2), batch=2), out_dtype=out)


def test_the_bits_are_those_of_the_choice() -> None:
    """What the provider launches is what zyfa_ort.kernels.select says."""
    inputs = tensors(40, 90, (128, 128), np.float32, batch=2, past=50)
    inputs["key_mask"] = np.ones((2, 90), np.int64)
    inputs["key_mask"][0, :33] = 0
    attributes: dict[str, Any] = {"precision": "fp8", "rotation": "hadamard"}
    got = run_attention_on_gpu(inputs, ("output", "lse"), **attributes)
    chosen = run_choice(inputs, key_mask="unread", lse=True, **attributes)
    for name in ("output", "lse"):
        assert got[name].tobytes() == chosen[name].tobytes()


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("static_shapes", [False, True])
def test_shapes_known_or_not(static_shapes: bool, rank: int) -> None:
    inputs = tensors(30, 30, (64, 64), heads=(4, 2))
    attributes: dict[str, Any] = {}
    if rank == 3:
        inputs = {name: x.reshape(*x.shape[:2], -1) for name, x in inputs.items()}
        attributes = {"num_heads": 4, "kv_num_heads": 2}
    got = run_attention_on_gpu(inputs, static_shapes=static_shapes, **attributes)
    assert_close(got["output"], run_attention(inputs, **attributes)["output"], "bf16")


@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("q_len", [1, 20])
@pytest.mark.parametrize("dtype", [bfloat16, np.float16])
def test_past_and_present(dtype: Any, q_len: int, layout: str) -> None:
    inputs = tensors(q_len, 70, (64, 64), dtype, past=70 - q_len, layout=layout, batch=2, heads=(4, 2))
    compare(inputs, ("output", "present_key", "present_value", "lse"), layout=layout, precision="bf16")


def test_present_without_past() -> None:
    compare(tensors(20, 20, (64, 64), heads=(4, 2)), ("output", "present_key", "present_value"))


@pytest.mark.parametrize("mask_dtype", [bool, np.int32, np.int64])
@pytest.mark.parametrize(("q_len", "precision"), [(3, "bf16"), (40, "bf16"), (40, "fp8")])
def test_padding(q_len: int, precision: str, mask_dtype: Any) -> None:
    """Left, right, none, all; what is masked is NaN, and reaches nobody."""
    at, first, end = np.arange(70), np.array([[9], [0], [0], [0]]), np.array([[70], [41], [70], [0]])
    mask = (at >= first) & (at < end)
    inputs = tensors(q_len, 70, (128, 128), np.float32, batch=4)
    for name in ("key", "value"):
        inputs[name][~mask] = np.nan
    got = compare(inputs | {"key_mask": mask.astype(mask_dtype)}, precision=precision, is_causal=0)
    assert np.isfinite(got["output"].astype(np.float32)).all()
    assert not got["output"][3].any()


@pytest.mark.parametrize("q_len", [3, 40])
def test_masks_with_holes_in_bf16(q_len: int) -> None:
    mask = np.random.default_rng(3).random((2, 70)) < 0.5
    compare(tensors(q_len, 70, (128, 128), batch=2) | {"key_mask": mask})


def test_a_mask_with_holes_and_fp8_is_an_error_and_the_session_lives_on() -> None:
    inputs = tensors(40, 70, (128, 128), batch=2) | {"key_mask": np.ones((2, 70), np.int64)}
    attributes = {"precision": "fp8"}
    model = one_node_model(ATTENTION, inputs, attention_outputs(inputs, attributes, ("output",)), attributes)
    session = gpu_session(model)
    whole = run_session(session, inputs)["output"]
    holes = inputs | {"key_mask": inputs["key_mask"].copy()}
    holes["key_mask"][1, 30] = 0
    with pytest.raises(
        Exception, match=r"ZyfaExecutionProvider: key_mask: expected one run .* the output is NaN there"
    ):
        run_session(session, holes)
    assert run_session(session, inputs)["output"].tobytes() == whole.tobytes()


def test_what_a_row_sees_is_what_it_gets() -> None:
    """A visible NaN makes its rows NaN, in both precisions."""
    for precision in ("bf16", "fp8"):
        inputs = tensors(40, 40, (128, 128), np.float32)
        inputs["key"][0, 20] = np.nan
        output = run_attention_on_gpu(inputs, precision=precision)["output"]
        assert np.isfinite(output[0, :20]).all()
        assert np.isnan(output[0, 20:]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
def test_bias_softcap_and_sinks(dtype: Any) -> None:
    inputs = tensors(20, 70, (64, 64), dtype, heads=(4, 2), batch=2)
    rng = np.random.default_rng(1)
    inputs["attn_bias"] = rng.standard_normal((1, 4, 20, 70)).astype(dtype)
    inputs["sinks"] = np.linspace(-2, 2, 4, dtype=np.float32)
    compare(inputs, precision="bf16", softcap=5.0)


@pytest.mark.parametrize(
    ("batch", "q_len", "kv_len"), [(0, 20, 20), (2, 0, 20), (2, 20, 0), (1, 1, 0), (1, 40, 5), (1, 17, 17)]
)
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_lengths(precision: str, batch: int, q_len: int, kv_len: int) -> None:
    inputs = tensors(q_len, kv_len, (128, 128), np.float32, batch=batch)
    if precision == "bf16":
        compare(inputs, ("output", "present_key", "present_value", "lse"), precision=precision)
    elif q_len > 16 or q_len * batch == 0:
        compare(inputs, precision=precision)


def test_constants_of_the_model_are_on_the_device_too() -> None:
    """Scales, sinks and a mask as initializers."""
    inputs = tensors(40, 70, (128, 128), float8_e4m3fn, heads=(4, 2), batch=2)
    inputs["sinks"] = np.linspace(-2, 2, 4, dtype=np.float32)
    inputs["key_mask"] = np.arange(70)[None] < np.array([[70], [33]])
    attributes = {"out_dtype": TensorProto.FLOAT}
    model = one_node_model(ATTENTION, inputs, {"output": np.float32}, attributes, static_shapes=True)
    constants = ("q_scale", "k_scale", "v_scale", "sinks", "key_mask")
    for name in constants:
        model.graph.initializer.append(numpy_helper.from_array(inputs[name], name))
        model.graph.input.remove(next(value for value in model.graph.input if value.name == name))
    given = {name: array for name, array in inputs.items() if name not in constants}
    output = run_session(gpu_session(model), given)["output"]
    assert_close(output, run_attention(inputs, **attributes)["output"], "fp8_model")


def test_one_session_with_every_length() -> None:
    inputs = tensors(40, 40, (64, 64))
    session = gpu_session(one_node_model(ATTENTION, inputs, {"output": bfloat16}, {}))
    for rows in (1, 2, 16, 17, 33, 5, 300, 1):
        inputs = tensors(rows, rows, (64, 64), batch=2)
        assert_close(run_session(session, inputs)["output"], run_attention(inputs)["output"], "bf16")
