"""Where matrix instructions take their operands from: one-hot layouts, broadcasts, sparse indices, register files."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.emulator.matrix_kernel import (
    PLACES,
    RESULT,
    part,
    plain,
    random_rows,
    run_instructions,
    span,
)
from kernels.emulator.matrix_reference import Shape, exact
from zyfa_ort.kernels.errors import EmulationError


def floats(seed: int, cases: int = 1) -> np.ndarray:
    """Random f32 in every register; bf16 pairs too, as the upper halves are."""
    random = np.random.default_rng(seed)
    rows = random_rows(random, cases)
    rows[...] = random.standard_normal(rows.shape).astype(np.float32).view(np.uint32)
    return rows


def halves(rows: np.ndarray) -> np.ndarray:
    for name in ("a", "b"):
        part(rows, name)[...] = part(rows, name) & 0xFFFF0000 | np.roll(part(rows, name), 1, -1) >> 16
    return rows


def reference(shape: Shape, rows: np.ndarray, shift: int = 0, saturate: bool = False) -> np.ndarray:
    a = shape.input_matrix("a", part(rows, "a")[: shape.registers("a")])
    b = shape.input_matrix("b", part(rows, "b")[: shape.registers("b")])
    c = shape.output_matrix(part(rows, "c")[: shape.registers("d")])
    selected = shape.selected_rows(part(rows, "index")[0], shift)
    blocks = [exact(shape, a[n], b[n], c[n], selected, saturate) for n in range(shape.blocks)]
    return np.array(blocks).astype(c.dtype)


# ---- layouts --------------------------------------------------------------------------------------------------------

# Lane and element of (row or column, k), lane and register of (i, j): the formulas of the instruction set.
ONE_HOT = {
    "v_mfma_f32_32x32x64_f8f6f4": (
        32, 64, 8, 0x38,
        lambda i, k: (i + 32 * (k // 16 % 2), k % 16 + 16 * (k // 32)),
        lambda i, j: (j + 32 * (i // 4 % 2), 4 * (i // 8) + i % 4),
    ),
    "v_mfma_f32_16x16x128_f8f6f4": (
        16, 128, 8, 0x38,
        lambda i, k: (i + 16 * (k // 16 % 4), k % 16 + 16 * (k // 64)),
        lambda i, j: (j + 16 * (i // 4), i % 4),
    ),
    "v_mfma_f32_32x32x16_bf16": (
        32, 16, 16, 0x3F80,
        lambda i, k: (i + 32 * (k // 8), k % 8),
        lambda i, j: (j + 32 * (i // 4 % 2), 4 * (i // 8) + i % 4),
    ),
    "v_mfma_f32_16x16x32_f16": (
        16, 32, 16, 0x3C00,
        lambda i, k: (i + 16 * (k // 8), k % 8),
        lambda i, j: (j + 16 * (i // 4), i % 4),
    ),
    "v_mfma_f32_32x32x16_fp8_fp8": (
        32, 16, 8, 0x38,
        lambda i, k: (i + 32 * (k // 8), k % 8),
        lambda i, j: (j + 32 * (i // 4 % 2), 4 * (i // 8) + i % 4),
    ),
    "v_mfma_f32_32x32x8_bf16": (
        32, 8, 16, 0x3F80,
        lambda i, k: (i + 32 * (k // 4), k % 4),
        lambda i, j: (j + 32 * (i // 4 % 2), 4 * (i // 8) + i % 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_HOT)
def test_one_element_of_a_and_one_of_b_light_one_of_d(name: str) -> None:
    m, depth, width, one, place_in, place_out = ONE_HOT[name]
    random = np.random.default_rng(7)
    cases = [(int(random.integers(m)), k, k, int(random.integers(m))) for k in range(depth)]
    cases += [(0, 0, depth - 1, 0), (m - 1, depth - 1, 0, m - 1)]  # different k: nothing lights
    rows = np.zeros((len(cases), *random_rows(random, 1).shape[1:]), np.uint32)
    for case, (i, ka, kb, j) in zip(rows, cases, strict=True):
        for key, row, k in (("a", i, ka), ("b", j, kb)):
            lane, element = place_in(row, k)
            register, offset = divmod(element * width, 32)
            part(case, key)[register, lane] = one << offset
    extra = {"a": "fp8", "b": "fp8"} if name.endswith("f8f6f4") else {}
    got = run_instructions([plain(name, **extra)], rows)[0].view(np.float32)
    for result, (i, ka, kb, j) in zip(got, cases, strict=True):
        lane, register = place_out(i, j)
        want = np.zeros_like(result)
        want[register, lane] = float(ka == kb)
        np.testing.assert_array_equal(result, want)


# ---- lanes of A and B -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cbsz"),
    [("v_mfma_f32_32x32x1_2b_f32", 1), ("v_mfma_f32_16x16x1_4b_f32", 2), ("v_mfma_f32_4x4x1_16b_f32", 4),
     ("v_mfma_f32_4x4x4_16b_bf16", 4)],
)  # fmt: skip
def test_one_block_of_a_for_all(name: str, cbsz: int) -> None:
    shape = Shape.named(name)
    rows = halves(floats(8))
    texts = [plain(name, f"cbsz:{cbsz} abid:{abid}") for abid in range(shape.blocks)]
    for abid, got in enumerate(run_instructions(texts, rows)):
        moved = rows[0].copy()
        block = part(rows, "a")[0, :, shape.m * abid : shape.m * (abid + 1)]
        part(moved, "a")[...] = np.tile(block, shape.blocks)
        np.testing.assert_array_equal(shape.output_matrix(got[0]), reference(shape, moved))


@pytest.mark.parametrize(
    "name", ["v_mfma_f32_32x32x2_f32", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_4x4x1_16b_f32"]
)
def test_permutations_of_b(name: str) -> None:
    lanes = np.arange(64)
    sources = [
        lanes, lanes % 32, lanes % 32 + 32, (lanes + 16) % 64,
        lanes % 16, lanes % 16 + 16, lanes % 16 + 32, lanes % 16 + 48,
    ]  # fmt: skip
    shape = Shape.named(name)
    rows = halves(floats(9))
    for blgp, got in enumerate(run_instructions([plain(name, f"blgp:{n}") for n in range(8)], rows)):
        moved = rows[0].copy()
        part(moved, "b")[...] = part(rows, "b")[0][:, sources[blgp]]
        np.testing.assert_array_equal(
            shape.output_matrix(got[0]), reference(shape, moved), err_msg=f"blgp {blgp}"
        )


@pytest.mark.parametrize("name", ["v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"])
def test_negation_in_double_precision(name: str) -> None:
    shape = Shape.named(name)
    rows = floats(10)
    texts = [plain(name, f"neg:[{n & 1},{n >> 1 & 1},{n >> 2}]") for n in range(8)]
    for n, got in enumerate(run_instructions(texts, rows)):
        signed = rows[0].copy()
        for bit, key in enumerate("abc"):
            if n >> bit & 1:
                part(signed, key)[1::2] ^= 0x80000000
        np.testing.assert_array_equal(shape.output_matrix(got[0]), reference(shape, signed))


@pytest.mark.parametrize(
    ("modifiers", "why"),
    [("cbsz:1", "only a broadcast to all blocks"), ("abid:1", "ABID means nothing"),
     ("cbsz:2 abid:4", "ABID names no block")],
)  # fmt: skip
def test_modifiers_without_a_meaning(modifiers: str, why: str) -> None:
    with pytest.raises(EmulationError, match=why):
        run_instructions([plain("v_mfma_f32_16x16x1_4b_f32", modifiers)], floats(11))


# ---- sparse A -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sets"),
    [("v_smfmac_f32_16x16x32_bf16", 4), ("v_smfmac_f32_32x32x16_bf16", 4), ("v_smfmac_f32_16x16x64_bf16", 2),
     ("v_smfmac_i32_16x16x64_i8", 2), ("v_smfmac_i32_32x32x32_i8", 2), ("v_smfmac_f32_16x16x128_fp8_bf8", 1),
     ("v_smfmac_i32_32x32x64_i8", 1)],
)  # fmt: skip
def test_sets_of_indices(name: str, sets: int) -> None:
    shape = Shape.named(name)
    rows = halves(floats(12))
    part(rows, "index")[...] = np.random.default_rng(13).integers(0, 2**32, 64, dtype=np.uint32)
    chosen = [(0, abid) for abid in range(4)] + [(1, 1), (3, 3)]
    results = run_instructions([plain(name, f"cbsz:{c} abid:{a}") for c, a in chosen], rows)
    for (cbsz, abid), got in zip(chosen, results, strict=True):
        shift = 32 // sets * (abid % sets) if cbsz == 0 else 0
        np.testing.assert_array_equal(shape.output_matrix(got[0]), reference(shape, rows[0], shift))


def test_what_no_index_selects_does_not_take_part() -> None:
    """An infinity in B meets no zero of A: the chip selects, it does not multiply by zero."""
    name = "v_smfmac_f32_16x16x32_bf16"
    rows = halves(floats(14))
    part(rows, "index")[...] = 0b01000100  # k 0 and 1 of each four
    part(rows, "b")[0, 1::2] = 0x7F807F80  # k 2 and 3
    got = run_instructions([plain(name)], rows)[0]
    assert np.isfinite(got.view(np.float32)).all()


# ---- registers, constants, EXEC -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "d"), [("a", "v", "a"), ("v", "a", "v"), ("a", "a", "v"), ("v", "v", "a")]
)
def test_register_files(a: str, b: str, d: str) -> None:
    shape = Shape.named("v_mfma_f32_32x32x16_bf16")
    rows = halves(floats(15))
    first_a, first_b, first_c = (PLACES[key][1] for key in "abc")
    before = (
        "".join(f"  v_accvgpr_write_b32 a{n}, v{n}\n" for n in (*range(10, 29), *range(32, 64))) + "  s_nop 4"
    )
    text = f"{shape.name} {span(RESULT, 16, d)}, {span(first_a, 4, a)}, {span(first_b, 4, b)}, {span(first_c, 16, d)}"
    if d == "a":
        text += "\n  s_nop 15\n  s_nop 7\n" + "".join(
            f"  v_accvgpr_read_b32 v{RESULT + n}, a{RESULT + n}\n" for n in range(16)
        )
    got = run_instructions([(text, 16)], rows, before)[0]
    np.testing.assert_array_equal(shape.output_matrix(got[0]), reference(shape, rows[0]))


@pytest.mark.parametrize(
    ("name", "constant", "value"),
    [("v_mfma_f32_32x32x16_bf16", "0", 0.0), ("v_mfma_f32_32x32x16_bf16", "-4.0", -4.0),
     ("v_mfma_f32_16x16x1_4b_f32", "0.5", 0.5), ("v_mfma_i32_32x32x16_i8", "-16", -16),
     ("v_mfma_i32_16x16x32_i8", "64", 64), ("v_mfma_f64_16x16x4_f64", "2.0", 2.0)],
)  # fmt: skip
def test_c_may_be_an_inline_constant(name: str, constant: str, value: float) -> None:
    shape = Shape.named(name)
    rows = halves(floats(16))
    got = run_instructions([plain(name, constant=constant)], rows)[0]
    c = np.full_like(shape.output_matrix(got[0]), value)
    a = shape.input_matrix("a", part(rows, "a")[0, : shape.registers("a")])
    b = shape.input_matrix("b", part(rows, "b")[0, : shape.registers("b")])
    want = [exact(shape, a[n], b[n], c[n], shape.selected_rows(None)) for n in range(shape.blocks)]
    np.testing.assert_array_equal(shape.output_matrix(got[0]), np.array(want).astype(c.dtype))


def test_d_may_be_an_input() -> None:
    shape = Shape.named("v_mfma_f32_32x32x16_bf16")
    rows = halves(floats(17))
    in_place = f"{shape.name} {span(RESULT, 16)}, v[10:13], v[18:21], {span(RESULT, 16)}"
    got = run_instructions([(in_place, 16)], rows)[0]
    np.testing.assert_array_equal(shape.output_matrix(got[0]), reference(shape, rows[0]))


def test_all_lanes_whatever_exec_says() -> None:
    rows = halves(floats(18))
    name = "v_mfma_f32_32x32x16_bf16"
    text, count = plain(name)
    everywhere, nowhere = run_instructions(
        [(text, count), ("s_mov_b64 exec, 0\n  s_nop 4\n  " + text, count)], rows
    )
    np.testing.assert_array_equal(everywhere, nowhere)
    np.testing.assert_array_equal(
        Shape.named(name).output_matrix(nowhere[0]), reference(Shape.named(name), rows[0])
    )
