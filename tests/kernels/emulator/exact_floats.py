"""Floating-point formats on rational numbers: the naive reference of the vector tests."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

NEAREST, UP, DOWN, ZERO = range(4)  # the rounding modes of MODE


@dataclass(frozen=True)
class Format:
    """An IEEE-like binary format with infinities and NaN."""

    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def quiet(self) -> int:
        return 1 << (self.mantissa - 1)

    @property
    def nan(self) -> int:
        return self.infinity | self.quiet

    def is_nan(self, bits: int) -> bool:
        return bits & ~self.sign > self.infinity

    def is_infinite(self, bits: int) -> bool:
        return bits & ~self.sign == self.infinity

    def is_denormal(self, bits: int) -> bool:
        return 0 < bits & ~self.sign < 1 << self.mantissa

    def flush(self, bits: int, keep: bool) -> int:
        return bits & self.sign if self.is_denormal(bits) and not keep else bits

    def value(self, bits: int) -> Fraction:
        """Of a finite number."""
        exponent = bits >> self.mantissa & ((1 << self.exponent) - 1)
        fraction = bits & ((1 << self.mantissa) - 1)
        if exponent:
            fraction |= 1 << self.mantissa
        power = (exponent or 1) - self.bias - self.mantissa
        size = Fraction(fraction) * (Fraction(2) ** power)
        return -size if bits & self.sign else size

    def round(self, value: Fraction, mode: int = NEAREST, zero_sign: bool = False) -> int:
        """The bits of the rounded value; `zero_sign` of an exact zero."""
        if value == 0:
            return self.sign if zero_sign else 0
        negative, size = value < 0, abs(value)
        sign = self.sign if negative else 0
        power = max(_log2(size), 1 - self.bias) - self.mantissa  # of the last bit
        scaled = size / Fraction(2) ** power
        whole, rest = scaled.numerator // scaled.denominator, scaled - scaled.numerator // scaled.denominator
        away = {
            NEAREST: rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1),
            UP: rest > 0 and not negative,
            DOWN: rest > 0 and negative,
            ZERO: False,
        }[mode]
        whole += bool(away)
        if whole == 0:
            return sign
        code = whole + ((power + self.mantissa + self.bias - 1) << self.mantissa)
        if code >= self.infinity:
            to_infinity = mode == NEAREST or (mode == UP and not negative) or (mode == DOWN and negative)
            return sign | (self.infinity if to_infinity else self.infinity - 1)
        return sign | code


def _log2(value: Fraction) -> int:
    """floor(log2(value)) of a positive number."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


F16, BF16, F32, F64 = Format(5, 10), Format(8, 7), Format(8, 23), Format(11, 52)


def first_nan(f: Format, *sources: int) -> int | None:
    return next((s | f.quiet for s in sources if f.is_nan(s)), None)


def fma(f: Format, a: int, b: int, c: int, mode: int = NEAREST) -> int:
    """a * b + c with one rounding."""
    if (nan := first_nan(f, a, b, c)) is not None:
        return nan
    negative = bool((a ^ b) & f.sign)
    infinite = f.is_infinite(a) or f.is_infinite(b)
    if infinite and (a & ~f.sign == 0 or b & ~f.sign == 0):
        return f.nan
    if infinite:
        return (
            f.nan
            if f.is_infinite(c) and bool(c & f.sign) != negative
            else f.infinity | (f.sign if negative else 0)
        )
    if f.is_infinite(c):
        return c
    product, addend = f.value(a) * f.value(b), f.value(c)
    both_zero = product == 0 and addend == 0
    c_negative = bool(c & f.sign)
    zero_sign = negative if both_zero and negative == c_negative else mode == DOWN
    return f.round(product + addend, mode, zero_sign)


def add(f: Format, a: int, b: int, mode: int = NEAREST) -> int:
    one = f.bias << f.mantissa
    return fma(f, a, one, b, mode)


def mul(f: Format, a: int, b: int, mode: int = NEAREST) -> int:
    if (nan := first_nan(f, a, b)) is not None:
        return nan
    sign = (a ^ b) & f.sign
    if f.is_infinite(a) or f.is_infinite(b):
        return f.nan if a & ~f.sign == 0 or b & ~f.sign == 0 else sign | f.infinity
    return f.round(f.value(a) * f.value(b), mode, bool(sign))


def samples(f: Format, count: int, seed: int) -> np.ndarray:
    """Bit patterns: corners first, then exponents near each other, then anything."""
    rng = np.random.default_rng(seed)
    dtype = {16: np.uint16, 32: np.uint32, 64: np.uint64}[f.bits]
    top = f.infinity
    corners = [
        0,
        1,
        (1 << f.mantissa) - 1,
        1 << f.mantissa,
        f.bias << f.mantissa,
        top - 1,
        top,
        top | 1,
        f.nan,
        f.nan | 3,
    ]
    corners += [(f.bias << f.mantissa) + 1, (f.bias - 1) << f.mantissa, (f.bias + f.mantissa) << f.mantissa]
    corners += [c | f.sign for c in corners]
    anything = rng.integers(0, 1 << f.bits, count, dtype=np.uint64)
    exponents = rng.integers(max(f.bias - 3, 0), f.bias + 4, count, dtype=np.uint64) << f.mantissa
    near = (anything & np.uint64(f.sign | ((1 << f.mantissa) - 1))) | exponents
    low = anything & np.uint64(f.sign | ((1 << (f.mantissa + 2)) - 1))  # denormals and the smallest normals
    choice = rng.integers(0, 4, count)
    mixed = np.choose(choice, [anything, near, near, low])
    picked = rng.integers(0, len(corners), count)
    use_corner = rng.random(count) < 0.25
    return np.where(use_corner, np.array(corners, np.uint64)[picked], mixed).astype(dtype)
