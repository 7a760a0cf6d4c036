// Scalar conversions between FP32 and the 16- and 8-bit formats, round to nearest even.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace zyfa::cpu {

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float from_bfloat16(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

static inline uint16_t to_bfloat16(float value) {
  const uint32_t bits = bits_of(value);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40);  // keep NaN a NaN
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float from_float16(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t sign = (bits & 0x8000u) << 16;
  if (magnitude >= 0x7c00u) return float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // A subnormal is an integer multiple of 2^-24, exact in FP32.
  if (magnitude < 0x400u) return float_of(sign | bits_of(static_cast<float>(magnitude) * 0x1p-24f));
  return float_of(sign | ((magnitude << 13) + (112u << 23)));
}

static inline uint16_t to_float16(float value) {
  const uint32_t bits = bits_of(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u)
    return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and up round to infinity
  if (magnitude < 0x38800000u) {
    // Adding 0.5 aligns the last kept bit with 2^-24; the addition itself rounds to nearest even.
    const float aligned = float_of(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of(aligned) - bits_of(0.5f)));
  }
  const uint32_t rebased = magnitude - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1)) >> 13));
}

constexpr float kFp8Max = 448.0f;

// The e4m3 value nearest to `x` >= 0 that is not NaN, as a float; saturates at 448.
static inline float round_to_fp8_magnitude(float x) {
  const uint32_t bits = bits_of(x);
  const float normal = float_of((bits + 0x7ffff + ((bits >> 20) & 1)) & ~0xfffffu);
  const float subnormal = (x + 24576.0f) - 24576.0f;  // 1.5 * 2^23 * 2^-9: rounds to a multiple of 2^-9
  const float rounded = x < 0x1p-6f ? subnormal : normal;
  return rounded < kFp8Max ? rounded : kFp8Max;
}

// float8e4m3fn code of `value`; values beyond +-448, infinities included, saturate; NaN gives 0x7f with the
// sign.
static inline uint8_t to_fp8(float value) {
  const uint8_t sign = static_cast<uint8_t>(bits_of(value) >> 24 & 0x80);
  if (value != value) return sign | 0x7f;
  const float magnitude = round_to_fp8_magnitude(float_of(bits_of(value) & 0x7fffffffu));
  if (magnitude < 0x1p-6f) return static_cast<uint8_t>(sign | static_cast<uint8_t>(magnitude * 512.0f));
  return static_cast<uint8_t>(sign | ((bits_of(magnitude) >> 20) - (120u << 3)));
}

static inline float from_fp8(uint8_t code) {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (int code = 0; code < 256; ++code) {
      const int exponent = (code >> 3) & 15, mantissa = code & 7;
      float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                      : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
      if ((code & 0x7f) == 0x7f) magnitude = std::nanf("");
      values[code] = (code & 0x80) ? -magnitude : magnitude;
    }
    return values;
  }();
  return table[code];
}

}  // namespace zyfa::cpu
