// The small float formats: mantissa bits, exponent bias, and what lies at the top of the range.
#pragma once

#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {

struct Format {
  int bits, mantissa, bias;
  uint32_t largest;   // code of the largest finite number
  uint32_t infinity;  // code, 0 where there is none
  uint32_t nan;       // code, 0 where there is none
};
constexpr Format kFp8{8, 3, 7, 0x7e, 0, 0x7f};      // E4M3
constexpr Format kBf8{8, 2, 15, 0x7b, 0x7c, 0x7f};  // E5M2
constexpr Format kFp6{6, 3, 1, 0x1f, 0, 0};         // E2M3
constexpr Format kBf6{6, 2, 3, 0x1f, 0, 0};         // E3M2
constexpr Format kFp4{4, 1, 1, 0x07, 0, 0};         // E2M1
constexpr Format kBf16{16, 7, 127, 0x7f7f, 0x7f80, 0x7fff};
constexpr Format kF16{16, 10, 15, 0x7bff, 0x7c00, 0x7fff};

// Magnitude of an f32 (its bits without sign, not NaN) to the nearest code, ties to even. Past the largest
// number the codes simply go on.
template <int Mantissa, int Bias>
inline uint32_t nearest_code(uint32_t rest) {
  constexpr int kShift = 23 - Mantissa;
  constexpr uint32_t kHalf = (1u << (kShift - 1)) - 1, kMagic = static_cast<uint32_t>(151 - Bias - Mantissa)
                                                                << 23;
  const uint32_t normal =
      ((rest + kHalf + (rest >> kShift & 1)) >> kShift) - (static_cast<uint32_t>(127 - Bias) << Mantissa);
  // The last bit of kMagic as a float is worth one denormal step.
  const uint32_t denormal = as_bits(as_float(rest) + as_float(kMagic)) - kMagic;
  return rest >= static_cast<uint32_t>(128 - Bias) << 23 ? normal : denormal;
}

// The same of a finite f64, for any format.
inline uint32_t nearest_code(double magnitude, const Format& f) {
  const uint64_t rest = as_bits64(magnitude);
  const int shift = 52 - f.mantissa;
  if (rest >> 52 >= static_cast<uint64_t>(1024 - f.bias)) {
    const uint64_t code = ((rest + ((uint64_t{1} << (shift - 1)) - 1) + (rest >> shift & 1)) >> shift) -
                          (static_cast<uint64_t>(1023 - f.bias) << f.mantissa);
    return code > 0xfffff ? 0xfffff : static_cast<uint32_t>(code);
  }
  const uint64_t magic = static_cast<uint64_t>(1023 + 52 + 1 - f.bias - f.mantissa) << 52;
  return static_cast<uint32_t>(as_bits64(magnitude + as_double(magic)) - magic);
}

// Stochastic rounding: the upper bits of `random` are added to the bits of an f32 significand that the format
// drops, then these are cut off. Of a result below the normal range the significand is shifted into place
// first.
inline uint32_t stochastic_code(double magnitude, uint32_t random, const Format& f) {
  const uint64_t rest = as_bits64(magnitude);
  const int shift = 52 - f.mantissa, lowest = 1024 - f.bias;
  const uint64_t noise = uint64_t{random >> (32 - (23 - f.mantissa))} << 29;
  const int exponent = static_cast<int>(rest >> 52);
  if (exponent >= lowest) {
    const uint64_t code = ((rest + noise) >> shift) - (static_cast<uint64_t>(1023 - f.bias) << f.mantissa);
    return code > 0xfffff ? 0xfffff : static_cast<uint32_t>(code);
  }
  const uint64_t significand = (rest & 0xfffffffffffff) | uint64_t{exponent != 0} << 52;
  const int below = lowest - exponent;
  return below > 52 ? static_cast<uint32_t>(noise >> shift)
                    : static_cast<uint32_t>(((significand >> below) + noise) >> shift);
}

// Sign, overflow and NaN around a rounded magnitude. Without infinity a format overflows to NaN; `saturate`
// (MODE.FP16_OVFL, and always where there is neither) to its largest number.
constexpr uint32_t overflow_code(bool saturate, const Format& f) {
  return saturate || f.nan == 0 ? f.largest : f.infinity ? f.infinity : f.nan;
}
inline uint32_t finish_code(uint32_t code, uint32_t negative, bool nan, uint32_t overflow, const Format& f) {
  const uint32_t number = code > f.largest ? overflow : code;
  return negative << (f.bits - 1) | (nan ? f.nan : number);
}

inline double decode_small(uint32_t code, const Format& f) {
  const uint32_t magnitude = code & ((1u << (f.bits - 1)) - 1);
  const bool negative = code >> (f.bits - 1) & 1;
  if (f.nan != 0 && (f.infinity ? magnitude > f.infinity : magnitude == f.nan)) return __builtin_nan("");
  if (f.infinity != 0 && magnitude == f.infinity) return negative ? -__builtin_inf() : __builtin_inf();
  const uint32_t exponent = magnitude >> f.mantissa, fraction = magnitude & ((1u << f.mantissa) - 1);
  const uint64_t power =
      static_cast<uint64_t>(1023 + (exponent ? static_cast<int>(exponent) : 1) - f.bias - f.mantissa) << 52;
  const double value = static_cast<double>(fraction | (exponent ? 1u << f.mantissa : 0)) * as_double(power);
  return negative ? -value : value;
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
