"""Value fragments from LDS, and NaN in values that some row of the wave does not see.

The matrix instruction makes NaN of 0 * NaN, so a value that is NaN would reach rows that do not see its key. Only tiles
with hidden keys can hold such values; when one does, the rows that see it are made NaN here and the product takes 0.
"""

from __future__ import annotations

from zyfa_ort.kernels.asm.fp8_config import CLEAN
from zyfa_ort.kernels.asm.fp8_roles import Roles
from zyfa_ort.kernels.asm.program import Program
from zyfa_ort.kernels.asm.registers import VCC, Register

# Per byte: (x & 0x7f) + 1 has bit 7 exactly for the two NaN codes 0x7f and 0xff.
MAGNITUDE, STEP, TOP = 0x7F7F7F7F, 0x01010101, 0x80808080
ONE = 0x38  # e4m3 of 1.0


def load_value(p: Program, r: Roles, dims: int, stage: Register) -> None:
    """The fragment of V^T of dims 32 `dims`.., keys in the order of the packed probabilities."""
    moved = r.temporary[dims]
    p.v_add_u32(moved, stage, r.value_address[dims])
    for block in range(2):
        for pair in range(2):
            at = 4 * block + 2 * pair
            p.ds_read_b64_tr_b8(
                r.value[dims][at : at + 2], moved, modifiers=f"offset:{4096 * block + 2048 * pair}"
            )


def fragment_registers(r: Roles) -> list[Register]:
    return [fragment[i] for fragment in r.value for i in range(8)]


def find_hidden_nan(p: Program, r: Roles) -> None:
    """After the probabilities of a masked tile: whether its values hold NaN. The scores are not needed any more."""
    p.s_cmp_eq_u32(r.masked, 0)
    p.s_cbranch_scc1("values_checked")
    for dims in range(len(r.value)):
        load_value(p, r, dims, r.value_stage)
    found, one, other = (r.temporary[i] for i in range(3))
    registers = fragment_registers(r)
    for pair in range(0, len(registers), 2):
        for target, source in ((one, registers[pair]), (other, registers[pair + 1])):
            p.v_and_b32(target, MAGNITUDE, source)
            p.v_add_u32(target, STEP, target)
        p.v_or3_b32(found, one, other, found if pair else 0)
    p.v_and_b32(found, TOP, found)
    p.v_cmp_ne_u32(VCC, 0, found)
    p.s_cbranch_vccz("values_checked")
    p.s_or_b32(r.terms, r.terms, CLEAN)
    _spread_nan(p, r)
    p.label("values_checked")


def _spread_nan(p: Program, r: Roles) -> None:
    """Counts, per row and dim, the NaN values that the row sees, by a product of indicators; such outputs become NaN."""
    visible, counts = r.scores[0][0:8], r.scores[1]
    _visibility(p, r, visible)
    nan, t = r.temporary[0], r.temporary[1]
    p.v_mov_b32(nan, float("nan"))
    for fragment, result in zip(r.value, r.result, strict=True):
        for i in range(8):
            _nan_bits(p, t, fragment[i])
            # 0x80 >> 2, >> 3, >> 4 together are e4m3 of 1.0.
            p.v_lshrrev_b32(fragment[i], 2, t)
            for shift in (3, 4):
                p.v_lshrrev_b32(r.temporary[2], shift, t)
                p.v_or_b32(fragment[i], fragment[i], r.temporary[2])
        p.v_mfma_f32_32x32x64_f8f6f4(counts, fragment, visible, 0)
        for i in range(16):
            p.v_cmp_lt_f32(VCC, 0.0, counts[i])
            p.v_cndmask_b32(result[i], result[i], nan, VCC)


def _visibility(p: Program, r: Roles, target: Register) -> None:
    """e4m3 ones where the row sees the key, in the order of the packed probabilities."""
    low, high, zero, bit = r.temporary[0], r.temporary[1], r.temporary[2], r.temporary[3]
    limits(p, r, low, high, zero)
    p.v_mov_b32(zero, 0)
    for index in range(32):
        key = first_key(index)
        p.v_cmp_gt_i32(VCC, key, high)
        p.v_cndmask_b32(bit, ONE, zero, VCC)
        p.v_cmp_lt_i32(VCC, key, low)
        p.v_cndmask_b32(bit, bit, zero, VCC)
        word = target[index // 4]
        p.v_lshl_or_b32(word, bit, 8 * (index % 4), word if index % 4 else zero)


def first_key(index: int) -> int:
    """Key of score register `index` in lanes 0..31; lanes 32..63 hold the key 4 further on."""
    block, a, c = index // 16, index // 4 % 4, index % 4
    return 32 * block + 8 * a + c


def limits(p: Program, r: Roles, low: Register, high: Register, t: Register) -> None:
    """First and last visible key of the row, relative to the lane's first key of the tile."""
    first = r.scratch[0]
    p.s_lshl_b32(first, r.tile, 6)
    p.v_lshrrev_b32(t, 5, r.item)
    p.v_lshlrev_b32(t, 2, t)
    p.v_add_u32(t, first, t)
    p.v_sub_u32(low, r.limit_low, t)
    p.v_sub_u32(high, r.limit_high, t)


def _nan_bits(p: Program, target: Register, source: Register) -> None:
    """0x80 in every byte that is NaN."""
    p.v_and_b32(target, MAGNITUDE, source)
    p.v_add_u32(target, STEP, target)
    p.v_and_b32(target, TOP, target)


def keep_only_nan(p: Program, target: Register, t: Register, u: Register) -> None:
    """Bytes that are no NaN become 0."""
    _nan_bytes(p, target, t, u)
    p.v_and_b32(target, t, target)


def clean(p: Program, r: Roles, suffix: str) -> None:
    """NaN values become 0; their rows already are NaN."""
    p.s_and_b32(r.bits, r.terms, CLEAN)
    p.s_cbranch_scc0(f"values_clean{suffix}")
    for register in fragment_registers(r):
        _nan_bytes(p, register, r.temporary[0], r.temporary[1])
        p.v_bfi_b32(register, r.temporary[0], 0, register)
    p.label(f"values_clean{suffix}")


def _nan_bytes(p: Program, source: Register, t: Register, u: Register) -> None:
    """0xff in every byte of `t` that is NaN in `source`."""
    _nan_bits(p, t, source)
    p.v_lshrrev_b32(u, 7, t)
    p.v_sub_u32(u, t, u)
    p.v_or_b32(t, u, t)
