"""The FP8 scheme of docs/numerics.md in NumPy, written from that page and from nothing else.

What the page rounds to FP32 is FP32 here; what it leaves to the order of accumulation (row sums, P V) is
float64, so a kernel may differ from this model by its accumulation alone. The bytes of P are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from .e4m3 import decode, encode
from .fp8_problem import GROUP, TILE, Problem, make_problem, tile_order
from .fp32 import F32, exp2, fma

LOG2E = np.float32(1.44269504)
EXACT_OFFSET = np.float32(8.80708)
LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class Trace:
    """What each row did in each 64-key tile; `visited` says where the row saw a key of the tile."""

    visited: NDArray[np.bool_]  # (B, H, Sq, tiles)
    is_edge: NDArray[np.bool_]  # (B, H, Sq, tiles)
    m: F32  # (B, H, Sq, tiles): anchor after step 2
    d: NDArray[np.int32]  # (B, H, Sq, tiles)
    hi: NDArray[np.uint8]  # (B, H, Sq, tiles * 64): lean codes, or the first term of an edge tile
    lo: NDArray[np.uint8]  # (B, H, Sq, tiles * 64): the second term of an edge tile

    @classmethod
    def empty(cls, rows: tuple[int, int, int], tiles: int) -> Trace:
        """Nothing visited yet."""
        return cls(
            visited=np.zeros((*rows, tiles), bool),
            is_edge=np.zeros((*rows, tiles), bool),
            m=np.full((*rows, tiles), np.nan, np.float32),
            d=np.zeros((*rows, tiles), np.int32),
            hi=np.zeros((*rows, tiles * TILE), np.uint8),
            lo=np.zeros((*rows, tiles * TILE), np.uint8),
        )


@dataclass(frozen=True)
class Fp8Attention:
    """Output (B, H, Sq, Dv) and lse (B, H, Sq) in float64, before any rounding to the output's type."""

    output: NDArray[np.float64]
    lse: NDArray[np.float64]
    trace: Trace | None


def fp8_attention(
    query: NDArray,
    key: NDArray,
    value: NDArray,
    *,
    past_key: NDArray | None = None,
    past_value: NDArray | None = None,
    groups: Iterable[int] | None = None,
    trace: bool = False,
    **options: object,
) -> Fp8Attention:
    """`precision="fp8"` on (B, H, S, D) arrays of float8_e4m3fn (with scales) or of any wider type.

    `groups` computes only these groups of 32 query rows; `trace` keeps the bytes of P. Other keywords are
    those of `make_problem`.
    """
    if past_key is not None and past_value is not None:
        key, value = np.concatenate([past_key, key], axis=2), np.concatenate([past_value, value], axis=2)
    return run(make_problem(query, key, value, **options), groups, trace)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Scores:
    """Scores of some rows against all keys and how they become log2 logits.

    `factor` per head: the logit is S * factor. `factor` None: S already is the logit (softcap, bias).
    """

    s: F32  # (H, rows, keys)
    factor: F32 | None  # (H, 1)

    def block_max(self, tile: slice, seen: NDArray[np.bool_]) -> F32:
        """b of step 1; -inf without a visible key. NaN scores are left to `poison`."""
        s = self.s[..., tile]
        top = np.where(seen & ~np.isnan(s), s, -np.inf).max(axis=-1).astype(np.float32)
        return top if self.factor is None else _finite_times(self.factor, top)

    def lean_argument(self, tile: slice, e: F32) -> F32:
        """t of step 4."""
        s, e = self.s[..., tile], e[..., None]
        if self.factor is None:
            return fma(s - e, np.float32(8), np.float32(126))
        return fma(s, np.float32(8) * self.factor[..., None], np.float32(126) - np.float32(8) * e)

    def exponent(self, tile: slice, e: F32) -> F32:
        """The argument of exp2 in steps 5 and 6."""
        s, e = self.s[..., tile], e[..., None]
        if self.factor is None:
            return (s - e) + EXACT_OFFSET
        return fma(s, self.factor[..., None], EXACT_OFFSET - e)


