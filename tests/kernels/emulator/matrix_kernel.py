"""Runs matrix instructions: many in one kernel, one wave per case."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from kernels.emulator.matrix_reference import LANES, Shape
from kernels.emulator.wave_kernel import run_kernel

# Where a kernel keeps its inputs: A, B, C, the index of sparse A, scales of A and B.
PLACES = {"a": (8, 10), "b": (8, 18), "c": (32, 32), "index": (1, 26), "sa": (1, 27), "sb": (1, 28)}
ROWS = sum(count for count, _ in PLACES.values())
RESULT = 64


def span(first: int, count: int, letter: str = "v") -> str:
    return f"{letter}{first}" if count == 1 else f"{letter}[{first}:{first + count - 1}]"


def operands(shape: Shape, *, constant: str | None = None) -> str:
    """The usual operands of an instruction, in the order of the assembler."""
    registers = [span(RESULT, shape.registers("d"))]
    registers += [span(PLACES[name][1], shape.registers(name)) for name in ("a", "b")]
    if shape.sparse:
        return ", ".join([*registers, span(PLACES["index"][1], 1)])
    return ", ".join([*registers, constant or span(PLACES["c"][1], shape.registers("d"))])


def plain(name: str, modifiers: str = "", constant: str | None = None, **formats: str) -> tuple[str, int]:
    """Text and result registers of one instruction."""
    shape = Shape.named(name, **formats)
    return f"{name} {operands(shape, constant=constant)} {modifiers}".rstrip(), shape.registers("d")


def random_rows(random: np.random.Generator, cases: int) -> np.ndarray:
    return random.integers(0, 2**32, (cases, ROWS, LANES), dtype=np.uint32)


def part(rows: np.ndarray, name: str) -> np.ndarray:
    """The rows of one input, as a view."""
    first = 0
    for key, (count, _) in PLACES.items():
        if key == name:
            return rows[..., first : first + count, :]
        first += count
    raise KeyError(name)


def run_instructions(
    instructions: list[tuple[str, int]], rows: np.ndarray, before: str = "", **settings: Any
) -> list[np.ndarray]:
    """Runs every instruction on every case. Results: (cases, registers, 64) per instruction.

    Results start out as C. `before` runs once, ahead of the first instruction.
    """
    cases = len(rows)
    outputs = sum(count for _, count in instructions)
    out = np.zeros((cases, outputs, LANES), np.uint32)
    registers = [first + i for count, first in PLACES.values() for i in range(count)]
    loads = "\n".join(
        f"  global_load_dword v{register}, v1, s[4:5]\n  s_add_u32 s4, s4, 256\n  s_addc_u32 s5, s5, 0"
        for register in registers
    )
    body = ""
    for text, count in instructions:
        for i in range(count):
            body += f"  v_mov_b32_e32 v{RESULT + i}, v{PLACES['c'][1] + i}\n"
        body += f"  s_nop 4\n  {text}\n  s_nop 15\n  s_nop 7\n  s_mov_b64 exec, -1\n"
        for i in range(count):
            body += f"  global_store_dword v1, v{RESULT + i}, s[6:7]\n"
            body += "  s_add_u32 s6, s6, 256\n  s_addc_u32 s7, s7, 0\n"
        body += "  s_waitcnt vmcnt(0)\n"
    text = f"""
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_and_b32_e32 v1, 0x3ff, v0
  v_lshlrev_b32_e32 v1, 2, v1
  s_mul_i32 s8, s2, {ROWS * 256}
  s_mul_i32 s9, s2, {outputs * 256}
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, s8
  s_addc_u32 s5, s5, 0
  s_add_u32 s6, s6, s9
  s_addc_u32 s7, s7, 0
{loads}
  s_waitcnt vmcnt(0)
{before}
{body}
"""
    run_kernel(text, [np.ascontiguousarray(rows), out], grid=(cases,), **settings)
    edges = np.cumsum([0, *(count for _, count in instructions)])
    return [out[:, first:last] for first, last in itertools.pairwise(edges)]
