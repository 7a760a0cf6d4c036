// Sums of two doubles rounded once to float.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace zyfa::emulator {

// a + b in double, rounded to odd: an inexact sum has its lowest bit set, so that rounding it once more, to
// at most 51 bits, gives what one rounding of the exact sum would have given (Boldo and Melquiond, 2008).
inline __attribute__((always_inline)) double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double rest =
      (a - (sum - part)) + (b - part);  // exact (Knuth's two-sum); NaN where the sum is not finite
  uint64_t bits, other;
  std::memcpy(&bits, &sum, sizeof bits);
  std::memcpy(&other, &rest, sizeof other);
  const uint64_t outward = 1 - 2 * ((bits ^ other) >> 63);  // -1 where the exact sum is nearer to zero
  bits += std::fabs(rest) > 0 ? outward & (0 - (~bits & 1)) : 0;
  double odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return odd;
}

// To nearest even; a finite value beyond the largest float becomes that float when `saturate`.
inline __attribute__((always_inline)) float to_float(double value, bool saturate) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const float rounded = static_cast<float>(value);
  const bool overflow =
      saturate & (value < kInfinity) & (value > -kInfinity) & ((rounded > kMax) | (rounded < -kMax));
  return overflow ? (rounded > 0 ? kMax : -kMax) : rounded;
}

}  // namespace zyfa::emulator
