"""Random problems over the whole contract, the same ones in every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from custom_ops.expected import check_attention
from custom_ops.op_session import Array
from custom_ops.problems import Sizes, gaussian
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16, float8_e4m3fn
from onnx import TensorProto

ALL = ("output", "present_key", "present_value", "lse")
LENGTHS = st.one_of(st.integers(0, 5), st.sampled_from([31, 32, 33, 63, 64, 65, 100, 128, 129, 200, 257]))
BIAS_AXES = st.tuples(*[st.booleans()] * 4)


@dataclass(frozen=True)
class Case:
    """What hypothesis draws; printed when a case fails."""

    sizes: Sizes
    dtype: str
    precision: str
    layout: str
    rank: int
    attributes: dict[str, Any]
    key_mask: str
    bias: tuple[bool, ...] | None
    sinks: bool
    static: bool
    outputs: tuple[str, ...]
    seed: int


DTYPES = {"float": np.float32, "float16": np.float16, "bfloat16": bfloat16, "float8": float8_e4m3fn}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any combination the contract allows, with small sizes around the tile boundaries."""
    kv_heads = draw(st.integers(1, 3))
    dtype = draw(st.sampled_from(list(DTYPES)))
    precision = "fp8" if dtype == "float8" else draw(st.sampled_from(["fp32", "bf16", "fp8"]))
    rotation = "none"
    head_dim = draw(st.sampled_from([1, 8, 16, 24, 64, 192]))
    if precision == "fp8" and dtype != "float8" and head_dim != 24:
        rotation = draw(st.sampled_from(["none", "hadamard"]))
    sizes = Sizes(
        batch=draw(st.integers(1, 3)),
        heads=kv_heads * draw(st.integers(1, 3)),
        kv_heads=kv_heads,
        q_len=draw(LENGTHS),
        kv_len=draw(LENGTHS),
        head_dim=head_dim,
        v_head_dim=draw(st.sampled_from([8, 16, 40])),
        past=draw(st.sampled_from([0, 0, 1, 60, 130])),
    )
    rank = draw(st.sampled_from([3, 4, 4]))
    layout = "BSHD" if rank == 3 else draw(st.sampled_from(["BSHD", "BHSD"]))
    attributes: dict[str, Any] = {
        "is_causal": draw(st.sampled_from([1, 1, 0])),
        "causal_alignment": draw(st.sampled_from(["bottom_right", "bottom_right", "top_left"])),
        "window_left": draw(st.sampled_from([-1, -1, -1, 0, 1, 40, 64, 150])),
        "softcap": draw(st.sampled_from([0.0, 0.0, 0.0, 2.0, 30.0])),
        "precision": precision,
        "layout": layout,
    }
    scale = draw(st.sampled_from([None, None, 0.3, -0.2]))
    if scale is not None:
        attributes["scale"] = scale
    if rank == 3:
        attributes |= {"num_heads": sizes.heads, "kv_num_heads": sizes.kv_heads}
    if dtype == "float8":
        attributes["out_dtype"] = draw(
            st.sampled_from([TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
        )
    if precision == "fp8":
        words = ["hilo", "none"] if dtype == "float8" else ["hilo", "bf16", "none"]
        attributes |= {"fp8_edges": draw(st.sampled_from(words)), "rotation": rotation}
    return Case(
        sizes=sizes,
        dtype=dtype,
        precision=precision,
        layout=layout,
        rank=rank,
        attributes=attributes,
        key_mask=draw(st.sampled_from(["none", "none", "gaps", "left", "right", "one"])),
        bias=draw(st.one_of(st.none(), st.none(), BIAS_AXES)) if dtype != "float8" else None,
        sinks=draw(st.sampled_from([False, False, True])),
        static=draw(st.booleans()),
        outputs=draw(st.sampled_from([("output", "lse"), ALL])),
        seed=draw(st.integers(0, 2**16)),
    )


def make_inputs(case: Case) -> dict[str, Array]:
    """Arrays of a case; values carry an offset, so that rows do not cancel to nothing."""
    dtype = DTYPES[case.dtype]
    inputs = gaussian(case.sizes, dtype, seed=case.seed, layout=case.layout, rank=case.rank)
    if case.dtype != "float8":
        for name in ("value", "past_value"):
            if name in inputs:
                inputs[name] = (inputs[name].astype(np.float32) + 0.5).astype(dtype)
    rng = np.random.default_rng(case.seed)
    batch, keys = case.sizes.batch, case.sizes.past + case.sizes.kv_len
    where = np.arange(keys)
    cut = rng.integers(0, keys + 1, (batch, 1))
    masks = {
        "gaps": rng.random((batch, keys)) < 0.6,
        "left": where >= cut,
        "right": where < cut,
        "one": where == cut,
    }
    if case.key_mask != "none":
        inputs["key_mask"] = masks[case.key_mask].astype(rng.choice([np.bool_, np.int32, np.int64]))
    if case.bias is not None:
        full = (batch, case.sizes.heads, case.sizes.q_len, keys)
        shape = tuple(size if used else 1 for size, used in zip(full, case.bias, strict=True))
        bias = 2 * rng.standard_normal(shape)
        bias[rng.random(shape) < 0.1] = -np.inf
        inputs["attn_bias"] = bias.astype(dtype)
    if case.sinks:
        inputs["sinks"] = (2 * rng.standard_normal(case.sizes.heads)).astype(np.float32)
    return inputs


@settings(max_examples=300, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_random_problems(case: Case) -> None:
    check_attention(make_inputs(case), case.outputs, static_shapes=case.static, **case.attributes)
