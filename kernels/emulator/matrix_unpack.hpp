// Elements of matrix operands as doubles, for the vector units of matrix_multiply.cc: everything here is
// inlined into a copy for each instruction set.
#pragma once

#include <cstdint>
#include <cstring>

#include "matrix_formats.hpp"
#include "state.hpp"

#define ZYFA_INLINE inline __attribute__((always_inline))

namespace zyfa::emulator {

constexpr int kMaxElements = 32;

// Element e of lane l.
using Elements = double[kMaxElements][kLanes];

template <int kBits>
ZYFA_INLINE void look_up(ElementFormat format, const uint32_t* const* registers, int count, Elements& out) {
  const double* table = value_table(format).data();
  for (int e = 0; e < count; ++e) {
    const int bit = e * kBits, shift = bit % 32;
    const uint32_t* low = registers[bit / 32];
    const uint32_t* high = registers[(bit + kBits - 1) / 32];  // the same but where an element straddles two
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t both = low[l] | static_cast<uint64_t>(high[l]) << 32;
      out[e][l] = table[both >> shift & ((1u << kBits) - 1)];
    }
  }
}

// Half precision from the low 16 bits.
ZYFA_INLINE double half_to_double(uint32_t half) {
  const uint32_t magnitude = half & 0x7fff;
  // Normal: the exponent moves from bias 15 to 127. Denormal: 0.5 with the mantissa in its low bits, minus
  // 0.5.
  const uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00 ? 0x70000000u : 0x38000000u);
  const uint32_t denormal = magnitude + 0x3f000000u;
  float n, d;
  std::memcpy(&n, &normal, 4);
  std::memcpy(&d, &denormal, 4);
  float value = magnitude < 0x400 ? d - 0.5f : n;
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits |= half << 16 & 0x80000000;
  std::memcpy(&value, &bits, 4);
  return value;
}

ZYFA_INLINE void unpack_f16(const uint32_t* const* registers, int count, Elements& out) {
  for (int e = 0; e < count; ++e) {
    const uint32_t* in = registers[e / 2];
    const int shift = e % 2 * 16;
    for (int l = 0; l < kLanes; ++l) out[e][l] = half_to_double(in[l] >> shift & 0xffff);
  }
}

// E5M2 is the upper half of half precision.
ZYFA_INLINE void unpack_bf8(const uint32_t* const* registers, int count, Elements& out) {
  for (int e = 0; e < count; ++e) {
    const uint32_t* in = registers[e / 4];
    const int shift = e % 4 * 8;
    for (int l = 0; l < kLanes; ++l) out[e][l] = half_to_double((in[l] >> shift & 0xff) << 8);
  }
}

// E4M3: as half precision, from bias 7; denormals by way of 2^14, whose lowest bit is 2^-9.
ZYFA_INLINE void unpack_fp8(const uint32_t* const* registers, int count, Elements& out) {
  for (int e = 0; e < count; ++e) {
    const uint32_t* in = registers[e / 4];
    const int shift = e % 4 * 8;
    for (int l = 0; l < kLanes; ++l) {
      const uint32_t byte = in[l] >> shift & 0xff, magnitude = byte & 0x7f;
      const uint32_t normal = magnitude == 0x7f ? 0x7fc00000u : (magnitude << 20) + 0x3c000000u;
      const uint32_t denormal = magnitude + 0x46800000u;
      float n, d;
      std::memcpy(&n, &normal, 4);
      std::memcpy(&d, &denormal, 4);
      float value = magnitude < 8 ? d - 16384.0f : n;
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      bits |= byte << 24 & 0x80000000;
      std::memcpy(&value, &bits, 4);
      out[e][l] = value;
    }
  }
}

ZYFA_INLINE void unpack_bf16(const uint32_t* const* registers, int count, Elements& out) {
  for (int e = 0; e < count; ++e)
    for (int l = 0; l < kLanes; ++l) {
      const uint32_t bits = registers[e / 2][l] >> (e % 2 * 16) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      out[e][l] = value;
    }
}

// `count` elements of each lane from as many registers as they fill.
ZYFA_INLINE void unpack(ElementFormat format, const uint32_t* const* registers, int count, Elements& out) {
  switch (format) {
    case ElementFormat::fp8:
      return unpack_fp8(registers, count, out);
    case ElementFormat::bf8:
      return unpack_bf8(registers, count, out);
    case ElementFormat::fp6:
    case ElementFormat::bf6:
      return look_up<6>(format, registers, count, out);
    case ElementFormat::fp4:
      return look_up<4>(format, registers, count, out);
    case ElementFormat::f16:
      return unpack_f16(registers, count, out);
    case ElementFormat::bf16:
      return unpack_bf16(registers, count, out);
    case ElementFormat::i8:
      for (int e = 0; e < count; ++e)
        for (int l = 0; l < kLanes; ++l)
          out[e][l] = static_cast<int32_t>(registers[e / 4][l] << (24 - e % 4 * 8)) >> 24;
      return;
    case ElementFormat::f32:
      for (int l = 0; l < kLanes; ++l) {
        float value;
        std::memcpy(&value, &registers[0][l], 4);
        out[0][l] = value;
      }
      return;
    case ElementFormat::f64:
      for (int l = 0; l < kLanes; ++l) {
        const uint64_t bits = registers[0][l] | static_cast<uint64_t>(registers[1][l]) << 32;
        std::memcpy(&out[0][l], &bits, 8);
      }
      return;
  }
}

}  // namespace zyfa::emulator