def make_scores(problem: Problem, dot: F32, b: int, rows: NDArray[np.int64], factor: F32) -> Scores:
    """Scores from products of codes, or of bfloat16 inputs; `factor` (H, 1) is fl(fl(scale * qs) * ks)."""
    if not problem.softcap and problem.bias is None:
        a = (factor * LOG2E)[..., None]
        dot = np.where(a < 0, -dot, dot)
        dot = np.where((a == 0) & ~np.isnan(dot), np.float32(0), dot)
        return Scores(dot, np.where(a == 0, np.float32(1), np.abs(a))[..., 0])
    y = dot * factor[..., None]
    if problem.softcap:
        y = problem.softcap * np.tanh((y / problem.softcap).astype(np.float64)).astype(np.float32)
    if problem.bias is not None:
        y = y + problem.bias[b][:, rows]
    x = y * LOG2E
    return Scores(np.where(np.isfinite(y), np.clip(x, -LARGEST, LARGEST), x), None)


def run(
    problem: Problem, groups: Iterable[int] | None = None, trace: bool = False, tau: float = 0.25
) -> Fp8Attention:
    """All groups of 32 rows of all batches; heads side by side. `tau` other than 1/4 shows what the choice costs."""
    batch, heads, q_len, _ = problem.query.codes.shape
    kv_len, v_dim = problem.value.codes.shape[2:]
    result = Fp8Attention(
        output=np.zeros((batch, heads, q_len, v_dim)),
        lse=np.full((batch, heads, q_len), -np.inf),
        trace=Trace.empty((batch, heads, q_len), -(-kv_len // TILE)) if trace else None,
    )
    wanted = range(-(-q_len // GROUP)) if groups is None else groups
    with np.errstate(invalid="ignore", over="ignore", divide="ignore", under="ignore"):
        for b in range(batch):
            operands = _Operands.of_batch(problem, b)
            for group in wanted:
                rows = np.arange(group * GROUP, min(q_len, (group + 1) * GROUP))
                _Group(problem, b, rows, operands, np.float32(tau)).run(result)
    return result


@dataclass(frozen=True)
class _Operands:
    """Keys and values of one batch entry as every query head sees them, in float64."""

    key: NDArray[np.float64]  # (H, Skv, Dqk), codes' values
    value: NDArray[np.float64]  # (H, Skv, Dv), codes' values
    factor: F32  # (H, 1): fl(fl(scale * q_scale) * k_scale)
    v_scale: F32  # (H, 1)
    edge_key: NDArray[np.float64]  # bfloat16 inputs, for fp8_edges = "bf16"
    edge_value: NDArray[np.float64]  # bfloat16 inputs divided by v_scale

    @classmethod
    def of_batch(cls, problem: Problem, b: int) -> _Operands:
        heads, kv_heads = problem.query.codes.shape[1], problem.key.codes.shape[1]
        head = np.arange(heads) // (heads // kv_heads)
        key, value = problem.key.values[b, head], problem.value.values[b, head]
        v_scale = problem.value.scale[b, head, None]
        edge_key, edge_value = key, value
        if problem.bf16 is not None:
            edge_key = problem.bf16[1][b, head].astype(np.float64)
            edge_value = (problem.bf16[2][b, head] / v_scale[..., None]).astype(np.float64)
        factor = problem.scale * problem.query.scale[b] * problem.key.scale[b, head]
        return cls(key, value, factor[:, None], v_scale, edge_key, edge_value)


class _Group:
    """The rows of one group, all heads: steps 1 to 8."""

    def __init__(
        self, problem: Problem, b: int, rows: NDArray[np.int64], operands: _Operands, tau: np.float32
    ) -> None:
        self.problem, self.b, self.rows, self.operands, self.tau = problem, b, rows, operands, tau
        shape = (problem.query.codes.shape[1], len(rows))
        self.seen = np.broadcast_to(problem.visible(b, rows), (*shape, problem.key_mask.shape[1]))
        dot = _dot(problem.query.values[b][:, rows], operands.key)
        self.scores = make_scores(problem, dot, b, rows, operands.factor)
        if problem.bf16 is not None:
            dot = _dot(problem.bf16[0][b][:, rows], operands.edge_key)
            plain = np.full((shape[0], 1), problem.scale, np.float32)
            self.edge_scores = make_scores(problem, dot, b, rows, plain)
        self.m = np.full(shape, -np.inf, np.float32)
        self.l = np.zeros(shape)
        self.o = np.zeros((*shape, operands.value.shape[2]))
        self.poisoned = np.zeros(shape, bool)

    def run(self, result: Fp8Attention) -> None:
        """Visit the tiles in order, then divide."""
        order, edges = tile_order(self.problem, self.b, self.rows)
        for tile in order:
            self._tile(tile, tile in edges and self.problem.fp8_edges != "none", result.trace)
        sink = np.zeros_like(self.l)
        if self.problem.sinks is not None:
            sink = exp2(fma(self.problem.sinks[:, None], LOG2E, EXACT_OFFSET - self.m)).astype(np.float64)
        none = self.m == -np.inf
        output = self.o * (self.operands.v_scale / np.where(none, 1, self.l + sink))[..., None]
        lse = np.log(2.0) * (self.m + np.log2(np.where(none, 1, self.l)) - float(EXACT_OFFSET))
        output[none], lse[none] = 0, -np.inf
        output[self.poisoned], lse[self.poisoned] = np.nan, np.nan
        result.output[self.b][:, self.rows] = output
        result.lse[self.b][:, self.rows] = lse

    def _tile(self, tile: int, is_edge: bool, trace: Trace | None) -> None:
        keys = slice(tile * TILE, min((tile + 1) * TILE, self.seen.shape[2]))
        seen = self.seen[..., keys]
        visited = seen.any(axis=-1)
        if not visited.any():
            return
        bf16 = is_edge and self.problem.fp8_edges == "bf16"
        scores, value = (
            (self.edge_scores, self.operands.edge_value) if bf16 else (self.scores, self.operands.value)
        )
        self.poisoned |= (np.isnan(scores.s[..., keys]) & seen).any(axis=-1)
        d = self._move_anchor(scores.block_max(keys, seen), visited)
        e = self.m + d

        hi = lo = np.zeros(seen.shape, np.uint8)
        if not is_edge:
            t = np.rint(scores.lean_argument(keys, e))
            hi = np.where(seen & ~np.isnan(t), np.clip(t, 0, 126), 0).astype(np.uint8)
            p = decode(hi)
        else:
            exact = np.where(seen, exp2(scores.exponent(keys, e)), np.float32(0))
            if bf16:
                p = exact.astype(bfloat16).astype(np.float64)
            else:
                hi = encode(exact)
                lo = encode(np.float32(16) * (exact - decode(hi).astype(np.float32)))
                p = decode(hi) + decode(lo) / 16

        weight = np.where(visited, np.ldexp(1.0, d.astype(np.int32)), 0.0)
        self.l += weight * p.sum(axis=-1)
        self.o += weight[..., None] * _product(p, value[:, keys], seen)
        if trace is not None:
            where = self.b, slice(None), slice(self.rows[0], self.rows[-1] + 1)
            trace.visited[*where, tile] = visited
            trace.is_edge[*where, tile] = is_edge
            trace.m[*where, tile] = self.m
            trace.d[*where, tile] = d
            trace.hi[*where, keys] = hi
            trace.lo[*where, keys] = lo

    def _move_anchor(self, b: F32, visited: NDArray[np.bool_]) -> F32:
        """Steps 2 and 3: the new anchor, O and l brought to it; returns d."""
        first = self.m == -np.inf
        moved = b > self.m + self.tau
        alpha = np.where(visited & moved & ~first, exp2(self.m - b), np.float32(1))
        self.l *= alpha
        self.o *= alpha[..., None]
        self.m = np.where(visited & (moved | first), b, self.m)
        gap = np.where(visited, b - self.m, np.float32(0))
        return np.clip(np.ceil(gap), -60, 60)


def _dot(q: NDArray, k: NDArray) -> F32:
    """Q K^T rounded once to FP32: exact in float64, for products of e4m3 values need 45 bits at most."""
    return (q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1)).astype(np.float32)


def _product(p: NDArray[np.float64], v: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """P V where NaN and infinity of an unseen value stay out, and those of a seen one come through."""
    strange = ~np.isfinite(v)
    if not strange.any():
        return p @ v
    product = p @ np.where(strange, 0, v)
    for h, j, c in zip(*np.nonzero(strange), strict=True):
        product[h, seen[h, :, j], c] += p[h, seen[h, :, j], j] * v[h, j, c]
    return product


def _finite_times(a: F32, top: F32) -> F32:
    """fl(a * top) with -inf (no visible key) kept."""
    return np.where(top == -np.inf, np.float32(-np.inf), a * top).astype(np.float32)
