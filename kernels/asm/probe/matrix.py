"""Questions about matrix instructions: layout, block scales, denormals, sums."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from zyfa_ort.kernels.asm.probe.answers import (
    FP8_PREFILL,
    Array,
    Bound,
    Meaning,
    Probe,
    Words,
    floats_of,
    one_of,
)
from zyfa_ort.kernels.asm.probe.kernels import SCALE_BYTES
from zyfa_ort.kernels.asm.probe.text import LANES

E4M3, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
LANE = np.arange(LANES)
UNSCALED = 127  # E8M0 of 1
# Block exponents of the FP8 kernels: -60 to 60, and 4 less for the second term.
LEAST_SCALE, MOST_SCALE = 63, 187
FP8, BF16_PREFILL, DECODE = "32x32x64 FP8", "32x32x16 BF16", "16x16x32 BF16"
SIDE = {FP8: 32, BF16_PREFILL: 32, DECODE: 16}
DEPTH = {FP8: 64, BF16_PREFILL: 16, DECODE: 32}
ROW, COLUMN = np.arange(32)[:, None], np.arange(32)[None]


def operand(values: Array, shape: str) -> Words:
    """A (rows, k) or B transposed (columns, k) as the registers of 64 lanes."""
    side = SIDE[shape]
    half = LANE[:, None] // side
    element = np.arange(32 if shape == FP8 else 8)[None]
    k = 16 * half + element % 16 + 32 * (element // 16) if shape == FP8 else 8 * half + element
    lanes = values.astype(E4M3 if shape == FP8 else BF16)[LANE[:, None] % side, k]
    return np.ascontiguousarray(lanes.view(np.uint8).reshape(LANES, -1)).view(np.uint32).T


def accumulator(values: Array, shape: str) -> Words:
    """C or D (rows, columns) as registers."""
    register = np.arange(16 if SIDE[shape] == 32 else 4)[:, None]
    return np.ascontiguousarray(
        values.astype(np.float32)[_row(register, shape), LANE[None] % SIDE[shape]]
    ).view(np.uint32)


def matrix(words: Words, shape: str) -> NDArray[np.float32]:
    """D (rows, columns) out of its registers."""
    side = SIDE[shape]
    made = np.empty((side, side), np.float32)
    register = np.arange(len(words))[:, None]
    made[_row(register, shape), np.broadcast_to(LANE % side, words.shape)] = floats_of(words)
    return made


def _row(register: Array, shape: str) -> Array:
    large = 8 * (register // 4) + 4 * (LANE[None] // 32) + register % 4
    small = 4 * (LANE[None] // 16) + register
    return np.asarray(large if SIDE[shape] == 32 else small)


def _product(a: Array, b: Array, c: Array, shape: str) -> Words:
    return np.concatenate([operand(a, shape), operand(b, shape), accumulator(c, shape)])


def _integers(shape: str, seed: int = 0) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(seed)
    side, depth = SIDE[shape], DEPTH[shape]
    shapes = ((side, depth), (side, depth), (side, side))
    a, b, c = (random.integers(-7, 8, one).astype(np.float64) for one in shapes)
    return a, b, c


# --- layout


def _layout_inputs(shape: str) -> Callable[[], Words]:
    return lambda: _product(*_integers(shape), shape)


def _layout(shape: str) -> Callable[[Words, Words], str]:
    def read(_: Words, out: Words) -> str:
        a, b, c = _integers(shape)
        exact = (a @ b.T + c).astype(np.float32)
        return one_of(matrix(out, shape), {"A B + C as documented": exact, "transposed": exact.T})

    return read


# --- block scales


def _scaled(a: Words, b: Words, a_scale: Array, b_scale: Array) -> Words:
    scales = [np.broadcast_to(s, LANES).astype(np.uint32)[None] for s in (a_scale, b_scale)]
    return np.concatenate([a, b, *scales])


def _order_inputs() -> Words:
    """Row i of A is 1 in byte i of its lower lane and 4 in that of its upper lane; block 1 counts twice."""
    marks = np.zeros((LANES, 32), np.float32)
    marks[LANE, LANE % 32] = np.where(LANE < 32, 1, 4)
    a = np.ascontiguousarray(marks.astype(E4M3).view(np.uint8)).view(np.uint32).T
    return _scaled(a, operand(np.ones((32, 64)), FP8), UNSCALED + LANE // 32, np.array(UNSCALED))


def _order(_: Words, out: Words) -> str:
    block = {"16 per lane half in turn": (ROW // 16, ROW // 16), "32 per lane half": (0 * ROW, 0 * ROW + 1)}
    wanted = {
        name: (2.0**low + 4 * 2.0**high + 0 * COLUMN).astype(np.float32)
        for name, (low, high) in block.items()
    }
    return one_of(matrix(out, FP8), wanted)


def _exponents() -> tuple[Array, Array]:
    random = np.random.default_rng(3)
    return random.integers(-20, 21, 32), random.integers(-20, 21, 32)


def _equal_inputs() -> Words:
    a, b, _ = _integers(FP8)
    row, column = _exponents()
    return _scaled(operand(a, FP8), operand(b, FP8), UNSCALED + row[LANE % 32], UNSCALED + column[LANE % 32])


def _equal(_: Words, out: Words) -> str:
    a, b, _ = _integers(FP8)
    row, column = _exponents()
    scaled = (a @ b.T) * 2.0 ** (row[:, None] + column[None])
    return one_of(matrix(out, FP8), {"scale of the own row and column": scaled.astype(np.float32)})


BYTE_EXPONENTS = (
    np.array([1, 4, 9, 16]),
    np.array([2, 3, 11, 23]),
)  # of the four bytes of A's and B's scales


def _bytes_inputs() -> Words:
    ones = operand(np.ones((32, 64)), FP8)
    scales = [
        np.sum((UNSCALED + e).astype(np.uint64) << (8 * np.arange(4)).astype(np.uint64))
        for e in BYTE_EXPONENTS
    ]
    return _scaled(ones, ones, np.array(scales[0]), np.array(scales[1]))


def _scale_bytes(_: Words, out: Words) -> str:
    found = np.stack([matrix(words, FP8)[0] for words in out.reshape(len(SCALE_BYTES), 16, LANES)])
    power = [64 * 2.0 ** float(BYTE_EXPONENTS[0][a] + BYTE_EXPONENTS[1][b]) for a, b in SCALE_BYTES]
    wanted = np.repeat(np.array(power, np.float32)[:, None], 32, axis=1)
    if not np.array_equal(found, wanted) and np.array_equal(found[0], wanted[0]):
        return "lowest only"
    return one_of(found, {"op_sel_hi, op_sel": wanted})


def _corner(b_scale: Array) -> Words:
    """1 x 1 in one place of k, so that column j is the scale of column j."""
    a = np.zeros((32, 64))
    a[:, 37] = 1
    scales = np.concatenate([b_scale, b_scale])
    return _scaled(operand(a, FP8), operand(a, FP8), np.array(UNSCALED), scales)


USED_SCALES = np.linspace(LEAST_SCALE, MOST_SCALE, 32).astype(np.int64)
END_SCALES = np.resize([0, 1, 254, 255], 32)


def _range(_: Words, out: Words) -> str:
    wanted = np.broadcast_to(2.0 ** (USED_SCALES - UNSCALED), (32, 32)).astype(np.float32)
    return one_of(matrix(out, FP8), {"2^(e - 127)": wanted})


def _ends(_: Words, out: Words) -> str:
    powers = np.where(END_SCALES == 255, np.nan, np.ldexp(1.0, END_SCALES - UNSCALED))
    wanted = np.broadcast_to(powers, (32, 32)).astype(np.float32)
    flushed = np.where(END_SCALES == 0, np.float32(0), wanted)
    clamped = np.where(END_SCALES == 0, np.float32(2.0**-126), wanted)
    return one_of(
        matrix(out, FP8), {"0 is 2^-127, 255 NaN": wanted, "0 is 0": flushed, "0 is 2^-126": clamped}
    )


# --- denormals


def _denormal_inputs(shape: str) -> Callable[[], Words]:
    def make() -> Words:
        side, depth = SIDE[shape], DEPTH[shape]
        a, b, c = np.zeros((side, depth)), np.zeros((side, depth)), np.zeros((side, side))
        if shape == FP8:
            a[:, 3], b[:, 3] = np.arange(32) % 8 * 2.0**-9, 1.0
        else:
            a[:, 3], b[:, 3] = 2.0**-130, 2.0**20  # a denormal operand, columns 0 to 7
            b[8:, 3] = 0
            a[:, 5], b[8:12, 5] = 2.0**-70, 2.0**-70  # a denormal product
            c[:, 12:] = 2.0**-140  # a denormal accumulator
        return _product(a, b, c, shape)

    return make


def _fp8_denormals(_: Words, out: Words) -> str:
    wanted = np.broadcast_to((np.arange(32) % 8 * 2.0**-9)[:, None], (32, 32)).astype(np.float32)
    return one_of(matrix(out, FP8), {"kept": wanted, "flushed": np.zeros_like(wanted)})


def _bf16_denormals(shape: str) -> Callable[[Words, Words], str]:
    places = {"operands": (0, 2.0**-110), "results": (8, 2.0**-140), "accumulators": (12, 2.0**-140)}

    def read(_: Words, out: Words) -> str:
        found = matrix(out, shape)
        lost = [
            name for name, (column, value) in places.items() if np.any(found[:, column] != np.float32(value))
        ]
        return f"flushed: {', '.join(lost)}" if lost else "kept"

    return read


# --- sums

TRIPLES = 12


def _places(shape: str) -> tuple[Array, Array]:
    """Where in k columns find the two largest products, (12, 2), and the small one, (12,): never the same places."""
    random = np.random.default_rng(5)
    large, small = np.split(random.permutation(DEPTH[shape]), 2)
    return np.array([random.permutation(large)[:2] for _ in range(TRIPLES)]), random.choice(small, TRIPLES)


def _magnitudes(shape: str) -> tuple[Array, Array]:
    """Exponents of the rows' and the columns' part of the small product, below the largest of 2^16."""
    side = SIDE[shape]
    return np.minimum(np.arange(side), 17), np.resize([0, 17], TRIPLES)


def _bits_inputs(shape: str) -> Callable[[], Words]:
    """2^16 + small - 2^16, in places that differ from column to column."""

    def make() -> Words:
        side, depth = SIDE[shape], DEPTH[shape]
        rows, columns = _magnitudes(shape)
        large, small = _places(shape)
        a, b = np.zeros((side, depth)), np.zeros((side, depth))
        a[:, large.ravel()] = 2.0**8
        a[:, small] = 2.0 ** (8 - rows[:, None])
        column = np.arange(TRIPLES)
        b[column, large[:, 0]], b[column, large[:, 1]] = 2.0**8, -(2.0**8)
        b[column, small] = 2.0 ** (8 - columns)
        return _product(a, b, np.zeros((side, side)), shape)

    return make


def _bits(shape: str) -> Callable[[Words, Words], str]:
    def read(_: Words, out: Words) -> str:
        rows, columns = _magnitudes(shape)
        below = rows[:, None] + columns[None]
        right = matrix(out, shape)[:, :TRIPLES] == (2.0 ** (16 - below)).astype(np.float32)
        kept = below[right & (below < np.min(below[~right], initial=1000))]
        return f"{np.max(kept, initial=0)} bits"

    return read


def _random(shape: str) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(11)
    side, depth = SIDE[shape], DEPTH[shape]
    kind = E4M3 if shape == FP8 else BF16
    a, b = (random.standard_normal((side, depth)).astype(kind).astype(np.float64) for _ in range(2))
    return a, b, random.standard_normal((side, side)).astype(np.float32).astype(np.float64)


def _error(shape: str) -> Callable[[Words, Words], str]:
    def read(_: Words, out: Words) -> str:
        a, b, c = _random(shape)
        size = np.abs(a) @ np.abs(b).T + np.abs(c)
        error = np.max(np.abs(matrix(out, shape) - (a @ b.T + c)) / size)
        return f"{error * 2.0**24:.3g} x 2^-24"

    return read


# The kernel, users and mnemonic of each shape.
SHAPES = {
    FP8: ("probe_matrix_fp8", FP8_PREFILL, "v_mfma_f32_32x32x64_f8f6f4"),
    BF16_PREFILL: ("probe_matrix_bf16", ("bf16_prefill",), "v_mfma_f32_32x32x16_bf16"),
    DECODE: ("probe_matrix_bf16_small", ("decode",), "v_mfma_f32_16x16x32_bf16"),
}
TAG = {FP8: "fp8", BF16_PREFILL: "bf16", DECODE: "bf16_small"}
BROKEN = {FP8: Meaning("no FP8 prefill kernel is valid here", FP8_PREFILL),
          BF16_PREFILL: Meaning("BF16 prefill is not valid here", ("bf16_prefill",)),
          DECODE: Meaning("decode is not valid here", ("decode",))}  # fmt: skip
# A tolerance of 9e-4 (FP8) stands against 64 products, each cut 2^-20 below the largest: 6.1e-5.
MIN_BITS = 20
SCALED = "v_mfma_scale_f32_32x32x64_f8f6f4"


def _of_shape(shape: str) -> tuple[Probe, ...]:
    kernel, users, mnemonic = SHAPES[shape]
    words = 16 if SIDE[shape] == 32 else 4
    return (
        Probe(
            f"matrix_layout_{TAG[shape]}", f"rows, columns and k of a {shape} product", mnemonic, users, kernel,
            _layout_inputs(shape), words, _layout(shape),
            {"A B + C as documented": Meaning("scores and outputs are where they are looked for")}, BROKEN[shape],
        ),
        Probe(
            f"matrix_denormals_{TAG[shape]}", f"denormals in a {shape} product", mnemonic, users, kernel,
            _denormal_inputs(shape), words, _fp8_denormals if shape == FP8 else _bf16_denormals(shape),
            {"kept": Meaning("small values count")},
            BROKEN[shape] if shape == FP8 else Meaning("below 1e-38: inside every tolerance"),
        ),
        Probe(
            f"matrix_bits_{TAG[shape]}", f"how far below the largest a product of {shape} still counts", mnemonic, users,
            kernel, _bits_inputs(shape), words, _bits(shape),
            {"enough": Meaning("tolerances hold whatever the order of the sum")}, BROKEN[shape],
            bound=Bound(MIN_BITS, np.inf, "bits"),
        ),
        Probe(
            f"matrix_error_{TAG[shape]}", f"largest error of a {shape} sum, of the sum of magnitudes", mnemonic, users,
            kernel, lambda: _product(*_random(shape), shape), words, _error(shape),
            {"enough": Meaning("tolerances hold whatever the order of the sum")}, BROKEN[shape],
            bound=Bound(-np.inf, 64, "x 2^-24"),
        ),
    )  # fmt: skip


MATRIX = (
    *_of_shape(FP8),
    *_of_shape(BF16_PREFILL),
    *_of_shape(DECODE),
    Probe(
        "fp8_k_order", "which k of a 32x32x64 FP8 product share a block scale", SCALED, FP8_PREFILL, "probe_scaled",
        _order_inputs, 16, _order,
        {"16 per lane half in turn": Meaning("no kernel leans on it: both blocks of a row have the same scale"),
         "32 per lane half": Meaning("no kernel leans on it: both blocks of a row have the same scale")},
        Meaning("no kernel leans on it while equal_scales is as expected"),
    ),
    Probe(
        "equal_scales", "a scaled product whose blocks of a row have equal scales", SCALED, FP8_PREFILL, "probe_scaled",
        _equal_inputs, 16, _equal,
        {"scale of the own row and column": Meaning("tiles count with their own exponent")}, BROKEN[FP8],
    ),
    Probe(
        "scale_bytes", "which byte of the scale register op_sel_hi and op_sel choose", SCALED, FP8_PREFILL,
        "probe_scale_bytes", _bytes_inputs, 64, _scale_bytes,
        {"op_sel_hi, op_sel": Meaning("kernels use the lowest byte"), "lowest only": Meaning("kernels use the lowest byte")},
        BROKEN[FP8],
    ),
    Probe(
        "scale_range", f"block scales of {LEAST_SCALE} to {MOST_SCALE}", SCALED, FP8_PREFILL, "probe_scaled",
        lambda: _corner(USED_SCALES), 16, _range,
        {"2^(e - 127)": Meaning("all exponents that kernels use are exact")}, BROKEN[FP8],
    ),
    Probe(
        "scale_ends", "block scales of 0, 1, 254 and 255", SCALED, FP8_PREFILL, "probe_scaled",
        lambda: _corner(END_SCALES), 16, _ends,
        {"0 is 2^-127, 255 NaN": Meaning("no kernel leans on it: exponents stay within 63 to 187")},
        Meaning("no kernel leans on it: exponents stay within 63 to 187"),
    ),
)  # fmt: skip
