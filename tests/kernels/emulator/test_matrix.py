"""Matrix instructions against exact integer arithmetic, bit for bit: every shape, format and layout."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from kernels.emulator.matrix_kernel import part, plain, random_rows, run_instructions
from kernels.emulator.matrix_reference import CODES, Shape, exact

TABLE = Path(__file__).parents[3] / "kernels" / "emulator" / "isa" / "vop3p.def"


def dense_and_sparse() -> list[str]:
    """All matrix instructions that gfx950 has (it dropped the xf32 ones)."""
    names = re.findall(r"\b(v_s?mfma?c?_\w+)", TABLE.read_text(encoding="utf-8"))
    return [n for n in dict.fromkeys(names) if "ld_scale" not in n and "xf32" not in n and "f8f6f4" not in n]


def group_of(name: str) -> str:
    shape = Shape.named(name)
    return {"fp8": "8-bit", "bf8": "8-bit", "i8": "8-bit"}.get(shape.b, shape.b)


NAMES = dense_and_sparse()


def tame(rows: np.ndarray, group: str) -> None:
    """Finite inputs of comparable size in A and B; ordinary floats (or doubles) in C."""
    random = np.random.default_rng(1)
    for name in ("a", "b"):
        registers = part(rows, name)
        if group == "8-bit":
            registers &= 0xBFBFBFBF  # exponents of the lower half
        elif group == "f64":
            pairs = random.standard_normal((*registers.shape[:-2], registers.shape[-2] // 2, 64)).view(
                np.uint64
            )
            registers[..., 0::2, :] = pairs & np.uint64(0xFFFFFFFF)
            registers[..., 1::2, :] = pairs >> np.uint64(32)
        elif group == "f32":
            registers[...] = random.standard_normal(registers.shape).astype(np.float32).view(np.uint32)
        else:
            values = random.standard_normal((*registers.shape, 2)).astype(np.float32)
            half = (
                values.view(np.uint32) >> 16 if group == "bf16" else values.astype(np.float16).view(np.uint16)
            )
            registers[...] = half[..., 0].astype(np.uint32) | half[..., 1].astype(np.uint32) << 16
    c = part(rows, "c")
    if group == "f64":
        pairs = random.standard_normal((len(rows), 16, 64)).view(np.uint64)
        c[:, 0::2], c[:, 1::2] = pairs & np.uint64(0xFFFFFFFF), pairs >> np.uint64(32)
    else:
        c[...] = random.standard_normal(c.shape).astype(np.float32).view(np.uint32)


def without_specials(rows: np.ndarray, group: str) -> None:
    """Any finite bits: exponents spread over the whole range."""
    keep = {"8-bit": 0xFBFBFBFB, "f16": 0xBFFFBFFF, "bf16": 0xBFFFBFFF, "f32": 0xBFFFFFFF, "f64": 0xBFFFFFFF}[
        group
    ]
    for name in ("a", "b", "c"):
        part(rows, name)[...] &= np.uint32(keep if name != "c" or group == "f64" else 0xBFFFFFFF)


def check(shape: Shape, got: np.ndarray, rows: np.ndarray, shift: int = 0, saturate: bool = False) -> None:
    """Compares the results of one instruction on one case."""
    a = shape.input_matrix("a", part(rows, "a")[: shape.registers("a")])
    b = shape.input_matrix("b", part(rows, "b")[: shape.registers("b")])
    c = shape.output_matrix(part(rows, "c")[: shape.registers("d")])
    d = shape.output_matrix(got)
    selected = shape.selected_rows(part(rows, "index")[0], shift)
    for block in range(shape.blocks):
        want = exact(shape, a[block], b[block], c[block], selected, saturate)
        if shape.result == "i32":
            wrapped = np.array([(int(v) + 2**31) % 2**32 - 2**31 for v in want.ravel()]).reshape(want.shape)
            clamped = np.array([max(-(2**31), min(2**31 - 1, int(v))) for v in want.ravel()]).reshape(
                want.shape
            )
            want = clamped if saturate else wrapped
        np.testing.assert_array_equal(d[block], want.astype(d.dtype), err_msg=f"{shape.name} block {block}")


@pytest.mark.parametrize("kind", ["tame", "spread", "anything"])
@pytest.mark.parametrize("group", ["8-bit", "f16", "bf16", "f32", "f64"])
def test_every_shape(group: str, kind: str) -> None:
    names = [n for n in NAMES if group_of(n) == group]
    assert names
    rows = random_rows(np.random.default_rng(len(group) + len(kind)), 1)
    if kind == "tame":
        tame(rows, group)
    elif kind == "spread":
        without_specials(rows, group)
    for name, got in zip(names, run_instructions([plain(n) for n in names], rows), strict=True):
        check(Shape.named(name), got[0], rows[0])


def test_the_table_is_complete() -> None:
    assert len(NAMES) == 64
    for name in NAMES:
        shape = Shape.named(name)
        assert shape.terms % shape.groups == 0, name


@pytest.mark.parametrize("name", ["v_mfma_f32_32x32x64_f8f6f4", "v_mfma_f32_16x16x128_f8f6f4"])
def test_mixed_formats(name: str) -> None:
    pairs = [(a, b) for a in CODES for b in CODES]
    rows = random_rows(np.random.default_rng(3), 1)
    part(rows, "c")[...] = (
        np.random.default_rng(4).standard_normal((1, 32, 64)).astype(np.float32).view(np.uint32)
    )
    texts = [plain(name, f"cbsz:{CODES.index(a)} blgp:{CODES.index(b)}", a=a, b=b) for a, b in pairs]
    for (a, b), got in zip(pairs, run_instructions(texts, rows), strict=True):
        check(Shape.named(name, a, b), got[0], rows[0])
