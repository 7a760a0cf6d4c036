from fractions import Fraction

import numpy as np
from reference.fp32 import exp2, fma


def test_fma_rounds_once() -> None:
    """Against exact rationals, on products that all but cancel and on ties that float64 would round twice."""
    rng = np.random.default_rng(0)
    count = 3000
    a = (rng.standard_normal(count) * 2.0 ** rng.integers(-20, 20, count)).astype(np.float32)
    b = (rng.standard_normal(count) * 2.0 ** rng.integers(-20, 20, count)).astype(np.float32)
    c = np.where(rng.random(count) < 0.5, -(a * b), a * 3).astype(np.float32)
    for x, y, z, got in zip(a, b, c, fma(a, b, c), strict=True):
        assert got == _nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))


def test_fma_resists_double_rounding() -> None:
    """1 + 2^-24 + 2^-60 is above the midpoint of two FP32 neighbours, float64 sees exactly the midpoint."""
    got = fma(np.array([2.0**-30], np.float32), np.array([2.0**-30], np.float32), np.array([1.0], np.float32))
    assert got == 1
    a = np.array([1 + 2.0**-12], np.float32)
    b = np.array([2.0**-24 - 2.0**-36], np.float32)  # a * b = 2^-24 - 2^-48: just below the midpoint
    assert fma(a, b, np.array([1.0], np.float32)) == 1
    b = np.array([2.0**-24], np.float32)  # a * b = 2^-24 + 2^-36: just above it
    assert fma(a, b, np.array([1.0], np.float32)) == np.float32(1 + 2.0**-23)


def test_exp2_of_integers_is_exact() -> None:
    x = np.arange(-126, 128, dtype=np.float32)
    np.testing.assert_array_equal(exp2(x), np.ldexp(np.float32(1), x.astype(int)))


def _nearest(exact: Fraction) -> np.float32:
    """The FP32 value nearest to a rational, ties to even mantissas."""
    guess = np.float32(float(exact))
    candidates = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(
        candidates, key=lambda x: (abs(Fraction(float(x)) - exact), int(np.float32(x).view(np.uint32)) & 1)
    )
