"""For tests only: the bytes of P, the anchor and the exponent of every tile a wave looked at, as records in memory."""

from __future__ import annotations

from zyfa_ort.kernels.asm.fp8_config import (
    GROUP_ROWS,
    ONE_TERM,
    TRACE_ARGUMENTS,
    TRACE_WORDS,
    TWO_TERMS,
    WAVE_LANES,
)
from zyfa_ort.kernels.asm.fp8_prologue import add_product, load
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.program import Program

LANE_BYTES = 4 * TRACE_WORDS
RECORD_BYTES = LANE_BYTES * WAVE_LANES


def store(p: Program, r: Roles) -> None:
    """One record per batch, head, group of rows and tile: lanes of `LANE_BYTES`: high, low, anchor, scale byte, terms."""
    block, given = load(p, r, TRACE_ARGUMENTS)
    pointer, record = given["trace"], given["trace_group"]
    add_product(p, r, pointer, given["trace_batch"], r.batch)
    add_product(p, r, pointer, given["trace_head"], r.head)
    p.s_lshr_b32(r.scratch[2], r.first_row, GROUP_ROWS.bit_length() - 1)
    add_product(p, r, pointer, record, r.scratch[2])
    p.s_mov_b32(record[0], RECORD_BYTES)
    p.s_mov_b32(record[1], 0)
    add_product(p, r, pointer, record, r.tile)
    p.s_mov_b32(r.resource[0], pointer[0])
    p.s_and_b32(r.resource[1], pointer[1], 0xFFFF)
    p.s_mov_b32(r.resource[2], RECORD_BYTES)
    address, terms = r.temporary[0], r.temporary[1]
    p.s_mov_b32(r.scratch[2], LANE_BYTES)
    p.v_mul_lo_u32(address, r.item, r.scratch[2])
    for index, fragment in enumerate(filter(None, (r.high, r.low))):
        for half in range(2):
            p.buffer_store_dwordx4(
                fragment[4 * half : 4 * half + 4],
                address,
                r.resource,
                0,
                modifiers=f"offen offset:{32 * index + 16 * half}",
            )
    p.v_mov_b32(terms, r.terms)
    p.v_and_b32(terms, ONE_TERM | TWO_TERMS, terms)
    for word, register in enumerate((r.anchor, r.block_scale, terms)):
        p.buffer_store_dword(register, address, r.resource, 0, modifiers=f"offen offset:{64 + 4 * word}")
    r.scalar.release(block)
