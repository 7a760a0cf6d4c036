// What float instructions of all widths share: rounding modes, denormals, NaN results, output modifiers.
//
// NaN: a NaN operand comes out quieted, the first one where there are several; a NaN made from numbers is
// 0x7fc00000 (0x7e00, 0x7ff8...). The chip's choice of payload and sign is not documented.
#pragma once

#include <cfenv>

#include "exec_vector.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {

// Sets the host's rounding direction and restores nearest-even, which everything else relies on. Arithmetic
// between the two must stand in a function of its own that the compiler can not move (noipa).
class HostRounding {
 public:
  explicit HostRounding(unsigned mode) {
    static constexpr int kDirections[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    set_ = mode != 0 && std::fesetround(kDirections[mode]) == 0;
    if (mode != 0 && !set_) fail("this host has no directed rounding");
  }
  ~HostRounding() {
    if (set_) std::fesetround(FE_TONEAREST);
  }
  HostRounding(const HostRounding&) = delete;

 private:
  bool set_ = false;
};

// ---- f32 -------------------------------------------------------------------------------------------------

constexpr uint32_t kNan32 = 0x7fc00000;

inline bool is_nan32(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }
inline bool is_signalling32(uint32_t bits) { return is_nan32(bits) && !(bits & 0x400000); }

// A denormal becomes 0 of its sign where `keep` is 0x80000000; all ones keep it.
inline uint32_t flushed(uint32_t bits, uint32_t keep) { return bits & 0x7f800000 ? bits : bits & keep; }
inline uint32_t keep_mask(bool denormals) { return denormals ? ~0u : 0x80000000u; }

// MODE bits 1:0 and 5:4: round to nearest even, denormals kept.
inline bool plain_mode32(const Wave& wave) { return (wave.mode.bits & 0x33) == 0x30; }

void settle_nans32(const uint32_t* const* sources, int count, uint32_t* result);
// omod, then clamp.
void modify_output32(const Wave& wave, const Instruction& in, uint32_t* result);

inline void store_float(Wave& wave, const Instruction& in, Lanes& result) {
  if (in.clamp || in.omod) modify_output32(wave, in, result.lane);
  store(wave, in, result.lane);
}

// The smaller and larger of two values: a NaN operand loses, -0 < +0. In IEEE mode a signalling NaN wins,
// quieted.
template <bool Ieee>
inline uint32_t max32(uint32_t a, uint32_t b) {
  const float x = as_float(a), y = as_float(b);
  uint32_t r = x > y ? a : b;
  r = x == y ? a & b : r;
  r = y != y && !(x != x) ? a : r;
  if (Ieee) {
    r = is_signalling32(b) ? b | 0x400000 : r;
    r = is_signalling32(a) ? a | 0x400000 : r;
  }
  return r;
}
template <bool Ieee>
inline uint32_t min32(uint32_t a, uint32_t b) {
  const float x = as_float(a), y = as_float(b);
  uint32_t r = x < y ? a : b;
  r = x == y ? a | b : r;
  r = y != y && !(x != x) ? a : r;
  if (Ieee) {
    r = is_signalling32(b) ? b | 0x400000 : r;
    r = is_signalling32(a) ? a | 0x400000 : r;
  }
  return r;
}

// Choosing among values, as operations on f32 bits.
template <int N>
struct Sources {
  static constexpr int kSources = N;
};
template <bool Ieee>
struct Max : Sources<2> {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t) { return max32<Ieee>(a, b); }
};
template <bool Ieee>
struct Min : Sources<2> {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t) { return min32<Ieee>(a, b); }
};
template <bool Ieee>
struct Max3 : Sources<3> {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) { return max32<Ieee>(max32<Ieee>(a, b), c); }
};
template <bool Ieee>
struct Min3 : Sources<3> {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) { return min32<Ieee>(min32<Ieee>(a, b), c); }
};
// The smallest when one is NaN.
template <bool Ieee>
struct Med3 : Sources<3> {
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) {
    const float top = as_float(Max3<Ieee>::apply(a, b, c));
    uint32_t r = max32<Ieee>(a, b);
    r = top == as_float(b) ? max32<Ieee>(a, c) : r;
    r = top == as_float(a) ? max32<Ieee>(b, c) : r;
    return is_nan32(a) || is_nan32(b) || is_nan32(c) ? Min3<Ieee>::apply(a, b, c) : r;
  }
};
inline uint32_t nan_of(uint32_t a, uint32_t b, uint32_t otherwise) {
  uint32_t r = is_nan32(b) ? b | 0x400000 : otherwise;
  return is_nan32(a) ? a | 0x400000 : r;
}
// NaN wins.
template <bool Ieee>
struct Maximum3 : Sources<3> {
  static uint32_t two(uint32_t a, uint32_t b) { return nan_of(a, b, max32<false>(a, b)); }
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) { return two(two(a, b), c); }
};
template <bool Ieee>
struct Minimum3 : Sources<3> {
  static uint32_t two(uint32_t a, uint32_t b) { return nan_of(a, b, min32<false>(a, b)); }
  static uint32_t apply(uint32_t a, uint32_t b, uint32_t c) { return two(two(a, b), c); }
};

