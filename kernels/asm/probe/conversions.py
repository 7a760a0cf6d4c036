"""Questions about conversions: bytes, e4m3 both ways, exponentials."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
from zyfa_ort.kernels.asm.probe.answers import (
    FP8_PREFILL,
    Array,
    Bound,
    Meaning,
    Probe,
    Words,
    floats_of,
    one_of,
    padded,
    words_of,
)

INF, NAN = float("inf"), float("nan")
E4M3 = ml_dtypes.float8_e4m3fn
MERGED = np.uint32(0xD4C3B2A1)

# In range, with ties of both parities and the neighbours of ties.
ROUNDED = padded([
    0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.5, 4.5, 0.49999997, 0.50000006, 1.4999999, 1.5000001, 2.4999998, 2.5000002,
    7.5, 8.5, 63.5, 64.5, 100.49, 100.51, 118.5, 119.5, 125.5, 125.49999, 125.50001, 126.0, 126.46, 126.49, 126.5,
    126.99999, 127.0, 127.5, 128.5, 253.5, 254.49, 254.5, 1e-30, -0.0,
])  # fmt: skip
LIMITED = padded(
    [-1, -0.5, -0.49, -1e-30, -2.5, -126, -300, -3e38, -INF, 255, 255.49, 256, 300, 65536, 3e38, INF]
)
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "nearest_even": np.rint,
    "truncate": np.floor,
    "nearest_away": lambda x: np.floor(np.float64(x) + 0.5),
    "up": np.ceil,
}


def _bytes(values: Array) -> Words:
    return np.concatenate([words_of(values), np.full((1, 64), MERGED)])


def _byte_rounding(_: Words, out: Words) -> str:
    with np.errstate(invalid="ignore"):
        wanted = {name: rule(ROUNDED).astype(np.uint32) for name, rule in ROUNDINGS.items()}
    return one_of(out[0], wanted)


def _byte_limits(_: Words, out: Words) -> str:
    return one_of(out[0], {"saturates": np.where(LIMITED >= 255, np.uint32(255), np.uint32(0))})


def _byte_nan(_: Words, out: Words) -> str:
    return str(out[0, 0]) if np.all(out[0] == out[0, 0]) else "other: NaN of either sign differ"


def _byte_place(_: Words, out: Words) -> str:
    wanted = [(MERGED & ~np.uint32(0xFF << 8 * n)) | (ROUNDED64 << np.uint32(8 * n)) for n in range(4)]
    return one_of(out[1:5], {"selected byte, others kept": np.stack(wanted)})


ROUNDED64 = np.arange(64, dtype=np.uint32)

# e4m3: ties between codes, subnormals, the smallest ones.
GRID = np.arange(0x7F, dtype=np.uint8).view(E4M3).astype(np.float32)
_MIDDLE = (GRID[:-1] + GRID[1:]) / 2
_CASES = np.concatenate(
    [_MIDDLE[:31], -_MIDDLE[31:63], _MIDDLE[63:], GRID[:2] * 0.4, np.array([-0.0], np.float32)]
)
NARROWED = np.resize(_CASES, (2, 64)).astype(np.float32)
BEYOND = np.stack([
    padded([448, 463.9, 464, 464.1, 480, 500, 1e30, INF, NAN], 1.0),
    padded([-448, -463.9, -464, -464.1, -480, -500, -1e30, -INF, -NAN], -1.0),
])  # fmt: skip


def _packed(out: Words) -> Array:
    """(2, 64) codes: of the first and the second source; the upper half holds them the other way round."""
    four = np.ascontiguousarray(out[0]).view(np.uint8).reshape(64, 4).T
    if not (np.array_equal(four[0], four[3]) and np.array_equal(four[1], four[2])):
        return np.full((2, 64), 0xEE, np.uint8)
    return np.ascontiguousarray(four[:2])


def _values(codes: Array) -> Array:
    return np.asarray(codes.view(E4M3), np.float32)


def _fp8_rounding(_: Words, out: Words) -> str:
    return one_of(_packed(out), {"nearest_even": NARROWED.astype(E4M3).view(np.uint8)})


def _fp8_beyond(_: Words, out: Words) -> str:
    # ml_dtypes rounds, then makes NaN of what is beyond; 464 is a tie that goes to 448.
    rounded = BEYOND.astype(E4M3).astype(np.float32)
    saturated = np.where(np.isnan(BEYOND), np.float32(NAN), np.clip(BEYOND, -448, 448))
    return one_of(_values(_packed(out)), {"saturates, NaN stays": saturated, "NaN": rounded})


def _all_codes() -> Words:
    return np.resize(np.arange(256, dtype=np.uint8), 256).view(np.uint32)[None]


def _fp8_values(words: Words, out: Words) -> str:
    codes = np.ascontiguousarray(words[0]).view(np.uint8).reshape(64, 4).T
    return one_of(floats_of(out), {"exact": _values(np.ascontiguousarray(codes))})


EXPONENTS = np.concatenate([
    np.array([0, 1, -1, 0.5, -INF, INF, NAN, -126, 127, 126.99999], np.float32),
    np.linspace(-125, 126, 54, dtype=np.float32) + np.float32(0.371),
])  # fmt: skip


def _exp(_: Words, out: Words) -> str:
    found, exact = floats_of(out)[0], np.exp2(EXPONENTS.astype(np.float64))
    finite = np.isfinite(exact) & (exact != 0)
    if not np.array_equal(found[~finite], exact[~finite].astype(np.float32), equal_nan=True):
        return "other: 2^-inf, 2^inf or 2^NaN"
    ulp = np.spacing(exact[finite].astype(np.float32)).astype(np.float64)
    return f"{np.max(np.abs(found[finite] - exact[finite]) / ulp):.3g} ulp"


BROKEN = Meaning("no FP8 prefill kernel is valid here", FP8_PREFILL)

CONVERSIONS = (
    Probe(
        "byte_rounding", "how v_cvt_pk_u8_f32 rounds", "v_cvt_pk_u8_f32", FP8_PREFILL, "probe_byte",
        lambda: _bytes(ROUNDED), 5, _byte_rounding,
        {
            "nearest_even": Meaning("FP8 prefill kernels without suffix are valid", FP8_PREFILL[1:]),
            "truncate": Meaning("FP8 prefill kernels with suffix _truncate are valid", FP8_PREFILL[:1]),
            "nearest_away": Meaning(
                "FP8 prefill kernels without suffix are valid, codes at exact ties may be one higher than the CPU's",
                FP8_PREFILL[1:],
            ),
        },
        BROKEN,
    ),
    Probe(
        "byte_limits", "v_cvt_pk_u8_f32 below 0, beyond 255, of infinities", "v_cvt_pk_u8_f32", FP8_PREFILL, "probe_byte",
        lambda: _bytes(LIMITED), 5, _byte_limits,
        {"saturates": Meaning("hidden keys get probability 0")}, BROKEN,
    ),
    Probe(
        "byte_nan", "v_cvt_pk_u8_f32 of NaN", "v_cvt_pk_u8_f32", FP8_PREFILL, "probe_byte",
        lambda: _bytes(padded([NAN, -NAN], NAN)), 5, _byte_nan,
        {"0": Meaning("no kernel leans on it: a row with a NaN score is NaN by its anchor")},
        Meaning("no kernel leans on it: a row with a NaN score is NaN by its anchor"),
    ),
    Probe(
        "byte_place", "which byte v_cvt_pk_u8_f32 writes, what the others become", "v_cvt_pk_u8_f32", FP8_PREFILL,
        "probe_byte", lambda: _bytes(ROUNDED64.astype(np.float32)), 5, _byte_place,
        {"selected byte, others kept": Meaning("probabilities pack in register order")}, BROKEN,
    ),
    Probe(
        "fp8_rounding", "how v_cvt_pk_fp8_f32 rounds, subnormals too", "v_cvt_pk_fp8_f32", (*FP8_PREFILL, "quantize"),
        "probe_fp8_saturating", lambda: words_of(NARROWED), 1, _fp8_rounding,
        {"nearest_even": Meaning("codes are those of the CPU")},
        Meaning("edge tiles and quantised codes are not those of the CPU", (*FP8_PREFILL, "quantize")),
    ),
    Probe(
        "fp8_saturation", "v_cvt_pk_fp8_f32 beyond 448 with FP16_OVFL = 1", "v_cvt_pk_fp8_f32",
        (*FP8_PREFILL, "quantize"), "probe_fp8_saturating", lambda: words_of(BEYOND), 1, _fp8_beyond,
        {"saturates, NaN stays": Meaning("edge tiles of NaN rows stay NaN, others saturate")}, BROKEN,
    ),
    Probe(
        "fp8_overflow", "v_cvt_pk_fp8_f32 beyond 448 with FP16_OVFL = 0", "v_cvt_pk_fp8_f32",
        (*FP8_PREFILL, "quantize"), "probe_fp8_overflowing", lambda: words_of(BEYOND), 1, _fp8_beyond,
        {"NaN": Meaning("no kernel leans on it: quantisation clamps first"),
         "saturates, NaN stays": Meaning("no kernel leans on it: quantisation clamps first")},
        Meaning("quantised codes at the limit are in doubt", ("quantize",)),
    ),
    Probe(
        "fp8_values", "v_cvt_pk_f32_fp8 of all 256 codes", "v_cvt_pk_f32_fp8", FP8_PREFILL, "probe_fp8_values",
        _all_codes, 4, _fp8_values, {"exact": Meaning("residuals of edge tiles are exact")}, BROKEN,
    ),
    Probe(
        "exp_error", "largest error of v_exp_f32 over its range", "v_exp_f32", (*FP8_PREFILL, "bf16_prefill", "decode"),
        "probe_exp", lambda: words_of(EXPONENTS), 1, _exp,
        {"<= 2 ulp": Meaning("below what a probability is rounded to, by 2^15")},
        Meaning("probabilities by exponential are in doubt", (*FP8_PREFILL, "bf16_prefill", "decode")),
        bound=Bound(-np.inf, 2, "ulp"),
    ),
)  # fmt: skip
