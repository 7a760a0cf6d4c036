// Bits of FP32, and single numbers of the 16-bit formats as FP32.
#pragma once

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

static inline float from_float16(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t sign = (bits & 0x8000u) << 16;
  if (magnitude >= 0x7c00u) return float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // A subnormal is an integer multiple of 2^-24, exact in FP32.
  if (magnitude < 0x400u) return float_of(sign | bits_of(static_cast<float>(magnitude) * 0x1p-24f));
  return float_of(sign | ((magnitude << 13) + (112u << 23)));
}

constexpr float kFp8Max = 448.0f;

}  // namespace zyfa::cpu
