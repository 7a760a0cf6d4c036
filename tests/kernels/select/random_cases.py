"""Random attention problems that have a kernel, with their tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from kernels.select.cases import Inputs, tensors
from ml_dtypes import bfloat16, float8_e4m3fn

LENGTHS = (1, 3, 16, 17, 33, 65)


@dataclass(frozen=True)
class Case:
    inputs: Inputs
    layout: str
    out: str | None  # of float8e4m3fn inputs
    attributes: dict[str, Any]


def random_case(seed: int) -> Case:
    """A problem that has a kernel."""
    rng = np.random.default_rng(seed)

    def one(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    dtype = one(bfloat16, bfloat16, float8_e4m3fn, np.float16, np.float32)
    precision = "fp8" if dtype == float8_e4m3fn else one("bf16", "fp8")
    q_len, past = int(one(*LENGTHS)), int(one(0, 0, 1, 40))
    kv_len = past + int(one(0, *LENGTHS, 130))
    narrow = precision == "fp8" and q_len > 16
    dims = (
        one((64, 64), (128, 128), (192, 128)) if narrow else one((64, 64), (128, 128), (192, 128), (256, 256))
    )
    batch, kv_heads = int(one(1, 2)), int(one(1, 2))
    heads = kv_heads * int(one(1, 2, 5))
    layout = one("BSHD", "BHSD")
    inputs = tensors(
        q_len, kv_len, dims, dtype, heads=(heads, kv_heads), batch=batch, past=past, layout=layout
    )
    if one(True, False):
        begin = rng.integers(0, kv_len + 1, (batch, 1))
        keys = np.arange(kv_len)
        mask = (keys >= begin) & (keys < begin + rng.integers(0, kv_len + 1, (batch, 1)))
        if not narrow and one(True, False):
            inputs["key_mask"] = (rng.random((batch, kv_len)) < 0.7).astype(one(bool, np.int32, np.int64))
        else:
            inputs["key_mask"] = mask.astype(one(bool, np.int32, np.int64))
    if one(True, False):
        inputs["sinks"] = rng.standard_normal(heads).astype(np.float32)
    options: dict[str, Any] = {}
    if precision == "bf16" and one(True, False):
        options["softcap"] = float(one(0.0, 5.0))
        inputs["attn_bias"] = rng.standard_normal((one(1, heads), one(1, q_len), kv_len)).astype(dtype)
    if precision == "fp8":
        options["fp8_edges"] = one("hilo", "none")
        if dtype != float8_e4m3fn:
            options["rotation"] = one("none", "hadamard")
    attributes = {
        "precision": precision,
        "is_causal": int(one(0, 1)),
        "causal_alignment": one("bottom_right", "top_left"),
        "window_left": int(one(-1, -1, 0, 20)),
        "scale": float(one(dims[0] ** -0.5, 0.05, -0.1, 0.0, 0.9)),
        **options,
    }
    out = one("float", "float16", "bfloat16") if dtype == float8_e4m3fn else None
    return Case(inputs, layout, out, attributes)
