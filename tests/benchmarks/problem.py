"""Inputs of one shape at every precision, and the float64 answer to sampled rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn
from numpy.typing import NDArray

from benchmarks.shapes import Shape

Array = NDArray[Any]

DTYPES = {"fp32": np.dtype(np.float32), "bf16": np.dtype(bfloat16), "fp8": np.dtype(float8_e4m3fn)}
SAMPLES = 64
FP8_SCALE = 1 / 64  # stored = real / scale: Gaussians up to 7 fit into +-448


@dataclass(frozen=True)
class Problem:
    """Query, key and value, (B, H, S, D), as stored at one precision; real = stored * scale."""

    shape: Shape
    precision: str

    @cached_property
    def tensors(self) -> tuple[Array, Array, Array]:
        s = self.shape
        rng = np.random.default_rng(0)
        sizes = (
            (s.batch, s.heads, s.rows, s.qk_dim),
            (s.batch, s.kv_heads, s.keys, s.qk_dim),
            (s.batch, s.kv_heads, s.keys, s.v_dim),
        )
        drawn = (rng.standard_normal(size, np.float32) for size in sizes)
        query, key, value = ((x / self.scale).astype(DTYPES[self.precision]) for x in drawn)
        return query, key, value

    @property
    def scale(self) -> float:
        return FP8_SCALE if self.precision == "fp8" else 1.0

    @cached_property
    def samples(self) -> list[tuple[int, int, int]]:
        """(batch, head, row): the corners and random ones."""
        s = self.shape
        corners = [(b, h, r) for b in (0, s.batch - 1) for h in (0, s.heads - 1) for r in (0, s.rows - 1)]
        rng = np.random.default_rng(1)
        drawn = rng.integers(0, (s.batch, s.heads, s.rows), (SAMPLES, 3))
        return corners + [(int(b), int(h), int(r)) for b, h, r in drawn]

    @cached_property
    def expected(self) -> Array:
        """softmax(q k / sqrt(d)) v of the sampled rows over the keys up to their own, one by one."""
        s = self.shape
        query, key, value = self.tensors
        rows = []
        for b, h, row in self.samples:
            kv_head, seen = h // (s.heads // s.kv_heads), s.keys - s.rows + row + 1
            q, k, v = (
                x.astype(np.float64) * self.scale
                for x in (query[b, h, row], key[b, kv_head, :seen], value[b, kv_head, :seen])
            )
            scores = k @ q / math.sqrt(s.qk_dim)
            weights = np.exp(scores - scores.max())
            rows.append(weights @ v / weights.sum())
        return np.array(rows)

    def sampled(self, output: Array) -> Array:
        """The sampled rows of a (B, H, S, D) output."""
        return np.array([output[at].astype(np.float64) for at in self.samples])
