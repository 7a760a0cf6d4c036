"""Division by the row sums, output and log-sum-exp."""

from __future__ import annotations

from zyfa_ort.kernels.asm.fp8_config import LAST_ARGUMENTS, LN2, LOG2E, UNIT, VALUE_DIM, Fp8Config
from zyfa_ort.kernels.asm.fp8_prologue import Arguments, add_product, add_rows, load, set_resource
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import VCC, Register

FP16_OVERFLOW = "hwreg(HW_REG_MODE, 23, 1)"
BYTES = {"bf16": 2, "f16": 2, "f32": 4}


def write(p: Program, r: Roles, config: Fp8Config) -> None:
    p.at("end", "")
    block, given = load(p, r, LAST_ARGUMENTS)
    total, keys_only = r.block_scale, r.low_scale if r.low_scale else r.offset
    p.v_mov_b32(keys_only, r.row_sum[0])
    p.v_mov_b32(total, r.row_sum[0])
    _sinks(p, r, given["sinks"], total)
    _normalise(p, r, total)
    _store(p, r, config, given)
    _log_sum_exp(p, r, given, keys_only)
    p.s_endpgm()
    r.scalar.release(block)


def _sinks(p: Program, r: Roles, sinks: Register, total: Register) -> None:
    """A sink is an extra logit in the denominator; a row without keys stays zero."""
    t = r.temporary
    p.s_cmp_eq_u64(sinks, 0)
    p.s_cbranch_scc1("no_sinks")
    p.s_lshl_b32(r.scratch[0], r.head, 2)
    p.s_add_u32(sinks[0], sinks[0], r.scratch[0])
    p.s_addc_u32(sinks[1], sinks[1], 0)
    p.s_load_dword(r.scratch[1], sinks, 0)
    p.v_mov_b32(t[0], UNIT)
    p.v_sub_f32(t[0], t[0], r.anchor)
    p.v_mov_b32(t[1], LOG2E)
    p.v_fma_f32(t[0], r.scratch[1], t[1], t[0])
    p.v_exp_f32(t[0], t[0])
    p.v_add_f32(t[0], total, t[0])
    p.v_cmp_eq_f32(VCC, 0.0, total)
    p.v_cndmask_b32(total, t[0], total, VCC)
    p.label("no_sinks")


def _normalise(p: Program, r: Roles, total: Register) -> None:
    factor = r.temporary[0]
    p.v_rcp_f32(factor, total)
    p.v_mov_b32(r.temporary[1], 0)
    p.v_cmp_eq_f32(VCC, 0.0, total)
    p.v_cndmask_b32(factor, factor, r.temporary[1], VCC)
    # Two products: a scale of 2^-126 times 1 / sum alone would lose its bits.
    for block in r.result:
        for i in range(16):
            p.v_mul_f32(block[i], factor, block[i])
        for i in range(16):
            p.v_mul_f32(block[i], r.value_scale, block[i])


def _store(p: Program, r: Roles, config: Fp8Config, given: Arguments) -> None:
    """Lane holds dims 32 block + 8a + 4 (lane/32) + c of row lane mod 32; it stores 16 bytes at a time."""
    pointer, row_bytes, size = given["output"], given["o_row"], BYTES[config.output]
    add_product(p, r, pointer, given["o_batch"], r.batch)
    add_product(p, r, pointer, given["o_head"], r.head)
    add_rows(p, r, pointer, row_bytes)
    set_resource(p, r, pointer, given["o_queries"], row_bytes, VALUE_DIM * size)
    if config.output == "f16":
        p.s_setreg_imm32_b32(FP16_OVERFLOW, 0, note="beyond 65504 is infinity")
    address, half = r.temporary[2], r.temporary[0]
    p.v_and_b32(half, 31, r.item)
    p.v_mul_lo_u32(address, half, row_bytes)
    p.v_lshrrev_b32(half, 5, r.item)
    p.v_lshl_add_u32(address, half, 4, address)
    for index, block in enumerate(r.result):
        for part in range(0, 16, 8 if size == 2 else 4):
            store = _narrow(p, config, block[part : part + 8]) if size == 2 else block[part : part + 4]
            dim = 32 * index + 2 * part
            p.buffer_store_dwordx4(store, address, r.resource, 0, modifiers=f"offen offset:{dim * size}")


def _narrow(p: Program, config: Fp8Config, eight: Register) -> Register:
    """Dims of two a (8 apart) as 16-bit numbers, changed between the halves so that a lane has 8 dims in a row."""
    convert = p.v_cvt_pk_bf16_f32 if config.output == "bf16" else p.v_cvt_pk_f16_f32
    for i in range(4):
        convert(eight[i], eight[2 * i], eight[2 * i + 1])
    for i in range(2):
        p.v_permlane32_swap_b32(eight[i], eight[i + 2])
    return eight[0:4]


def _log_sum_exp(p: Program, r: Roles, given: Arguments, total: Register) -> None:
    """ln 2 (anchor + log2(sum) - unit), -inf for a row without keys; lanes 0..31 store."""
    pointer, row = given["lse"], r.scratch[2]
    p.s_cmp_eq_u64(pointer, 0)
    p.s_cbranch_scc1("no_lse")
    add_product(p, r, pointer, given["lse_batch"], r.batch)
    add_product(p, r, pointer, given["lse_head"], r.head)
    p.s_mov_b32(row, 4)
    add_rows(p, r, pointer, row)
    set_resource(p, r, pointer, given["o_queries"], 4, 4)
    value, address, unit = r.temporary[0], r.temporary[1], r.temporary[2]
    p.v_log_f32(value, total)
    p.v_add_f32(value, r.anchor, value)
    p.v_mov_b32(unit, -UNIT)
    p.v_add_f32(value, unit, value)
    p.v_mul_f32(value, LN2, value)
    p.v_mov_b32(unit, float("-inf"))
    p.v_cmp_eq_f32(VCC, 0.0, total)
    p.v_cndmask_b32(value, value, unit, VCC)
    p.v_lshlrev_b32(address, 2, r.item, note="lanes 32..63 repeat the rows: beyond the resource, dropped")
    p.buffer_store_dword(value, address, r.resource, 0, modifiers="offen")
    p.label("no_lse")
