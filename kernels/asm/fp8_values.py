"""Value fragments from LDS, and NaN in values that some row of the wave does not see.

The matrix instruction makes NaN of 0 * NaN, so a value that is NaN would reach rows that do not see its key. Only tiles
with hidden keys can hold such values; when one does, the rows that see it are made NaN here and the product takes 0.
"""

from __future__ import annotations

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


def collect_nan(p: Program, r: Roles, dims: int) -> None:
    """Bit 7 of some byte of r.temporary[0] says that there is NaN in the fragments up to this one."""
    found, one, other = (r.temporary[i] for i in range(3))
    for pair in range(0, 8, 2):
        for target, source in ((one, r.value[dims][pair]), (other, r.value[dims][pair + 1])):
            p.v_and_b32(target, MAGNITUDE, source)
            p.v_add_u32(target, STEP, target)
        p.v_or3_b32(found, one, other, found if dims or pair else 0)


def judge_nan(p: Program, r: Roles) -> None:
    """Behind the last collect_nan: values that are NaN become 0, outputs of rows that see them NaN."""
    p.v_and_b32(r.temporary[0], TOP, r.temporary[0])
    p.v_cmp_ne_u32(VCC, 0, r.temporary[0])
    p.s_cbranch_vccnz("nan")
    p.label("no_nan")

    def write() -> None:
        p.at("product apart, NaN", "")
        p.label("nan")
        _spread_nan(p, r)
        p.s_branch("no_nan")

    p.aside(write)


def _spread_nan(p: Program, r: Roles) -> None:
    """Counts, per row and dim, the NaN values that the row sees, by a product of indicators; such outputs become NaN."""
    visible, indicator, counts = r.key[0], r.key[1], r.counts
    _visibility(p, r, visible)
    nan, t, u = (r.temporary[i] for i in range(3))
    p.v_mov_b32(nan, float("nan"))
    for fragment, result in zip(r.value, r.result, strict=True):
        for i in range(8):
            _nan_bits(p, t, fragment[i])
            # 0x80 >> 2, >> 3, >> 4 together are e4m3 of 1.0.
            p.v_lshrrev_b32(indicator[i], 2, t)
            for shift in (3, 4):
                p.v_lshrrev_b32(u, shift, t)
                p.v_or_b32(indicator[i], indicator[i], u)
            _nan_bytes(p, fragment[i], t, u)
            p.v_bfi_b32(fragment[i], t, 0, fragment[i])
        p.v_mfma_f32_32x32x64_f8f6f4(counts, indicator, visible, 0)
        for i in range(16):
            p.v_cmp_lt_f32(VCC, 0.0, counts[i])
            p.v_cndmask_b32(result[i], result[i], nan, VCC)


def _visibility(p: Program, r: Roles, target: Register) -> None:
    """e4m3 ones where the row sees the key, in the order of the packed probabilities."""
    low, high, zero, bit = r.temporary[0], r.temporary[1], r.temporary[2], r.temporary[3]
    limits(p, r, r.masked_tile, low, high, zero)
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


def limits(p: Program, r: Roles, tile: Register, low: Register, high: Register, t: Register) -> None:
    """First and last visible key of the row, relative to the lane's first key of the tile."""
    first = r.scratch[0]
    p.s_lshl_b32(first, tile, 6)
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


def _nan_bytes(p: Program, source: Register, t: Register, u: Register) -> None:
    """0xff in every byte of `t` that is NaN in `source`."""
    _nan_bits(p, t, source)
    p.v_lshrrev_b32(u, 7, t)
    p.v_sub_u32(u, t, u)
    p.v_or_b32(t, u, t)
