"""FP8 causal prefill attention for gfx950: scheme of docs/numerics.md, layouts of docs/gfx950.md.

A workgroup is 8 waves over 256 query rows, a wave 32 rows. Scores come out transposed (S^T = K·Q^T): a lane holds 32 of
the 64 scores of one row, so that the softmax needs one exchange between lanes j and j + 32, and the probabilities, packed in
register order, are the operand of the second product. Waves 0..3 and 4..7 share the SIMDs and run one phase apart: while
one group multiplies, the other turns scores into probabilities.
"""

from __future__ import annotations

from zyfa_ort.kernels.asm import emit, fp8_epilogue, fp8_matrix, fp8_prologue, fp8_softmax
from zyfa_ort.kernels.asm.fp8_config import BLOCK_ROWS, WAVES, Fp8Config, arguments
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.program import Program

PREFETCH = 2  # tiles between a fetch into LDS and its use


def generate(config: Fp8Config) -> str:
    """The assembly text of one configuration."""
    p, r = Program(config.name), Roles(config)
    fp8_prologue.write(p, r, config)
    main_loop(p, r, config)
    fp8_epilogue.write(p, r, config)
    defined = {
        *r.item.units(),
        *r.kernarg.units(),
        *(u for w in r.workgroup for u in w.units()),
        ("s", 126),
        ("s", 127),
    }
    items = emit.finish(p, defined)
    limits = emit.KernelLimits(r.vector.high, 0, r.scalar.high, config.lds_bytes, 64 * WAVES)
    return emit.text(p, items, limits, arguments(config))


def main_loop(p: Program, r: Roles, config: Fp8Config) -> None:
    """Tiles 0..n: products of tile i and of the probabilities of tile i - 1, then the softmax of tile i."""
    p.s_mov_b32(r.index, 0)
    p.s_mov_b32(r.terms, 0)
    p.s_mov_b32(r.clean, 0)
    for ahead in range(PREFETCH):
        fp8_matrix.fetch(p, r, config, ahead)
    p.require("tile_0")
    p.s_barrier()
    p.s_cmp_lt_i32(r.wave, WAVES // 2)
    p.s_cbranch_scc1("first_group")
    p.s_barrier(note="the second group runs one phase behind")
    p.label("first_group")

    p.label("products")
    p.s_setprio(1)
    fp8_matrix.fetch(p, r, config, PREFETCH)
    fp8_matrix.find_tile(p, r)
    fp8_matrix.scores(p, r, config)
    fp8_matrix.accumulate(p, r, config)
    # What this wave fetched for the next tile has landed before anybody may pass the barriers up to its use.
    p.require("tile_1")
    p.s_setprio(0)
    p.s_barrier()
    p.s_cmp_lt_i32(r.index, r.tiles)
    p.s_cbranch_scc0("finished")
    fp8_softmax.write(p, r, config)
    p.s_add_i32(r.index, r.index, 1)
    p.rename(tile_2="tile_1")
    p.s_barrier()
    p.s_branch("products")
    p.label("finished")
    p.require("tile_1", "tile_2")
    p.s_cmp_lt_i32(r.wave, WAVES // 2)
    p.s_cbranch_scc0("write_rows")
    p.s_barrier(note="pairs with the extra one of the second group")
    p.label("write_rows")


__all__ = ["BLOCK_ROWS", "generate", "main_loop"]
