// What the integer instructions compute per lane, as functions of values.
#pragma once

#include "exec_vector.hpp"

namespace zyfa::emulator::ZYFA_LEVEL::integer {

using u32 = uint32_t;

constexpr int32_t sign(u32 a) { return static_cast<int32_t>(a); }
inline u32 sign16(u32 a) { return static_cast<u32>(static_cast<int32_t>(static_cast<int16_t>(a))); }
inline u32 sign24(u32 a) { return ((a & 0xffffff) ^ 0x800000) - 0x800000; }

inline u32 add(u32 a, u32 b) { return a + b; }
inline u32 sub(u32 a, u32 b) { return a - b; }
inline u32 subrev(u32 a, u32 b) { return b - a; }
inline u32 add_saturated(u32 a, u32 b) { return a + b < a ? ~0u : a + b; }
inline u32 sub_saturated(u32 a, u32 b) { return b > a ? 0 : a - b; }
inline u32 subrev_saturated(u32 a, u32 b) { return sub_saturated(b, a); }
inline u32 limit_of(u32 a) { return 0x7fffffffu + (a >> 31); }
inline u32 add_signed_saturated(u32 a, u32 b) {
  const u32 sum = a + b;
  return ((a ^ sum) & (b ^ sum)) >> 31 ? limit_of(a) : sum;
}
inline u32 sub_signed_saturated(u32 a, u32 b) {
  const u32 rest = a - b;
  return ((a ^ b) & (a ^ rest)) >> 31 ? limit_of(a) : rest;
}
inline u32 mul(u32 a, u32 b) { return a * b; }
inline u32 mul_high(u32 a, u32 b) { return static_cast<u32>(uint64_t{a} * b >> 32); }
inline u32 mul_high_signed(u32 a, u32 b) { return static_cast<u32>(int64_t{sign(a)} * sign(b) >> 32); }
inline u32 mul_i24(u32 a, u32 b) { return sign24(a) * sign24(b); }
inline u32 mul_u24(u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }
inline u32 mul_high_i24(u32 a, u32 b) { return mul_high_signed(sign24(a), sign24(b)); }
inline u32 mul_high_u24(u32 a, u32 b) { return mul_high(a & 0xffffff, b & 0xffffff); }
inline u32 mad_i24(u32 a, u32 b, u32 c) { return mul_i24(a, b) + c; }
inline u32 mad_u24(u32 a, u32 b, u32 c) { return mul_u24(a, b) + c; }
inline u32 mad(u32 a, u32 b, u32 c) { return a * b + c; }
inline u32 mad_signed16(u32 a, u32 b, u32 c) { return sign16(a) * sign16(b) + c; }

inline u32 and_(u32 a, u32 b) { return a & b; }
inline u32 or_(u32 a, u32 b) { return a | b; }
inline u32 xor_(u32 a, u32 b) { return a ^ b; }
inline u32 xnor(u32 a, u32 b) { return ~(a ^ b); }
inline u32 not_(u32 a) { return ~a; }
inline u32 shift_left_rev(u32 a, u32 b) { return b << (a & 31); }
inline u32 shift_right_rev(u32 a, u32 b) { return b >> (a & 31); }
inline u32 shift_arithmetic_rev(u32 a, u32 b) { return static_cast<u32>(sign(b) >> (a & 31)); }
inline u32 shift_left_rev16(u32 a, u32 b) { return b << (a & 15); }
inline u32 shift_right_rev16(u32 a, u32 b) { return b >> (a & 15); }
inline u32 shift_arithmetic_rev16(u32 a, u32 b) { return static_cast<u32>(sign(sign16(b)) >> (a & 15)); }
inline u32 min_unsigned(u32 a, u32 b) { return a < b ? a : b; }
inline u32 max_unsigned(u32 a, u32 b) { return a > b ? a : b; }
inline u32 min_signed(u32 a, u32 b) { return sign(a) < sign(b) ? a : b; }
inline u32 max_signed(u32 a, u32 b) { return sign(a) > sign(b) ? a : b; }
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
inline u32 clamp16(u32 a) {
  const int32_t value = sign(a);
  return static_cast<u32>(value > 32767 ? 32767 : value < -32768 ? -32768 : value);
}
inline u32 add16_saturated(u32 a, u32 b) { return min_unsigned(a + b, 0xffff); }
inline u32 sub16_saturated(u32 a, u32 b) { return a > b ? a - b : 0; }
inline u32 subrev16_saturated(u32 a, u32 b) { return sub16_saturated(b, a); }
inline u32 add16_signed_saturated(u32 a, u32 b) { return clamp16(sign16(a) + sign16(b)); }
inline u32 sub16_signed_saturated(u32 a, u32 b) { return clamp16(sign16(a) - sign16(b)); }

inline u32 reversed(u32 a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(a);
}
inline u32 leading_zeros(u32 a) { return a == 0 ? ~0u : static_cast<u32>(__builtin_clz(a)); }
inline u32 trailing_zeros(u32 a) { return a == 0 ? ~0u : static_cast<u32>(__builtin_ctz(a)); }
inline u32 sign_bits(u32 a) { return leading_zeros(a >> 31 ? ~a : a); }
inline u32 count(u32 a, u32 b) { return static_cast<u32>(__builtin_popcount(a)) + b; }
inline u32 field_mask(u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }
inline u32 field(u32 a, u32 b, u32 c) { return a >> (b & 31) & ((1u << (c & 31)) - 1); }
inline u32 field_signed(u32 a, u32 b, u32 c) {
  const u32 width = c & 31, top = width == 0 ? 0 : 1u << (width - 1);
  const u32 bits = static_cast<u32>(sign(a) >> (b & 31)) & ((1u << width) - 1);
  return (bits ^ top) - top;
}
inline u32 insert(u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }
inline u32 align_bit(u32 a, u32 b, u32 c) { return static_cast<u32>((uint64_t{a} << 32 | b) >> (c & 31)); }
inline u32 align_byte(u32 a, u32 b, u32 c) { return align_bit(a, b, (c & 3) * 8); }
inline u32 lerp(u32 a, u32 b, u32 c) {
  u32 made = 0;
  for (int shift = 0; shift < 32; shift += 8)
    made |= ((a >> shift & 255) + (b >> shift & 255) + (c >> shift & 1)) >> 1 << shift;
  return made;
}
inline u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
template <bool Masked>
u32 byte_distances(u32 a, u32 b) {
  u32 sum = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const u32 x = a >> shift & 255, y = b >> shift & 255;
    sum += Masked && y == 0 ? 0 : distance(x, y);
  }
  return sum;
}
inline u32 sad_u8(u32 a, u32 b, u32 c) { return byte_distances<false>(a, b) + c; }
inline u32 sad_hi_u8(u32 a, u32 b, u32 c) { return (byte_distances<false>(a, b) << 16) + c; }
inline u32 msad_u8(u32 a, u32 b, u32 c) { return byte_distances<true>(a, b) + c; }
inline u32 sad_u16(u32 a, u32 b, u32 c) {
  return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c;
}
inline u32 sad_u32(u32 a, u32 b, u32 c) { return distance(a, b) + c; }
inline u32 shift_add(u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }
inline u32 add_shift(u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }
inline u32 add3(u32 a, u32 b, u32 c) { return a + b + c; }
inline u32 shift_or(u32 a, u32 b, u32 c) { return a << (b & 31) | c; }
inline u32 and_or(u32 a, u32 b, u32 c) { return (a & b) | c; }
inline u32 or3(u32 a, u32 b, u32 c) { return a | b | c; }
inline u32 xor_add(u32 a, u32 b, u32 c) { return (a ^ b) + c; }
inline u32 pseudo_random(u32 a) { return a << 1 ^ (a >> 31 ? 197u : 0u); }

inline u32 saturated_byte(int32_t value, int32_t low, int32_t high) {
  return static_cast<u32>(value < low ? low : value > high ? high : value) & 255;
}
inline u32 saturate_pair_u8(u32 a) {
  return saturated_byte(sign(sign16(a)), 0, 255) | saturated_byte(sign(a) >> 16, 0, 255) << 8;
}
template <int32_t Low, int32_t High>
u32 shift_pack(u32 a, u32 b, u32 c) {
  return saturated_byte(sign(a) >> (c & 31), Low, High) | saturated_byte(sign(b) >> (c & 31), Low, High) << 8;
}
inline u32 pack_u16(u32 a, u32 b) { return min_unsigned(a, 0xffff) | min_unsigned(b, 0xffff) << 16; }
inline u32 pack_i16(u32 a, u32 b) { return (clamp16(a) & 0xffff) | clamp16(b) << 16; }

// v_perm: bytes 0-3 are those of b, 4-7 of a; 8-11 repeat the sign of bytes 1, 3, 5, 7; 12 is 0, above 0xff.
inline u32 permuted(u32 a, u32 b, u32 selectors) {
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

}  // namespace zyfa::emulator::ZYFA_LEVEL::integer
