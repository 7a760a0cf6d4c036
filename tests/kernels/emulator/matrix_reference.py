"""Matrix instructions in exact integer arithmetic: formats, layouts and rounding straight from their definitions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

LANES = 64

# Exponent bits, mantissa bits, bias.
SMALL = {"fp8": (4, 3, 7), "bf8": (5, 2, 15), "fp6": (2, 3, 1), "bf6": (3, 2, 3), "fp4": (2, 1, 1)}
BITS = {
    "fp8": 8,
    "bf8": 8,
    "fp6": 6,
    "bf6": 6,
    "fp4": 4,
    "i8": 8,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
}
# Every finite value is a multiple of 2**-UNIT.
UNIT = {
    "fp8": 9, "bf8": 16, "fp6": 3, "bf6": 4, "fp4": 1, "i8": 0, "f16": 24, "bf16": 133, "f32": 149, "f64": 1074,
}  # fmt: skip
CODES = ["fp8", "bf8", "fp6", "bf6", "fp4"]


def small_value(name: str, bits: int) -> float:
    """OCP 8-, 6- and 4-bit floats."""
    exponent_bits, mantissa_bits, bias = SMALL[name]
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = bits >> mantissa_bits & (2**exponent_bits - 1)
    mantissa = bits & (2**mantissa_bits - 1)
    if name == "fp8" and bits & 0x7F == 0x7F:
        return math.nan
    if name == "bf8" and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / 2**mantissa_bits) * 2.0 ** (exponent - bias)


TABLES = {name: np.array([small_value(name, b) for b in range(2 ** BITS[name])]) for name in SMALL}


def elements(name: str, registers: np.ndarray) -> np.ndarray:
    """(elements, 64) float64 of (registers, 64) uint32: elements fill the registers from the lowest bit."""
    width = BITS[name]
    if name == "f64":
        pairs = registers[0::2].astype(np.uint64) | registers[1::2].astype(np.uint64) << np.uint64(32)
        return pairs.view(np.float64)
    bits = np.unpackbits(np.ascontiguousarray(registers.T).view(np.uint8), axis=1, bitorder="little")
    count = bits.shape[1] // width
    weights = 1 << np.arange(width, dtype=np.uint64)
    raw = (bits.reshape(LANES, count, width).astype(np.uint64) * weights).sum(2).T
    with np.errstate(invalid="ignore"):
        if name in SMALL:
            return TABLES[name][raw]
        if name == "i8":
            return raw.astype(np.uint8).view(np.int8).astype(np.float64)
        if name == "f16":
            return raw.astype(np.uint16).view(np.float16).astype(np.float64)
        if name == "bf16":
            return (raw << np.uint64(16)).astype(np.uint32).view(np.float32).astype(np.float64)
        return raw.astype(np.uint32).view(np.float32).astype(np.float64)


@dataclass(frozen=True)
class Shape:
    """What the name of a matrix instruction says."""

    name: str
    sparse: bool
    result: str
    m: int
    k: int
    blocks: int
    a: str
    b: str

    @staticmethod
    def named(name: str, a: str | None = None, b: str | None = None) -> Shape:
        found = re.fullmatch(
            r"v_(s?)mf\w+?_(?:scale_)?([fi]\d+)_(\d+)x\3x(\d+)(?:_(\d+)b)?_(?:([a-z0-9]+?)_)?([a-z0-9]+)",
            name,
        )
        assert found is not None, name
        sparse, result, m, k, blocks, first, last = found.groups()
        a, b = (a, b) if a and b else (first or last, last)
        return Shape(name, bool(sparse), result, int(m), int(k), int(blocks or 1), a, b)

    @property
    def groups(self) -> int:
        return LANES // (self.m * self.blocks)

    @property
    def terms(self) -> int:
        return self.k // 2 if self.sparse else self.k

    def registers(self, operand: str) -> int:
        if operand == "d":
            return self.m * self.m * self.blocks // LANES * (2 if self.result == "f64" else 1)
        count = (self.terms if operand == "a" else self.k) // self.groups
        return count * BITS[self.a if operand == "a" else self.b] // 32

    def run(self, operand: str) -> int:
        """Consecutive k of a lane before the next group of lanes continues."""
        per_lane = (self.terms if operand == "a" else self.k) // self.groups
        width = BITS[self.a if operand == "a" else self.b]
        if self.name.endswith("f8f6f4") and width == 8:
            return 16
        if self.sparse and self.registers("b") == 8:  # B in two halves, A likewise
            return per_lane // 2
        return per_lane

    def input_matrix(self, operand: str, registers: np.ndarray) -> np.ndarray:
        """(blocks, k, m): A transposed, or B."""
        values = elements(self.a if operand == "a" else self.b, registers)
        run, groups, m = self.run(operand), self.groups, self.m
        made = np.empty((self.blocks, self.terms if operand == "a" else self.k, m))
        for block in range(self.blocks):
            for k in range(made.shape[1]):
                repeat, within = divmod(k, run * groups)
                group, offset = divmod(within, run)
                lane = m * (block + self.blocks * group)
                made[block, k] = values[repeat * run + offset, lane : lane + m]
        return made

    def output_place(self, block: int, row: int) -> tuple[int, int]:
        """Item (register, or pair of registers) of a row, and the lane of its column 0."""
        if self.result == "f64":
            if self.m == 16:
                return row // 4, 16 * (row % 4)
            return 0, 4 * row + 16 * block
        if self.m == 32:
            return 16 * block + 4 * (row // 8) + row % 4, 32 * (row // 4 % 2)
        if self.m == 16:
            return 4 * block + row % 4, 16 * (row // 4)
        return row, 4 * block

    def output_matrix(self, registers: np.ndarray) -> np.ndarray:
        """(blocks, m, m) of the result's type."""
        if self.result == "f64":
            items = elements("f64", registers)
        else:
            items = registers.view(np.float32 if self.result == "f32" else np.int32)
        made = np.empty((self.blocks, self.m, self.m), items.dtype)
        for block in range(self.blocks):
            for row in range(self.m):
                item, lane = self.output_place(block, row)
                made[block, row] = items[item, lane : lane + self.m]
        return made

    def selected_rows(self, index: np.ndarray | None, shift: int = 0) -> np.ndarray:
        """(m, terms): the row of B that meets term t of A's row i."""
        if not self.sparse:
            return np.broadcast_to(np.arange(self.terms), (self.m, self.terms))
        assert index is not None
        made = np.empty((self.m, self.terms), int)
        run, groups = self.run("a"), self.groups
        for t in range(self.terms):
            repeat, within = divmod(t, run * groups)
            group, offset = divmod(within, run)
            element = repeat * run + offset
            for i in range(self.m):
                made[i, t] = 4 * (t // 2) + (int(index[self.m * group + i]) >> (shift + 2 * element) & 3)
        return made


def exact_integers(values: np.ndarray, unit: int) -> np.ndarray:
    """values * 2**unit as Python integers; 0 where not finite."""
    scale = 2**unit
    flat = [int(Fraction(float(v)) * scale) if math.isfinite(v) else 0 for v in values.ravel()]
    return np.array(flat, dtype=object).reshape(values.shape)


def rounded(numerator: int, unit: int, result: str, saturate: bool = False) -> float:
    """numerator / 2**unit to the nearest even float of the result's type."""
    precision, lowest, highest = (53, -1074, 1023) if result == "f64" else (24, -149, 127)
    magnitude, sign = abs(numerator), -1.0 if numerator < 0 else 1.0
    if magnitude == 0:
        return 0.0
    drop = max(magnitude.bit_length() - precision, lowest + unit)
    if drop > 0:
        kept, rest = magnitude >> drop, magnitude & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        kept += rest > half or (rest == half and kept & 1)
        magnitude = kept << drop
    if magnitude >= 1 << (highest + 1 + unit):
        largest = float((2**precision - 1) * 2 ** (highest + 1 - precision))
        return sign * (largest if saturate else math.inf)
    return sign * float(Fraction(magnitude, 1 << unit))


def exact(
    shape: Shape,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    rows: np.ndarray,
    saturate: bool = False,
) -> np.ndarray:
    """C + A B of one block with one rounding. a: (terms, m), b: (k, m), c: (m, m), rows: selected_rows()."""
    with np.errstate(all="ignore"):
        products = a.T[:, :, None] * b[rows]
        special = products.sum(1) + c.astype(np.float64)  # where it is not finite, it is the answer
        if not np.isfinite(products).all():  # infinities only by overflow of double do not count
            overflowed = np.isinf(products) & np.isfinite(a.T[:, :, None]) & np.isfinite(b[rows])
            special = np.where(overflowed, 0.0, products).sum(1) + c.astype(np.float64)
    finite = np.isfinite(a).all(0)[:, None] & np.isfinite(b).all(0)[None, :] & np.isfinite(c)
    finite |= np.isfinite(special)
    unit_a, unit_b = _unit(a), _unit(b)
    unit = max(unit_a + unit_b, _unit(c))
    total = (exact_integers(a, unit_a).T[:, :, None] * exact_integers(b, unit_b)[rows]).sum(1)
    total = total * 2 ** (unit - unit_a - unit_b) + exact_integers(c, unit)
    if shape.result == "i32":
        return total // 2**unit
    made = special.copy()
    for place in np.argwhere(finite):
        made[tuple(place)] = rounded(int(total[tuple(place)]), unit, shape.result, saturate)
    return made


def _unit(values: np.ndarray) -> int:
    """The smallest u >= 0 for which all finite values are multiples of 2**-u (or a few more)."""
    finite = np.abs(values[np.isfinite(values) & (values != 0)]).astype(np.float64)
    if finite.size == 0:
        return 0
    _, exponent = np.frexp(finite)
    return max(0, min(1074, 53 - int(exponent.min())))
