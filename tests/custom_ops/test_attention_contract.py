"""The operator's tables row by row: inputs, outputs, attributes, types, defaults."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from custom_ops.expected import check_attention, expected
from custom_ops.op_session import run_attention
from custom_ops.problems import Sizes, gaussian
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto

WIDE = (np.float32, np.float16, bfloat16)
TYPES_AND_PRECISIONS = [
    *itertools.product(WIDE, ("fp32", "bf16", "fp8")),
    (float8_e4m3fn, "fp8"),
]
OUT = {"out_dtype": TensorProto.FLOAT}


def out_dtype(dtype: Any) -> dict[str, int]:
    """FP8 inputs need a wider output."""
    return OUT if dtype == float8_e4m3fn else {}


@pytest.mark.parametrize(("dtype", "precision"), TYPES_AND_PRECISIONS)
@pytest.mark.parametrize(("layout", "rank"), [("BSHD", 4), ("BHSD", 4), ("BSHD", 3)])
def test_every_type_precision_and_layout(dtype: Any, precision: str, layout: str, rank: int) -> None:
    inputs = gaussian(Sizes(), dtype, layout=layout, rank=rank)
    attributes = {"num_heads": 4, "kv_num_heads": 2} if rank == 3 else {"layout": layout}
    actual = check_attention(inputs, precision=precision, **attributes, **out_dtype(dtype))
    assert actual["output"].dtype == (np.float32 if dtype == float8_e4m3fn else dtype)


@pytest.mark.parametrize("dtype", [np.float32, float8_e4m3fn])
def test_shapes_known_at_session_creation_change_nothing(dtype: Any) -> None:
    inputs = gaussian(Sizes(), dtype)
    fixed = run_attention(inputs, ("output", "lse"), static_shapes=True, **out_dtype(dtype))
    free = run_attention(inputs, ("output", "lse"), **out_dtype(dtype))
    for name in fixed:
        assert fixed[name].tobytes() == free[name].tobytes()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize(
    "head_dim, v_head_dim", [(192, 128), (64, 16), (8, 40), (63, 63), (1, 8), (256, 256)]
)
def test_head_dims(precision: str, head_dim: int, v_head_dim: int) -> None:
    """Any head dim, value heads of another size; the default scale is that of the true head dim."""
    inputs = gaussian(Sizes(heads=2, kv_heads=1, head_dim=head_dim, v_head_dim=v_head_dim))
    check_attention(inputs, precision=precision)


@pytest.mark.parametrize("dtype", [*WIDE, float8_e4m3fn])
def test_default_precision_follows_the_type(dtype: Any) -> None:
    """float and float16: fp32; bfloat16: bf16; float8e4m3fn: fp8."""
    named = {bfloat16: "bf16", float8_e4m3fn: "fp8"}.get(dtype, "fp32")
    inputs = gaussian(Sizes(), dtype)
    without = run_attention(inputs, ("output", "lse"), **out_dtype(dtype))
    given = run_attention(inputs, ("output", "lse"), precision=named, **out_dtype(dtype))
    for name in given:
        assert without[name].tobytes() == given[name].tobytes()


@pytest.mark.parametrize(
    "attribute",
    [
        {"is_causal": 1},
        {"causal_alignment": "bottom_right"},
        {"window_left": -1},
        {"softcap": 0.0},
        {"layout": "BSHD"},
        {"scale": 0.25},
        {"fp8_edges": "hilo"},
        {"rotation": "none"},
    ],
)
def test_default_of_each_attribute(attribute: dict[str, Any]) -> None:
    inputs = gaussian(Sizes(q_len=100, kv_len=130, head_dim=16))
    default = run_attention(inputs, ("output", "lse"), precision="fp8")
    given = run_attention(inputs, ("output", "lse"), precision="fp8", **attribute)
    for name in default:
        assert default[name].tobytes() == given[name].tobytes()


@pytest.mark.parametrize(
    "outputs",
    [
        ("output",),
        ("output", "lse"),
        ("output", "present_key"),
        ("output", "present_value"),
        ("output", "present_key", "present_value", "lse"),
    ],
)
def test_any_subset_of_the_optional_outputs(outputs: tuple[str, ...]) -> None:
    inputs = gaussian(Sizes(past=5))
    actual = check_attention(inputs, outputs)
    assert tuple(actual) == outputs


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize("kind", [np.bool_, np.int32, np.int64])
def test_key_mask_types(precision: str, kind: Any) -> None:
    """Bool, int32 and int64 mean the same: nonzero is visible, whatever the number."""
    inputs = gaussian(Sizes(past=6))
    mask = np.random.default_rng(1).random((2, 76)) < 0.7
    reference = check_attention({**inputs, "key_mask": mask}, precision=precision)
    numbers = mask.astype(kind) * (1 if kind == np.bool_ else kind(-3))
    actual = run_attention({**inputs, "key_mask": numbers.astype(kind)}, precision=precision)
    assert actual["output"].tobytes() == reference["output"].tobytes()


@pytest.mark.parametrize("out", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("shape", ["(1)", "(H)", "(B,H)"])
def test_fp8_scales_and_output_types(out: int, shape: str) -> None:
    """Real value = code * scale, whatever the spread of the scales over batch and heads."""
    inputs = gaussian(Sizes(), float8_e4m3fn)
    rng = np.random.default_rng(2)
    for name, heads in (("q_scale", 4), ("k_scale", 2), ("v_scale", 2)):
        size = {"(1)": (1,), "(H)": (heads,), "(B,H)": (2, heads)}[shape]
        inputs[name] = (inputs[name].mean() * 10 ** rng.uniform(-1, 0, size)).astype(np.float32)
    check_attention(inputs, out_dtype=out)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_sinks_enlarge_the_denominator_and_not_lse(precision: str) -> None:
    """Two keys of score 0, a sink of 0 and V = 3: 2.0; lse stays ln 2."""
    one_head = np.zeros((1, 1, 1, 8), np.float32)
    inputs = {
        "query": one_head,
        "key": np.zeros((1, 2, 1, 8), np.float32),
        "value": np.full((1, 2, 1, 8), 3, np.float32),
        "sinks": np.zeros(1, np.float32),
    }
    actual = check_attention(inputs, precision=precision)
    np.testing.assert_allclose(actual["output"], 2.0, rtol=1e-3)
    np.testing.assert_allclose(actual["lse"], np.log(2), rtol=1e-3)
    random = gaussian(Sizes())
    random["sinks"] = np.array([-2.0, 0.0, 3.0, 30.0], np.float32)
    check_attention(random, precision=precision)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize("softcap", [0.5, 30.0])
def test_softcap(precision: str, softcap: float) -> None:
    check_attention(gaussian(Sizes(), spread=3), precision=precision, softcap=softcap)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("window", [0, 1, 31, 64, 65, 1000])
def test_window(precision: str, is_causal: int, window: int) -> None:
    """Keys to the left besides the own one; without causal the right side stays open."""
    inputs = gaussian(Sizes(q_len=150, kv_len=200))
    check_attention(inputs, precision=precision, is_causal=is_causal, window_left=window)


def test_window_by_hand() -> None:
    """Q = 0, V = 0..5, two keys to the left: the mean of at most three values."""
    inputs = {
        "query": np.zeros((1, 6, 1, 4), np.float32),
        "key": np.ones((1, 6, 1, 4), np.float32),
        "value": np.tile(np.arange(6, dtype=np.float32)[None, :, None, None], (1, 1, 1, 4)),
    }
    actual = run_attention(inputs, window_left=2)["output"]
    np.testing.assert_allclose(actual[0, :, 0, 0], [0, 0.5, 1, 2, 3, 4], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, float8_e4m3fn])
def test_lse_is_the_natural_logarithm_of_the_sum(dtype: Any) -> None:
    inputs = gaussian(Sizes(), dtype)
    actual = run_attention(inputs, ("output", "lse"), **out_dtype(dtype))
    assert actual["lse"].shape == (2, 4, 70)
    np.testing.assert_allclose(actual["lse"], expected(inputs, {}).lse, atol=2e-4)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_same_input_gives_the_same_bits(precision: str) -> None:
    inputs = gaussian(Sizes(q_len=300, kv_len=300))
    first = run_attention(inputs, ("output", "lse"), precision=precision)
    for threads in (1, 2, 2):
        again = run_attention(inputs, ("output", "lse"), precision=precision, threads=threads)
        for name in first:
            assert again[name].tobytes() == first[name].tobytes()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_a_batch_entry_does_not_depend_on_its_neighbours(precision: str) -> None:
    """The same bits alone, in a batch of four, and when another entry's data change."""
    inputs = gaussian(Sizes(batch=4, q_len=90, kv_len=90))
    whole = run_attention(inputs, precision=precision)["output"]
    for b in range(4):
        alone = run_attention({k: v[b : b + 1] for k, v in inputs.items()}, precision=precision)["output"]
        assert alone[0].tobytes() == whole[b].tobytes()
