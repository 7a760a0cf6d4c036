// 32 and 16-bit integer and bit operations.
#include "exec_vector.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

using u32 = uint32_t;

// ---- shapes
// -----------------------------------------------------------------------------------------------------------

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

// ---- operations
// -------------------------------------------------------------------------------------------------------

constexpr int32_t sign(u32 a) { return static_cast<int32_t>(a); }
u32 sign16(u32 a) { return static_cast<u32>(static_cast<int32_t>(static_cast<int16_t>(a))); }
u32 sign24(u32 a) { return ((a & 0xffffff) ^ 0x800000) - 0x800000; }

u32 add(u32 a, u32 b) { return a + b; }
u32 sub(u32 a, u32 b) { return a - b; }
u32 subrev(u32 a, u32 b) { return b - a; }
u32 add_saturated(u32 a, u32 b) { return a + b < a ? ~0u : a + b; }
u32 sub_saturated(u32 a, u32 b) { return b > a ? 0 : a - b; }
u32 subrev_saturated(u32 a, u32 b) { return sub_saturated(b, a); }
u32 limit_of(u32 a) { return 0x7fffffffu + (a >> 31); }
u32 add_signed_saturated(u32 a, u32 b) {
  const u32 sum = a + b;
  return ((a ^ sum) & (b ^ sum)) >> 31 ? limit_of(a) : sum;
}
u32 sub_signed_saturated(u32 a, u32 b) {
  const u32 rest = a - b;
  return ((a ^ b) & (a ^ rest)) >> 31 ? limit_of(a) : rest;
}
u32 mul(u32 a, u32 b) { return a * b; }
u32 mul_high(u32 a, u32 b) { return static_cast<u32>(uint64_t{a} * b >> 32); }
u32 mul_high_signed(u32 a, u32 b) { return static_cast<u32>(int64_t{sign(a)} * sign(b) >> 32); }
u32 mul_i24(u32 a, u32 b) { return sign24(a) * sign24(b); }
u32 mul_u24(u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }
u32 mul_high_i24(u32 a, u32 b) { return mul_high_signed(sign24(a), sign24(b)); }
u32 mul_high_u24(u32 a, u32 b) { return mul_high(a & 0xffffff, b & 0xffffff); }
u32 mad_i24(u32 a, u32 b, u32 c) { return mul_i24(a, b) + c; }
u32 mad_u24(u32 a, u32 b, u32 c) { return mul_u24(a, b) + c; }
u32 mad(u32 a, u32 b, u32 c) { return a * b + c; }
u32 mad_signed16(u32 a, u32 b, u32 c) { return sign16(a) * sign16(b) + c; }