// ---- f16: numbers are widened exactly to f32 -------------------------------------------------------------

inline uint32_t half_to_float(uint32_t half) {
  const uint32_t sign = (half & 0x8000) << 16, rest = half & 0x7fff;
  const uint32_t normal = (rest << 13) + 0x38000000;
  const uint32_t special = rest << 13 | 0x7f800000;
  const uint32_t denormal = as_bits(static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f);
  return sign | (rest >= 0x7c00 ? special : rest >= 0x0400 ? normal : denormal);
}

inline uint32_t flushed16(uint32_t half, bool denormals) {
  return denormals || (half & 0x7c00) ? half & 0xffff : half & 0x8000;
}

// f32 -> f16, nearest even; a NaN keeps the upper bits of its payload. `largest`: what overflow gives, 0x7c00
// or 0x7bff.
inline uint32_t float_to_half(uint32_t bits, uint32_t largest = 0x7c00) {
  const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  const uint32_t normal = (rest + 0xfff + (rest >> 13 & 1)) >> 13;
  const uint32_t denormal =
      as_bits(as_float(rest) + 0x1p-1f) - 0x3f000000;  // the last bit of 0.5 is worth 2^-24
  const uint32_t number = rest >= 0x38800000 ? normal - (112 << 10) : denormal;
  const uint32_t finite = rest >= 0x477ff000 ? largest : number;
  return sign | (rest > 0x7f800000 ? 0x7c00 | (rest >> 13 & 0x3ff) : rest == 0x7f800000 ? 0x7c00 : finite);
}

// f64 -> f16, nearest even. NaN gives 0x7e00.
inline uint32_t double_to_half(double value, uint32_t largest = 0x7c00) {
  const uint64_t bits = as_bits64(value), rest = bits & 0x7fffffffffffffff;
  const uint64_t sign = bits >> 48 & 0x8000;
  const uint64_t normal = (rest + ((uint64_t{1} << 41) - 1) + (rest >> 42 & 1)) >> 42;
  const uint64_t denormal = as_bits64(as_double(rest) + 0x1p28) - 0x41b0000000000000;
  const uint64_t number = rest >= 0x3f10000000000000 ? normal - (uint64_t{1008} << 10) : denormal;
  const uint64_t finite = rest >= 0x40effe0000000000 ? largest : number;
  const uint64_t special = rest > 0x7ff0000000000000 ? 0x7e00 : 0x7c00;
  return static_cast<uint32_t>(sign | (rest >= 0x7ff0000000000000 ? special : finite));
}
// In any rounding mode of MODE (0 nearest even, 1 up, 2 down, 3 toward zero).
uint32_t double_to_half(double value, unsigned rounding, uint32_t largest);
// What f16 overflow gives: infinity, or 65504 under MODE.FP16_OVFL.
inline uint32_t half_overflow(const Wave& wave) { return wave.mode.bits >> 23 & 1 ? 0x7bff : 0x7c00; }

constexpr uint32_t kNan16 = 0x7e00;
inline bool is_nan16(uint32_t half) { return (half & 0x7fff) > 0x7c00; }

void settle_nans16(const uint32_t* const* sources, int count, uint32_t* result);
void modify_output16(const Wave& wave, const Instruction& in, uint32_t* result);

}  // namespace zyfa::emulator::ZYFA_LEVEL
