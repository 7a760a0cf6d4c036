// Number formats of matrix elements. Every one but f64 has products that are exact in double.
#pragma once

#include <array>
#include <cstdint>

namespace zyfa::emulator {

enum class ElementFormat : uint8_t { fp8, bf8, fp6, bf6, fp4, f16, bf16, f32, f64, i8 };

struct FormatInfo {
  uint8_t bits;           // of one element
  uint8_t exponent_bits;  // 0: integer
  uint8_t mantissa_bits;
  int bias;
  bool infinities;  // the highest exponent holds infinities and NaN
  bool nan;         // no infinities, but all ones is NaN (E4M3)

  // Bits between the largest value and the smallest step: what a fixed-point number needs to hold any of
  // them.
  int range() const {
    if (exponent_bits == 0) return bits;
    return (1 << exponent_bits) - 2 - (infinities ? 1 : 0) + mantissa_bits;
  }
};

const FormatInfo& info(ElementFormat format);

// The value of one element from its bits (not f64).
double decode_element(ElementFormat format, uint32_t bits);

// The values of all elements of a format of at most 6 bits; shorter formats repeat.
const std::array<double, 64>& value_table(ElementFormat format);

// An E8M0 block scale: 2^(byte - 127), 0xFF is NaN.
double decode_scale(uint8_t byte);

}  // namespace zyfa::emulator
