"""Block scales of v_mfma_scale_*: which lane, which byte, which k."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.emulator.matrix_kernel import PLACES, RESULT, part, plain, random_rows, run_instructions, span
from kernels.emulator.matrix_reference import CODES, LANES, Shape, exact
from zyfa_ort.kernels.errors import EmulationError

NAMES = ["v_mfma_scale_f32_32x32x64_f8f6f4", "v_mfma_scale_f32_16x16x128_f8f6f4"]
SCALES = f"{span(PLACES['sa'][1], 1)}, {span(PLACES['sb'][1], 1)}"


def scaled(
    name: str, a: str, b: str, select: tuple[int, int] = (0, 0), scales: str = SCALES
) -> tuple[str, int]:
    text, count = plain(name, a=a, b=b)
    low, high = [s & 1 for s in select], [s >> 1 for s in select]
    text += f", {scales} op_sel:[{low[0]},{low[1]},0] op_sel_hi:[{high[0]},{high[1]},0]"
    return f"{text} cbsz:{CODES.index(a)} blgp:{CODES.index(b)}", count


def factors(shape: Shape, lanes: np.ndarray) -> np.ndarray:
    """(k, m) of 64 scale bytes: the 32 k of block n of row r have the byte of lane r + m * n."""
    values = np.where(lanes == 255, np.nan, 2.0 ** (lanes.astype(float) - 127))
    return np.stack([values[shape.m * (k // 32) : shape.m * (k // 32) + shape.m] for k in range(shape.k)])


def check(shape: Shape, rows: np.ndarray, got: np.ndarray, sa: np.ndarray, sb: np.ndarray) -> None:
    a = shape.input_matrix("a", part(rows, "a")[: shape.registers("a")])[0] * factors(shape, sa)
    b = shape.input_matrix("b", part(rows, "b")[: shape.registers("b")])[0] * factors(shape, sb)
    c = shape.output_matrix(part(rows, "c")[: shape.registers("d")])[0]
    want = exact(shape, a, b, c, shape.selected_rows(None))
    np.testing.assert_array_equal(shape.output_matrix(got)[0], want.astype(np.float32), err_msg=shape.name)


def inputs(seed: int, cases: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    rows = random_rows(random, cases)
    for name in ("a", "b"):
        part(rows, name)[...] &= 0xBFBFBFBF
    part(rows, "c")[...] = random.standard_normal((cases, 32, LANES)).astype(np.float32).view(np.uint32)
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_of_both_scales(name: str) -> None:
    rows = inputs(1)
    selects = [(x, y) for x in range(4) for y in range(4)]
    shape = Shape.named(name, "fp8", "fp8")
    results = run_instructions([scaled(name, "fp8", "fp8", s) for s in selects], rows)
    for (x, y), got in zip(selects, results, strict=True):
        sa, sb = part(rows, "sa")[0, 0] >> 8 * x & 255, part(rows, "sb")[0, 0] >> 8 * y & 255
        check(shape, rows[0], got[0], sa, sb)


@pytest.mark.parametrize("name", NAMES)
def test_mixed_formats_with_near_scales(name: str) -> None:
    rows = inputs(2)
    for key in ("sa", "sb"):
        part(rows, key)[...] = 120 + part(rows, key) % 14
    pairs = [(a, b) for a in CODES for b in CODES]
    for (a, b), got in zip(
        pairs, run_instructions([scaled(name, a, b) for a, b in pairs], rows), strict=True
    ):
        check(Shape.named(name, a, b), rows[0], got[0], part(rows, "sa")[0, 0], part(rows, "sb")[0, 0])


@pytest.mark.parametrize("name", NAMES)
def test_extreme_scales(name: str) -> None:
    rows = inputs(3)
    part(rows, "sa")[...] = np.resize([0, 254, 127, 1, 253, 100, 255], 64)
    part(rows, "sb")[...] = np.resize([254, 0, 127, 2, 130], 64)
    shape = Shape.named(name, "bf8", "fp4")
    got = run_instructions([scaled(name, "bf8", "fp4")], rows)[0]
    assert np.isnan(shape.output_matrix(got[0])).any()
    check(shape, rows[0], got[0], part(rows, "sa")[0, 0], part(rows, "sb")[0, 0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("a", "b"), [("fp8", "fp8"), ("fp8", "fp4"), ("fp6", "bf8"), ("fp4", "fp6")])
def test_one_scale_reaches_its_32_k(name: str, a: str, b: str) -> None:
    """Ones in A and B: each D is the sum of 32 * scale over its blocks, whatever lane a k sits in."""
    ones = {"fp8": 0x38383838, "bf8": 0x3C3C3C3C, "fp4": 0x22222222}
    shape = Shape.named(name, a, b)
    rows = inputs(4)
    for key, form in (("a", a), ("b", b)):
        if form == "fp6":  # 0b001000 repeated
            bits = np.tile(np.array([0, 0, 0, 1, 0, 0], np.uint8), 32)
            part(rows, key)[0, :6] = np.packbits(bits, bitorder="little").view(np.uint32)[:, None]
        else:
            part(rows, key)[...] = ones[form]
    part(rows, "c")[...] = 0
    part(rows, "sa")[...] = 127 + np.arange(64, dtype=np.uint32) % 11
    part(rows, "sb")[...] = 127 + np.arange(64, dtype=np.uint32) % 5
    got = shape.output_matrix(run_instructions([scaled(name, a, b)], rows)[0][0])[0]
    for i in range(shape.m):
        for j in range(shape.m):
            lanes = [(i + shape.m * n, j + shape.m * n) for n in range(64 // shape.m)]
            assert got[i, j] == sum(32.0 * 2 ** (la % 11 + lb % 5) for la, lb in lanes)


def encoded(select: tuple[int, int], codes: tuple[int, int]) -> tuple[str, int]:
    """The pair in numbers, FP8 both: assemblers refuse scales that are not VGPRs."""
    low, high = (sum((s >> bit & 1) << n for n, s in enumerate(select)) for bit in (0, 1))
    a, b, c = (0x100 + PLACES[key][1] for key in "abc")
    dwords = [
        0xD3AC0000 | low << 11, codes[0] | codes[1] << 9 | high << 27,
        0xD3AE0000 | RESULT | 1 << 11, a | b << 9 | c << 18,
    ]  # fmt: skip
    return ".long " + ", ".join(map(hex, dwords)), 16


def test_the_pair_in_numbers() -> None:
    rows = inputs(5)
    select = (3, 1)
    codes = (0x100 + PLACES["sa"][1], 0x100 + PLACES["sb"][1])
    got = run_instructions([encoded(select, codes)], rows)[0]
    lanes = [part(rows, key)[0, 0] >> 8 * s & 255 for key, s in zip(("sa", "sb"), select, strict=True)]
    check(Shape.named(NAMES[0], "fp8", "fp8"), rows[0], got[0], *lanes)


@pytest.mark.parametrize("codes", [(242, 0x100), (0x100, 20)])
def test_scales_that_are_not_vgprs_are_refused(codes: tuple[int, int]) -> None:
    """The chip would take the exponent of a float there, a defect."""
    with pytest.raises(EmulationError, match="must be a VGPR"):
        run_instructions([encoded((0, 0), codes)], inputs(5))


def test_a_scale_is_used_once() -> None:
    rows = inputs(6)
    name = NAMES[1]
    unscaled = plain(name.replace("scale_", ""), "cbsz:0 blgp:0", a="fp8", b="fp8")
    _, got = run_instructions([scaled(name, "fp8", "fp8"), unscaled], rows)
    check(Shape.named(name, "fp8", "fp8"), rows[0], got[0], np.full(64, 127), np.full(64, 127))
