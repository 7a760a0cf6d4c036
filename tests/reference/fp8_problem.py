"""What the FP8 scheme of docs/numerics.md is given and in which order it walks: inputs, visibility, tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn
from numpy.typing import NDArray

from .attention import per_head
from .fp8_quantise import F32, Quantised, hadamard, quantise

TILE, GROUP, BLOCK = 64, 32, 256


@dataclass(frozen=True)
class Problem:
    """One FP8 attention, quantised; keys are past and new ones together. Shapes (B, H, S, D)."""

    query: Quantised
    key: Quantised
    value: Quantised
    scale: np.float32
    is_causal: bool
    positions: NDArray[np.int64]  # p(i) of every query row
    window_left: int
    key_mask: NDArray[np.bool_]  # (B, Skv)
    softcap: np.float32
    bias: F32 | None  # (B, H, Sq, Skv)
    sinks: F32 | None  # (H)
    fp8_edges: str
    bf16: tuple[F32, F32, F32] | None  # Q, K, V rounded to bfloat16, for fp8_edges = "bf16"

    def visible(self, b: int, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(1 or H, rows, Skv): which keys each row may see."""
        kv_len = self.key_mask.shape[1]
        keys, position = np.arange(kv_len), self.positions[rows, None]
        seen = np.broadcast_to(self.key_mask[b], (len(rows), kv_len)).copy()
        if self.is_causal:
            seen &= keys <= position
        if self.window_left >= 0:
            seen &= keys >= position - self.window_left
        return seen[None] if self.bias is None else seen & (self.bias[b][:, rows] != -np.inf)


def make_problem(
    query: NDArray,
    key: NDArray,
    value: NDArray,
    *,
    q_scale: NDArray | None = None,
    k_scale: NDArray | None = None,
    v_scale: NDArray | None = None,
    key_mask: NDArray | None = None,
    attn_bias: NDArray | None = None,
    sinks: NDArray | None = None,
    scale: float | None = None,
    is_causal: int = 1,
    causal_alignment: str = "bottom_right",
    window_left: int = -1,
    softcap: float = 0.0,
    fp8_edges: str = "hilo",
    rotation: str = "none",
) -> Problem:
    """Quantise, rotate and normalise the op's inputs; past is already part of key and value."""
    batch, heads, q_len, head_dim = query.shape
    kv_heads, kv_len = key.shape[1], key.shape[2]
    positions = np.arange(q_len) + (kv_len - q_len if causal_alignment == "bottom_right" else 0)
    mask = np.ones((batch, kv_len), bool) if key_mask is None else key_mask != 0
    bf16 = None
    if query.dtype == float8_e4m3fn:
        quantised = [
            Quantised(tensor.view(np.uint8), per_head(factor, batch, count))
            for tensor, factor, count in (
                (query, q_scale, heads),
                (key, k_scale, kv_heads),
                (value, v_scale, kv_heads),
            )
        ]
    else:
        wide = [tensor.astype(np.float32) for tensor in (query, key, value)]
        if fp8_edges == "bf16":
            bf16 = tuple(tensor.astype(bfloat16).astype(np.float32) for tensor in wide)
        if rotation == "hadamard":
            wide[:2] = hadamard(wide[0]), hadamard(wide[1])
        kept = mask & _in_range_of_a_row(positions, kv_len, bool(is_causal), window_left)
        quantised = [quantise(wide[0]), quantise(wide[1], kept), quantise(wide[2], kept)]
    return Problem(
        query=quantised[0],
        key=quantised[1],
        value=quantised[2],
        scale=np.float32(1 / np.sqrt(np.float64(head_dim)) if scale is None else scale),
        is_causal=bool(is_causal),
        positions=positions,
        window_left=window_left,
        key_mask=mask,
        softcap=np.float32(softcap),
        bias=None
        if attn_bias is None
        else np.broadcast_to(attn_bias.astype(np.float32), (batch, heads, q_len, kv_len)),
        sinks=None if sinks is None else np.asarray(sinks, np.float32),
        fp8_edges=fp8_edges,
        bf16=bf16,
    )


def _in_range_of_a_row(
    positions: NDArray[np.int64], kv_len: int, is_causal: bool, window_left: int
) -> NDArray[np.bool_]:
    keys = np.arange(kv_len)
    if not positions.size:
        return np.zeros(kv_len, bool)
    kept = np.ones(kv_len, bool)
    if is_causal:
        kept &= keys <= positions[-1]
    if window_left >= 0:
        kept &= keys >= positions[0] - window_left
    return kept


def tile_order(problem: Problem, b: int, rows: NDArray[np.int64]) -> tuple[list[int], set[int]]:
    """The 64-key tiles a group of rows visits, in order, and which of them are edge tiles."""
    kept = np.flatnonzero(problem.key_mask[b])
    if not kept.size:
        return [], set()
    start, end = int(kept[0]), int(kept[-1]) + 1
    p = problem.positions
    block_first = int(p[rows[0] // BLOCK * BLOCK])
    left = block_first - problem.window_left if problem.window_left >= 0 else 0
    first = max(start, 0, left) // TILE
    if not problem.is_causal:
        return list(range(first, (end - 1) // TILE + 1)), {first}
    diagonal = min(int(p[rows[-1]]), end - 1) // TILE
    turn = max(min(block_first, end - 1) // TILE - 1, first)
    order = [*range(diagonal, turn - 1, -1), *range(first, turn)]
    return order, {diagonal, diagonal - 1, first}
