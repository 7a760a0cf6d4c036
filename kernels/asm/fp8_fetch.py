"""Tiles: their order, their places in LDS, and the way there."""

from __future__ import annotations

from zyfa_ort.kernels.asm.fp8_config import STAGES, TILE_KEYS, Fp8Config
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import EXEC, M0, Register


def tile_number(p: Program, r: Roles, target: Register, index: Register, other: Register) -> None:
    """The tile with this number in the canonical order."""
    p.s_sub_i32(other, index, r.descending)
    p.s_add_i32(other, other, r.first_tile)
    p.s_sub_i32(target, r.top_tile, index)
    p.s_cmp_lt_i32(index, r.descending)
    p.s_cselect_b32(target, target, other)


def stage_address(p: Program, config: Fp8Config, target: Register, index: Register, ahead: int) -> None:
    p.s_add_i32(target, index, ahead)
    p.s_and_b32(target, target, STAGES - 1)
    p.s_mul_i32(target, target, config.stage_bytes)


def next_tile(p: Program, r: Roles) -> None:
    """Number of the next tile, and whether the wave sees any of it."""
    index = r.scratch[0]
    p.s_add_i32(index, r.index, 1)
    tile_number(p, r, r.next_tile, index, r.scratch[1])
    p.s_cmp_le_i32(r.next_tile, r.last_tile)
    p.s_cselect_b32(r.next_visible, 1, 0)
    p.s_cmp_lt_i32(index, r.tiles)
    p.s_cselect_b32(r.next_visible, r.next_visible, 0)


def next_stages(p: Program, r: Roles, config: Fp8Config) -> None:
    """Where the next product phase finds values (of this tile) and keys (two tiles on)."""
    p.s_mov_b32(r.value_stage, r.stage)
    p.s_mov_b32(r.stage, r.key_stage)
    stage_address(p, config, r.key_stage, r.index, 2)


def fetch(p: Program, r: Roles, config: Fp8Config, ahead: int) -> None:
    """The wave's eighth of the key and the value tile `ahead` of the current one, straight into LDS.

    Rows beyond the last key arrive as zeros, and so do tiles beyond the last: always fetching keeps the wait counts exact.
    """
    index, tile, stage, count, low, high = r.scratch
    p.s_add_i32(index, r.index, ahead)
    tile_number(p, r, tile, index, low)
    p.s_cmp_lt_i32(index, r.tiles)
    p.s_cselect_b32(count, r.keys, 0)
    p.s_lshl_b32(tile, tile, TILE_KEYS.bit_length() - 1, note="first key")
    p.s_sub_i32(count, count, tile)
    p.s_min_i32(count, count, TILE_KEYS)
    p.s_max_i32(count, count, 0)
    stage_address(p, config, stage, r.index, ahead)
    p.s_add_u32(stage, stage, r.wave_bytes)
    for base, row, slack, source, at in (
        (r.key_base, r.key_row, r.key_slack, r.key_fetch, 0),
        (r.value_base, r.value_row, r.value_slack, r.value_fetch, config.key_bytes),
    ):
        p.s_mul_i32(low, row, tile)
        p.s_mul_hi_u32(high, row, tile)
        p.s_add_u32(r.resource[0], base[0], low)
        p.s_addc_u32(r.resource[1], base[1], high)
        p.s_add_u32(M0, stage, at)
        p.s_mul_i32(low, count, row)
        p.s_sub_i32(low, low, slack)
        p.s_max_i32(r.resource[2], low, 0)
        p.buffer_load_lds_dwordx4(source, r.resource, 0, modifiers="offen", produces=f"tile_{ahead}")
        if base is r.key_base and r.rope_fetch is not None:
            # 8 rows of 64 bytes per wave: half of the lanes, half of the bytes.
            p.s_lshr_b32(low, r.wave_bytes, 1)
            p.s_sub_u32(low, stage, low)
            p.s_add_u32(M0, low, config.rope_base)
            p.s_mov_b32(EXEC[1], 0)
            p.buffer_load_lds_dwordx4(
                r.rope_fetch, r.resource, 0, modifiers="offen", produces=f"tile_{ahead}"
            )
            p.s_mov_b32(EXEC[1], -1)
