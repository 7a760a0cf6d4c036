"""The attention of the operator contract in float64: one query row at a time, no tiles, nothing folded.

Every tensor may come in any of the three layouts; masked keys are *removed* before any arithmetic, so nothing
behind a mask can reach a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Attention:
    """What the operator returns: output in the query's layout, the rest as (B, Hkv, S, D) and (B, Hq, Sq)."""

    output: Array
    present_key: Array
    present_value: Array
    lse: Array


def attention(
    query: NDArray,
    key: NDArray,
    value: NDArray,
    *,
    past_key: NDArray | None = None,
    past_value: NDArray | None = None,
    key_mask: NDArray | None = None,
    attn_bias: NDArray | None = None,
    q_scale: NDArray | None = None,
    k_scale: NDArray | None = None,
    v_scale: NDArray | None = None,
    sinks: NDArray | None = None,
    num_heads: int | None = None,
    kv_num_heads: int | None = None,
    scale: float | None = None,
    is_causal: int = 1,
    causal_alignment: str = "bottom_right",
    window_left: int = -1,
    softcap: float = 0.0,
    layout: str = "BSHD",
    rows: Sequence[int] | None = None,
    **_: object,
) -> Attention:
    """softmax(bias + softcap(scale * Q K^T)) V over the visible keys of every row.

    `rows` computes only these query rows (the others stay zero). Attributes that choose a precision are
    accepted and ignored: this is what every precision approximates.
    """
    q = dequantised(to_bhsd(query, layout, num_heads), q_scale)
    k_new = to_bhsd(key, layout, kv_num_heads)
    v_new = to_bhsd(value, layout, kv_num_heads)
    k_all = k_new if past_key is None else np.concatenate([past_key, k_new], axis=2)
    v_all = v_new if past_value is None else np.concatenate([past_value, v_new], axis=2)
    k, v = dequantised(k_all, k_scale), dequantised(v_all, v_scale)

    batch, heads, q_len, head_dim = q.shape
    kv_len = k.shape[2]
    group = heads // k.shape[1] if k.shape[1] else 1
    factor = (1 / math.sqrt(head_dim) if head_dim else 1.0) if scale is None else float(scale)
    bias = None
    if attn_bias is not None:
        bias = np.broadcast_to(attn_bias.astype(np.float64), (batch, heads, q_len, kv_len))

    output = np.zeros((batch, heads, q_len, v.shape[3]))
    lse = np.full((batch, heads, q_len), -np.inf)
    for b in range(batch):
        for i in range(q_len) if rows is None else rows:
            positions = visible_keys(
                i,
                q_len,
                kv_len,
                is_causal,
                causal_alignment,
                window_left,
                None if key_mask is None else key_mask[b],
            )
            for h in range(heads):
                keys = positions
                if bias is not None:
                    keys = keys[bias[b, h, i, keys] != -np.inf]
                if not keys.size:
                    continue
                logits = factor * (k[b, h // group, keys] @ q[b, h, i])
                if softcap:
                    logits = softcap * np.tanh(logits / softcap)
                if bias is not None:
                    logits = logits + bias[b, h, i, keys]
                top = logits.max()
                weights = np.exp(logits - top)
                total = weights.sum()
                extra = 0.0 if sinks is None else np.exp(float(sinks[h]) - top)
                output[b, h, i] = weights @ v[b, h // group, keys] / (total + extra)
                lse[b, h, i] = top + np.log(total)
    return Attention(
        output=from_bhsd(output, layout, query.ndim),
        present_key=k_all,
        present_value=v_all,
        lse=lse,
    )


def visible_keys(
    row: int,
    q_len: int,
    kv_len: int,
    is_causal: int = 1,
    causal_alignment: str = "bottom_right",
    window_left: int = -1,
    key_mask: NDArray | None = None,
) -> NDArray[np.int64]:
    """Positions of the keys that query row `row` of one batch entry may see."""
    position = row + (kv_len - q_len if causal_alignment == "bottom_right" else 0)
    first = max(0, position - window_left) if window_left >= 0 else 0
    end = max(0, min(kv_len, position + 1)) if is_causal else kv_len
    keys = np.arange(first, max(first, end))
    return keys if key_mask is None else keys[key_mask[keys] != 0]


def to_bhsd(tensor: NDArray, layout: str, heads: int | None) -> NDArray:
    """A tensor of the operator as (B, H, S, D)."""
    if tensor.ndim == 3:
        assert heads is not None, "3-D tensors need a head count"
        tensor = tensor.reshape(*tensor.shape[:2], heads, tensor.shape[2] // heads)
        return tensor.transpose(0, 2, 1, 3)
    return tensor.transpose(0, 2, 1, 3) if layout == "BSHD" else tensor


def from_bhsd(tensor: NDArray, layout: str, rank: int) -> NDArray:
    """(B, H, S, D) in the layout the query came in."""
    if rank == 3:
        batch, heads, length, head_dim = tensor.shape
        return tensor.transpose(0, 2, 1, 3).reshape(batch, length, heads * head_dim)
    return tensor.transpose(0, 2, 1, 3) if layout == "BSHD" else tensor


def per_head(scale: NDArray | None, batch: int, heads: int) -> NDArray[np.float32]:
    """A scale of shape (1), (H) or (B, H) as (B, H)."""
    if scale is None:
        return np.ones((batch, heads), np.float32)
    return np.broadcast_to(np.asarray(scale, np.float32), (batch, heads))


def dequantised(tensor: NDArray, scale: NDArray | None) -> Array:
    """The real values of a (B, H, S, D) tensor: stored * scale."""
    factors = per_head(scale, tensor.shape[0], tensor.shape[1]).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return tensor.astype(np.float64) * factors[:, :, None, None]
