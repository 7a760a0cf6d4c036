"""The vector phase: scores of one tile to e4m3 probabilities (docs/numerics.md, "A row in a tile").

The way of an interior tile without hidden keys is straight; other kinds of tiles, rows that move their anchor and codes
beyond the largest one lie aside.
"""

from __future__ import annotations

from zyfa_ort.kernels.asm import fp8_trace
from zyfa_ort.kernels.asm.fp8_config import (
    ANCHOR_CODE,
    BLOCK_RANGE,
    CODE_SHIFT,
    HIDDEN_KEYS,
    MOST_IN_RANGE,
    ONE_TERM,
    TAU,
    TWO_TERMS,
    UNIT,
    Fp8Config,
)  # fmt: skip
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.fp8_values import first_key, limits
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import VCC, Register


def tile_kind(p: Program, r: Roles, config: Fp8Config) -> None:
    """r.masked: 1 when rows have their last visible key in the tile, 2 their first, 3 both; r.edge; r.special: any of it,
    or a tile that the wave does not see."""
    first, t = r.scratch[0], r.scratch[1]
    p.s_lshl_b32(first, r.tile, 6)
    p.s_cmp_ge_i32(first, r.mask_above)
    p.s_cselect_b32(r.masked, 1, 0)
    p.s_cmp_lt_i32(first, r.mask_below)
    p.s_cselect_b32(t, 2, 0)
    p.s_or_b32(r.masked, r.masked, t)
    p.s_xor_b32(r.special, r.visible, 1)
    p.s_or_b32(r.special, r.special, r.masked)
    if config.edges == "none" and not config.trace:
        return
    # Edge tiles: the first of the ascending part, and with a causal rule the two at the diagonal.
    p.s_cmp_ge_i32(r.tile, r.edge_tile)
    p.s_cselect_b32(r.edge, 1, 0)
    p.s_cmp_eq_u32(r.tile, r.first_tile)
    p.s_cselect_b32(r.edge, 1, r.edge)
    if config.trace:
        p.s_mov_b32(r.special, 1)
    p.s_or_b32(r.special, r.special, r.edge)


def write(p: Program, r: Roles, config: Fp8Config) -> None:
    p.at("vector", "kind")
    p.s_cmp_lg_u32(r.special, 0)
    p.s_cbranch_scc1("special")
    _row_statistics(p, r, "")
    _lean(p, r, config, "")
    p.at("vector", "end")
    p.label("probabilities_ready")
    p.aside(lambda: _special(p, r, config))


def _special(p: Program, r: Roles, config: Fp8Config) -> None:
    p.at("vector special", "")
    p.label("special")
    p.s_cmp_lt_i32(r.index, r.tiles)
    p.s_cbranch_scc0("finished")
    p.s_mov_b32(r.terms, 0)
    p.s_cmp_eq_u32(r.visible, 0)
    p.s_cbranch_scc1("probabilities_ready")
    _mask(p, r)
    _row_statistics(p, r, "_special")
    if r.low is not None:
        p.s_cmp_lg_u32(r.edge, 0)
        p.s_cbranch_scc1("edge")
    _lean(p, r, config, "_special")
    if r.low is not None:
        p.s_branch("packed")
        p.label("edge")
        _two_terms(p, r, r.low)
        p.label("packed")
    # The limits of the rows hide keys in no other tile than those with a mask.
    p.s_mov_b32(r.masked_tile, r.tile)
    p.s_cmp_lg_u32(r.masked, 0)
    p.s_cselect_b32(r.scratch[0], HIDDEN_KEYS, 0)
    p.s_or_b32(r.terms, r.terms, r.scratch[0])
    if config.trace:
        fp8_trace.store(p, r)
    p.s_branch("probabilities_ready")


def all_scores(r: Roles) -> list[Register]:
    """In the order of the packed probabilities: key 32t + 8a + 4(lane/32) + c is register 16t + 4a + c."""
    return [block[i] for block in r.scores for i in range(16)]


def _mask(p: Program, r: Roles) -> None:
    """Scores of invisible keys become -inf."""
    low, high, hidden = r.temporary[0], r.temporary[1], r.temporary[2]
    limits(p, r, r.tile, low, high, hidden)
    p.v_mov_b32(hidden, float("-inf"))
    conditions = (VCC, *r.pair)
    for bit, name, compare, limit in (
        (1, "above", p.v_cmp_gt_i32, high),
        (2, "below", p.v_cmp_lt_i32, low),
    ):
        p.s_and_b32(r.scratch[0], r.masked, bit)
        p.s_cbranch_scc0(f"none_{name}")
        scores = all_scores(r)
        # A comparison and its use stay apart: there are wait states between them.
        for begin in range(0, 32, len(conditions)):
            for index, condition in enumerate(conditions, begin):
                compare(condition, first_key(index), limit)
            for index, condition in enumerate(conditions, begin):
                p.v_cndmask_b32(scores[index], scores[index], hidden, condition)
        p.label(f"none_{name}")


