"""The instructions the generator writes: operand kinds and widths, checked where an instruction is written.

A row: mnemonic, unit, results, sources. Operand letters: v vector, w vector or accumulation, s scalar, x vector, scalar or
constant, c scalar or constant, i immediate; the digit is the width in registers. `!x` names what is touched besides.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from zyfa_ort.kernels.asm.registers import EXEC, M0, VCC, Register

ROWS = """
s_mov_b32          salu  s1  c1
s_mov_b64          salu  s2  c2
s_not_b64          salu  s2  c2           !scc
s_add_u32          salu  s1  c1 c1        !scc
s_addc_u32         salu  s1  c1 c1        !scc !rscc
s_sub_u32          salu  s1  c1 c1        !scc
s_subb_u32         salu  s1  c1 c1        !scc !rscc
s_add_i32          salu  s1  c1 c1        !scc
s_sub_i32          salu  s1  c1 c1        !scc
s_mul_i32          salu  s1  c1 c1
s_mul_hi_u32       salu  s1  c1 c1
s_min_i32          salu  s1  c1 c1        !scc
s_max_i32          salu  s1  c1 c1        !scc
s_min_u32          salu  s1  c1 c1        !scc
s_max_u32          salu  s1  c1 c1        !scc
s_and_b32          salu  s1  c1 c1        !scc
s_or_b32           salu  s1  c1 c1        !scc
s_xor_b32          salu  s1  c1 c1        !scc
s_and_b64          salu  s2  c2 c2        !scc
s_or_b64           salu  s2  c2 c2        !scc
s_lshl_b32         salu  s1  c1 c1        !scc
s_lshr_b32         salu  s1  c1 c1        !scc
s_ashr_i32         salu  s1  c1 c1        !scc
s_cselect_b32      salu  s1  c1 c1        !rscc
s_cmp_eq_u32       salu  -   c1 c1        !scc
s_cmp_lg_u32       salu  -   c1 c1        !scc
s_cmp_lt_i32       salu  -   c1 c1        !scc
s_cmp_le_i32       salu  -   c1 c1        !scc
s_cmp_gt_i32       salu  -   c1 c1        !scc
s_cmp_ge_i32       salu  -   c1 c1        !scc
s_cmp_eq_u64       salu  -   c2 c2        !scc
s_cmp_lg_u64       salu  -   c2 c2        !scc
s_load_dword       smem  s1  s2 i
s_load_dwordx2     smem  s2  s2 i
s_load_dwordx4     smem  s4  s2 i
s_load_dwordx8     smem  s8  s2 i
s_load_dwordx16    smem  s16 s2 i
v_mov_b32          valu  v1  x1
v_mov_b64          valu  v2  x2
v_add_u32          valu  v1  x1 v1
v_sub_u32          valu  v1  x1 v1
v_subrev_u32       valu  v1  x1 v1
v_and_b32          valu  v1  x1 v1
v_or_b32           valu  v1  x1 v1
v_xor_b32          valu  v1  x1 v1
v_lshlrev_b32      valu  v1  x1 v1
v_lshrrev_b32      valu  v1  x1 v1
v_lshl_add_u32     valu  v1  x1 x1 x1
v_or3_b32          valu  v1  x1 x1 x1
v_bfi_b32          valu  v1  x1 x1 x1
v_lshl_or_b32      valu  v1  x1 x1 x1
v_and_or_b32       valu  v1  x1 x1 x1
v_bfe_u32          valu  v1  x1 x1 x1
v_mul_lo_u32       valu  v1  x1 x1
v_mad_u32_u24      valu  v1  x1 x1 x1
v_min_i32          valu  v1  x1 v1
v_max_i32          valu  v1  x1 v1
v_readfirstlane_b32 valu s1  v1
v_add_f32          valu  v1  x1 v1
v_sub_f32          valu  v1  x1 v1
v_mul_f32          valu  v1  x1 v1
v_max_f32          valu  v1  x1 v1
v_min_f32          valu  v1  x1 v1
v_fma_f32          valu  v1  x1 x1 x1
v_pk_fma_f32       valu  v2  x2 x2 x2
v_pk_mul_f32       valu  v2  x2 x2
v_pk_add_f32       valu  v2  x2 x2
v_max3_f32         valu  v1  x1 x1 x1
v_maximum3_f32     valu  v1  x1 x1 x1
v_med3_f32         valu  v1  x1 x1 x1
v_ceil_f32         valu  v1  x1
v_cvt_i32_f32      valu  v1  x1
v_cvt_f32_i32      valu  v1  x1
v_cvt_pk_u8_f32    valu  v1  x1 x1 x1
v_cvt_pk_fp8_f32   valu  v1  x1 x1        !merge
v_cvt_pk_f32_fp8   valu  v2  v1
v_cvt_pk_bf16_f32  valu  v1  x1 x1
v_cvt_pk_f16_f32   valu  v1  x1 x1
v_exp_f32          trans v1  x1
v_log_f32          trans v1  x1
v_rcp_f32          trans v1  x1
v_permlane32_swap_b32 valu v1 v1          !swap
v_cndmask_b32      valu  v1  x1 x1 s2
v_cmp_lt_i32       valu  s2  x1 v1
v_cmp_le_i32       valu  s2  x1 v1
v_cmp_gt_i32       valu  s2  x1 v1
v_cmp_ge_i32       valu  s2  x1 v1
v_cmp_eq_u32       valu  s2  x1 v1
v_cmp_ne_u32       valu  s2  x1 v1
v_cmp_gt_f32       valu  s2  x1 v1
v_cmp_lt_f32       valu  s2  x1 v1
v_cmp_nle_f32      valu  s2  x1 v1
v_cmp_nge_f32      valu  s2  x1 v1
v_cmp_eq_f32       valu  s2  x1 v1
v_cmp_u_f32        valu  s2  x1 v1
v_accvgpr_read_b32  valu v1  w1
v_accvgpr_write_b32 valu w1  x1
ds_read_b128       lds   w4  v1
ds_read_b64_tr_b8  lds   w2  v1
ds_read_b32        lds   w1  v1
ds_write_b32       lds   -   v1 w1
buffer_load_dword       vmem w1 v1 s4 c1
buffer_load_dwordx4     vmem w4 v1 s4 c1
buffer_load_lds_dwordx4 dma  -  v1 s4 c1  !m0
buffer_store_dword      vmem -  w1 v1 s4 c1
buffer_store_dwordx2    vmem -  w2 v1 s4 c1
buffer_store_dwordx4    vmem -  w4 v1 s4 c1
global_load_dword       vmem w1 v1 s2
global_store_dword      vmem -  v1 w1 s2
v_mfma_f32_32x32x64_f8f6f4        matrix w16 w8 w8 y16
v_mfma_scale_f32_32x32x64_f8f6f4  matrix w16 w8 w8 y16 v1 v1
s_barrier   control -
s_setprio   control - i
s_nop       control - i
s_setreg_imm32_b32 control - i i
s_sleep     control - i
s_waitcnt   control - i
s_endpgm    control -
s_branch        branch - i
s_cbranch_scc0  branch - i !rscc
s_cbranch_scc1  branch - i !rscc
s_cbranch_vccz  branch - i !rvcc
s_cbranch_vccnz branch - i !rvcc
"""


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    extra: frozenset[str]


def _row(line: str) -> Row:
    name, unit, results, *rest = line.split()
    sources = tuple(word for word in rest if not word.startswith("!"))
    extra = frozenset(word[1:] for word in rest if word.startswith("!"))
    return Row(name, unit, () if results == "-" else (results,), sources, extra)


TABLE = {row.name: row for row in map(_row, filter(None, ROWS.splitlines()))}

# Passes of the matrix instructions the generator writes (1 pass = 4 cycles), FP8 operands.
PASSES = {"v_mfma_f32_32x32x64_f8f6f4": 16, "v_mfma_scale_f32_32x32x64_f8f6f4": 16}

Operand = Register | int | float | str
INLINE_FLOATS = {0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0}


class OperandError(ValueError):
    """An instruction was written with an operand it cannot have."""


def check(row: Row, role: str, kind: str, operand: Operand) -> None:
    """Raises OperandError naming instruction, operand, what it accepts and what it got."""
    letter, width = kind[0], int(kind[1:] or 1)
    if letter == "i":
        if isinstance(operand, Register):
            raise OperandError(f"{row.name}: {role} is an immediate, got {operand}")
        return
    if not isinstance(operand, Register):
        if letter in "xcy":
            return
        raise OperandError(f"{row.name}: {role} must be a register ({kind}), got {operand!r}")
    files = {"v": "v", "w": "va", "s": "s", "x": "vs", "c": "s", "y": "va"}[letter]
    if operand.file not in files:
        raise OperandError(
            f"{row.name}: {role} must be in file {' or '.join(files)}, got {operand} ({operand.role})"
        )
    if operand.count != width:
        raise OperandError(f"{row.name}: {role} takes {width} registers, got {operand} ({operand.role})")
    if width > 1 and operand.file in "va" and operand.first % 2:
        raise OperandError(
            f"{row.name}: {role} must begin at an even register, got {operand} ({operand.role})"
        )


def text_of(operand: Operand) -> str:
    if isinstance(operand, float):
        if operand in INLINE_FLOATS:
            return repr(operand) if operand else "0"
        return f"0x{struct.unpack('<I', struct.pack('<f', operand))[0]:08x}"
    return str(operand)


def is_literal(operand: Operand) -> bool:
    """Whether the operand needs the 32-bit literal, which VOP3 instructions of gfx950 do not have."""
    if isinstance(operand, float):
        return operand not in INLINE_FLOATS
    return isinstance(operand, int) and not -16 <= operand <= 64


__all__ = [
    "EXEC",
    "M0",
    "PASSES",
    "TABLE",
    "VCC",
    "Operand",
    "OperandError",
    "Row",
    "check",
    "is_literal",
    "text_of",
]
