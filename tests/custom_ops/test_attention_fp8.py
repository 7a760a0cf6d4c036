"""precision="fp8": the bytes of P and the output against the NumPy model; accuracy by input family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import assert_close, check_attention
from custom_ops.op_session import Array, make_session, one_node_model, run_attention, run_session
from custom_ops.problems import Sizes, gaussian
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto
from reference.attention import attention
from reference.e4m3 import MAGNITUDES
from reference.fp8_baselines import aiter_v3
from reference.fp8_problem import make_problem
from reference.inputs import Shape, make

from zyfa_ort.numerics import FP8_OVER_AITER, relative_error

EDGES = ("hilo", "bf16", "none")
# What test_attention_fp8_bytes.py holds to the byte is repeated through ONNX Runtime only on request.
BYTES_ELSEWHERE = ("bf16", *(pytest.param(edges, marks=pytest.mark.slow) for edges in ("hilo", "none")))
FAMILY_TOLERANCES = {"sink": "fp8_sink", "local": "fp8_local"}
FAMILIES = ("gauss", "s3", "s8", "outlier", "heavy", "sink", "onehot", "local", "rising")


def op_inputs(tensors: tuple[Array, ...]) -> dict[str, Array]:
    """query, key and value by name."""
    return dict(zip(("query", "key", "value"), tensors, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["hilo", "bf16"])
def test_output_equals_the_model(family: str, edges: str) -> None:
    """bfloat16 in and out, GQA, 300 rows over five key tiles and two query blocks."""
    tensors = make(family, Shape(heads=4, kv_heads=2, length=300, head_dim=64))
    inputs = op_inputs(tuple(tensor.astype(bfloat16) for tensor in tensors))
    check_attention(inputs, precision="fp8", fp8_edges=edges, layout="BHSD")


@pytest.mark.parametrize("rotation", ["none", "hadamard"])
@pytest.mark.parametrize(("head_dim", "v_head_dim"), [(64, 64), (128, 128), (192, 128)])
def test_real_head_dims_and_rotation(rotation: str, head_dim: int, v_head_dim: int) -> None:
    shape = Shape(heads=2, kv_heads=1, length=290, head_dim=head_dim, v_head_dim=v_head_dim)
    inputs = op_inputs(tuple(tensor.astype(bfloat16) for tensor in make("outlier", shape)))
    for edges in EDGES:
        check_attention(inputs, precision="fp8", fp8_edges=edges, rotation=rotation, layout="BHSD")


@pytest.mark.parametrize("family", FAMILIES)
def test_error_of_each_family_on_fp8_inputs(family: str) -> None:
    """Against float64 of the same codes: within the scheme's bound and FP8_OVER_AITER of AITER v3's error."""
    problem = make_problem(*make(family, Shape(length=1024)))
    inputs = op_inputs(
        tuple(part.codes.view(float8_e4m3fn) for part in (problem.query, problem.key, problem.value))
    )
    inputs |= {"q_scale": problem.query.scale, "k_scale": problem.key.scale, "v_scale": problem.value.scale}
    actual = run_attention(inputs, layout="BHSD", out_dtype=TensorProto.FLOAT)["output"]
    exact = attention(**inputs, layout="BHSD").output
    assert_close(actual, exact, FAMILY_TOLERANCES.get(family, "fp8"))
    assert relative_error(actual, exact) <= FP8_OVER_AITER * relative_error(aiter_v3(problem), exact)


@pytest.mark.parametrize("edges", EDGES)
def test_float_inputs_against_float64(edges: str) -> None:
    """Quantisation included: the known floor on Gaussian inputs, lower with BF16 edge tiles."""
    inputs = op_inputs(make("gauss", Shape(heads=2, kv_heads=1, length=512)))
    actual = run_attention(inputs, layout="BHSD", precision="fp8", fp8_edges=edges)["output"]
    exact = attention(**inputs, layout="BHSD").output
    assert_close(actual, exact, "fp8_from_float")
    if edges == "bf16":
        plain = run_attention(inputs, layout="BHSD", precision="fp8")["output"]
        assert relative_error(actual, exact) < 0.7 * relative_error(plain, exact)


@pytest.mark.parametrize("edges", BYTES_ELSEWHERE)
@pytest.mark.parametrize("window", [0, 100, 300])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_windows_move_the_edge_tiles(edges: str, window: int, is_causal: int) -> None:
    inputs = op_inputs(make("gauss", Shape(heads=2, kv_heads=1, length=600, head_dim=32)))
    check_attention(
        inputs, precision="fp8", fp8_edges=edges, window_left=window, is_causal=is_causal, layout="BHSD"
    )


@pytest.mark.parametrize("edges", BYTES_ELSEWHERE)
@pytest.mark.parametrize("alignment", ["bottom_right", "top_left"])
@pytest.mark.parametrize(("q_len", "kv_len"), [(600, 300), (300, 600), (33, 600), (600, 33), (1, 600)])
def test_unequal_lengths_move_the_edge_tiles(edges: str, alignment: str, q_len: int, kv_len: int) -> None:
    inputs = gaussian(Sizes(batch=1, heads=2, kv_heads=1, q_len=q_len, kv_len=kv_len, head_dim=32))
    check_attention(inputs, precision="fp8", fp8_edges=edges, causal_alignment=alignment)


@pytest.mark.parametrize("edges", BYTES_ELSEWHERE)
def test_padding_moves_the_edge_tiles(edges: str) -> None:
    """start and end of the unmasked keys: left padding, right padding, one tile in the middle, nothing."""
    inputs = gaussian(Sizes(batch=4, heads=2, kv_heads=1, q_len=600, kv_len=600, head_dim=32))
    mask = np.zeros((4, 600), bool)
    mask[0, 150:] = True
    mask[1, :333] = True
    mask[2, 200:230] = True
    inputs["key_mask"] = mask
    check_attention(inputs, precision="fp8", fp8_edges=edges)
    check_attention(inputs, precision="fp8", fp8_edges=edges, is_causal=0)


def test_scales_are_honoured() -> None:
    """Gaussians of spread 37, 0.004 and 5 with amax scales; key heads whose scales differ a hundredfold."""
    rng = np.random.default_rng(0)
    inputs = gaussian(Sizes(q_len=100, kv_len=100, head_dim=64))
    for name, spread in (("query", 37), ("key", 0.004), ("value", 5)):
        inputs[name] = (spread * rng.standard_normal(inputs[name].shape)).astype(np.float32)
    inputs["key"][:, :, 1] *= 100
    inputs["value"][:, :, 0] *= 100
    check_attention(inputs, precision="fp8", scale=1.0)
    coded: dict[str, Array] = {}
    for name in ("query", "key", "value"):
        amax = np.abs(inputs[name]).max(axis=(0, 1, 3)) / np.float32(448)
        coded[name] = (inputs[name] / amax[:, None]).astype(float8_e4m3fn)
        coded[f"{name[0]}_scale"] = amax
    actual = check_attention(coded, out_dtype=TensorProto.FLOAT, scale=1.0)["output"]
    for head in range(4):
        exact = attention(**coded, scale=1.0).output[:, :, head]
        assert relative_error(actual[:, :, head], exact) < 3e-2


@pytest.mark.parametrize("spread", [0.25, 0.5, 1, 1.5, 2, 4])
def test_values_of_one_give_one_on_long_rows(spread: float) -> None:
    """Whatever Q and K do, no probability is clipped and the rounded sum is the divisor."""
    q, k, v = make("gauss", Shape(length=2048, head_dim=64))
    inputs = op_inputs((q * np.float32(spread), k, np.ones_like(v)))
    actual = run_attention(inputs, precision="fp8", layout="BHSD")["output"]
    np.testing.assert_allclose(actual, 1, atol=2e-6)


@pytest.mark.parametrize("step", [0.5, 1.0, 2.0, 3.0])
def test_a_maximum_that_rises_from_tile_to_tile(step: float) -> None:
    """Each tile's best key beats the last by 0.5 to 3 nats: the anchor must follow, P may not saturate."""
    length = 640
    q, k, v = make("gauss", Shape(length=length, head_dim=64))
    q[..., :16], k[..., :16] = 1, (np.arange(length) // 64 * step / 2)[:, None]
    inputs = op_inputs((q, k, v))
    check_attention(inputs, precision="fp8", layout="BHSD", is_causal=0)
    check_attention(inputs, precision="fp8", layout="BHSD", fp8_edges="none")
    problem = make_problem(q, k, v, is_causal=0)
    parts = (problem.query, problem.key, problem.value)
    coded = op_inputs(tuple(part.codes.view(float8_e4m3fn) for part in parts))
    coded |= {f"{name}_scale": part.scale for name, part in zip("qkv", parts, strict=True)}
    exact = attention(**coded, layout="BHSD", is_causal=0).output
    actual = run_attention(coded, layout="BHSD", is_causal=0, out_dtype=TensorProto.FLOAT)["output"]
    assert_close(actual, exact, "fp8_flat")


def test_error_does_not_grow_with_length() -> None:
    errors = []
    for length in (256, 1024, 2048):
        problem = make_problem(*make("gauss", Shape(length=length, head_dim=64)))
        parts = (problem.query, problem.key, problem.value)
        inputs = op_inputs(tuple(part.codes.view(float8_e4m3fn) for part in parts))
        inputs |= {f"{name}_scale": part.scale for name, part in zip("qkv", parts, strict=True)}
        actual = run_attention(inputs, layout="BHSD", out_dtype=TensorProto.FLOAT)["output"]
        rows = list(range(length - 32, length))
        exact = attention(**inputs, layout="BHSD", rows=rows).output[:, :, rows]
        errors.append(relative_error(actual[:, :, rows], exact))
    assert max(errors) < 3e-2, errors


@pytest.mark.parametrize("edges", ["none", "hilo"])
def test_two_key_staircase(edges: str) -> None:
    """Scores (0, -delta): a lean tile gives decode(rint(126 - 8 delta)) / 448, an edge tile 2^-delta."""
    deltas = np.unique((np.arange(0, 129) / 64).astype(np.float32))
    keys = np.stack([np.ones_like(deltas), 1 - deltas], axis=1).astype(float8_e4m3fn)
    true_deltas = 1 - keys[:, 1].astype(np.float64)
    inputs: dict[str, Array] = {
        "query": np.ones((len(deltas), 1, 1, 1), float8_e4m3fn),
        "key": keys.reshape(-1, 1, 2, 1),
        "value": np.tile(np.array([0, 1], float8_e4m3fn).reshape(1, 1, 2, 1), (len(deltas), 1, 1, 1)),
        **{name: np.ones(1, np.float32) for name in ("q_scale", "k_scale", "v_scale")},
    }
    attributes: dict[str, Any] = {"fp8_edges": edges, "scale": float(np.log(2.0)), "layout": "BHSD"}
    actual = run_attention(inputs, out_dtype=TensorProto.FLOAT, **attributes)["output"].ravel()
    p = MAGNITUDES[np.rint(126 - 8 * true_deltas).astype(int)] / 448 if edges == "none" else 2.0**-true_deltas
    np.testing.assert_allclose(actual, p / (1 + p), rtol=2e-7 if edges == "none" else 1e-3)


def test_fp8_is_really_fp8_and_fp32_is_not() -> None:
    """V = 1.0625 is halfway between two codes at scale 1: 1.0 in FP8, 1.0625 elsewhere."""
    inputs = op_inputs(make("gauss", Shape(length=16, head_dim=8)))
    inputs["value"] = np.full_like(inputs["value"], 1.0625)
    inputs["value"][:, :, 0, 0] = 448
    for precision, wanted in (("fp8", 1.0), ("bf16", 1.0625), ("fp32", 1.0625)):
        actual = run_attention(inputs, layout="BHSD", precision=precision)["output"][..., 1]
        np.testing.assert_allclose(actual, wanted, rtol=1e-5)


def test_a_thousand_runs_give_one_answer() -> None:
    inputs = op_inputs(make("gauss", Shape(heads=2, kv_heads=1, length=80, head_dim=16)))
    attributes = {"precision": "fp8", "rotation": "hadamard", "layout": "BHSD"}
    session = make_session(
        one_node_model("ZyfaPrefillAttention", inputs, {"output": np.float32}, attributes), 2
    )
    answers = {run_session(session, inputs)["output"].tobytes() for _ in range(1000)}
    assert len(answers) == 1
