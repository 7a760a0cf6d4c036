"""The vector phase: scores of one tile to e4m3 probabilities (docs/numerics.md, "A row in a tile")."""

from __future__ import annotations

from zyfa_ort.kernels.asm import fp8_trace
from zyfa_ort.kernels.asm.fp8_config import ANCHOR_CODE, BLOCK_RANGE, TAU, UNIT, Fp8Config
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.fp8_values import find_hidden_nan, first_key, limits
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import VCC, Register


def write(p: Program, r: Roles, config: Fp8Config) -> None:
    p.s_mov_b32(r.terms, 0)
    p.s_mov_b32(r.clean, 0)
    p.s_cmp_le_i32(r.tile, r.last_tile)
    p.s_cbranch_scc0("no_softmax")
    _mask(p, r)
    _row_maximum(p, r)
    _anchor(p, r)
    _block_exponent(p, r)
    if r.low is not None:
        _choose_edge(p, r)
        _lean(p, r)
        p.s_mov_b32(r.terms, 1)
        p.s_branch("packed")
        p.label("edge")
        _two_terms(p, r, r.low)
        p.s_mov_b32(r.terms, 2)
        p.label("packed")
    else:
        _lean(p, r)
        p.s_mov_b32(r.terms, 1)
    find_hidden_nan(p, r, config)
    if config.trace:
        fp8_trace.store(p, r)
    p.label("no_softmax")


def all_scores(r: Roles) -> list[Register]:
    """In the order of the packed probabilities: key 32t + 8a + 4(lane/32) + c is register 16t + 4a + c."""
    return [block[i] for block in r.scores for i in range(16)]


def _mask(p: Program, r: Roles) -> None:
    """Scores of invisible keys become -inf; skipped when every row of the wave sees the whole tile."""
    first = r.scratch[0]
    p.s_lshl_b32(first, r.tile, 6)
    p.s_mov_b32(r.masked, 0)
    p.s_cmp_ge_i32(first, r.mask_above)
    p.s_cbranch_scc1("mask")
    p.s_cmp_lt_i32(first, r.mask_below)
    p.s_cbranch_scc0("no_mask")
    p.label("mask")
    p.s_mov_b32(r.masked, 1)
    low, high, hidden = r.temporary[0], r.temporary[1], r.temporary[2]
    limits(p, r, low, high, hidden)
    p.v_mov_b32(hidden, float("-inf"))
    for index, score in enumerate(all_scores(r)):
        key = first_key(index)
        p.v_cmp_gt_i32(VCC, key, high)
        p.v_cndmask_b32(score, score, hidden, VCC)
        p.v_cmp_lt_i32(VCC, key, low)
        p.v_cndmask_b32(score, score, hidden, VCC)
    p.label("no_mask")


def _row_maximum(p: Program, r: Roles) -> None:
    """Of the row's 64 scores, in every lane of the row; NaN wins."""
    scores, top, other = all_scores(r), r.temporary[0], r.temporary[1]
    p.v_maximum3_f32(top, scores[0], scores[1], scores[2])
    for i in range(3, 31, 2):
        p.v_maximum3_f32(top, top, scores[i], scores[i + 1])
    p.v_maximum3_f32(top, top, scores[31], scores[31])
    p.v_mov_b32(other, top)
    p.v_permlane32_swap_b32(other, top)
    p.v_maximum3_f32(r.row_top, top, other, other)
    p.v_mul_f32(top, r.factor, r.row_top)


def _anchor(p: Program, r: Roles) -> None:
    """Rows that rise more than tau above their anchor move it; a wave without such a row skips this."""
    top, limit, keep, moved = r.temporary[0], r.temporary[1], r.temporary[2], r.temporary[3]
    p.v_add_f32(limit, TAU, r.anchor)
    p.v_cmp_nle_f32(VCC, top, limit)
    p.s_cbranch_vccz("keep_anchor")
    p.v_sub_f32(keep, r.anchor, top)
    p.v_exp_f32(keep, keep)
    p.v_mov_b32(moved, 1.0)
    p.v_cndmask_b32(keep, moved, keep, VCC)
    p.v_cndmask_b32(r.anchor, r.anchor, top, VCC)
    for block in (*r.result, r.row_sum):
        for i in range(16):
            p.v_mul_f32(block[i], keep, block[i])
    p.label("keep_anchor")


