// What the scalar arithmetic instructions compute, as functions of values.
#pragma once

#include <cstdint>
#include <type_traits>

namespace zyfa::emulator::scalar {

// A result and the SCC that comes with it.
template <typename T>
struct Out {
  T value;
  bool scc;
};

template <typename T>
T same(T a) {
  return a;
}
template <typename T>
T negated(T a) {
  return ~a;
}
template <typename T>
T and_(T a, T b) {
  return a & b;
}
template <typename T>
T or_(T a, T b) {
  return a | b;
}
template <typename T>
T xor_(T a, T b) {
  return a ^ b;
}
template <typename T>
T andn2(T a, T b) {
  return a & ~b;
}
template <typename T>
T orn2(T a, T b) {
  return a | ~b;
}
template <typename T>
T nand(T a, T b) {
  return ~(a & b);
}
template <typename T>
T nor(T a, T b) {
  return ~(a | b);
}
template <typename T>
T xnor(T a, T b) {
  return ~(a ^ b);
}
inline uint64_t andn1(uint64_t a, uint64_t b) { return ~a & b; }
inline uint64_t orn1(uint64_t a, uint64_t b) { return ~a | b; }

template <typename T>
T whole_quads(T a) {
  const T low = a | a >> 1 | a >> 2 | a >> 3;
  const T first = low & static_cast<T>(0x1111111111111111u);
  return first * 15;
}
template <typename T>
T quad_mask(T a) {
  T made = 0;
  for (unsigned i = 0; i < sizeof(T) * 2; ++i) made |= static_cast<T>((a >> (4 * i) & 15) != 0) << i;
  return made;
}
template <typename T>
T reversed(T a) {
  T made = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) made |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
  return made;
}
inline uint32_t ones(uint64_t a) { return static_cast<uint32_t>(__builtin_popcountll(a)); }
inline uint32_t zeros32(uint32_t a) { return ones(static_cast<uint32_t>(~a)); }
inline uint32_t zeros64(uint64_t a) { return ones(~a); }
inline uint32_t first_one(uint64_t a) { return a == 0 ? ~0u : static_cast<uint32_t>(__builtin_ctzll(a)); }
inline uint32_t first_zero32(uint32_t a) { return first_one(static_cast<uint32_t>(~a)); }
inline uint32_t first_zero64(uint64_t a) { return first_one(~a); }
inline uint32_t leading_zeros32(uint32_t a) { return a == 0 ? ~0u : static_cast<uint32_t>(__builtin_clz(a)); }
inline uint32_t leading_zeros64(uint64_t a) {
  return a == 0 ? ~0u : static_cast<uint32_t>(__builtin_clzll(a));
}
// Position of the first bit that differs from the sign bit, counted from it; -1 when there is none.
inline uint32_t sign_bits32(uint32_t a) { return leading_zeros32(a >> 31 ? ~a : a); }
inline uint32_t sign_bits64(uint64_t a) { return leading_zeros64(a >> 63 ? ~a : a); }
inline uint32_t extend8(uint32_t a) { return static_cast<uint32_t>(static_cast<int8_t>(a)); }
inline uint32_t extend16(uint32_t a) { return static_cast<uint32_t>(static_cast<int16_t>(a)); }
inline uint32_t absolute(uint32_t a) { return a >> 31 ? 0 - a : a; }
inline uint64_t doubled_bits(uint32_t a) {
  uint64_t made = 0;
  for (unsigned i = 0; i < 32; ++i) made |= uint64_t{(a >> i & 1) * 3} << (2 * i);
  return made;
}

template <typename T>
T shifted_left(T a, uint32_t n) {
  return a << (n & (sizeof(T) * 8 - 1));
}
template <typename T>
T shifted_right(T a, uint32_t n) {
  return a >> (n & (sizeof(T) * 8 - 1));
}
inline uint32_t arithmetic32(int32_t a, uint32_t n) { return static_cast<uint32_t>(a >> (n & 31)); }
inline uint64_t arithmetic64(int64_t a, uint32_t n) { return static_cast<uint64_t>(a >> (n & 63)); }
template <typename T>
T low_mask(unsigned width) {
  return width >= sizeof(T) * 8 ? ~T{0} : (T{1} << width) - 1;
}
template <typename T>
T field_mask(uint32_t width, uint32_t offset) {
  constexpr uint32_t kBits = sizeof(T) * 8 - 1;
  return low_mask<T>(width & kBits) << (offset & kBits);
}
template <typename T>
T field(T a, uint32_t where) {
  return a >> (where & (sizeof(T) * 8 - 1)) & low_mask<T>(where >> 16 & 127);
}
// The field's top bit extended; of a field that reaches past the register, the zeros shifted in.
template <typename T>
T signed_field(T a, uint32_t where) {
  using Signed = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  const unsigned width = where >> 16 & 127;
  if (width == 0) return 0;
  const T bits = static_cast<T>(static_cast<Signed>(a) >> (where & (sizeof(T) * 8 - 1)));
  if (width >= sizeof(T) * 8) return bits;
  const T sign = T{1} << (width - 1);
  return ((bits & low_mask<T>(width)) ^ sign) - sign;
}
inline uint32_t product(uint32_t a, uint32_t b) { return a * b; }
inline uint32_t product_high(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }
inline uint32_t product_high_signed(int32_t a, int32_t b) {
  return static_cast<uint32_t>(int64_t{a} * b >> 32);
}
inline uint32_t distance(uint32_t a, uint32_t b) { return absolute(a - b); }
inline uint32_t pack_ll(uint32_t a, uint32_t b) { return (a & 0xffff) | b << 16; }
inline uint32_t pack_lh(uint32_t a, uint32_t b) { return (a & 0xffff) | (b & 0xffff0000); }
inline uint32_t pack_hh(uint32_t a, uint32_t b) { return a >> 16 | (b & 0xffff0000); }

inline bool overflows(uint32_t a, uint32_t b, uint32_t sum) { return ((a ^ sum) & (b ^ sum)) >> 31; }

using Out32 = Out<uint32_t>;
inline Out32 add_u32(uint32_t a, uint32_t b, bool) { return {a + b, a + b < a}; }
inline Out32 sub_u32(uint32_t a, uint32_t b, bool) { return {a - b, b > a}; }
inline Out32 add_i32(uint32_t a, uint32_t b, bool) { return {a + b, overflows(a, b, a + b)}; }
inline Out32 sub_i32(uint32_t a, uint32_t b, bool) { return {a - b, overflows(a, ~b, a - b)}; }
inline Out32 addc_u32(uint32_t a, uint32_t b, bool c) {
  const uint64_t sum = uint64_t{a} + b + c;
  return {static_cast<uint32_t>(sum), sum >> 32 != 0};
}
inline Out32 subb_u32(uint32_t a, uint32_t b, bool c) { return {a - b - c, uint64_t{b} + c > a}; }
template <int N>
Out32 shift_add(uint32_t a, uint32_t b, bool) {
  const uint64_t sum = (uint64_t{a} << N) + b;
  return {static_cast<uint32_t>(sum), sum >> 32 != 0};
}
template <typename T>
Out32 smaller(uint32_t a, uint32_t b, bool) {
  const bool first = static_cast<T>(a) < static_cast<T>(b);
  return {first ? a : b, first};
}
template <typename T>
Out32 larger(uint32_t a, uint32_t b, bool) {
  const bool first = static_cast<T>(a) > static_cast<T>(b);
  return {first ? a : b, first};
}

}  // namespace zyfa::emulator::scalar
