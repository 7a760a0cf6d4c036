"""FP8 causal prefill attention for gfx950: scheme of docs/numerics.md, layouts of docs/gfx950.md.

A workgroup is 8 waves over 256 query rows, a wave 32 rows. Scores come out transposed (S^T = K·Q^T): a lane holds 32 of
the 64 scores of one row, so that the softmax needs one exchange between lanes j and j + 32, and the probabilities, packed in
register order, are the operand of the second product. Waves 0..3 and 4..7 share the SIMDs and run one phase apart: while
one group multiplies, the other turns scores into probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

from zyfa_ort.kernels.asm import emit, fp8_epilogue, fp8_fetch, fp8_matrix, fp8_prologue, fp8_softmax
from zyfa_ort.kernels.asm.fp8_config import PREFETCH, WAVES, Fp8Config, arguments
from zyfa_ort.kernels.asm.fp8_prologue import NEEDED_AT_ONCE
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.program import Item, Program
from zyfa_ort.kernels.asm.registers import EXEC


@dataclass(frozen=True)
class Kernel:
    """A finished kernel: its instructions with waits and wait states, its registers, what a launch needs."""

    config: Fp8Config
    program: Program
    items: list[Item]
    roles: Roles
    limits: emit.KernelLimits

    def text(self) -> str:
        return emit.text(self.program, self.items, self.limits, arguments(self.config))


def generate(config: Fp8Config) -> str:
    """The assembly text of one configuration."""
    return build(config).text()


def build(config: Fp8Config) -> Kernel:
    p, r = Program(config.name), Roles(config)
    fp8_prologue.write(p, r, config)
    main_loop(p, r, config)
    fp8_epilogue.write(p, r, config)
    p.write_asides()
    defined = {
        *r.item.units(),
        *r.kernarg.units(),
        *(unit for axis in (r.head, r.block, r.batch) for unit in axis.units()),
        *EXEC.units(),
        *_behind_flags(r),
    }
    limits = emit.KernelLimits(r.vector.high, 0, r.scalar.high, config.lds_bytes, 64 * WAVES)
    return Kernel(config, p, emit.finish(p, defined), r, limits)


def _behind_flags(r: Roles) -> list[tuple[str, int]]:
    """Registers that a wave reads only when a scalar says that it has written them: r.visible, r.terms."""
    guarded = [*r.scores, r.high, r.block_scale, *filter(None, [r.low, r.low_scale])]
    return [unit for register in guarded for unit in register.units()]


def main_loop(p: Program, r: Roles, config: Fp8Config) -> None:
    """Tiles 0..n: products of tile i and of the probabilities of tile i - 1, then the softmax of tile i."""
    p.at("begin", "")
    r.enter_loop()
    p.s_mov_b32(r.terms, 0)
    p.s_mov_b32(r.index, -1)
    fp8_fetch.next_tile(p, r)
    p.s_mov_b32(r.index, 0)
    p.s_mov_b32(r.value_stage, 0)
    p.s_mov_b32(r.stage, 0)
    p.s_mov_b32(r.key_stage, 0)
    p.s_mov_b32(r.tile, r.next_tile)
    p.s_mov_b32(r.visible, r.next_visible)
    p.require(*(f"tile_{i}" for i in range(NEEDED_AT_ONCE)))
    p.require(*(unit for fragment in r.query for unit in fragment.units()))
    p.s_barrier()
    fp8_matrix.load_keys(p, r)
    p.s_mov_b32(r.key_stage, config.stage_bytes)
    p.s_cmp_lt_i32(r.wave, WAVES // 2)
    p.s_cbranch_scc1("first_group")
    p.s_barrier(note="the second group runs one phase behind")
    p.label("first_group")

    p.label("products")
    p.at("product", "begin")
    p.s_setprio(1)
    fp8_matrix.write(p, r, config)
    p.s_setprio(0)
    p.s_barrier()
    fp8_softmax.write(p, r, config)
    p.s_add_i32(r.index, r.index, 1)
    p.s_mov_b32(r.tile, r.next_tile)
    p.s_mov_b32(r.visible, r.next_visible)
    p.rename(**{f"tile_{ahead}": f"tile_{ahead - 1}" for ahead in range(3, PREFETCH + 1)})
    p.s_barrier()
    p.s_branch("products")
    p.at("end", "")
    p.label("finished")
    p.require(*(f"tile_{ahead}" for ahead in range(PREFETCH + 1)))
    p.s_cmp_lt_i32(r.wave, WAVES // 2)
    p.s_cbranch_scc0("write_rows")
    p.s_barrier(note="pairs with the extra one of the second group")
    p.label("write_rows")
