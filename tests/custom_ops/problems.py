"""Random inputs of ZyfaPrefillAttention by sizes, type and layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from custom_ops.op_session import Array
from ml_dtypes import float8_e4m3fn
from reference.attention import from_bhsd
from reference.fp8_quantise import quantise


@dataclass(frozen=True)
class Sizes:
    """Dimensions of a problem; `past` 0 means no cache, `v_head_dim` 0 means `head_dim`."""

    batch: int = 2
    heads: int = 4
    kv_heads: int = 2
    q_len: int = 70
    kv_len: int = 70
    head_dim: int = 16
    v_head_dim: int = 0
    past: int = 0


def gaussian(
    sizes: Sizes,
    dtype: Any = np.float32,
    *,
    seed: int = 0,
    layout: str = "BSHD",
    rank: int = 4,
    spread: float = 1.0,
) -> dict[str, Array]:
    """query, key and value (and past ones) with an outlier channel in K and a sink in key 0.

    float8_e4m3fn inputs are codes with their scales per (B, H), cache and new keys sharing one.
    """
    rng = np.random.default_rng(seed)
    v_dim = sizes.v_head_dim or sizes.head_dim
    total = sizes.past + sizes.kv_len
    q = spread * rng.standard_normal((sizes.batch, sizes.heads, sizes.q_len, sizes.head_dim))
    k = rng.standard_normal((sizes.batch, sizes.kv_heads, total, sizes.head_dim))
    v = rng.standard_normal((sizes.batch, sizes.kv_heads, total, v_dim))
    if total and sizes.head_dim > 1:
        k[..., -1] += 4
        k[:, :, 0] = 3 * np.sign(k[:, :, 0])
    tensors: dict[str, Array] = {"query": q, "key": k, "value": v}
    tensors = {name: array.astype(np.float32) for name, array in tensors.items()}
    scales: dict[str, Array] = {}
    if dtype == float8_e4m3fn:
        for name in list(tensors):
            coded = quantise(tensors[name])
            tensors[name] = coded.codes.view(float8_e4m3fn)
            scales[f"{name[0]}_scale"] = coded.scale
    else:
        tensors = {name: array.astype(dtype) for name, array in tensors.items()}
    inputs = {"query": tensors["query"]}
    for name in ("key", "value"):
        inputs[name] = tensors[name][:, :, sizes.past :]
    inputs = {name: np.ascontiguousarray(from_bhsd(array, layout, rank)) for name, array in inputs.items()}
    if sizes.past:
        for name in ("key", "value"):
            inputs[f"past_{name}"] = np.ascontiguousarray(tensors[name][:, :, : sizes.past])
    return inputs | scales


def counting(keys: int, *, rows: int, dtype: Any = np.float32, head_dim: int = 4) -> dict[str, Array]:
    """Q = 0, so that a row's output is the mean of the values it sees; V of key j is j. BSHD, one head."""
    value = np.broadcast_to(np.arange(keys, dtype=np.float32)[None, :, None, None], (1, keys, 1, head_dim))
    rng = np.random.default_rng(keys)
    return {
        "query": np.zeros((1, rows, 1, head_dim), dtype),
        "key": rng.standard_normal((1, keys, 1, head_dim)).astype(dtype),
        "value": value.astype(dtype),
    }
