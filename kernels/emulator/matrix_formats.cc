#include "matrix_formats.hpp"

#include <cmath>
#include <limits>

namespace zyfa::emulator {
namespace {

// OCP 8-bit and microscaling formats, IEEE and bfloat16; in the order of ElementFormat.
constexpr FormatInfo kFormats[] = {
    {8, 4, 3, 7, false, true},     // fp8: E4M3, +-448, NaN 0x7F and 0xFF
    {8, 5, 2, 15, true, false},    // bf8: E5M2
    {6, 2, 3, 1, false, false},    // fp6: E2M3, +-7.5
    {6, 3, 2, 3, false, false},    // bf6: E3M2, +-28
    {4, 2, 1, 1, false, false},    // fp4: E2M1, +-6
    {16, 5, 10, 15, true, false},  // f16
    {16, 8, 7, 127, true, false},  // bf16
    {32, 8, 23, 127, true, false}, {64, 11, 52, 1023, true, false},
    {8, 0, 7, 0, false, false},  // i8, two's complement
};

std::array<double, 64> make_table(ElementFormat format) {
  std::array<double, 64> table{};
  for (uint32_t i = 0; i < table.size(); ++i)
    table[i] = decode_element(format, i & ((1u << info(format).bits) - 1));
  return table;
}

}  // namespace

const FormatInfo& info(ElementFormat format) { return kFormats[static_cast<int>(format)]; }

double decode_element(ElementFormat format, uint32_t bits) {
  const FormatInfo& f = info(format);
  if (f.exponent_bits == 0) return static_cast<int8_t>(bits);
  const uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  const uint32_t top = (1u << f.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> f.mantissa_bits & top);
  const bool negative = bits >> (f.mantissa_bits + f.exponent_bits) & 1;
  const bool last = exponent == static_cast<int>(top);
  double value;
  if (last && f.infinities)
    value =
        mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else if (last && f.nan && mantissa == (1u << f.mantissa_bits) - 1)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  else
    value = std::ldexp(mantissa + (1u << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

const std::array<double, 64>& value_table(ElementFormat format) {
  static const std::array<double, 64> tables[] = {
      make_table(ElementFormat::fp6), make_table(ElementFormat::bf6), make_table(ElementFormat::fp4)};
  return tables[static_cast<int>(format) - static_cast<int>(ElementFormat::fp6)];
}

double decode_scale(uint8_t byte) {
  return byte == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, byte - 127);
}

}  // namespace zyfa::emulator
