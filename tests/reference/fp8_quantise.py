"""Quantisation of the FP8 scheme (docs/numerics.md): amax scales, e4m3 codes, the rotation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .e4m3 import decode, encode
from .fp32 import F32


@dataclass(frozen=True)
class Quantised:
    """e4m3 codes of a (B, H, S, D) tensor and the FP32 scale of every (B, H)."""

    codes: NDArray[np.uint8]
    scale: F32

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """What the codes are worth, before the scale."""
        return decode(self.codes)


def amax_scale(x: F32, axes: tuple[int, ...]) -> F32:
    """fl(largest finite |x| / 448) over `axes`; 1 when that maximum is 0; never below 2^-126."""
    finite = np.where(np.isfinite(x), np.abs(x), np.float32(0))
    amax = finite.max(axis=axes, initial=np.float32(0))
    scale = np.maximum(amax / np.float32(448), np.float32(2.0**-126))
    return np.where(amax == 0, np.float32(1), scale).astype(np.float32)


def quantise(x: F32, kept: NDArray[np.bool_] | None = None) -> Quantised:
    """Per (batch, head) codes of a (B, H, S, D) tensor; `kept` (B, S) limits what the scale may look at."""
    seen = x if kept is None else np.where(kept[:, None, :, None], x, np.float32(0))
    scale = amax_scale(seen, (2, 3))
    with np.errstate(over="ignore", invalid="ignore"):
        return Quantised(encode(x / scale[:, :, None, None]), scale)


def hadamard(x: F32) -> F32:
    """x H / sqrt(n) over the last axis in FP32; n is the axis, or 64 three times over for 192."""
    n = 64 if x.shape[-1] == 192 else x.shape[-1]
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, n)
    index = np.arange(n)
    h = 1
    with np.errstate(invalid="ignore", over="ignore"):
        while h < n:
            partner = blocks[..., index ^ h]
            blocks = np.where(index & h, partner - blocks, blocks + partner)
            h *= 2
        rotated = blocks * np.float32(1 / np.sqrt(np.float64(n)))
    return rotated.reshape(x.shape)
