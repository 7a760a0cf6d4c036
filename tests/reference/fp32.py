"""FP32 arithmetic that NumPy lacks: the fused multiply-add and the correctly rounded exp2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


def exp2(x: F32) -> F32:
    """The FP32 value nearest to 2^x."""
    return np.exp2(x.astype(np.float64)).astype(np.float32)


def fma(a: F32, b: F32, c: F32) -> F32:
    """a * b + c rounded once to FP32.

    The product is exact in float64. The sum is rounded to odd there (its error term tells when it is
    inexact), so that the second rounding, to FP32, is the only one that counts.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    total = product + c
    with np.errstate(invalid="ignore"):
        shadow = total - product
        error = (product - (total - shadow)) + (c - shadow)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    return (bits + np.where(inexact, away, 0)).view(np.float64).astype(np.float32)
