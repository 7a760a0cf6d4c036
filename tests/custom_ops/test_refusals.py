"""Every refusal is one line: operator, node, what is wrong, what was expected and what was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from custom_ops.op_session import (
    ATTENTION,
    Array,
    attention_outputs,
    make_session,
    one_node_model,
    run_op,
    run_session,
)
from ml_dtypes import float8_e4m3fn
from onnx import TensorProto

OUT = {"out_dtype": TensorProto.FLOAT}
FP8 = {"precision": "fp8"}
PACKED = {"num_heads": 2, "kv_num_heads": 2}
ONE = np.ones(1, np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    """Zeros, FP32 unless said otherwise."""
    return np.zeros(shape, dtype)


def wide(**changed: Array) -> dict[str, Array]:
    """Four queries over six keys, two heads, head dim 8, and what a case changes."""
    return {"query": zeros(1, 4, 2, 8), "key": zeros(1, 6, 2, 8), "value": zeros(1, 6, 2, 8), **changed}


def coded(**changed: Array | None) -> dict[str, Array]:
    """The same in FP8 with scales; None removes an input."""
    inputs = {name: array.astype(float8_e4m3fn) for name, array in wide().items()}
    inputs |= {"q_scale": ONE, "k_scale": ONE, "v_scale": ONE}
    return {name: array for name, array in {**inputs, **changed}.items() if array is not None}


def packed(width: int = 16) -> dict[str, Array]:
    """The 3-D layout."""
    return {"query": zeros(1, 4, width), "key": zeros(1, 6, 16), "value": zeros(1, 6, 16)}


def past(key: Array | None, value: Array | None) -> dict[str, Array]:
    """A cache beside the new keys."""
    named = {"past_key": key, "past_value": value}
    return {**wide(), **{name: array for name, array in named.items() if array is not None}}


# Known as soon as the shapes are: at session creation when they are fixed, in the run otherwise.
OF_SHAPES: dict[str, tuple[Mapping[str, Array], Mapping[str, Any], str]] = {
    "heads do not divide": (
        wide(query=zeros(1, 4, 3, 8)),
        {},
        "kv_num_heads: expected a divisor of num_heads 3, got 2",
    ),
    "value heads": (wide(value=zeros(1, 6, 1, 8)), {}, "value heads: expected 2 as key, got 1"),
    "head dim": (wide(key=zeros(1, 6, 2, 4)), {}, "key head_dim: expected 8 as query, got 4"),
    "value rows": (wide(value=zeros(1, 5, 2, 8)), {}, "value rows: expected 6 as key, got 5"),
    "key batch": (wide(key=zeros(2, 6, 2, 8)), {}, "key batch: expected 1 as query, got 2"),
    "value batch": (wide(value=zeros(2, 6, 2, 8)), {}, "value batch: expected 1 as query, got 2"),
    "mixed ranks": (
        wide(query=zeros(4, 2, 8)),
        {},
        "key shape: expected 3 dimensions as query, got 1x6x2x8",
    ),
    "rank 2": (
        wide(query=zeros(2, 8), key=zeros(2, 8), value=zeros(2, 8)),
        {},
        "query shape: expected 3 or 4 dimensions, got 2x8",
    ),
    "packed without num_heads": (
        packed(),
        {},
        "num_heads: required when query is 3-D 1x4x16, got none",
    ),
    "packed without kv_num_heads": (
        packed(),
        {"num_heads": 2},
        "kv_num_heads: required when key is 3-D 1x6x16, got none",
    ),
    "packed width": (packed(15), PACKED, "num_heads: expected a divisor of the width 15 of query, got 2"),
    "packed and BHSD": (
        packed(),
        {**PACKED, "layout": "BHSD"},
        'layout: 3-D query 1x4x16 is always (batch, rows, heads * head_dim), got "BHSD"',
    ),
    "num_heads against the shape": (
        wide(),
        {"num_heads": 4},
        "num_heads: expected 2 as in the shape 1x4x2x8 of query, got 4",
    ),
    "kv_num_heads against the shape": (
        wide(),
        {"kv_num_heads": 1},
        "kv_num_heads: expected 2 as in the shape 1x6x2x8 of key, got 1",
    ),
    "past key alone": (
        past(zeros(1, 2, 3, 8), None),
        {},
        "past_value: expected together with past_key, got none",
    ),
    "past value alone": (
        past(None, zeros(1, 2, 3, 8)),
        {},
        "past_key: expected together with past_value, got none",
    ),
    "past lengths": (
        past(zeros(1, 2, 3, 8), zeros(1, 2, 4, 8)),
        {},
        "past_value shape: expected 1x2x3x8 (batch, kv_num_heads, past, head_dim), got 1x2x4x8",
    ),
    "past heads": (
        past(zeros(1, 1, 3, 8), zeros(1, 1, 3, 8)),
        {},
        "past_key shape: expected 1x2x3x8 (batch, kv_num_heads, past, head_dim), got 1x1x3x8",
    ),
    "past head dim": (
        past(zeros(1, 2, 3, 4), zeros(1, 2, 3, 8)),
        {},
        "past_key shape: expected 1x2x3x8 (batch, kv_num_heads, past, head_dim), got 1x2x3x4",
    ),
    "past batch": (
        past(zeros(2, 2, 3, 8), zeros(2, 2, 3, 8)),
        {},
        "past_key shape: expected 1x2x3x8 (batch, kv_num_heads, past, head_dim), got 2x2x3x8",
    ),
    "mask length": (
        wide(key_mask=np.ones((1, 5), bool)),
        {},
        "key_mask shape: expected 1x6 (batch, past + new keys), got 1x5",
    ),
    "mask without the past": (
        {**past(zeros(1, 2, 3, 8), zeros(1, 2, 3, 8)), "key_mask": np.ones((1, 6), bool)},
        {},
        "key_mask shape: expected 1x9 (batch, past + new keys), got 1x6",
    ),
    "mask rank": (
        wide(key_mask=np.ones((1, 1, 1, 6), bool)),
        {},
        "key_mask shape: expected 1x6 (batch, past + new keys), got 1x1x1x6",
    ),
    "bias shape": (
        wide(attn_bias=zeros(5)),
        {},
        "attn_bias shape: expected broadcastable to 1x2x4x6, got 5",
    ),
    "bias rank": (
        wide(attn_bias=zeros(1, 1, 1, 1, 6)),
        {},
        "attn_bias shape: expected broadcastable to 1x2x4x6, got 1x1x1x1x6",
    ),
    "sinks": (wide(sinks=zeros(3)), {}, "sinks shape: expected 2 (num_heads), got 3"),
    "scale length": (
        coded(q_scale=np.ones(3, np.float32)),
        OUT,
        "q_scale shape: expected 1, 2 or 1x2, got 3",
    ),
    "scale rank": (
        coded(k_scale=np.ones((1, 2, 1), np.float32)),
        OUT,
        "k_scale shape: expected 1, 2 or 1x2, got 1x2x1",
    ),
    "scale of unquantised inputs": (
        wide(q_scale=ONE),
        {},
        "q_scale: only taken when query is float8e4m3fn, remove it or quantise the inputs",
    ),
    "no q_scale": (coded(q_scale=None), OUT, "q_scale: required when query is float8e4m3fn, got none"),
    "no v_scale": (coded(v_scale=None), OUT, "v_scale: required when query is float8e4m3fn, got none"),
    "rotation of a head dim of 24": (
        {name: zeros(1, 4, 2, 24) for name in ("query", "key", "value")},
        {**FP8, "rotation": "hadamard"},
        'rotation: "hadamard" needs a head_dim that is a power of two or 192, got 24',
    ),
}

# Known from attributes and types: always at session creation.
OF_ATTRIBUTES: dict[str, tuple[Mapping[str, Array], Mapping[str, Any], str]] = {
    "num_heads 0": (packed(), {**PACKED, "num_heads": 0}, "num_heads: expected at least 1, got 0"),
    "kv_num_heads -2": (
        packed(),
        {**PACKED, "kv_num_heads": -2},
        "kv_num_heads: expected at least 1, got -2",
    ),
    "precision": (wide(), {"precision": "int8"}, 'precision: expected "fp32" or "bf16" or "fp8", got "int8"'),
    "layout": (wide(), {"layout": "SBHD"}, 'layout: expected "BSHD" or "BHSD", got "SBHD"'),
    "alignment": (
        wide(),
        {"causal_alignment": "left"},
        'causal_alignment: expected "bottom_right" or "top_left", got "left"',
    ),
    "edges": (
        wide(),
        {**FP8, "fp8_edges": "all"},
        'fp8_edges: expected "hilo" or "bf16" or "none", got "all"',
    ),
    "rotation": (
        wide(),
        {**FP8, "rotation": "random"},
        'rotation: expected "none" or "hadamard", got "random"',
    ),
    "edges without fp8": (
        wide(),
        {"fp8_edges": "hilo"},
        'fp8_edges: only taken with precision "fp8", remove it or set the precision',
    ),
    "rotation without fp8": (
        wide(),
        {"rotation": "hadamard"},
        'rotation: "hadamard" is only taken with precision "fp8", remove it or set the precision',
    ),
    "rotation of codes": (
        coded(),
        {**OUT, "rotation": "hadamard"},
        'rotation: "hadamard" needs unquantised query and key, got float8e4m3fn; rotate when quantising',
    ),
    "bf16 edges of codes": (
        coded(),
        {**OUT, "fp8_edges": "bf16"},
        'fp8_edges: "bf16" needs unquantised query, key and value, got float8e4m3fn; use "hilo"',
    ),
    "window": (wide(), {"window_left": -2}, "window_left: expected -1 (unlimited) or more, got -2"),
    "softcap": (wide(), {"softcap": -1.0}, "softcap: expected 0 (none) or a positive number, got -1"),
    "softcap NaN": (
        wide(),
        {"softcap": float("nan")},
        "softcap: expected 0 (none) or a positive number, got nan",
    ),
    "scale NaN": (wide(), {"scale": float("nan")}, "scale: expected a finite number, got nan"),
    "scale infinite": (wide(), {"scale": float("inf")}, "scale: expected a finite number, got inf"),
    "is_causal 2": (wide(), {"is_causal": 2}, "is_causal: expected 0 or 1, got 2"),
    "is_causal as text": (
        wide(),
        {"is_causal": "yes"},
        "is_causal: expected an attribute of type int, got string",
    ),
    "scale as int": (wide(), {"scale": 1}, "scale: expected an attribute of type float, got int"),
    # An operator cannot list its attributes through ONNX Runtime's API, so it asks for the neighbours' names.
    "a neighbour's window": (
        wide(),
        {"local_window_size": 4},
        "attribute local_window_size is unknown, expected window_left",
    ),
    "a neighbour's mask": (
        wide(),
        {"unidirectional": 1},
        "attribute unidirectional is unknown, expected is_causal",
    ),
}


def message(inputs: Mapping[str, Array], attributes: Mapping[str, Any], static: bool) -> tuple[str, bool]:
    """What the refusal says, and whether it came at session creation."""
    outputs = attention_outputs(inputs, attributes, ("output",))
    model = one_node_model(ATTENTION, inputs, outputs, attributes, static)
    at_creation = True
    with pytest.raises(Exception) as caught:
        session = make_session(model)
        at_creation = False
        run_session(session, inputs)
    return str(caught.value), at_creation


@pytest.mark.parametrize("static", [True, False], ids=["fixed shapes", "free shapes"])
@pytest.mark.parametrize("case", OF_SHAPES)
def test_shapes(case: str, static: bool) -> None:
    inputs, attributes, wanted = OF_SHAPES[case]
    text, at_creation = message(inputs, attributes, static)
    assert text.splitlines()[-1].endswith(f"{ATTENTION} 'node': {wanted}")
    assert at_creation or not static


@pytest.mark.parametrize("case", OF_ATTRIBUTES)
def test_attributes(case: str) -> None:
    inputs, attributes, wanted = OF_ATTRIBUTES[case]
    text, at_creation = message(inputs, attributes, False)
    assert text.splitlines()[-1].endswith(f"{ATTENTION} 'node': {wanted}")
    assert at_creation


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    "inputs",
    [
        wide(key=zeros(1, 6, 2, 8, dtype=np.float16)),
        wide(value=zeros(1, 6, 2, 8, dtype=np.float16)),
        wide(attn_bias=zeros(6, dtype=np.float16)),
        wide(sinks=zeros(2, dtype=np.float16)),
        wide(key_mask=zeros(1, 6)),
        past(zeros(1, 2, 3, 8, dtype=np.float16), zeros(1, 2, 3, 8, dtype=np.float16)),
        {name: array.astype(np.float64) for name, array in wide().items()},
    ],
)
def test_types_are_refused_at_session_creation(inputs: Mapping[str, Array], static: bool) -> None:
    """ONNX Runtime matches types before the operator is asked: the message is its own, the node is named."""
    model = one_node_model(ATTENTION, inputs, {"output": np.float32}, {}, static)
    with pytest.raises(Exception, match=ATTENTION):
        make_session(model)


@pytest.mark.parametrize(
    ("out", "declared", "wanted"),
    [
        (None, float8_e4m3fn, "required when query is float8e4m3fn, got none"),
        (TensorProto.INT64, np.float32, "expected 1 (float), 10 (float16) or 16 (bfloat16), got 7"),
        (TensorProto.FLOAT8E4M3FN, np.float32, "expected 1 (float), 10 (float16) or 16 (bfloat16), got 17"),
    ],
)
def test_fp8_inputs_need_a_wider_output_type(out: int | None, declared: type, wanted: str) -> None:
    attributes = {} if out is None else {"out_dtype": out}
    model = one_node_model(ATTENTION, coded(), {"output": declared}, attributes, False)
    with pytest.raises(Exception) as caught:
        make_session(model)
    assert str(caught.value).endswith(f"{ATTENTION} 'node': out_dtype: {wanted}")


def test_out_dtype_is_for_fp8_inputs() -> None:
    attributes = {"out_dtype": TensorProto.FLOAT16}
    model = one_node_model(ATTENTION, wide(), {"output": np.float32}, attributes, False)
    with pytest.raises(Exception) as caught:
        make_session(model)
    assert "out_dtype: expected float as query (only float8e4m3fn inputs leave a choice)" in str(caught.value)


QUANTIZE = {
    "rank": (zeros(2, 3, 4), {}, "x shape: expected 4 dimensions, got"),
    "granularity": (
        zeros(1, 2, 3, 4),
        {"granularity": "row"},
        'granularity: expected "tensor" or "head" or "batch_head", got "row"',
    ),
    "rotation": (zeros(1, 2, 3, 4), {"rotation": "x"}, 'rotation: expected "none" or "hadamard", got "x"'),
    "layout": (zeros(1, 2, 3, 4), {"layout": "SBHD"}, 'layout: expected "BSHD" or "BHSD", got "SBHD"'),
    "head dim": (
        zeros(1, 2, 3, 24),
        {"rotation": "hadamard"},
        'rotation: "hadamard" needs a head_dim that is a power of two or 192, got 24',
    ),
}


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("case", QUANTIZE)
def test_quantize(case: str, static: bool) -> None:
    x, attributes, wanted = QUANTIZE[case]
    outputs = {"y": float8_e4m3fn, "scale": np.float32}
    with pytest.raises(Exception) as caught:
        run_op("ZyfaQuantizeFp8", {"x": x}, outputs, attributes, static_shapes=static)
    assert f"ZyfaQuantizeFp8 'node': {wanted}" in str(caught.value)


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(("shape", "got"), [((2, 24), "24"), ((2, 96), "96"), ((2, 384), "384")])
def test_hadamard(shape: tuple[int, ...], got: str, static: bool) -> None:
    with pytest.raises(Exception) as caught:
        run_op("ZyfaHadamard", {"x": zeros(*shape)}, {"y": np.float32}, {}, static_shapes=static)
    wanted = (
        f"ZyfaHadamard 'node': x shape: expected a last dimension that is a power of two or 192, got {got}"
    )
    assert wanted in str(caught.value)


def test_a_scalar_cannot_be_rotated() -> None:
    with pytest.raises(
        Exception, match="ZyfaHadamard 'node': x shape: expected at least 1 dimension, got a scalar"
    ):
        run_op("ZyfaHadamard", {"x": np.float32(1).reshape(())}, {"y": np.float32}, {})


def test_a_session_survives_a_refusal() -> None:
    """The same session runs the next, good input."""
    good = wide()
    session = make_session(one_node_model(ATTENTION, good, {"output": np.float32}, {}))
    with pytest.raises(Exception, match="key head_dim: expected 8 as query, got 4"):
        run_session(session, wide(key=zeros(1, 6, 2, 4)))
    assert run_session(session, good)["output"].shape == (1, 4, 2, 8)
