#include "exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace zyfa::emulator {
namespace {

using Wide = unsigned __int128;

struct Parts {
  uint64_t mantissa;
  int exponent;  // of the mantissa's lowest bit
  bool negative;
};

Parts split(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0) return {fraction, -1074, bits >> 63 != 0};
  return {fraction | uint64_t{1} << 52, exponent - 1075, bits >> 63 != 0};
}

}  // namespace

ExactSum::ExactSum() { std::fill_n(digits_, kDigits, 0); }

void ExactSum::special(double term) {
  nan_ |= std::isnan(term);
  plus_infinity_ |= term > 0;
  minus_infinity_ |= term < 0;
  minus_zero_ = false;
}

void ExactSum::add(double value) {
  if (!std::isfinite(value)) return special(value);
  const Parts parts = split(value);
  minus_zero_ &= parts.negative && parts.mantissa == 0;
  add_bits(parts.mantissa, parts.exponent, parts.negative);
}

void ExactSum::add_product(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return special(a * b);
  const Parts x = split(a), y = split(b);
  const Wide product = static_cast<Wide>(x.mantissa) * y.mantissa;
  const bool negative = x.negative != y.negative;
  minus_zero_ &= negative && product == 0;
  add_bits(static_cast<uint64_t>(product), x.exponent + y.exponent, negative);
  add_bits(static_cast<uint64_t>(product >> 64), x.exponent + y.exponent + 64, negative);
}

void ExactSum::add_bits(uint64_t mantissa, int exponent, bool negative) {
  if (mantissa == 0) return;
  const int position = exponent - kLowest, digit = position / 32;
  Wide rest = static_cast<Wide>(mantissa) << position % 32;
  first_ = std::min(first_, digit);
  last_ = std::max(last_, digit + 2);
  for (int i = 0; i < 3; ++i, rest >>= 32) {
    const auto part = static_cast<int64_t>(rest & 0xffffffff);
    digits_[digit + i] += negative ? -part : part;
  }
}

double ExactSum::round(int precision, int lowest, int highest, bool saturate) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (nan_ || (plus_infinity_ && minus_infinity_)) return std::numeric_limits<double>::quiet_NaN();
  if (plus_infinity_ || minus_infinity_) return plus_infinity_ ? kInfinity : -kInfinity;
  if (last_ < 0) return minus_zero_ ? -0.0 : 0.0;

  // Resolve the carries; a negative sum is negated and resolved again.
  int64_t digits[kDigits + 1];
  bool negative = false;
  const int end = last_ + 2;
  for (int pass = 0; pass < 2; ++pass) {
    int64_t carry = 0;
    for (int i = first_; i < end; ++i) {
      const int64_t sum = (i > last_ ? 0 : negative ? -digits_[i] : digits_[i]) + carry;
      digits[i] = sum & 0xffffffff;
      carry = sum >> 32;
    }
    if (carry >= 0) break;
    negative = true;
  }
  int top = end - 1;
  while (top >= first_ && digits[top] == 0) --top;
  if (top < first_) return 0.0;

  // The leading 64 bits, everything below them gathered in the lowest (sticky) bit.
  Wide head = 0;
  for (int i = top; i > top - 3; --i) head = head << 32 | static_cast<Wide>(i >= first_ ? digits[i] : 0);
  bool sticky = false;
  for (int i = first_; i <= top - 3; ++i) sticky |= digits[i] != 0;
  const int extra = 32 - __builtin_clz(static_cast<uint32_t>(digits[top]));  // the top digit is not zero
  sticky |= (head & ((Wide{1} << extra) - 1)) != 0;
  uint64_t mantissa = static_cast<uint64_t>(head >> extra);
  const int exponent = kLowest + 32 * (top - 2) + extra;
  mantissa |= sticky ? 1 : 0;

  // Keep `precision` bits, fewer where the result is denormal.
  const int drop = std::max(64 - precision, lowest - exponent);
  uint64_t kept = 0, lost = 0, half = 0;
  if (drop < 64) {
    kept = mantissa >> drop;
    lost = mantissa & ((uint64_t{1} << drop) - 1);
    half = uint64_t{1} << (drop - 1);
  } else if (drop == 64) {
    lost = mantissa;
    half = uint64_t{1} << 63;
  }
  if (half != 0 && (lost > half || (lost == half && (kept & 1)))) ++kept;
  double value;
  if (exponent + 64 > highest + 1 || (kept >> precision && exponent + 64 > highest))
    value = kInfinity;
  else
    value = std::ldexp(static_cast<double>(kept), exponent + drop);
  if (saturate && value == kInfinity)
    value = std::ldexp(static_cast<double>((uint64_t{1} << precision) - 1), highest + 1 - precision);
  return negative ? -value : value;
}

float ExactSum::to_float(bool saturate) const { return static_cast<float>(round(24, -149, 127, saturate)); }

double ExactSum::to_double(bool saturate) const { return round(53, -1074, 1023, saturate); }

}  // namespace zyfa::emulator
