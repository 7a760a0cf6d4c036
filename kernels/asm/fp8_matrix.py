"""The product phase: fetch into LDS, scores S^T = K·Q^T, output O^T += V^T·P and the row sums."""

from __future__ import annotations

from zyfa_ort.kernels.asm.fp8_config import STAGES, TILE_KEYS, Fp8Config
from zyfa_ort.kernels.asm.fp8_prologue import add_product, set_resource
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.fp8_values import clean, load_values, stage_address
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import EXEC, M0, Register

WAVE_BYTES = 1024  # what one LDS-DMA instruction of a wave brings


def tile_number(p: Program, r: Roles, target: Register, index: Register) -> None:
    """The tile with this number in the canonical order."""
    other = r.scratch[5]
    p.s_sub_i32(other, index, r.descending)
    p.s_add_i32(other, other, r.first_tile)
    p.s_sub_i32(target, r.top_tile, index)
    p.s_cmp_lt_i32(index, r.descending)
    p.s_cselect_b32(target, target, other)


def find_tile(p: Program, r: Roles) -> None:
    tile_number(p, r, r.tile, r.index)


def fetch(p: Program, r: Roles, config: Fp8Config, ahead: int) -> None:
    """The wave's eighth of the key and the value tile `ahead` of the current one, straight into LDS."""
    index, tile, stage, rows = r.scratch[2], r.scratch[3], r.scratch[4], r.pair[2][0]
    p.s_add_i32(index, r.index, ahead)
    tile_number(p, r, tile, index)
    # Beyond the last tile the fetch is empty: always issuing it keeps the wait counts exact.
    p.s_cmp_lt_i32(index, r.tiles)
    p.s_cselect_b32(rows, r.keys, 0)
    p.s_lshl_b32(tile, tile, TILE_KEYS.bit_length() - 1, note="first key")
    p.s_and_b32(stage, index, STAGES - 1)
    p.s_mul_i32(stage, stage, config.stage_bytes)
    p.s_lshl_b32(r.scratch[5], r.wave, WAVE_BYTES.bit_length() - 1)
    p.s_add_u32(stage, stage, r.scratch[5])
    for base, row, width, fetch_from, at in (
        (r.key_base, r.key_row, config.head_dim, r.key_fetch, 0),
        (r.value_base, r.value_row, 128, r.value_fetch, config.key_bytes),
    ):
        where, stride = r.pair[0], r.pair[1]
        p.s_mov_b64(where, base)
        p.s_mov_b32(stride[0], row)
        p.s_mov_b32(stride[1], 0)
        add_product(p, r, where, stride, tile)
        set_resource(p, r, where, tile, rows, row, width, TILE_KEYS)
        p.s_add_u32(M0, stage, at)
        p.buffer_load_lds_dwordx4(fetch_from, r.resource, 0, modifiers="offen", produces=f"tile_{ahead}")
        if base is r.key_base and r.rope_fetch is not None:
            # 8 rows of 64 bytes per wave: half of the lanes.
            p.s_lshr_b32(r.scratch[5], r.scratch[5], 1, note="half of what a full instruction brings")
            p.s_sub_u32(r.scratch[5], stage, r.scratch[5])
            p.s_add_u32(M0, r.scratch[5], config.rope_base)
            p.s_mov_b32(EXEC[1], 0)
            p.buffer_load_lds_dwordx4(
                r.rope_fetch, r.resource, 0, modifiers="offen", produces=f"tile_{ahead}"
            )
            p.s_mov_b32(EXEC[1], -1)


def score_schedule(config: Fp8Config) -> list[tuple[str, int]]:
    """Loads and products of the scores in order; slot = 2 step + key block. A fragment's registers are loaded again
    only when another product stands between its last use and the load."""
    slots, fragments = 2 * config.k_steps, 4
    order = [("load", slot) for slot in range(fragments)]
    for slot in range(slots):
        order.append(("multiply", slot))
        again = slot - 1 + fragments
        if slot >= 1 and again < slots:
            order.append(("load", again))
    return order


def scores(p: Program, r: Roles, config: Fp8Config) -> None:
    """S^T of the tile, unless there is none or the wave cannot see it."""
    p.s_cmp_lt_i32(r.index, r.tiles)
    p.s_cbranch_scc0("no_scores")
    p.s_cmp_le_i32(r.tile, r.last_tile)
    p.s_cbranch_scc0("no_scores")
    stage = stage_address(p, r, config, r.index, 0)
    # Addresses move in place and back: there are no registers to spare for copies.
    for address in r.key_address:
        p.v_add_u32(address, stage, address)
    for action, slot in score_schedule(config):
        block, step = slot % 2, slot // 2
        fragment = r.key[slot % len(r.key)]
        if action == "multiply":
            p.v_mfma_f32_32x32x64_f8f6f4(
                r.scores[block], fragment, r.query[step], r.scores[block] if step else 0
            )
            continue
        row_bytes = 128 if step < 2 else 64
        for half in range(2):
            p.ds_read_b128(
                fragment[4 * half : 4 * half + 4],
                r.key_address[2 * step + half],
                modifiers=f"offset:{32 * row_bytes * block}",
            )
    for address in r.key_address:
        p.v_subrev_u32(address, stage, address)
    p.label("no_scores")


def accumulate(p: Program, r: Roles, config: Fp8Config) -> None:
    """O^T and the row sums take in the probabilities of the tile before, in one or two terms."""
    p.s_cmp_eq_u32(r.terms, 0)
    p.s_cbranch_scc1("no_accumulate")
    load_values(p, r, stage_address(p, r, config, r.index, 1))
    clean(p, r)
    _terms(p, r, r.high, r.block_scale)
    if r.low is not None:
        p.s_cmp_eq_u32(r.terms, 2)
        p.s_cbranch_scc0("no_accumulate")
        _terms(p, r, r.low, r.low_scale)
    p.label("no_accumulate")


def _terms(p: Program, r: Roles, probabilities: Register, scale: Register) -> None:
    select = "op_sel_hi:[0,0,0]"
    for target, fragment in ((r.row_sum, r.ones), *zip(r.result, r.value, strict=True)):
        p.v_mfma_scale_f32_32x32x64_f8f6f4(
            target, fragment, probabilities, target, r.unit_scale, scale, modifiers=select
        )
