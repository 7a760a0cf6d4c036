"""Every wait-state rule: the planted fault is found, with the missing states; exactly enough states are clean."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from kernels.emulator.straight_line import findings_of, wait
from zyfa_ort.kernels.emulator import Finding


@dataclass(frozen=True)
class Case:
    """`consumer` needs `states` wait states after `producer`; the message contains `says`."""

    rule: str
    producer: str
    consumer: str
    states: int
    says: str = "written by"

    @property
    def id(self) -> str:
        return f"{self.rule}: {self.producer.splitlines()[-1]} -> {self.consumer.splitlines()[0]}"


BF16_8 = "v_mfma_f32_32x32x16_bf16 v[0:15], v[32:35], v[36:39], v[0:15]"
BF16_4 = "v_mfma_f32_16x16x32_bf16 v[0:3], v[32:35], v[36:39], v[0:3]"
F16_2 = "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[32:33], v[36:37], v[0:3]"
FP8_16 = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:47], v[0:15]"
FP4_8 = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:35], v[40:43], v[0:15] cbsz:4 blgp:4"
MIXED_16 = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:43], v[0:15] blgp:4"
SCALED_8 = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[40:47], v[0:3], v48, v49 op_sel_hi:[0,0,0]"
SPARSE_4 = "v_smfmac_f32_16x16x128_fp8_fp8 v[0:3], v[32:35], v[40:47], v48"
F32_8 = "v_mfma_f32_16x16x4_f32 v[0:3], v32, v36, v[0:3]"
F32_16 = "v_mfma_f32_32x32x2_f32 v[0:15], v32, v36, v[0:15]"
F64_SMALL = "v_mfma_f64_4x4x4_4b_f64 v[0:1], v[32:33], v[36:37], v[0:1]"
F64_LARGE = "v_mfma_f64_16x16x4_f64 v[0:7], v[32:33], v[36:37], v[0:7]"

OTHER_C = {
    16: "v_mfma_f32_32x32x16_bf16 v[2:17], v[60:63], v[64:67], v[2:17]",
    4: "v_mfma_f32_16x16x32_bf16 v[2:5], v[60:63], v[64:67], v[2:5]",
}
AS_A = "v_mfma_f32_32x32x16_bf16 v[100:115], v[0:3], v[64:67], v[100:115]"
AS_B = "v_mfma_f32_32x32x16_bf16 v[100:115], v[64:67], v[0:3], v[100:115]"
AS_SCALE = (
    "v_mfma_scale_f32_16x16x128_f8f6f4 v[100:103], v[64:71], v[72:79], v[100:103], v80, v0 op_sel_hi:[0,0,0]"
)
AS_INDEX = "v_smfmac_f32_16x16x128_fp8_fp8 v[100:103], v[64:67], v[72:79], v1"
ADD, MOVE_OVER = "v_add_f32 v200, 1.0, v1", "v_mov_b32 v1, 0"

# Producer, then the states before: overlapping C, A or B, vector, memory, and a write over C.
MATRIX = [
    (F16_2, 4, 5, 5, 5, 1),
    (BF16_4, 6, 8, 8, 8, 3),
    (SPARSE_4, 6, 8, 8, 8, 3),
    (BF16_8, 10, 12, 12, 12, 7),
    (FP4_8, 10, 12, 12, 12, 7),
    (SCALED_8, 10, 12, 12, 12, 7),
    (FP8_16, 18, 20, 20, 20, 15),
    (MIXED_16, 18, 20, 20, 20, 15),
    (F32_8, 8, 10, 10, 10, 0),
    (F32_16, 16, 18, 18, 18, 0),
    (F64_SMALL, 4, 6, 6, 9, 0),
    (F64_LARGE, 17, 19, 19, 18, 0),
]


def matrix_cases() -> list[Case]:
    made = []
    for producer, other_c, ab, vector, memory, war in MATRIX:
        if producer is not F64_SMALL:  # has two registers, which no other C overlaps in part
            made.append(Case("H2", producer, OTHER_C[16], other_c))
        made += [Case("H3", producer, text, ab) for text in (AS_A, AS_B, AS_SCALE, AS_INDEX)]
        reads = (
            "v_pk_mul_f32 v[200:201], v[0:1], v[0:1]",
            "v_accvgpr_write a7, v0",
            "v_readlane_b32 s4, v1, 3",
        )
        made += [Case("H4", producer, text, vector) for text in (ADD, MOVE_OVER, *reads)]
        stores = (
            "global_store_dword v[90:91], v1, off",
            "ds_write_b64 v90, v[0:1]",
            "flat_load_dword v90, v[0:1]",
        )
        made += [Case("H4", producer, text, memory) for text in stores]
        if war and producer is not SPARSE_4:  # its C is its destination: H4
            made.append(Case("H5", elsewhere(producer), MOVE_OVER, war, "read as C by"))
    return made


def elsewhere(matrix: str) -> str:
    """The instruction with another destination: C is read only."""
    return re.sub(r"v\[0:(\d+)\]", lambda m: f"v[120:{120 + int(m[1])}]", matrix, count=1)


SDWA = "dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD"
SGPR = "v_cmp_lt_f32_e64 s[10:11], v1, v2"
EXEC = "v_cmpx_lt_f32_e64 s[10:11], v1, v2"
VECTOR = [
    Case("H1", F16_2, "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[60:61], v[64:65], v[0:3]", 2),
    Case("H1", F16_2, BF16_4, 2),
    Case("H6", "v_mov_b32 v33, 0", BF16_8, 2),
    Case("H6", "v_mov_b32 v38, 0", BF16_8, 2),
    Case("H6", "v_mov_b32 v5, 0", BF16_8, 2),
    Case("H6", "v_mov_b32 v49, 0", SCALED_8, 2),
    Case("H6", "v_mov_b32 v48, 0", SPARSE_4, 2),
    Case("H6", "v_mov_b32 v3, 0", SPARSE_4, 2),
    Case("H6", "v_accvgpr_write a33, v7", BF16_8.replace("v[32:35]", "a[32:35]"), 2),
    Case("H6", "v_permlane32_swap_b32 v90, v33", BF16_8, 2),
    Case("H7", EXEC, BF16_8, 4),
    Case("G1", "v_exp_f32 v1, v2", "v_add_f32 v3, v4, v1", 1),
    Case("G1", "v_rcp_f32 v1, v2", "v_pk_fma_f32 v[4:5], v[0:1], v[6:7], v[8:9]", 1),
    Case("G1", "v_sqrt_f64 v[2:3], v[4:5]", "v_cvt_pk_fp8_f32 v7, v3, v8", 1),
    Case("G1", "v_log_f16 v1, v2", "v_mov_b32 v5, v1", 1),
    Case("G2", "v_mov_b32 v1, v2", "v_add_f32_dpp v3, v1, v4 row_shr:1 row_mask:0xf bank_mask:0xf", 2),
    Case("G2", "ds_read_b32 v1, v9", "v_mov_b32_dpp v3, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 2),
    Case("G3", EXEC, "v_mov_b32_dpp v3, v1 row_bcast:15 row_mask:0xa bank_mask:0xf", 5),
    Case("G3", "v_readfirstlane_b32 exec_lo, v9", "v_mov_b32_dpp v3, v1 row_mirror row_mask:0xf bank_mask:0xf", 5),
    Case("G4", "v_mov_b32 v1, v2", "v_permlane32_swap_b32 v1, v3", 2),
    Case("G4", "v_mov_b32 v3, v2", "v_permlane16_swap_b32 v1, v3", 2),
    Case("G5", EXEC, "v_permlane32_swap_b32 v11, v13", 4),
    Case("G7", "v_readfirstlane_b32 s8, v1", "buffer_load_dword v5, v6, s[8:11], 0 offen", 5),
    Case("G7", "v_readfirstlane_b32 s12, v1", "buffer_store_dword v5, v6, s[8:11], s12 offen", 5),
    Case("G7", SGPR, "global_load_dword v5, v6, s[10:11]", 5),
    Case("G7", "v_readlane_b32 vcc_hi, v1, 5", "global_store_dword v6, v5, vcc", 5),
    Case("G7", "v_readfirstlane_b32 s10, v1", "scratch_load_dword v5, off, s10", 5),
    Case("G8", SGPR, "v_readlane_b32 s20, v5, s11", 4),
    Case("G8", "v_readfirstlane_b32 s5, v1", "v_writelane_b32 v7, 1, s5", 4),
    Case("G8", "v_cmp_lt_f32_e32 vcc, v1, v2", "v_readlane_b32 s20, v5, vcc_lo", 4),
    Case("G9", "v_mov_b32 v1, v2", "v_readfirstlane_b32 s4, v1", 1),
    Case("G9", "v_exp_f32 v1, v2", "v_readlane_b32 s4, v1, 7", 1),
    Case("G10", EXEC, "v_readfirstlane_b32 s4, v5", 4),
    Case("G10", EXEC, "v_readlane_b32 s4, v5, 1", 4),
    Case("G10", EXEC, "v_writelane_b32 v5, 0, 1", 4),
    Case("G11", "v_cmp_lt_f32_e32 vcc, v1, v2", "v_div_fmas_f32 v3, v4, v5, v6", 4),
    Case("G11", "v_div_scale_f64 v[2:3], vcc, v[4:5], v[6:7], v[4:5]",
         "v_div_fmas_f64 v[12:13], v[14:15], v[16:17], v[18:19]", 4),
    Case("G13", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1", "s_getreg_b32 s4, hwreg(HW_REG_MODE)", 2),
    Case("G13", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s7", "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s8", 2),
    Case("G14", "global_store_dwordx4 v[0:1], v[4:7], off", "v_mov_b32 v7, 0", 2, "stored by"),
    Case("G14", "global_store_dwordx3 v0, v[4:6], s[2:3]", "v_mov_b32 v5, 0", 2, "stored by"),
    Case("G14", "buffer_store_dwordx4 v[4:7], v1, s[8:11], 0 offen",
         "v_pk_mov_b32 v[6:7], v[8:9], v[8:9]", 2, "stored by"),
    Case("G14", "flat_store_dwordx4 v[0:1], v[4:7]", "v_exp_f32 v4, v9", 2, "stored by"),
    Case("G15", f"v_add_u32_sdwa v1, v2, v3 dst_sel:BYTE_1 {SDWA}", "v_mov_b32 v5, v1", 1),
    Case("G15", "v_add_i16 v1, v2, v3 op_sel:[0,0,1]", "v_add_u32 v5, v1, v6", 1),
    Case("G15", "v_cvt_pk_fp8_f32 v1, v2, v3 op_sel:[0,0,1]", "v_mov_b32 v5, v1", 1),
    Case("G15", "v_cvt_sr_fp8_f32 v1, v2, v3 op_sel:[0,0,1,0]", "v_cvt_sr_fp8_f32 v1, v2, v3 op_sel:[0,0,0,1]", 1),
    Case("G15", "v_cvt_scalef32_pk_fp8_f32 v1, v2, v3, v4 op_sel:[0,0,0,1]",
         "v_cvt_scalef32_pk_fp8_f32 v1, v5, v6, v4", 1),
    Case("G15", "v_cvt_scalef32_pk_fp4_f32 v1, v2, v3, v4 op_sel:[0,0,1,0]", "v_or_b32 v9, v1, v8", 1),
    Case("G22", "v_dot2_f32_f16 v1, v2, v3, v1", "v_mul_f32 v4, v1, v1", 3),
    Case("G22", "v_dot4_i32_i8 v1, v2, v3, v1", "v_dot4_i32_i8 v4, v1, v3, v4", 3),
    Case("G22", "v_dot4_i32_i8 v1, v2, v3, v1", "v_dot2_f32_f16 v4, v2, v3, v1", 3),
    Case("G22", "v_dot2_f32_f16 v1, v2, v3, v1", "global_store_dword v[8:9], v1, off", 3),
    Case("G22", "v_dot2_f32_f16 v1, v2, v3, v1", "v_mov_b32 v1, 0", 3),
]  # fmt: skip

ERRORS = matrix_cases() + VECTOR


def only(found: list[Finding], rule: str) -> list[Finding]:
    return [f for f in found if f.rule == rule]


@pytest.fixture(scope="module")
def results() -> dict[Case, list[list[Finding]]]:
    """Each case with no, one too few and just enough wait states."""
    counts = [(case, n) for case in ERRORS for n in (0, case.states - 1, case.states)]
    found = findings_of([f"{c.producer}\n{wait(n)}\n{c.consumer}" for c, n in counts])
    return {case: found[3 * i : 3 * i + 3] for i, case in enumerate(ERRORS)}


@pytest.mark.parametrize("case", ERRORS, ids=lambda c: c.id)
def test_the_fault_is_found_and_enough_states_are_clean(
    results: dict[Case, list[list[Finding]]], case: Case
) -> None:
    at_once, one_short, enough = results[case]
    (found,) = only(at_once, case.rule)
    assert (found.severity, found.missing) == ("error", case.states)
    assert case.says.split()[0] in found.message and " by '" in found.message and "' at +0x" in found.message
    assert case.producer.split()[0].removesuffix("_e32") in found.message
    assert [f.missing for f in only(one_short, case.rule)] == [1]
    assert not [f for f in enough if f.severity == "error"], [str(f) for f in enough]


def test_every_rule_that_is_always_an_error_has_a_case() -> None:
    wanted = {f"H{i}" for i in range(1, 8)} | {f"G{i}" for i in (*range(1, 6), *range(7, 12), 13, 14, 15, 22)}
    assert {case.rule for case in ERRORS} == wanted


def test_the_message_names_registers_producer_and_place() -> None:
    ((found,),) = findings_of([f"s_nop 0\n{FP8_16}\nv_add_f32 v200, v7, v7"])
    assert found.message.startswith(
        "v[0:15] written by 'v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[32:39], v[40:47]"
    )
    assert found.message.endswith("' at +0x4")
    assert (found.missing, found.offset) == (20, 12)
    assert "v_add_f32" in found.instruction


def test_accumulation_registers_are_named_as_such() -> None:
    text = "v_mfma_f32_16x16x32_bf16 a[4:7], v[32:35], v[36:39], a[4:7]"
    ((found,),) = findings_of([f"{text}\nv_accvgpr_read_b32 v1, a5"])
    assert found.message.startswith("a[4:7] written by 'v_mfma_f32_16x16x32_bf16 a[4:7]")


SGPR_READERS = [
    ("v_cmp_lt_f32_e32 vcc, v1, v2", "v_cndmask_b32_e32 v3, v4, v5, vcc"),
    (SGPR, "v_cndmask_b32_e64 v3, v4, v5, s[10:11]"),
    ("v_add_co_u32_e32 v1, vcc, v2, v3", "v_addc_co_u32_e32 v4, vcc, v5, v6, vcc"),
    ("v_readfirstlane_b32 s4, v9", "v_mul_f32_e32 v1, s4, v2"),
    ("v_readlane_b32 s5, v9, 3", "v_pk_mul_f32 v[2:3], v[6:7], s[4:5]"),
]


def test_sgprs_of_vector_instructions_are_an_error_at_once_and_a_warning_after_one_state() -> None:
    found = findings_of([f"{a}\n{wait(n)}\n{b}" for a, b in SGPR_READERS for n in range(3)])
    for i in range(0, len(found), 3):
        assert [(f.rule, f.severity, f.missing) for f in found[i]] == [("G6", "error", 2)]
        assert [(f.rule, f.severity, f.missing) for f in found[i + 1]] == [("G6", "warning", 1)]
        assert found[i + 2] == []


M0_READERS = [
    "buffer_load_dwordx4 v1, s[8:11], 0 offen lds",
    "global_load_lds_dword v[2:3], off",
    "s_sendmsg sendmsg(MSG_INTERRUPT)",
    "ds_read_addtid_b32 v3",
]


@pytest.mark.parametrize("writer", ["s_mov_b32 m0, 0", "s_add_u32 m0, s4, 64"])
def test_m0_used_at_once_is_a_warning(writer: str) -> None:
    found = findings_of([f"{writer}\n{wait(n)}\n{reader}" for reader in M0_READERS for n in range(2)])
    for at_once, later in zip(found[::2], found[1::2], strict=True):
        assert [(f.rule, f.severity, f.missing) for f in at_once] == [("G12", "warning", 1)]
        assert later == []


def test_a_swap_of_a_swap_is_an_error_at_once_and_a_warning_after_one_state() -> None:
    swaps = "v_permlane32_swap_b32 v1, v2", "v_permlane16_swap_b32 v2, v3"
    at_once, one, two = findings_of([f"{swaps[0]}\n{wait(n)}\n{swaps[1]}" for n in range(3)])
    assert [(f.rule, f.severity, f.missing) for f in at_once] == [("G4", "error", 2)]
    assert [(f.rule, f.severity, f.missing) for f in one] == [("G4", "warning", 1)]
    assert two == []


def test_a_scaled_conversion_into_the_low_half_warns() -> None:
    low, high = (f"v_cvt_scalef32_pk_fp8_f32 v1, v2, v3, v4{part}" for part in ("", " op_sel:[0,0,0,1]"))
    at_once, later = findings_of([f"{low}\n{wait(n)}\n{high}" for n in range(2)])
    assert [(f.rule, f.severity, f.missing) for f in at_once] == [("G15", "warning", 1)]
    assert later == []


def test_a_load_over_registers_of_a_running_matrix_instruction_warns() -> None:
    load = "ds_read_b128 v[32:35], v90"
    other = "v_mfma_f32_32x32x16_bf16 v[100:115], v[60:63], v[64:67], v[100:115]"
    direct, behind_other, elsewhere, finished = findings_of(
        [
            f"{BF16_8}\n{load}",
            f"{BF16_8}\n{other}\n{load}",
            f"{BF16_8}\nds_read_b128 v[72:75], v90",
            f"{BF16_8}\n{wait(8)}\n{load}",
        ]
    )
    assert [(f.rule, f.severity, f.missing) for f in direct] == [("G21", "warning", 0)]
    assert "v[32:35] read by 'v_mfma" in direct[0].message
    assert behind_other == elsewhere == finished == []
    apart = "v_mfma_f32_32x32x16_bf16 v[0:15], v[32:35], v[36:39], v[40:55]"
    for register, verb in ((5, "written"), (44, "read"), (37, "read")):
        read = f"ds_read_b32 v{register}, v90"
        at_once, later = findings_of([f"{apart}\n{read}", f"{apart}\n{wait(8)}\n{read}"])
        assert [(f.rule, f.severity) for f in at_once] == [("G21", "warning")]
        assert f"{verb} by 'v_mfma" in at_once[0].message
        assert later == []


CLEAN = {
    "accumulation in place": f"{BF16_8}\n{BF16_8}",
    "sparse accumulation in place": f"{SPARSE_4}\n{SPARSE_4}",
    "FP8 accumulation in place": f"{FP8_16}\n{FP8_16}",
    "low then high conversion": "v_cvt_pk_fp8_f32 v1, v2, v3\nv_cvt_pk_fp8_f32 v1, v4, v5 op_sel:[0,0,1]",
    "chain of vector instructions": "v_add_f32 v1, v2, v3\nv_mul_f32 v4, v1, v1\nv_max_f32 v4, v4, v1",
    "chain of transcendentals": "v_exp_f32 v1, v2\nv_log_f32 v3, v1",
    "transcendental, then another register": "v_exp_f32 v1, v2\nv_add_f32 v3, v4, v5",
    "scalar result, vector use": "s_add_u32 s4, s5, s6\nv_mul_f32 v1, s4, v2",
    "scalar result, memory use": "s_add_u32 s4, s5, s6\nbuffer_load_dword v1, v2, s[8:11], s4 offen",
    "scalar EXEC, DPP": "s_mov_b64 exec, -1\nv_mov_b32_dpp v3, v1 row_shr:1 row_mask:0xf bank_mask:0xf",
    "EXEC as a mask only": f"{EXEC}\nv_add_f32 v3, v4, v5",
    "vector result, memory address and data": "v_mov_b32 v1, v2\nglobal_store_dword v1, v1, s[4:5]",
    "vector result, DPP source 1": "v_mov_b32 v4, v2\nv_add_f32_dpp v3, v1, v4 row_shr:1 row_mask:0xf bank_mask:0xf",
    "store of 64 bits": "global_store_dwordx2 v[0:1], v[4:5], off\nv_mov_b32 v5, 0",
    "wide buffer store with an SGPR offset": "buffer_store_dwordx4 v[4:7], v1, s[8:11], s3 offen\nv_mov_b32 v7, 0",
    "wide LDS write": "ds_write_b128 v0, v[4:7]\nv_mov_b32 v7, 0",
    "wide store, address overwritten": "global_store_dwordx4 v[0:1], v[4:7], off\nv_mov_b32 v0, 0",
    "other hardware register": "s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0\ns_getreg_b32 s4, hwreg(HW_REG_HW_ID)",
    "dot product accumulates": "v_dot2_f32_f16 v1, v2, v3, v1\nv_dot2_f32_f16 v1, v4, v5, v1",
    "matrix result, A of a matrix instruction elsewhere": f"{BF16_8}\n{AS_A.replace('v[0:3]', 'v[70:73]')}",
    "C of a matrix instruction read": f"{BF16_8.replace('v[0:15]', 'v[120:135]', 1)}\n{ADD}",
    "sdwa that writes the whole register": f"v_add_u32_sdwa v1, v2, v3 dst_sel:DWORD {SDWA}\nv_mov_b32 v5, v1",
    "scalar memory with a vector SGPR": "v_readfirstlane_b32 s4, v1\ns_load_dword s6, s[4:5], 0x0",
    "end of the program between": f"{BF16_8}\ns_endpgm\n{ADD}",
}  # fmt: skip


def test_what_is_allowed_has_no_finding() -> None:
    names = [name for name in CLEAN if name != "end of the program between"]
    for name, found in zip(names, findings_of([CLEAN[name] for name in names]), strict=True):
        assert found == [], name
    assert findings_of([BF16_8, ADD]) == [[], []]


def test_each_instruction_is_one_wait_state_and_s_nop_n_is_n_plus_one() -> None:
    others = "s_waitcnt vmcnt(0)\ns_barrier\ns_setprio 1\nv_mov_b32 v90, v91\nds_read_b32 v92, v93\ns_add_u32 s4, s5, s6"
    exact, short = findings_of([f"{BF16_8}\n{others}\n{wait(n)}\n{ADD}" for n in (6, 5)])
    assert exact == []
    assert [(f.rule, f.missing) for f in short] == [("H4", 1)]


def test_waiting_for_the_matrix_pipe_does_not_count() -> None:
    # The second instruction cannot enter the pipe before 8 states have passed; it is one wait state all the same.
    other = "v_mfma_f32_32x32x16_bf16 v[100:115], v[60:63], v[64:67], v[100:115]"
    behind, alone, h6 = findings_of(
        [
            f"{BF16_8}\n{other}\n{wait(4)}\n{ADD}",
            f"{BF16_8}\n{wait(5)}\n{ADD}",
            f"{BF16_8}\nv_mov_b32 v60, 0\n{other}",
        ]
    )
    assert [(f.rule, f.severity, f.missing) for f in behind] == [("H4", "error", 7)]
    assert [(f.rule, f.severity, f.missing) for f in alone] == [("H4", "error", 7)]
    assert [(f.rule, f.severity, f.missing) for f in h6] == [("H6", "error", 2)]


def test_a_result_that_was_written_again_is_not_waited_for() -> None:
    first, second, third = (
        f"v_mfma_f32_16x16x32_bf16 {d}, v[60:63], v[68:71], {c}"
        for d, c in (("v[0:3]", "v[0:3]"), ("v[2:5]", "v[0:3]"), ("v[2:5]", "v[2:5]"))
    )
    replaced, missing = findings_of([f"{first}\n{second}\n{third}", f"{first}\n{third}"])
    assert not replaced
    assert [(f.rule, f.severity, f.missing) for f in missing] == [("H2", "error", 6)]


def test_another_pass_count_on_the_same_registers_warns() -> None:
    scaled = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[60:67], v[68:75], v[0:15]"
    found = findings_of([f"{BF16_8}\n{wait(n)}\n{scaled}" for n in (0, 9, 10)])
    assert [[(f.rule, f.severity) for f in one] for one in found] == [
        [("H2", "warning")],
        [("H2", "warning")],
        [],
    ]


def test_the_newest_and_older_matrix_instructions_both_count() -> None:
    second = "v_mfma_f32_16x16x32_bf16 v[16:19], v[60:63], v[64:67], v[16:19]"
    found = findings_of(
        [f"{FP8_16}\n{second}\nv_add_f32 v200, v1, v17", f"{FP8_16}\n{wait(19)}\n{second}\n{ADD}"]
    )
    assert [(f.rule, f.missing) for f in found[0]] == [("H4", 19)]
    assert found[1] == []
