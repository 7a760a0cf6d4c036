"""float8_e4m3fn: codes 0..126 are worth `MAGNITUDES[code]`, 127 is NaN, bit 7 is the sign.

Written without ml_dtypes so that the two can be held against each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NAN_CODE = 0x7F


def _magnitude(code: int) -> float:
    exponent, mantissa = code >> 3, code & 7
    return mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)


MAGNITUDES = np.array([_magnitude(code) for code in range(127)])
MIDPOINTS = (MAGNITUDES[:-1] + MAGNITUDES[1:]) / 2
_VALUES = np.concatenate([MAGNITUDES, [np.nan], -MAGNITUDES, [np.nan]])


def encode(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Codes of `x`: to nearest, ties to the even code, beyond +-448 saturating, NaN stays NaN.

    Within [2^e, 2^(e+1)) codes are 2^(e-3) apart; below 2^-6 they keep the distance of e = -6.
    """
    magnitude = np.minimum(np.abs(x.astype(np.float32, copy=False)), np.float32(448))
    exponent = np.maximum((magnitude.view(np.int32) >> 23) - 127, -6)
    steps = np.rint(magnitude * np.ldexp(np.float32(1), 3 - exponent)) + 8 * (exponent + 6)
    codes = np.where(np.isnan(magnitude), NAN_CODE, steps).astype(np.uint8)
    return codes | np.signbit(x).astype(np.uint8) << 7


def decode(codes: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The real values of codes."""
    return _VALUES[codes]
