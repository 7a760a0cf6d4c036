// 32 and 16-bit integer and bit operations.
#include "exec_vector_integer.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

using namespace integer;

// ---- shapes ----------------------------------------------------------------------------------------------

template <auto F>
void unary(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const u32* a = fetch(wave, in, 0, Width::w32, buffer);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(a[i]);
  store(wave, in, result.lane);
}
template <auto F>
void binary(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const u32* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const u32* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(a[i], b[i]);
  store(wave, in, result.lane);
}
template <auto F>
void ternary(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const u32* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const u32* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  const u32* c = fetch(wave, in, 2, Width::w32, buffers[2]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(a[i], b[i], c[i]);
  store(wave, in, result.lane);
}
// 16-bit sources in the low halves, whatever stands above; a result of 16 bits.
template <auto F, Rest R = Rest::zero>
void binary16(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const u32* a = fetch(wave, in, 0, Width::w16, buffers[0]);
  const u32* b = fetch(wave, in, 1, Width::w16, buffers[1]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(a[i] & 0xffff, b[i] & 0xffff) & 0xffff;
  store16(wave, in, result.lane, R);
}
template <auto F, Rest R = Rest::zero>
void ternary16(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const u32* a = fetch(wave, in, 0, Width::w16, buffers[0]);
  const u32* b = fetch(wave, in, 1, Width::w16, buffers[1]);
  const u32* c = fetch(wave, in, 2, Width::w16, buffers[2]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(a[i] & 0xffff, b[i] & 0xffff, c[i] & 0xffff) & 0xffff;
  store16(wave, in, result.lane, R);
}
// 16-bit factors, a 32-bit sum.
template <auto F>
void widening(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const u32* a = fetch(wave, in, 0, Width::w16, buffers[0]);
  const u32* b = fetch(wave, in, 1, Width::w16, buffers[1]);
  const u32* c = fetch(wave, in, 2, Width::w32, buffers[2]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(a[i] & 0xffff, b[i] & 0xffff, c[i]);
  store(wave, in, result.lane);
}

// ---- operations ------------------------------------------------------------------------------------------

// ---- operations with more than operands ------------------------------------------------------------------

u32 truth_table(u32 table, u32 a, u32 b, u32 c) {
  u32 made = 0;
  for (u32 row = 0; row < 8; ++row) {
    const u32 x = row & 4 ? a : ~a, y = row & 2 ? b : ~b, z = row & 1 ? c : ~c;
    made |= table >> row & 1 ? x & y & z : 0;
  }
  return made;
}
void bit_operation32(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const u32* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = truth_table(static_cast<u32>(in.imm), s[0][i], s[1][i], s[2][i]);
  store(wave, in, result.lane);
}
void bit_operation16(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const u32* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w16, buffers[i]);
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = truth_table(static_cast<u32>(in.imm), s[0][i], s[1][i], s[2][i]) & 0xffff;
  store16(wave, in, result.lane, Rest::keep);
}

// Bits of the mask below this lane.
template <int First>
void mask_count(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const u32* mask = fetch(wave, in, 0, Width::w32, buffers[0]);
  const u32* sum = fetch(wave, in, 1, Width::w32, buffers[1]);
  for (int i = 0; i < kLanes; ++i) {
    const int below = i - First;
    const u32 lanes = below <= 0 ? 0 : below >= 32 ? ~0u : (1u << below) - 1;
    result.lane[i] = count(mask[i] & lanes, sum[i]);
  }
  store(wave, in, result.lane);
}

// Two bytes into the low half; op_sel[3] puts them into the upper one. The other half stays.
template <auto F>
void byte_pair(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const u32* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(s[0][i], s[1][i], s[2][i]);
  store16(wave, in, result.lane, Rest::keep);
}

// Sum of absolute differences at four byte offsets: 16-bit or 32-bit sums.
template <bool Masked, bool Wide>
void quad_distances(Wave& wave, const Instruction& in) {
  constexpr unsigned kDwords = Wide ? 4 : 2;
  Lanes buffer, sums[4], made[4];
  Lanes64 window;
  fetch64(wave, in, 0, window);
  const u32* reference = fetch(wave, in, 1, Width::w32, buffer);
  for (unsigned d = 0; d < kDwords; ++d) {
    Lanes part;
    std::memcpy(sums[d].lane, fetch(wave, in, 2, Width::w32, part, d), sizeof sums[d].lane);
  }
  for (int i = 0; i < kLanes; ++i) {
    for (unsigned k = 0; k < 4; ++k) {
      const u32 found = byte_distances<Masked>(static_cast<u32>(window.lane[i] >> (8 * k)), reference[i]);
      if (Wide) {
        made[k].lane[i] = found + sums[k].lane[i];
      } else {
        const u32 old = sums[k / 2].lane[i] >> (16 * (k % 2)) & 0xffff, sum = (found + old) & 0xffff;
        made[k / 2].lane[i] = k % 2 ? made[k / 2].lane[i] | sum << 16 : sum;
      }
    }
  }
  for (unsigned d = 0; d < kDwords; ++d) store(wave, in, made[d].lane, d);
}

Handler plain(Op op) {
  switch (op) {
    case Op::v_add_u32:
    case Op::v_add_i32:
      return binary<add>;
    case Op::v_sub_u32:
    case Op::v_sub_i32:
      return binary<sub>;
    case Op::v_subrev_u32:
      return binary<subrev>;
    case Op::v_add_u16:
      return binary16<add>;
    case Op::v_sub_u16:
      return binary16<sub>;
    case Op::v_subrev_u16:
      return binary16<subrev>;
    case Op::v_add_i16:
      return binary16<add, Rest::keep>;
    case Op::v_sub_i16:
      return binary16<sub, Rest::keep>;
    case Op::v_mul_lo_u32:
      return binary<mul>;
    case Op::v_mul_hi_u32:
      return binary<mul_high>;
    case Op::v_mul_hi_i32:
      return binary<mul_high_signed>;
    case Op::v_mul_i32_i24:
      return binary<mul_i24>;
    case Op::v_mul_u32_u24:
      return binary<mul_u24>;
    case Op::v_mul_hi_i32_i24:
      return binary<mul_high_i24>;
    case Op::v_mul_hi_u32_u24:
      return binary<mul_high_u24>;
    case Op::v_mad_i32_i24:
      return ternary<mad_i24>;
    case Op::v_mad_u32_u24:
      return ternary<mad_u24>;
    case Op::v_mul_lo_u16:
      return binary16<mul>;
    case Op::v_mad_u16:
    case Op::v_mad_i16:
      return ternary16<mad, Rest::keep>;
    case Op::v_mad_legacy_u16:
    case Op::v_mad_legacy_i16:
      return ternary16<mad>;
    case Op::v_mad_u32_u16:
      return widening<mad>;
    case Op::v_mad_i32_i16:
      return widening<mad_signed16>;
    case Op::v_and_b32:
      return binary<and_>;
    case Op::v_or_b32:
      return binary<or_>;
    case Op::v_xor_b32:
      return binary<xor_>;
    case Op::v_xnor_b32:
      return binary<xnor>;
    case Op::v_not_b32:
      return unary<not_>;
    case Op::v_lshlrev_b32:
      return binary<shift_left_rev>;
    case Op::v_lshrrev_b32:
      return binary<shift_right_rev>;
    case Op::v_ashrrev_i32:
      return binary<shift_arithmetic_rev>;
    case Op::v_lshlrev_b16:
      return binary16<shift_left_rev16>;
    case Op::v_lshrrev_b16:
      return binary16<shift_right_rev16>;
    case Op::v_ashrrev_i16:
      return binary16<shift_arithmetic_rev16>;
    case Op::v_min_u32:
      return binary<min_unsigned>;
    case Op::v_max_u32:
      return binary<max_unsigned>;
    case Op::v_min_i32:
      return binary<min_signed>;
    case Op::v_max_i32:
      return binary<max_signed>;
    case Op::v_min_u16:
      return binary16<min_unsigned>;
    case Op::v_max_u16:
      return binary16<max_unsigned>;
    case Op::v_min_i16:
      return binary16<signed16_two<min_signed>>;
    case Op::v_max_i16:
      return binary16<signed16_two<max_signed>>;
    case Op::v_min3_u32:
      return ternary<three<min_unsigned>>;
    case Op::v_max3_u32:
      return ternary<three<max_unsigned>>;
    case Op::v_med3_u32:
      return ternary<median<min_unsigned, max_unsigned>>;
    case Op::v_min3_i32:
      return ternary<three<min_signed>>;
    case Op::v_max3_i32:
      return ternary<three<max_signed>>;
    case Op::v_med3_i32:
      return ternary<median<min_signed, max_signed>>;
    case Op::v_min3_u16:
      return ternary16<three<min_unsigned>, Rest::keep>;
    case Op::v_max3_u16:
      return ternary16<three<max_unsigned>, Rest::keep>;
    case Op::v_med3_u16:
      return ternary16<median<min_unsigned, max_unsigned>, Rest::keep>;
    case Op::v_min3_i16:
      return ternary16<signed16_three<three<min_signed>>, Rest::keep>;
    case Op::v_max3_i16:
      return ternary16<signed16_three<three<max_signed>>, Rest::keep>;
    case Op::v_med3_i16:
      return ternary16<signed16_three<median<min_signed, max_signed>>, Rest::keep>;
    case Op::v_bfrev_b32:
      return unary<reversed>;
    case Op::v_ffbh_u32:
      return unary<leading_zeros>;
    case Op::v_ffbl_b32:
      return unary<trailing_zeros>;
    case Op::v_ffbh_i32:
      return unary<sign_bits>;
    case Op::v_bcnt_u32_b32:
      return binary<count>;
    case Op::v_mbcnt_lo_u32_b32:
      return mask_count<0>;
    case Op::v_mbcnt_hi_u32_b32:
      return mask_count<32>;
    case Op::v_bfm_b32:
      return binary<field_mask>;
    case Op::v_bfe_u32:
      return ternary<field>;
    case Op::v_bfe_i32:
      return ternary<field_signed>;
    case Op::v_bfi_b32:
      return ternary<insert>;
    case Op::v_alignbit_b32:
      return ternary<align_bit>;
    case Op::v_alignbyte_b32:
      return ternary<align_byte>;
    case Op::v_lerp_u8:
      return ternary<lerp>;
    case Op::v_sad_u8:
      return ternary<sad_u8>;
    case Op::v_sad_hi_u8:
      return ternary<sad_hi_u8>;
    case Op::v_sad_u16:
      return ternary<sad_u16>;
    case Op::v_sad_u32:
      return ternary<sad_u32>;
    case Op::v_msad_u8:
      return ternary<msad_u8>;
    case Op::v_qsad_pk_u16_u8:
      return quad_distances<false, false>;
    case Op::v_mqsad_pk_u16_u8:
      return quad_distances<true, false>;
    case Op::v_mqsad_u32_u8:
      return quad_distances<true, true>;
    case Op::v_lshl_add_u32:
      return ternary<shift_add>;
    case Op::v_add_lshl_u32:
      return ternary<add_shift>;
    case Op::v_add3_u32:
      return ternary<add3>;
    case Op::v_lshl_or_b32:
      return ternary<shift_or>;
    case Op::v_and_or_b32:
      return ternary<and_or>;
    case Op::v_or3_b32:
      return ternary<or3>;
    case Op::v_xad_u32:
      return ternary<xor_add>;
    case Op::v_prng_b32:
      return unary<pseudo_random>;
    case Op::v_perm_b32:
      return ternary<permuted>;
    case Op::v_bitop3_b32:
      return bit_operation32;
    case Op::v_bitop3_b16:
      return bit_operation16;
    case Op::v_sat_pk_u8_i16:
      return unary<saturate_pair_u8>;
    case Op::v_ashr_pk_u8_i32:
      return byte_pair<shift_pack<0, 255>>;
    case Op::v_ashr_pk_i8_i32:
      return byte_pair<shift_pack<-128, 127>>;
    case Op::v_cvt_pk_u16_u32:
      return binary<pack_u16>;
    case Op::v_cvt_pk_i16_i32:
      return binary<pack_i16>;
    default:
      return nullptr;
  }
}

// With clamp the result saturates instead of wrapping.
Handler saturating(Op op) {
  switch (op) {
    case Op::v_add_u32:
      return binary<add_saturated>;
    case Op::v_sub_u32:
      return binary<sub_saturated>;
    case Op::v_subrev_u32:
      return binary<subrev_saturated>;
    case Op::v_add_i32:
      return binary<add_signed_saturated>;
    case Op::v_sub_i32:
      return binary<sub_signed_saturated>;
    case Op::v_add_u16:
      return binary16<add16_saturated>;
    case Op::v_sub_u16:
      return binary16<sub16_saturated>;
    case Op::v_subrev_u16:
      return binary16<subrev16_saturated>;
    case Op::v_add_i16:
      return binary16<add16_signed_saturated, Rest::keep>;
    case Op::v_sub_i16:
      return binary16<sub16_signed_saturated, Rest::keep>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler integer_handler(const Instruction& in) { return in.clamp ? saturating(in.op) : plain(in.op); }

}  // namespace zyfa::emulator::ZYFA_LEVEL
