"""What ZyfaPrefillAttention must answer, and how near it must come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from custom_ops.op_session import Array, run_attention
from ml_dtypes import bfloat16, float8_e4m3fn
from reference.attention import attention, from_bhsd, to_bhsd
from reference.fp8_model import fp8_attention

from zyfa_ort.numerics import LSE_TOLERANCES, TOLERANCES

DEFAULT_PRECISION = {np.dtype(bfloat16): "bf16", np.dtype(float8_e4m3fn): "fp8"}
MODEL_OPTIONS = ("scale", "is_causal", "causal_alignment", "window_left", "softcap", "fp8_edges", "rotation")
ROUNDED_TO_BF16 = ("query", "key", "value", "past_key", "past_value")


@dataclass(frozen=True)
class Expected:
    """The answer in float64 and the names of the tolerances that go with it."""

    output: Array
    lse: Array
    tolerance: str
    lse_tolerance: str


def expected(inputs: Mapping[str, Array], attributes: Mapping[str, Any]) -> Expected:
    """FP8 from the model of the numerics page; BF16 from float64 of the rounded inputs; FP32 from float64."""
    query = inputs["query"]
    precision = attributes.get("precision") or DEFAULT_PRECISION.get(query.dtype, "fp32")
    out = query.dtype if attributes.get("out_dtype") is None else None
    narrow = out in (np.dtype(bfloat16), np.dtype(np.float16)) or attributes.get("out_dtype") in (10, 16)
    if precision == "fp8":
        return _fp8(inputs, attributes, "fp8_model_bfloat16" if narrow else "fp8_model")
    if precision == "bf16":
        rounded = {
            name: array.astype(bfloat16) if name in ROUNDED_TO_BF16 else array
            for name, array in inputs.items()
        }
        answer = attention(**rounded, **attributes)
        return Expected(answer.output, answer.lse, "bf16", "bf16")
    answer = attention(**inputs, **attributes)
    suffix = {np.dtype(bfloat16): "_bfloat16", np.dtype(np.float16): "_float16"}.get(query.dtype, "")
    return Expected(answer.output, answer.lse, f"fp32{suffix}", "fp32")


def _fp8(inputs: Mapping[str, Array], attributes: Mapping[str, Any], tolerance: str) -> Expected:
    layout = attributes.get("layout", "BSHD")
    tensors = dict(inputs)
    rank = inputs["query"].ndim
    heads = attributes.get("num_heads")
    tensors["query"] = to_bhsd(inputs["query"], layout, heads)
    for name in ("key", "value"):
        tensors[name] = to_bhsd(inputs[name], layout, attributes.get("kv_num_heads"))
    options = {name: attributes[name] for name in MODEL_OPTIONS if attributes.get(name) is not None}
    answer = fp8_attention(**tensors, **options)
    return Expected(from_bhsd(answer.output, layout, rank), answer.lse, tolerance, "fp8_model")


def assert_close(actual: Array, wanted: Array, tolerance: str) -> None:
    """`actual` is NaN exactly where `wanted` is, and within the named tolerance elsewhere.

    Differences of one subnormal step of the output's type are none: float16 ends at 6e-8.
    """
    assert actual.shape == wanted.shape
    got, wanted = actual.astype(np.float64), wanted.astype(np.float64)
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), nan, err_msg="where the output is NaN")
    step = float(ml_dtypes.finfo(actual.dtype).smallest_subnormal)
    same = nan | (np.abs(got - wanted) <= step)
    violations = TOLERANCES[tolerance].violations(
        np.where(nan, 0, np.where(same, wanted, got)), np.where(nan, 0, wanted)
    )
    assert not violations, f"{tolerance}: {'; '.join(violations)}"


def assert_lse_close(actual: Array, wanted: Array, tolerance: str) -> None:
    """Infinities and NaN in the same places, the rest within the named absolute tolerance."""
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=LSE_TOLERANCES[tolerance], err_msg="lse")


def check_attention(
    inputs: Mapping[str, Array],
    outputs: Sequence[str] = ("output", "lse"),
    *,
    static_shapes: bool = False,
    threads: int = 1,
    **attributes: Any,
) -> dict[str, Array]:
    """Run the operator, hold output, lse and the cache against what is expected, return what it gave."""
    actual = run_attention(inputs, outputs, static_shapes=static_shapes, threads=threads, **attributes)
    wanted = expected(inputs, attributes)
    assert_close(actual["output"], wanted.output, wanted.tolerance)
    if "lse" in outputs:
        assert_lse_close(actual["lse"], wanted.lse, wanted.lse_tolerance)
    for name in ("key", "value"):
        if f"present_{name}" in outputs:
            check_present(actual[f"present_{name}"], inputs, name, attributes)
    return actual


def check_present(
    present: Array, inputs: Mapping[str, Array], name: str, attributes: Mapping[str, Any]
) -> None:
    """present == past ++ new, (B, Hkv, Sp + Sk, D), to the bit."""
    new = to_bhsd(inputs[name], attributes.get("layout", "BSHD"), attributes.get("kv_num_heads"))
    past = inputs.get(f"past_{name}")
    whole = new if past is None else np.concatenate([past, new], axis=2)
    assert present.dtype == whole.dtype and present.shape == whole.shape
    assert present.tobytes() == np.ascontiguousarray(whole).tobytes()
