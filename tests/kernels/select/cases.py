"""Inputs of attention, and what a choice made of them on the emulated device against the CPU operator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from custom_ops.expected import assert_close, assert_lse_close
from custom_ops.op_session import ONNX_TYPES, Array, run_attention
from kernels.select.emulated_host import Ran, run
from ml_dtypes import bfloat16, float8_e4m3fn
from zyfa_ort.kernels.select.layouts import LAYOUTS

Inputs = dict[str, Array]
SEEN = ("scale", "is_causal", "causal_alignment", "window_left")


def tensors(
    q_len: int, kv_len: int, dims: tuple[int, int], dtype: Any = bfloat16, *, heads: tuple[int, int] = (2, 1),
    batch: int = 1, past: int = 0, layout: str = "BSHD",
) -> Inputs:  # fmt: skip
    """Gaussian; codes come with a scale per batch and head."""
    rng = np.random.default_rng([q_len, kv_len, *dims, past])
    sizes = {"query": (heads[0], q_len, dims[0]), "key": (heads[1], kv_len - past, dims[0])}
    sizes["value"] = (heads[1], kv_len - past, dims[1])
    factor = 30 if dtype == float8_e4m3fn else 1
    made: Inputs = {}
    for name, (h, rows, dim) in sizes.items():
        x = (rng.standard_normal((batch, h, rows, dim)) * factor).astype(dtype)
        made[name] = np.ascontiguousarray(x.swapaxes(1, 2)) if layout == "BSHD" else x
        if factor != 1:
            made[f"{name[0]}_scale"] = rng.uniform(0.02, 0.04, (batch, h)).astype(np.float32)
        if past and name != "query":
            made[f"past_{name}"] = (rng.standard_normal((batch, h, past, dim)) * factor).astype(dtype)
    return made


def cpu(inputs: Mapping[str, Array], **attributes: Any) -> dict[str, Array]:
    """Output and lse of the operator; of float8e4m3fn inputs in float."""
    if inputs["query"].dtype == np.dtype(float8_e4m3fn):
        attributes.setdefault("out_dtype", ONNX_TYPES[np.dtype(np.float32)])
    return run_attention(inputs, ("output", "lse"), **attributes)


def check(
    inputs: Inputs,
    layout: str = "BSHD",
    out: str | None = None,
    byte_rounding: str = "unknown",
    **attributes: Any,
) -> Ran:
    """Runs the choice; output and lse are the operator's, within the tolerance of the kernel.

    Decode of codes is held to the operator on the same codes with precision bf16, which rounds no P to e4m3.
    """
    device = {"byte_rounding": byte_rounding, "lse": True}
    ran = run(inputs, layout, **device, **attributes, **({} if out is None else {"out_dtype": out}))
    families = {launch.row.family for launch in ran.choice.launches}
    if "fp8_prefill" in families:
        wanted = cpu(inputs, layout=layout, **attributes)
        name = "fp8_model" if ran.problem.out_dtype == "float" else "fp8_model_bfloat16"
        assert_close(ran["output"], wanted["output"], name)
        assert_lse_close(ran["lse"], wanted["lse"], "fp8_model")
        return ran
    if "quantize_amax" in families:
        kept = {name: inputs[name] for name in ("key_mask", "sinks") if name in inputs}
        seen = {name: attributes[name] for name in SEEN if name in attributes}
        wanted = cpu(decoded_codes(ran) | kept, layout="BHSD", precision="bf16", **seen)
        wanted["output"] = wanted["output"] if layout == "BHSD" else wanted["output"].swapaxes(1, 2)
    else:
        bf16 = {name: value for name, value in attributes.items() if name != "fp8_edges"} | {
            "precision": "bf16"
        }
        wanted = cpu(inputs, layout=layout, **bf16)
    assert_close(ran["output"], wanted["output"], "bf16")
    assert_lse_close(ran["lse"], wanted["lse"], "bf16")
    return ran


def decoded_codes(ran: Ran) -> Inputs:
    """The codes and scales that a choice made for decode, in its workspace, as inputs of the operator in BHSD."""
    p = ran.problem
    where = {field.offset: field.name for field in LAYOUTS["decode"].fields}
    places = {
        where[offset]: at.offset
        for offset, at in ran.choice.launches[-2].pointers
        if at.buffer == "workspace"
    }
    found: Inputs = {}
    for name, heads, rows, dim in (
        ("query", p.q_heads, p.q_len, p.qk_dim),
        ("key", p.kv_heads, p.kv_len, p.qk_dim),
        ("value", p.kv_heads, p.kv_len, p.v_dim),
    ):
        codes, scale = name[0], f"{name[0]}_scale"
        found[name] = _part(ran, places[codes], float8_e4m3fn, (p.batch, heads, rows, dim))
        found[scale] = _part(ran, places[scale], np.float32, (p.batch, heads))
    return found


def _part(ran: Ran, offset: int, dtype: Any, shape: tuple[int, ...]) -> Array:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return ran["workspace"][offset : offset + size].view(dtype).reshape(shape)
