"""FP8 attention as others compute it, on the same codes: what a scheme is measured against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .e4m3 import decode, encode
from .fp8_model import Fp8Attention, run
from .fp8_problem import GROUP, Problem
from .fp32 import exp2, fma

AITER_TILE, LEAN_TILE = 128, 64
# Code of a probability of one with the constant that makes lean probabilities right on average: 120 - 8 log2(1.04036).
UNBIASED_ONE = np.float32(120 - 0.45665)
LOG2E = np.float32(1.44269504)

# (scores, factor of every head, values, number of keys) -> rows of the output before the scale of V
OneGroup = Callable[[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64], int], NDArray[np.float64]]


def lean_everywhere(problem: Problem, groups: Iterable[int] | None = None) -> Fp8Attention:
    """Lean P in every tile, edge tiles included."""
    return run(replace(problem, fp8_edges="none"), groups)


def aiter_v3(problem: Problem, groups: Iterable[int] | None = None) -> NDArray[np.float64]:
    """The causal FP8 kernel of AITER v3 (head dim 128): output (B, H, Sq, Dv).

    Keys ascending in tiles of 128; p = exp2(S a - max S a) in [0, 1] goes to e4m3 *unscaled*, so that all
    below 2^-10 is lost, while the row sum adds the unrounded p; O is rescaled at every tile.
    """
    return _by_groups(problem, groups, _aiter_group)


def z_run(problem: Problem, groups: Iterable[int] | None = None) -> NDArray[np.float64]:
    """Lean P as published for ZYFA, by best guess: output (B, H, Sq, Dv).

    Keys ascending in tiles of 64; every tile moves the anchor to the running maximum of its row, where the
    code of one is `UNBIASED_ONE`; the row sum adds the rounded p.
    """
    return _by_groups(problem, groups, _z_run_group)


def _by_groups(problem: Problem, groups: Iterable[int] | None, one_group: OneGroup) -> NDArray[np.float64]:
    batch, heads, q_len, _ = problem.query.codes.shape
    kv_heads, kv_len, v_dim = problem.value.codes.shape[1:]
    head = np.arange(heads) // (heads // kv_heads)
    output = np.zeros((batch, heads, q_len, v_dim))
    wanted = list(range(-(-q_len // GROUP)) if groups is None else groups)
    for b in range(batch):
        k, v = problem.key.values[b, head], problem.value.values[b, head]
        a = problem.scale * problem.query.scale[b] * problem.key.scale[b, head] * LOG2E
        v_scale = problem.value.scale[b, head, None, None]
        for group in wanted:
            rows = np.arange(group * GROUP, min(q_len, (group + 1) * GROUP))
            s = (problem.query.values[b][:, rows] @ k.transpose(0, 2, 1)).astype(np.float32)
            s = np.where(problem.visible(b, rows), s, np.float32(-np.inf))
            output[b][:, rows] = one_group(s, a[:, None], v, kv_len) * v_scale
    return output


def _aiter_group(
    s: NDArray[np.float32], a: NDArray[np.float32], v: NDArray[np.float64], kv_len: int
) -> NDArray[np.float64]:
    m = np.full(s.shape[:2], -np.inf, np.float32)
    row_sum = np.zeros(s.shape[:2])
    o = np.zeros((*s.shape[:2], v.shape[2]))
    for start in range(0, kv_len, AITER_TILE):
        keys = slice(start, min(start + AITER_TILE, kv_len))
        if np.all(s[..., keys] == -np.inf):
            continue
        top = np.maximum(m, s[..., keys].max(axis=-1))
        top = np.where(top == -np.inf, np.float32(0), top)
        alpha = np.where(m == -np.inf, np.float32(1), exp2(a * (m - top)))
        p = exp2(fma(s[..., keys], a[..., None], -(a * top)[..., None]))
        row_sum = row_sum * alpha + p.sum(axis=-1, dtype=np.float64)
        o = o * alpha[..., None] + decode(encode(p)) @ v[:, keys]
        m = top
    return o / np.where(row_sum == 0, 1, row_sum)[..., None]


def _z_run_group(
    s: NDArray[np.float32], a: NDArray[np.float32], v: NDArray[np.float64], kv_len: int
) -> NDArray[np.float64]:
    m = np.full(s.shape[:2], -np.inf, np.float32)
    row_sum = np.zeros(s.shape[:2])
    o = np.zeros((*s.shape[:2], v.shape[2]))
    eight = np.float32(8)
    for start in range(0, kv_len, LEAN_TILE):
        keys = slice(start, min(start + LEAN_TILE, kv_len))
        block = s[..., keys].max(axis=-1)
        if np.all(block == -np.inf):
            continue
        top = np.maximum(m, np.where(block == -np.inf, m, a * block))
        alpha = np.where(m == -np.inf, np.float32(0), exp2(np.where(m == -np.inf, np.float32(0), m - top)))
        # The block scale keeps the range: d = ceil(block - m) as in the scheme of this project.
        gap = np.where(block == -np.inf, np.float32(0), a * block - top)
        d = np.clip(np.ceil(gap), -60, 0)
        offset = UNBIASED_ONE - eight * (top + d)
        t = np.rint(fma(s[..., keys], eight * a[..., None], offset[..., None]))
        p = decode(np.clip(t, 0, 126).astype(np.uint8)) * np.exp2(d.astype(np.float64))[..., None]
        row_sum = row_sum * alpha + p.sum(axis=-1)
        o = o * alpha[..., None] + p @ v[:, keys]
        m = top
    return o / np.where(row_sum == 0, 1, row_sum)[..., None]
