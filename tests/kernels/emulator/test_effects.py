"""What instructions read and write: registers with roles, units, passes, flags."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kernels.emulator.straight_line import effects_of

VCC, M0, EXEC, A = 106, 124, 126, 256
SDWA = "dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD"

# text: (unit, VGPR reads, VGPR writes, SGPR reads, SGPR writes); registers as (first, count, role).
TABLE: dict[str, tuple[str, list[Any], list[Any], list[Any], list[Any]]] = {
    "v_add_f32_e32 v1, v2, v3": ("valu", [(2, 1, "source"), (3, 1, "source")], [(1, 1, "result")], [], []),
    "v_fmac_f32_e32 v1, s7, v3": (
        "valu", [(3, 1, "source"), (1, 1, "source")], [(1, 1, "result")], [(7, 1, "source")], [],
    ),
    "v_pk_fma_f32 v[2:3], v[4:5], s[6:7], v[8:9]": (
        "valu", [(4, 2, "source"), (8, 2, "source")], [(2, 2, "result")], [(6, 2, "source")], [],
    ),
    "v_exp_f32_e32 v1, v2": ("trans", [(2, 1, "source")], [(1, 1, "result")], [], []),
    "v_rcp_f64_e32 v[2:3], v[4:5]": ("trans", [(4, 2, "source")], [(2, 2, "result")], [], []),
    "v_cndmask_b32_e32 v1, v2, v3, vcc": (
        "valu", [(2, 1, "source"), (3, 1, "source")], [(1, 1, "result")], [(VCC, 2, "mask")], [],
    ),
    "v_cndmask_b32_e64 v1, v2, v3, s[8:9]": (
        "valu", [(2, 1, "source"), (3, 1, "source")], [(1, 1, "result")], [(8, 2, "mask")], [],
    ),
    "v_addc_co_u32_e32 v1, vcc, v2, v3, vcc": (
        "valu", [(2, 1, "source"), (3, 1, "source")], [(1, 1, "result")], [(VCC, 2, "mask")], [(VCC, 2, "result")],
    ),
    "v_cmp_lt_f32_e32 vcc, s4, v2": ("valu", [(2, 1, "source")], [], [(4, 1, "source")], [(VCC, 2, "result")]),
    "v_cmpx_eq_u32_e64 s[4:5], v1, v2": (
        "valu", [(1, 1, "source"), (2, 1, "source")], [], [], [(4, 2, "result"), (EXEC, 2, "result")],
    ),
    "v_div_fmas_f32 v1, v2, v3, v4": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (4, 1, "source")], [(1, 1, "result")], [(VCC, 2, "mask")], [],
    ),
    "v_div_scale_f32 v1, vcc, v2, v3, v2": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (2, 1, "source")], [(1, 1, "result")], [], [(VCC, 2, "result")],
    ),
    "v_mad_u64_u32 v[2:3], s[4:5], v6, v7, v[8:9]": (
        "valu", [(6, 1, "source"), (7, 1, "source"), (8, 1, "source"), (9, 1, "passed_on")], [(2, 2, "result")], [],
        [(4, 2, "result")],
    ),
    "v_pk_mul_f32 v[2:3], v[4:5], s[6:7] op_sel:[1,0] op_sel_hi:[1,0]": (
        "valu", [(4, 1, "unselected"), (5, 1, "source")], [(2, 2, "result")],
        [(6, 1, "source"), (7, 1, "unselected")], [],
    ),
    "v_pk_mov_b32 v[2:3], v[4:5], v[6:7] op_sel:[1,0]": (
        "valu", [(4, 1, "unselected"), (5, 1, "source"), (6, 1, "source"), (7, 1, "unselected")], [(2, 2, "result")],
        [], [],
    ),
    "v_readfirstlane_b32 vcc_hi, v1": ("valu", [(1, 1, "source")], [], [], [(VCC + 1, 1, "result")]),
    "v_readlane_b32 s4, v1, s5": ("valu", [(1, 1, "source")], [], [(5, 1, "lane_select")], [(4, 1, "result")]),
    "v_writelane_b32 v1, s4, 7": ("valu", [(1, 1, "merge")], [(1, 1, "partial")], [(4, 1, "source")], []),
    "v_writelane_b32 v1, 7, m0": ("valu", [(1, 1, "merge")], [(1, 1, "partial")], [(M0, 1, "lane_select")], []),
    "v_permlane32_swap_b32_e32 v1, v2": (
        "valu", [(2, 1, "source"), (1, 1, "source")], [(2, 1, "result"), (1, 1, "result")], [], [],
    ),
    "v_swap_b32 v1, v2": (
        "valu", [(2, 1, "source"), (1, 1, "source")], [(2, 1, "result"), (1, 1, "result")], [], [],
    ),
    "v_cvt_pk_fp8_f32 v1, v2, v3": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    "v_cvt_sr_bf8_f32 v1, v2, v3 op_sel:[0,0,1,0]": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    "v_cvt_scalef32_pk_fp8_f32 v1, v2, v3, v4": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (4, 1, "source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    "v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[40:45], v50": (
        "valu", [(40, 6, "source"), (50, 1, "source")], [(0, 32, "result")], [], [],
    ),
    "v_cvt_pk_u8_f32 v1, v2, 1, v3": ("valu", [(2, 1, "source"), (3, 1, "source")], [(1, 1, "result")], [], []),
    "v_fma_mixhi_f16 v1, v2, v3, v4": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (4, 1, "source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    "v_max3_f16 v1, v2, v3, v4 op_sel:[0,0,0,1]": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (4, 1, "source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    f"v_add_u32_sdwa v1, v2, v3 dst_sel:WORD_1 {SDWA}": (
        "valu", [(2, 1, "source"), (3, 1, "source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    f"v_add_u32_sdwa v1, v2, v3 dst_sel:DWORD {SDWA}": (
        "valu", [(2, 1, "source"), (3, 1, "source")], [(1, 1, "result")], [], [],
    ),
    "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf": (
        "valu", [(2, 1, "dpp_source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0": (
        "valu", [(2, 1, "dpp_source")], [(1, 1, "result")], [], [],
    ),
    "v_add_f32_dpp v1, v2, v3 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf": (
        "valu", [(2, 1, "dpp_source"), (3, 1, "source")], [(1, 1, "result")], [], [],
    ),
    "v_add_f32_dpp v1, v2, v3 quad_perm:[0,1,2,3] row_mask:0xa bank_mask:0xf": (
        "valu", [(2, 1, "dpp_source"), (3, 1, "source"), (1, 1, "merge")], [(1, 1, "partial")], [], [],
    ),
    "v_accvgpr_read_b32 v1, a2": ("valu", [(A + 2, 1, "source")], [(1, 1, "result")], [], []),
    "v_accvgpr_write_b32 a1, s2": ("valu", [], [(A + 1, 1, "result")], [(2, 1, "source")], []),
    "v_mfma_f32_32x32x16_bf16 a[0:15], v[4:7], a[8:11], a[16:31]": (
        "matrix", [(4, 4, "matrix_a"), (A + 8, 4, "matrix_b"), (A + 16, 16, "matrix_c")], [(A, 16, "result")], [], [],
    ),
    "v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], 0": (
        "matrix", [(4, 4, "matrix_a"), (8, 4, "matrix_b")], [(0, 4, "result")], [], [],
    ),
    "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:37], v[40:43], v[0:15] cbsz:2 blgp:4": (
        "matrix", [(32, 6, "matrix_a"), (40, 4, "matrix_b"), (0, 16, "matrix_c")], [(0, 16, "result")], [], [],
    ),
    "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[40:47], v[0:3], v48, v49 op_sel_hi:[0,0,0]": (
        "matrix",
        [(32, 8, "matrix_a"), (40, 8, "matrix_b"), (0, 4, "matrix_c"), (48, 1, "matrix_scale"), (49, 1, "matrix_scale")],
        [(0, 4, "result")], [], [],
    ),
    "v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[32:35], v[40:47], v48": (
        "matrix", [(32, 4, "matrix_a"), (40, 8, "matrix_b"), (0, 4, "matrix_c"), (48, 1, "matrix_index")],
        [(0, 4, "result")], [], [],
    ),
    "ds_read_b128 a[4:7], v1 offset:16": ("lds", [(1, 1, "address")], [(A + 4, 4, "result")], [], []),
    "ds_read2_b64 v[4:7], v1 offset1:2": ("lds", [(1, 1, "address")], [(4, 4, "result")], [], []),
    "ds_read_b64_tr_b8 v[4:5], v1": ("lds", [(1, 1, "address")], [(4, 2, "result")], [], []),
    "ds_read_u16_d16_hi v4, v1": ("lds", [(1, 1, "address"), (4, 1, "merge")], [(4, 1, "partial")], [], []),
    "ds_write2_b32 v1, v2, v3 offset1:4": ("lds", [(1, 1, "address"), (2, 1, "data"), (3, 1, "data")], [], [], []),
    "ds_bpermute_b32 v1, v2, v3": ("lds", [(2, 1, "address"), (3, 1, "data")], [(1, 1, "result")], [], []),
    "ds_add_rtn_u32 v1, v2, v3": ("lds", [(2, 1, "address"), (3, 1, "data")], [(1, 1, "result")], [], []),
    "ds_append v1": ("lds", [], [(1, 1, "result")], [(M0, 1, "m0")], []),
    "global_load_dwordx4 v[4:7], v1, s[2:3]": (
        "vmem", [(1, 1, "address")], [(4, 4, "result")], [(2, 2, "resource")], [],
    ),
    "global_load_short_d16_hi v4, v[2:3], off": (
        "vmem", [(2, 2, "address"), (4, 1, "merge")], [(4, 1, "partial")], [], [],
    ),
    "global_store_dwordx3 v[2:3], v[4:6], off": ("vmem", [(2, 2, "address"), (4, 3, "data")], [], [], []),
    "global_atomic_cmpswap v1, v2, v[4:5], s[2:3] sc0": (
        "vmem", [(2, 1, "address"), (4, 2, "data")], [(1, 1, "result")], [(2, 2, "resource")], [],
    ),
    "global_load_lds_dwordx4 v1, s[2:3]": (
        "vmem", [(1, 1, "address")], [], [(2, 2, "resource"), (M0, 1, "m0")], [],
    ),
    "flat_load_dword v1, v[2:3]": ("flat", [(2, 2, "address")], [(1, 1, "result")], [], []),
    "scratch_load_dword v1, off, s4": ("vmem", [], [(1, 1, "result")], [(4, 1, "resource")], []),
    "buffer_load_dwordx2 v[4:5], v[2:3], s[8:11], s12 idxen offen": (
        "vmem", [(2, 2, "address")], [(4, 2, "result")], [(8, 4, "resource"), (12, 1, "resource")], [],
    ),
    "buffer_load_dwordx4 v1, s[8:11], 0 offen lds": (
        "vmem", [(1, 1, "address")], [], [(8, 4, "resource"), (M0, 1, "m0")], [],
    ),
    "buffer_store_dword v4, off, s[8:11], 0": ("vmem", [(4, 1, "data")], [], [(8, 4, "resource")], []),
    "buffer_atomic_pk_add_bf16 v4, v1, s[8:11], 0 offen": (
        "vmem", [(1, 1, "address"), (4, 1, "data")], [], [(8, 4, "resource")], [],
    ),
    "s_load_dwordx8 s[8:15], s[2:3], s4": ("smem", [], [], [(2, 2, "resource"), (4, 1, "resource")], [(8, 8, "result")]),
    "s_buffer_load_dword vcc_lo, s[8:11], 0x10": ("smem", [], [], [(8, 4, "resource")], [(VCC, 1, "result")]),
    "s_memtime s[4:5]": ("smem", [], [], [], [(4, 2, "result")]),
    "s_add_u32 s4, s5, s6": ("salu", [], [], [(5, 1, "source"), (6, 1, "source")], [(4, 1, "result")]),
    "s_addk_i32 s4, 5": ("salu", [], [], [(4, 1, "source")], [(4, 1, "result")]),
    "s_cmpk_eq_u32 s4, 5": ("salu", [], [], [(4, 1, "source")], []),
    "s_setreg_b32 hwreg(HW_REG_MODE), s4": ("salu", [], [], [(4, 1, "source")], []),
    "s_and_saveexec_b64 s[4:5], vcc": (
        "salu", [], [], [(VCC, 2, "source"), (EXEC, 2, "source")], [(4, 2, "result"), (EXEC, 2, "result")],
    ),
    "s_mov_b64 exec, s[4:5]": ("salu", [], [], [(4, 2, "source")], [(EXEC, 2, "result")]),
    "s_bitset1_b32 s4, s5": ("salu", [], [], [(5, 1, "source"), (4, 1, "source")], [(4, 1, "result")]),
    "s_cbranch_vccnz 4": ("branch", [], [], [(VCC, 2, "source")], []),
    "s_swappc_b64 s[4:5], s[6:7]": ("branch", [], [], [(6, 2, "source")], [(4, 2, "result")]),
    "s_sendmsg sendmsg(MSG_INTERRUPT)": ("control", [], [], [(M0, 1, "m0")], []),
    "s_waitcnt vmcnt(3)": ("control", [], [], [], []),
    "s_barrier": ("control", [], [], [], []),
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> dict[str, dict[str, Any]]:
    return dict(zip(TABLE, effects_of(list(TABLE)), strict=True))


@pytest.mark.parametrize("text", TABLE)
def test_registers_and_unit(table: dict[str, dict[str, Any]], text: str) -> None:
    found = table[text]
    names = "unit", "vgpr_reads", "vgpr_writes", "sgpr_reads", "sgpr_writes"
    assert tuple(found[name] for name in names) == TABLE[text]


def test_who_reads_exec_and_who_ignores_it(table: dict[str, dict[str, Any]]) -> None:
    for text, found in table.items():
        lanewise = found["unit"] in ("valu", "trans", "vmem", "lds", "flat")
        ignores = text.startswith(("v_readlane", "v_writelane"))
        scalar = "saveexec" in text
        assert found["reads_exec"] == ((lanewise and not ignores) or scalar), text
        assert found["writes_exec"] == any(first == EXEC for first, _, _ in found["sgpr_writes"]), text
        assert found["all_lanes"] == (found["unit"] == "matrix" or "_tr_" in text), text


def test_memory_flags(table: dict[str, dict[str, Any]]) -> None:
    for text, found in table.items():
        if found["unit"] not in ("smem", "vmem", "lds", "flat"):
            assert not (found["is_load"] or found["is_store"] or found["is_atomic"] or found["lds_dma"]), text
            continue
        atomic = "atomic" in text or "add_rtn" in text or "append" in text
        store = "store" in text or "ds_write" in text
        assert found["is_atomic"] == atomic, text
        assert found["is_store"] == store, text
        assert found["is_load"] == (not atomic and not store), text
        assert found["lds_dma"] == ("lds_dwordx4" in text or text.endswith(" lds")), text


# Shape of the matrix instructions and their passes, read off AMD's published cycle counts (4 cycles each).
PASSES = {
    "v_mfma_f32_32x32x1_2b_f32 v[0:31], v40, v41, 0": 16,
    "v_mfma_f32_16x16x1_4b_f32 v[0:15], v40, v41, 0": 8,
    "v_mfma_f32_4x4x1_16b_f32 v[0:3], v40, v41, 0": 2,
    "v_mfma_f32_32x32x2_f32 v[0:15], v40, v41, 0": 16,
    "v_mfma_f32_16x16x4_f32 v[0:3], v40, v41, 0": 8,
    "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[40:41], v[42:43], 0": 16,
    "v_mfma_f32_16x16x4_4b_bf16 v[0:15], v[40:41], v[42:43], 0": 8,
    "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[40:41], v[42:43], 0": 2,
    "v_mfma_f32_32x32x8_bf16 v[0:15], v[40:41], v[42:43], 0": 8,
    "v_mfma_f32_16x16x16_f16 v[0:3], v[40:41], v[42:43], 0": 4,
    "v_mfma_f32_32x32x16_f16 v[0:15], v[40:43], v[44:47], 0": 8,
    "v_mfma_f32_16x16x32_bf16 v[0:3], v[40:43], v[44:47], 0": 4,
    "v_mfma_f32_32x32x16_fp8_bf8 v[0:15], v[40:41], v[42:43], 0": 8,
    "v_mfma_f32_16x16x32_bf8_fp8 v[0:3], v[40:41], v[42:43], 0": 4,
    "v_mfma_i32_32x32x32_i8 v[0:15], v[40:43], v[44:47], 0": 8,
    "v_mfma_i32_16x16x64_i8 v[0:3], v[40:43], v[44:47], 0": 4,
    "v_mfma_f64_16x16x4_f64 v[0:7], v[40:41], v[42:43], 0": 16,
    "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[40:41], v[42:43], 0": 4,
    "v_smfmac_f32_32x32x64_fp8_fp8 v[0:15], v[40:43], v[44:51], v60": 8,
    "v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[40:43], v[44:51], v60": 4,
    "v_smfmac_f32_32x32x32_bf16 v[0:15], v[40:43], v[44:51], v60": 8,
} | {
    f"v_mfma_f32_{shape}_f8f6f4 v[0:{d - 1}], v[40:{39 + dwords[a]}], v[50:{49 + dwords[b]}], 0 cbsz:{a} blgp:{b}": (
        (16 if shape == "32x32x64" else 8) // (1 if min(a, b) < 2 else 2)
    )
    for shape, d in (("32x32x64", 16), ("16x16x128", 4))
    for dwords in ((8, 8, 6, 6, 4),)
    for a in range(5)
    for b in range(5)
}


def test_passes_of_matrix_instructions() -> None:
    for (text, passes), found in zip(PASSES.items(), effects_of(list(PASSES)), strict=True):
        assert (found["unit"], found["passes"]) == ("matrix", passes), text


SCALAR = """
s_add_u32 s_sub_u32 s_add_i32 s_sub_i32 s_addc_u32 s_subb_u32 s_min_i32 s_min_u32 s_max_i32 s_max_u32
s_cselect_b32 s_and_b32 s_or_b32 s_xor_b32 s_andn2_b32 s_orn2_b32 s_nand_b32 s_nor_b32 s_xnor_b32
s_lshl_b32 s_lshr_b32 s_ashr_i32 s_bfm_b32 s_mul_i32 s_bfe_u32 s_bfe_i32 s_absdiff_i32 s_mul_hi_u32
s_mul_hi_i32 s_lshl1_add_u32 s_lshl2_add_u32 s_lshl3_add_u32 s_lshl4_add_u32 s_pack_ll_b32_b16
s_pack_lh_b32_b16 s_pack_hh_b32_b16
"""
SCALAR_64 = """
s_cselect_b64 s_and_b64 s_or_b64 s_xor_b64 s_andn2_b64 s_orn2_b64 s_nand_b64 s_nor_b64 s_xnor_b64
"""
UNARY = """
s_mov_b32 s_cmov_b32 s_not_b32 s_wqm_b32 s_brev_b32 s_bcnt0_i32_b32 s_bcnt1_i32_b32 s_ff0_i32_b32
s_ff1_i32_b32 s_flbit_i32_b32 s_flbit_i32 s_sext_i32_i8 s_sext_i32_i16 s_bitset0_b32 s_bitset1_b32
s_quadmask_b32 s_abs_i32
"""
UNARY_64 = """
s_mov_b64 s_cmov_b64 s_not_b64 s_wqm_b64 s_brev_b64 s_quadmask_b64 s_and_saveexec_b64 s_or_saveexec_b64
s_xor_saveexec_b64 s_andn2_saveexec_b64 s_orn2_saveexec_b64 s_nand_saveexec_b64 s_nor_saveexec_b64
s_xnor_saveexec_b64 s_andn1_saveexec_b64 s_orn1_saveexec_b64 s_andn1_wrexec_b64 s_andn2_wrexec_b64
"""
COMPARES = """
s_cmp_eq_i32 s_cmp_lg_u32 s_cmp_gt_i32 s_cmp_le_u32 s_bitcmp0_b32 s_bitcmp1_b32
"""
IMMEDIATES = """
s_movk_i32 s_cmovk_i32 s_cmpk_eq_i32 s_cmpk_lg_u32 s_cmpk_ge_i32 s_cmpk_lt_u32 s_addk_i32 s_mulk_i32
"""


def scalar_texts() -> list[str]:
    return [
        *(f"{name} s4, s5, s6" for name in SCALAR.split()),
        *(f"{name} s[4:5], s[6:7], s[8:9]" for name in SCALAR_64.split()),
        *(f"{name} s4, s5" for name in UNARY.split()),
        *(f"{name} s[4:5], s[6:7]" for name in UNARY_64.split()),
        *(f"{name} s4, s5" for name in COMPARES.split()),
        *(f"{name} s4, 5" for name in IMMEDIATES.split()),
        *("s_cbranch_scc0 1", "s_cbranch_scc1 1", "s_cbranch_vccz 1", "s_branch 1"),
    ]


def test_scc_against_the_published_pseudo_code() -> None:
    published = pytest.importorskip("tinygrad.runtime.autogen.amd.cdna.str_pcode").PCODE
    code = {op.name.lower(): text for op, text in published.items() if op.name.startswith("S_")}
    texts = scalar_texts()
    for text, found in zip(texts, effects_of(texts), strict=True):
        name = text.split()[0]
        body = code[name]
        writes = re.search(r"\bSCC(\.\w+)? = ", body) is not None
        first = re.search(r"\bSCC\b(?:\.\w+)?( = )?", body)
        reads = first is not None and first[1] is None
        assert (found["writes_scc"], found["reads_scc"]) == (writes, reads), f"{name}: {body}"
