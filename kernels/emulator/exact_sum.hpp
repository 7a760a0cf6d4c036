// A sum of doubles and of products of doubles, exact whatever their exponents, rounded once.
#pragma once

#include <cstdint>

namespace zyfa::emulator {

class ExactSum {
 public:
  ExactSum();
  void add(double value);
  void add_product(double a, double b);
  // The sum rounded to nearest even. Infinities and NaN as in IEEE arithmetic without intermediate overflow;
  // a sum of nothing but negative zeros is -0. `saturate`: a finite sum beyond the largest number becomes
  // that number.
  float to_float(bool saturate = false) const;
  double to_double(bool saturate = false) const;

 private:
  void special(double term);
  void add_bits(uint64_t mantissa, int exponent, bool negative);
  double round(int precision, int lowest, int highest, bool saturate) const;

  // Digits of 32 bits in two's complement words of 64: carries are resolved once, at the end. Digit 0 has the
  // weight 2^kLowest, below the product of two denormal doubles (2^-2148); the top one is above the largest
  // (2^2048).
  static constexpr int kLowest = -2176, kDigits = 136;
  int64_t digits_[kDigits];
  int first_ = kDigits, last_ = -1;
  bool nan_ = false, plus_infinity_ = false, minus_infinity_ = false, minus_zero_ = true;
};

}  // namespace zyfa::emulator