def _block_exponent(p: Program, r: Roles) -> None:
    """d = ceil(top - anchor) in [-60, 60]; its E8M0 byte; anchor + d."""
    top, d = r.temporary[0], r.temporary[1]
    p.v_sub_f32(d, top, r.anchor)
    p.v_ceil_f32(d, d)
    p.v_max_f32(d, -BLOCK_RANGE, d)
    p.v_min_f32(d, BLOCK_RANGE, d)
    p.v_add_f32(r.offset, r.anchor, d)
    p.v_cvt_i32_f32(d, d)
    p.v_add_u32(r.block_scale, 127, d)


def _lean(p: Program, r: Roles) -> None:
    """One multiply-add and one conversion per probability: the byte is the e4m3 value."""
    top = r.temporary[0]
    p.v_mul_f32(r.offset, 8.0, r.offset)
    p.v_sub_f32(r.offset, ANCHOR_CODE, r.offset)
    p.v_fma_f32(top, r.row_top, r.factor8, r.offset)
    for score in all_scores(r):
        p.v_fma_f32(score, score, r.factor8, r.offset)
    # Beyond 2^19 log2 units roundings of 8e reach half a code: 127 would be NaN.
    p.v_cmp_lt_f32(VCC, ANCHOR_CODE + 0.5, top)
    p.s_cbranch_vccz("in_range")
    for score in all_scores(r):
        p.v_min_f32(score, ANCHOR_CODE, score)
    p.label("in_range")
    for index, score in enumerate(all_scores(r)):
        target = r.high[index // 4]
        p.v_cvt_pk_u8_f32(target, score, index % 4, target if index % 4 else 0)


def _choose_edge(p: Program, r: Roles) -> None:
    """Edge tiles: the first of the ascending part, and with a causal rule the two at the diagonal."""
    before = r.scratch[0]
    p.s_cmp_eq_u32(r.tile, r.first_tile)
    p.s_cbranch_scc1("edge")
    p.s_cmp_eq_u32(r.causal, 0)
    p.s_cbranch_scc1("interior")
    p.s_sub_i32(before, r.last_tile, 1)
    p.s_cmp_ge_i32(r.tile, before)
    p.s_cbranch_scc1("edge")
    p.label("interior")


def _two_terms(p: Program, r: Roles, low: Register) -> None:
    """p = hi + lo / 16, both e4m3: p by exponential, lo from the exact residual."""
    scores = all_scores(r)
    p.v_sub_f32(r.offset, UNIT, r.offset)
    p.v_add_u32(r.low_scale, -4, r.block_scale)
    for score in scores:
        p.v_fma_f32(score, score, r.factor, r.offset)
    for score in scores:
        p.v_exp_f32(score, score)
    for pair in range(16):
        p.v_cvt_pk_fp8_f32(
            r.high[pair // 2],
            scores[2 * pair],
            scores[2 * pair + 1],
            modifiers="op_sel:[0,0,1]" if pair % 2 else "",
        )
    rounded = r.temporary[0:2]
    for pair in range(16):
        first, second = scores[2 * pair], scores[2 * pair + 1]
        p.v_cvt_pk_f32_fp8(rounded, r.high[pair // 2], modifiers="src0_sel:WORD_1" if pair % 2 else "")
        for score, value in ((first, rounded[0]), (second, rounded[1])):
            p.v_sub_f32(score, score, value)
            p.v_mul_f32(score, 16.0, score)
        p.v_cvt_pk_fp8_f32(low[pair // 2], first, second, modifiers="op_sel:[0,0,1]" if pair % 2 else "")
