"""Correct kernels in which every wait, barrier and wait state is needed, to be broken one change at a time.

They compute nothing of use; what they store depends on every value they touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Subject:
    body: str
    waves: int
    lds: int
    inputs: int  # dwords
    outputs: int


START = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
"""

# Four waves; 4 KiB per step come by LDS-DMA into two stages in turn, a KiB per wave; everyone reads what others fetched,
# rows and transposed, and multiplies.
PIPELINE = (
    START
    + """
v_and_b32 v1, 63, v0
v_lshrrev_b32 v3, 6, v0
s_nop 0
v_readfirstlane_b32 s20, v3
v_lshlrev_b32 v2, 4, v0
v_lshlrev_b32 v4, 4, v1
s_lshl_b32 s21, s20, 10
s_xor_b32 s22, s21, 0x400
v_add_u32 v5, s22, v4
v_lshlrev_b32 v6, 3, v1
s_xor_b32 s22, s21, 0x800
v_add_u32 v6, s22, v6
"""
    + "\n".join(f"v_mov_b32 v{40 + i}, 0" for i in range(16))
    + """
s_mov_b32 s23, 0
s_mov_b32 m0, s21
s_waitcnt lgkmcnt(0)
global_load_lds_dwordx4 v2, s[4:5]
.Lstep:
s_add_u32 s4, s4, 0x1000
s_addc_u32 s5, s5, 0
s_xor_b32 s21, s21, 0x1000
s_barrier
s_mov_b32 m0, s21
s_nop 0
global_load_lds_dwordx4 v2, s[4:5]
s_waitcnt vmcnt(1)
s_barrier
ds_read_b128 v[8:11], v5 offset:0
ds_read_b64_tr_b16 v[12:13], v6 offset:0
ds_read_b64_tr_b16 v[14:15], v6 offset:512
ds_read_b64_tr_b8 v[16:17], v6 offset:0
ds_read_b64_tr_b8 v[18:19], v6 offset:512
v_xor_b32 v5, 0x1000, v5
v_xor_b32 v6, 0x1000, v6
s_waitcnt lgkmcnt(2)
v_mfma_f32_32x32x16_bf16 v[40:55], v[8:11], v[12:15], v[40:55]
s_waitcnt lgkmcnt(0)
v_mfma_f32_32x32x16_bf16 v[40:55], v[16:19], v[8:11], v[40:55]
s_add_u32 s23, s23, 1
s_cmp_lt_u32 s23, 4
s_cbranch_scc1 .Lstep
s_waitcnt vmcnt(0)
s_barrier
ds_read_b128 v[60:63], v5 offset:0
s_waitcnt lgkmcnt(0)
s_nop 4
v_xor_b32 v40, v40, v60
"""
    + "\n".join(f"v_xor_b32 v{41 + i}, v{41 + i}, v{61 + i % 3}" for i in range(15))
    + """
v_lshlrev_b32 v2, 2, v2
global_store_dwordx4 v2, v[40:43], s[6:7]
global_store_dwordx4 v2, v[44:47], s[6:7] offset:16
global_store_dwordx4 v2, v[48:51], s[6:7] offset:32
global_store_dwordx4 v2, v[52:55], s[6:7] offset:48
"""
)

# Two waves that exchange values through LDS and lanes: loads of three kinds, narrowed EXEC, results that come late.
EXCHANGE = (
    START
    + """
v_lshlrev_b32 v2, 2, v0
v_xor_b32 v4, 0x100, v2
v_xor_b32 v5, 0xfc, v4
s_waitcnt lgkmcnt(0)
s_load_dword s24, s[4:5], 0x0
s_load_dword s25, s[4:5], 0x4
global_load_dword v10, v2, s[4:5]
global_load_dword v11, v2, s[4:5] offset:512
global_load_dwordx2 v[12:13], v2, s[4:5] offset:1024
s_waitcnt vmcnt(2)
ds_write_b32 v2, v10 offset:0
s_waitcnt vmcnt(1)
ds_write_b32 v2, v11 offset:512
s_waitcnt vmcnt(0) lgkmcnt(0)
v_add_f32 v12, s24, v12
v_add_f32 v13, s25, v13
s_barrier
ds_read_b32 v14, v4 offset:0
ds_read_b32 v15, v5 offset:512
ds_bpermute_b32 v16, v4, v12
s_waitcnt lgkmcnt(2)
v_add_f32 v17, v14, v13
s_waitcnt lgkmcnt(1)
v_add_f32 v18, v15, v13
s_waitcnt lgkmcnt(0)
s_barrier
ds_write_b32 v2, v17 offset:0
v_exp_f32 v19, v16
s_nop 0
v_mul_f32 v19, v19, v18
v_log_f32 v20, v19
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v21, v5 offset:0
v_cmp_gt_f32 vcc, v20, v18
s_nop 1
v_cndmask_b32 v22, v18, v20, vcc
v_mov_b32 v23, v22
s_nop 1
v_permlane32_swap_b32 v22, v23
v_add_f32 v24, v22, v23
s_nop 1
v_mov_b32_dpp v25, v24 row_ror:3 row_mask:0xf bank_mask:0xf
s_waitcnt lgkmcnt(0)
v_add_f32 v25, v21, v25
s_nop 0
v_readlane_b32 s26, v25, 17
v_cmp_gt_f32 s[28:29], v25, v16
s_and_saveexec_b64 s[30:31], s[28:29]
v_add_f32 v25, s26, v25
s_mov_b64 exec, s[30:31]
v_readfirstlane_b32 s27, v25
s_nop 3
v_readlane_b32 s26, v24, s27
s_nop 1
v_add_f32 v24, s26, v24
v_cvt_pk_fp8_f32 v26, v24, v25
v_cvt_pk_fp8_f32 v26, v25, v24 op_sel:[0,0,1]
s_nop 0
v_xor_b32 v27, v20, v26
v_lshlrev_b32 v2, 2, v2
global_store_dwordx4 v2, v[24:27], s[6:7]
s_nop 1
v_mov_b32 v25, 0
"""
)

SUBJECTS = {
    "pipeline": Subject(PIPELINE, waves=4, lds=8192, inputs=5 * 1024, outputs=4096),
    "exchange": Subject(EXCHANGE, waves=2, lds=1024, inputs=512, outputs=512),
}


def inputs(subject: Subject) -> np.ndarray:
    """Small floats of 16 bits in both halves of every dword: finite as bf16, f32 and E4M3 pairs."""
    values = np.random.default_rng(7).integers(0x3E00, 0x3FC0, 2 * subject.inputs).astype(np.uint16)
    return values.view(np.uint32)