u32 and_(u32 a, u32 b) { return a & b; }
u32 or_(u32 a, u32 b) { return a | b; }
u32 xor_(u32 a, u32 b) { return a ^ b; }
u32 xnor(u32 a, u32 b) { return ~(a ^ b); }
u32 not_(u32 a) { return ~a; }
u32 shift_left_rev(u32 a, u32 b) { return b << (a & 31); }
u32 shift_right_rev(u32 a, u32 b) { return b >> (a & 31); }
u32 shift_arithmetic_rev(u32 a, u32 b) { return static_cast<u32>(sign(b) >> (a & 31)); }
u32 shift_left_rev16(u32 a, u32 b) { return b << (a & 15); }
u32 shift_right_rev16(u32 a, u32 b) { return b >> (a & 15); }
u32 shift_arithmetic_rev16(u32 a, u32 b) { return static_cast<u32>(sign(sign16(b)) >> (a & 15)); }
u32 min_unsigned(u32 a, u32 b) { return a < b ? a : b; }
u32 max_unsigned(u32 a, u32 b) { return a > b ? a : b; }
u32 min_signed(u32 a, u32 b) { return sign(a) < sign(b) ? a : b; }
u32 max_signed(u32 a, u32 b) { return sign(a) > sign(b) ? a : b; }
template <auto F>
u32 three(u32 a, u32 b, u32 c) {
  return F(F(a, b), c);
}
template <auto Min, auto Max>
u32 median(u32 a, u32 b, u32 c) {
  return Max(Min(a, b), Min(Max(a, b), c));
}
// The same on 16-bit numbers: order is kept by extending them.
template <auto F>
u32 signed16_two(u32 a, u32 b) {
  return F(sign16(a), sign16(b));
}
template <auto F>
u32 signed16_three(u32 a, u32 b, u32 c) {
  return F(sign16(a), sign16(b), sign16(c));
}
u32 clamp16(u32 a) {
  const int32_t value = sign(a);
  return static_cast<u32>(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
}
u32 add16_saturated(u32 a, u32 b) { return min_unsigned(a + b, 0xffff); }
u32 sub16_saturated(u32 a, u32 b) { return a > b ? a - b : 0; }
u32 subrev16_saturated(u32 a, u32 b) { return sub16_saturated(b, a); }
u32 add16_signed_saturated(u32 a, u32 b) { return clamp16(sign16(a) + sign16(b)); }
u32 sub16_signed_saturated(u32 a, u32 b) { return clamp16(sign16(a) - sign16(b)); }

u32 reversed(u32 a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(a);
}
u32 leading_zeros(u32 a) { return a == 0 ? ~0u : static_cast<u32>(__builtin_clz(a)); }
u32 trailing_zeros(u32 a) { return a == 0 ? ~0u : static_cast<u32>(__builtin_ctz(a)); }
u32 sign_bits(u32 a) { return leading_zeros(a >> 31 ? ~a : a); }
u32 count(u32 a, u32 b) { return static_cast<u32>(__builtin_popcount(a)) + b; }
u32 field_mask(u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }
u32 field(u32 a, u32 b, u32 c) { return a >> (b & 31) & ((1u << (c & 31)) - 1); }
u32 field_signed(u32 a, u32 b, u32 c) {
  const u32 width = c & 31, top = width == 0 ? 0 : 1u << (width - 1);
  const u32 bits = static_cast<u32>(sign(a) >> (b & 31)) & ((1u << width) - 1);
  return (bits ^ top) - top;
}
u32 insert(u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }
u32 align_bit(u32 a, u32 b, u32 c) { return static_cast<u32>((uint64_t{a} << 32 | b) >> (c & 31)); }
u32 align_byte(u32 a, u32 b, u32 c) { return align_bit(a, b, (c & 3) * 8); }
u32 lerp(u32 a, u32 b, u32 c) {
  u32 made = 0;
  for (int shift = 0; shift < 32; shift += 8)
    made |= ((a >> shift & 255) + (b >> shift & 255) + (c >> shift & 1)) >> 1 << shift;
  return made;
}
u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
template <bool Masked>
u32 byte_distances(u32 a, u32 b) {
  u32 sum = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const u32 x = a >> shift & 255, y = b >> shift & 255;
    sum += Masked && y == 0 ? 0 : distance(x, y);
  }
  return sum;
}
u32 sad_u8(u32 a, u32 b, u32 c) { return byte_distances<false>(a, b) + c; }
u32 sad_hi_u8(u32 a, u32 b, u32 c) { return (byte_distances<false>(a, b) << 16) + c; }
u32 msad_u8(u32 a, u32 b, u32 c) { return byte_distances<true>(a, b) + c; }
u32 sad_u16(u32 a, u32 b, u32 c) { return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c; }
u32 sad_u32(u32 a, u32 b, u32 c) { return distance(a, b) + c; }
u32 shift_add(u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }
u32 add_shift(u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }
u32 add3(u32 a, u32 b, u32 c) { return a + b + c; }
u32 shift_or(u32 a, u32 b, u32 c) { return a << (b & 31) | c; }
u32 and_or(u32 a, u32 b, u32 c) { return (a & b) | c; }
u32 or3(u32 a, u32 b, u32 c) { return a | b | c; }
u32 xor_add(u32 a, u32 b, u32 c) { return (a ^ b) + c; }
u32 pseudo_random(u32 a) { return a << 1 ^ (a >> 31 ? 197u : 0u); }

u32 saturated_byte(int32_t value, int32_t low, int32_t high) {
  return static_cast<u32>(value < low ? low : value > high ? high : value) & 255;
}
u32 saturate_pair_u8(u32 a) {
  return saturated_byte(sign(sign16(a)), 0, 255) | saturated_byte(sign(a) >> 16, 0, 255) << 8;
}
template <int32_t Low, int32_t High>
u32 shift_pack(u32 a, u32 b, u32 c) {
  return saturated_byte(sign(a) >> (c & 31), Low, High) | saturated_byte(sign(b) >> (c & 31), Low, High) << 8;
}
u32 pack_u16(u32 a, u32 b) { return min_unsigned(a, 0xffff) | min_unsigned(b, 0xffff) << 16; }
u32 pack_i16(u32 a, u32 b) { return (clamp16(a) & 0xffff) | clamp16(b) << 16; }
u32 pack_halves(u32 a, u32 b) { return a | b << 16; }

// v_perm: bytes 0-3 are those of b, 4-7 of a; 8-11 repeat the sign of bytes 1, 3, 5, 7; 12 is 0, above 0xff.
u32 permuted(u32 a, u32 b, u32 selectors) {
  const uint64_t pool = uint64_t{a} << 32 | b;
  u32 made = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const u32 s = selectors >> shift & 255;
    const u32 byte = static_cast<u32>(pool >> (8 * (s & 7))) & 255;
    const u32 extended = (pool >> (16 * (s & 3) + 15) & 1) * 255;
    made |= (s < 8 ? byte : s < 12 ? extended : s == 12 ? 0 : 255) << shift;
  }
  return made;
}

// ---- operations with more than operands
// --------------------------------------------------------------------------------

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
void pack_f16(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const u32* a = fetch(wave, in, 0, Width::w16, buffers[0]);
  const u32* b = fetch(wave, in, 1, Width::w16, buffers[1]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = pack_halves(a[i] & 0xffff, b[i] & 0xffff);
  store(wave, in, result.lane);
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
    case Op::v_pack_b32_f16:
      return pack_f16;
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