def _row_statistics(p: Program, r: Roles, suffix: str) -> None:
    """Maximum of the row's 64 scores, in every lane of the row (NaN wins); anchor; block exponent."""
    place = p.place[0]
    p.at(place, "row maximum")
    scores, top, other, limit = all_scores(r), r.temporary[0], r.temporary[1], r.temporary[2]
    p.v_maximum3_f32(top, scores[0], scores[1], scores[2])
    for i in range(3, 31, 2):
        p.v_maximum3_f32(top, top, scores[i], scores[i + 1])
    p.v_maximum3_f32(top, top, scores[31], scores[31])
    p.v_mov_b32(other, top)
    p.v_add_f32(limit, TAU, r.anchor)
    p.s_mov_b32(r.terms, ONE_TERM)
    p.v_permlane32_swap_b32(other, top)
    p.v_maximum3_f32(r.row_top, top, other, other)
    p.v_mul_f32(top, r.factor[0], r.row_top)
    p.at(place, "anchor")
    p.v_cmp_nle_f32(VCC, top, limit)
    _block_exponent(p, r)
    p.s_cbranch_vccnz(f"move_anchor{suffix}")
    p.label(f"anchored{suffix}")

    def move() -> None:
        p.at(f"{place} moves anchors", "")
        p.label(f"move_anchor{suffix}")
        _move_anchor(p, r)
        _block_exponent(p, r)
        p.s_branch(f"anchored{suffix}")

    p.aside(move)


def _move_anchor(p: Program, r: Roles) -> None:
    """Rows that rise more than tau above their anchor take the new maximum for it."""
    top, keep, stay = r.temporary[0], r.temporary[2], r.temporary[3]
    p.v_sub_f32(keep, r.anchor, top)
    p.v_exp_f32(keep, keep)
    p.v_mov_b32(stay, 1.0)
    p.v_cndmask_b32(keep, stay, keep, VCC)
    p.v_cndmask_b32(r.anchor, r.anchor, top, VCC)
    for block in (*r.result, r.row_sum):
        for i in range(0, 16, 2):
            p.v_pk_mul_f32(block[i : i + 2], block[i : i + 2], r.temporary[2:4], modifiers="op_sel_hi:[1,0]")


def _block_exponent(p: Program, r: Roles) -> None:
    """d = ceil(top - anchor) in [-60, 60]; r.offset = anchor + d."""
    top, d = r.temporary[0], r.temporary[1]
    p.v_sub_f32(d, top, r.anchor)
    p.v_ceil_f32(d, d)
    p.v_max_f32(d, -BLOCK_RANGE, d)
    p.v_min_f32(d, BLOCK_RANGE, d)
    p.v_add_f32(r.offset, r.anchor, d)


def _block_scale(p: Program, r: Roles) -> None:
    """The E8M0 byte of the block exponent."""
    d = r.temporary[1]
    p.v_cvt_i32_f32(d, d)
    p.v_add_u32(r.block_scale, 127, d)


def _lean(p: Program, r: Roles, config: Fp8Config, suffix: str) -> None:
    """One multiply-add and one conversion per probability: the byte is the e4m3 value."""
    place = p.place[0]
    p.at(place, "codes")
    top = r.temporary[0]
    p.v_mul_f32(r.offset, 8.0, r.offset)
    p.v_sub_f32(r.offset, ANCHOR_CODE + CODE_SHIFT[config.conversion], r.offset)
    p.v_fma_f32(top, r.row_top, r.factor8, r.offset)
    # Beyond 2^19 log2 units roundings of 8e reach half a code: 127 would be NaN.
    p.v_cmp_lt_f32(VCC, MOST_IN_RANGE[config.conversion], top)
    for score in all_scores(r):
        p.v_fma_f32(score, score, r.factor8, r.offset)
    p.s_cbranch_vccnz(f"beyond{suffix}")
    p.label(f"in_range{suffix}")
    p.at(place, "pack")
    for index, score in enumerate(all_scores(r)):
        target = r.high[index // 4]
        p.v_cvt_pk_u8_f32(target, score, index % 4, target if index % 4 else 0)
    _block_scale(p, r)

    def cut() -> None:
        p.at(f"{place} cuts codes", "")
        p.label(f"beyond{suffix}")
        for score in all_scores(r):
            p.v_min_f32(score, ANCHOR_CODE, score)
        p.s_branch(f"in_range{suffix}")

    p.aside(cut)


def _two_terms(p: Program, r: Roles, low: Register) -> None:
    """p = hi + lo / 16, both e4m3: p by exponential, lo from the exact residual."""
    scores = all_scores(r)
    p.s_mov_b32(r.terms, TWO_TERMS)
    offset, factor = r.temporary[2:4], r.factor
    p.v_sub_f32(offset[0], UNIT, r.offset)
    _block_scale(p, r)
    p.v_add_u32(r.low_scale, -4, r.block_scale)
    for block in r.scores:
        for i in range(0, 16, 2):
            both = block[i : i + 2]
            p.v_pk_fma_f32(both, both, factor, offset, modifiers="op_sel_hi:[1,0,0]")
    for score in scores:
        p.v_exp_f32(score, score)
    for pair in range(16):
        p.v_cvt_pk_fp8_f32(
            r.high[pair // 2],
            scores[2 * pair],
            scores[2 * pair + 1],
            modifiers="op_sel:[0,0,1]" if pair % 2 else "",
        )
    rounded, sixteen = r.temporary[0:2], r.temporary[2:4]
    p.v_mov_b32(sixteen[0], 16.0)
    for pair in range(16):
        first, second = scores[2 * pair], scores[2 * pair + 1]
        p.v_cvt_pk_f32_fp8(rounded, r.high[pair // 2], modifiers="src0_sel:WORD_1" if pair % 2 else "")
        both = Register("v", first.first, 2, first.role)
        p.v_pk_add_f32(both, both, rounded, modifiers="neg_lo:[0,1] neg_hi:[0,1]")
        p.v_pk_mul_f32(both, both, sixteen, modifiers="op_sel_hi:[1,0]")
        p.v_cvt_pk_fp8_f32(low[pair // 2], first, second, modifiers="op_sel:[0,0,1]" if pair % 2 else "")
