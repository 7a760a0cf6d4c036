"""v_exp, v_log, v_rcp, v_rsq, v_sqrt, v_sin, v_cos against higher precision, and their special values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from kernels.emulator.wave_kernel import run_lanes

from kernels.emulator import exact_floats as exact

INF, NAN = float("inf"), float("nan")
ROWS = 28


def sine(x: np.ndarray) -> np.ndarray:
    r = x - np.rint(x)
    return np.sin(2 * np.pi * r)


REFERENCES = {
    "exp": np.exp2,
    "log": np.log2,
    "rcp": lambda x: 1 / x,
    "rsq": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "sin": sine,
    "cos": lambda x: np.cos(2 * np.pi * (x - np.rint(x))),
}


def inputs(name: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    size = ROWS * 64
    if name == "exp":
        return rng.uniform(-126, 128, size).astype(np.float32)
    if name in ("sin", "cos"):
        return np.concatenate([rng.uniform(-256, 256, size // 2), rng.uniform(-1, 1, size // 2)]).astype(
            np.float32
        )
    sizes = np.exp2(rng.uniform(-125, 125, size)).astype(np.float32)
    near_one = rng.uniform(0.9, 1.1, size).astype(np.float32)
    x = np.where(rng.random(size) < 0.5, sizes, near_one)
    return x if name in ("log", "rsq", "sqrt") else x * rng.choice(np.array([-1, 1], np.float32), size)


def check_f32(name: str, seed: int) -> None:
    x = inputs(name, seed)
    code = "\n".join(f"  v_{name}_f32 v{40 + r}, v{10 + r}" for r in range(ROWS))
    got = run_lanes(code, [x], ROWS).view(np.float32).ravel().astype(np.float64)
    # The registers of sources and results overlap from v40 on only past ROWS = 30.
    expected = REFERENCES[name](x.astype(np.float64))
    ulp = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    if name in ("sin", "cos"):
        ulp = np.maximum(ulp, 2.0**-40)  # near zeros the reference itself is only good to 2^-52
    assert np.max(np.abs(got - expected) / ulp) < 0.5001


@pytest.mark.parametrize("name", REFERENCES)
def test_f32_is_the_nearest_value(name):
    check_f32(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 40))
@pytest.mark.parametrize("name", REFERENCES)
def test_f32_many(name, seed):
    check_f32(name, seed)


SPECIAL = {  # input, result; denormals count as zero
    "exp": [
        (INF, INF),
        (-INF, 0.0),
        (0.0, 1.0),
        (-0.0, 1.0),
        (1.0, 2.0),
        (128.0, INF),
        (-126.0, 2.0**-126),
        (-127.0, 0.0),
        (1e-40, 1.0),
        (NAN, NAN),
    ],
    "log": [
        (INF, INF),
        (0.0, -INF),
        (-0.0, -INF),
        (1.0, 0.0),
        (2.0, 1.0),
        (-1.0, NAN),
        (1e-40, -INF),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "rcp": [
        (INF, 0.0),
        (-INF, -0.0),
        (0.0, INF),
        (-0.0, -INF),
        (2.0, 0.5),
        (1e-40, INF),
        (-1e-40, -INF),
        (2.0**127, 0.0),
        (NAN, NAN),
    ],
    "rsq": [
        (INF, 0.0),
        (0.0, INF),
        (-0.0, -INF),
        (4.0, 0.5),
        (-1.0, NAN),
        (1e-40, INF),
        (-INF, NAN),
        (NAN, NAN),
    ],
    "sqrt": [(INF, INF), (0.0, 0.0), (-0.0, -0.0), (4.0, 2.0), (-1.0, NAN), (1e-40, 0.0), (NAN, NAN)],
    "sin": [
        (0.0, 0.0),
        (-0.0, -0.0),
        (0.25, 1.0),
        (-0.25, -1.0),
        (0.5, 0.0),
        (256.0, 0.0),
        (257.25, 0.0),
        (INF, NAN),
        (NAN, NAN),
    ],
    "cos": [(0.0, 1.0), (0.5, -1.0), (0.25, 0.0), (256.0, 1.0), (300.5, 1.0), (-INF, NAN), (NAN, NAN)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_f32_special_values(name):
    table = SPECIAL[name]
    x = np.resize(np.array([k for k, _ in table], np.float32), 64)
    got = run_lanes(f"  v_{name}_f32 v40, v10", [x], 1)[0].view(np.float32)
    for lane, (value, expected) in enumerate(table):
        same = np.isnan(got[lane]) if math.isnan(expected) else got[lane] == np.float32(expected)
        assert same, f"{name}({value}) gave {got[lane]}"
        if expected == 0 and name != "sin" and name != "cos":
            assert np.signbit(got[lane]) == np.signbit(np.float32(expected))


def nearest_half(value: float) -> int:
    """Through a rational: no second rounding."""
    if math.isnan(value):
        return 0x7E00
    if math.isinf(value):
        return 0x7C00 if value > 0 else 0xFC00
    if value == 0:
        return 0x8000 if math.copysign(1, value) < 0 else 0
    return exact.F16.round(Fraction(value))


@pytest.mark.parametrize("name", REFERENCES)
def test_f16_all_values(name):
    rows = 16
    every = (
        np.arange(0, 1 << 16, 64, dtype=np.uint32).reshape(rows, 64)
        + np.arange(16, dtype=np.uint32)[:, None] * 3
    )
    code = "\n".join(f"  v_{name}_f16 v{40 + r}, v{10 + r}" for r in range(rows))
    got = run_lanes(code, [every], rows)
    x = every.astype(np.uint16).view(np.float16).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = REFERENCES[name](x)
    if name in ("sin", "cos"):
        expected = np.where(np.abs(x) > 256, 0.0 if name == "sin" else 1.0, expected)
        expected = np.where(np.isinf(x), np.nan, expected)
    for bits, value, result in zip(
        every.ravel().tolist(), expected.ravel().tolist(), got.ravel().tolist(), strict=True
    ):
        if exact.F16.is_nan(bits):
            assert result == bits | 0x200
        elif name in ("sin", "cos") and abs(value) < 1e-12:
            assert result & 0x7FFF == 0
        else:
            assert result == nearest_half(value), f"{bits:#x}"
