"""Synthetic queries, keys and values by family, (B, H, S, D) in float32, the same for the same seed.

Gaussian inputs alone hide most FP8 errors; each family here makes another part of a kernel responsible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """Sizes of a self-attention problem; `v_head_dim` 0 means `head_dim`."""

    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    length: int = 1024
    head_dim: int = 128
    v_head_dim: int = 0


def make(family: str, shape: Shape, seed: int = 0) -> tuple[F32, F32, F32]:
    """query, key and value of one family. The softmax scale is meant to be 1/sqrt(head_dim)."""
    rng = np.random.default_rng([seed, *family.encode()])
    q = rng.standard_normal((shape.batch, shape.heads, shape.length, shape.head_dim))
    k = rng.standard_normal((shape.batch, shape.kv_heads, shape.length, shape.head_dim))
    v = rng.standard_normal((shape.batch, shape.kv_heads, shape.length, shape.v_head_dim or shape.head_dim))
    q, k, v = FAMILIES[family](rng, q, k, v)
    return q.astype(np.float32), k.astype(np.float32), v.astype(np.float32)


Tensor = NDArray[np.float64]
Family = Callable[[np.random.Generator, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def scaled(factor: float) -> Family:
    """Logits of standard deviation `factor`."""
    return lambda rng, q, k, v: (q * factor, k, v)


def outlier(rng: np.random.Generator, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Four channels of K carry a constant of 12: harmless to the softmax, but it takes the FP8 range."""
    k[..., :4] += 12
    return q, k, v


def _heavy(rng: np.random.Generator, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Student-t with 3 degrees of freedom in Q and K: a few entries own the row."""
    return rng.standard_t(3, q.shape), rng.standard_t(3, k.shape), v


def towards(k: Tensor, q: Tensor, logit: Tensor) -> None:
    """Add `logit` (S) to every query's logit of a key, through a quarter of the channels, where Q is 1."""
    channels = max(1, q.shape[-1] // 4)
    q[..., :channels] = 1
    k[..., :channels] += logit[:, None] * np.sqrt(q.shape[-1]) / channels


def _sink(rng: np.random.Generator, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Key 0 holds about 0.88 of the longest row; values share a mean, so that a lost tail is seen."""
    logit = np.zeros(k.shape[2])
    logit[0] = np.log(k.shape[2]) + 2.4
    towards(k, q, logit)
    v += 1
    return q, k, v


def _onehot(rng: np.random.Generator, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Every query looks for one earlier key and finds it: probabilities of nearly 1 and nearly 0."""
    group = q.shape[1] // k.shape[1]
    target = rng.integers(0, np.arange(q.shape[2]) + 1)
    q[:] = 1.3 * np.repeat(k, group, axis=1)[:, :, target]
    return q, k, v


def _local(rng: np.random.Generator, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Recency: half of the channels are rotary phases, whose product peaks where the positions are equal."""
    pairs = max(1, q.shape[-1] // 4)
    angle = np.outer(np.arange(k.shape[2]), np.geomspace(1, 1e-3, pairs))
    phases = 2 * np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    q[..., : 2 * pairs] = phases
    k[..., : 2 * pairs] = phases
    return q, k, v


def _rising(rng: np.random.Generator, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best logit grows by about 1 from one 64-key tile to the next."""
    towards(k, q, np.arange(k.shape[2]) / 64)
    return q, k, v


FAMILIES: dict[str, Family] = {
    "gauss": scaled(1),
    "s3": scaled(3),
    "s8": scaled(8),
    "outlier": outlier,
    "heavy": _heavy,
    "sink": _sink,
    "onehot": _onehot,
    "local": _local,
    "rising": _rising,
    "flat": scaled(0.25),
}
