// Quotients as e4m3 codes. Included as lanes.hpp is.
#pragma once

#include "orders.hpp"

namespace zyfa::cpu::isa {
namespace {

#if defined(__FMA__)
// x / divisor, correctly rounded, by multiply-adds: a vector of divisions takes 16 cycles. The first
// remainder leaves the quotient within one unit of the last place, and from there the second leads to the
// nearest number (Markstein, IBM J. Res. Dev. 34, 1990), while the reciprocal is a normal number and
// remainders are exact. Those of quotients from 2^-11 on, below which the code is 0, are multiples of 2^-57
// of the divisor's power of two, so 2^-92 would do. NaN, zeros and infinities are the product.
class Quotient {
 public:
  explicit Quotient(float divisor)
      : divisor_(divisor - Floats{}), reciprocal_(1.0f / divisor - Floats{}), divides_(!is_usual(divisor)) {}

  Floats operator()(Floats x) const {
    if (divides_) return x / divisor_;
    const Floats first = x * reciprocal_, second = corrected(first, x);
#if defined(__AVX512DQ__)
    constexpr int kNanZeroInfinity = 0x9f;
    const __mmask16 special = _mm512_fpclass_ps_mask((__m512)first, kNanZeroInfinity);
    return (Floats)_mm512_mask_mov_ps((__m512)corrected(second, x), special, (__m512)first);
#else
    const Ints special = (((Words)first & kInfinity) == kInfinity) | (first == 0.0f);
    return special ? first : corrected(second, x);
#endif
  }

 private:
  static bool is_usual(float divisor) { return divisor > 0x1p-90f && divisor < 0x1p100f; }
  Floats corrected(Floats quotient, Floats x) const {
    return fused(fused(-quotient, divisor_, x), reciprocal_, quotient);
  }

  Floats divisor_, reciprocal_;
  bool divides_;
};
#else
struct Quotient {
  float divisor;
  Floats operator()(Floats x) const { return x / divisor; }
};
#endif

#if defined(__AVX512BW__)
// A constant that GCC keeps instead of making it anew for every row.
inline __m512i kept(uint32_t bits) {
  __m512i all = _mm512_set1_epi32(bits);
  __asm__("" : "+v"(all));
  return all;
}

// Codes of vectors divided by a scale, four vectors at a time, while no quotient is NaN or beyond 448.
//
// Quotients by two terms of the reciprocal are within one unit of the last place and on the same side of
// every midpoint of two codes as those of a division: known of each CodeScale. They are 2^-13 of their size,
// so that the code 8 * (exponent - least) + eighths comes without a subtraction. A power of two of their
// sign, whose last bit is worth the code's last bit, is added: the sum rounds to nearest even and is the
// sign, 128 + (exponent - least), zeros and the eighths, which a product of 16-bit halves puts together.
class Codes {
 public:
  static constexpr int kGroup = 4;

  // Codes by this scale from here on.
  void begin(const CodeScale& scale) {
    reciprocal_ = scale.reciprocal - Floats{};
    rest_ = scale.rest - Floats{};
    exponents_ = _mm512_setzero_si512();
    largest_ = _mm512_setzero_si512();
    takes_ = scale.reciprocal != 0.0f;
  }

  // V is a multiple of kGroup.
  template <typename Order, int V>
  __attribute__((always_inline)) void store(const Floats* x, uint8_t* codes) {
    each<V / kGroup>([&](auto i) {
      __builtin_prefetch(codes + i * sizeof(Words) + kAhead, 1);
      const __m512i sums[kGroup] = {sum(x[4 * i]), sum(x[4 * i + 1]), sum(x[4 * i + 2]), sum(x[4 * i + 3])};
      isa::store(codes + i * sizeof(Words), bytes_of<Order>(sums));
    });
  }

  // Whether all that was stored since `begin` is right.
  bool complete() const {
    return takes_ && _mm512_test_epi32_mask(exponents_, kept(0x38000000)) == 0 &&
           _mm512_cmpgt_epu8_mask(largest_, kept(0x7e7e7e7e)) == 0;
  }

  // Quotients are on the right side of all midpoints: of 1 to 15 and 17 to 31, odd, times powers of two. A
  // quotient that is not within 2^-23 of one, and so two numbers from it, is.
  static CodeScale prepared(float scale) {
    const CodeScale by_division = {scale, 0.0f, 0.0f};
    if (!(scale > 0x1p-90f && scale < 0x1p60f)) return by_division;
    const float divisor = scale * 0x1p13f;
    float reciprocal = 1.0f / divisor;  // from below, so that zeros keep their sign
    if (__builtin_fmaf(-reciprocal, divisor, 1.0f) < 0.0f) reciprocal = float_of(bits_of(reciprocal) - 1);
    const float rest = __builtin_fmaf(-reciprocal, divisor, 1.0f) * reciprocal;
    Codes codes;
    codes.begin({scale, reciprocal, rest});
    const Floats middle = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    bool same = true;
    each<5>([&](auto i) {
      const Floats x = (Floats)((Ints)(middle * scale) + (i - 2));
      const Floats exact = x / (scale - Floats{}), found = codes.quotient(x) * 0x1p13f;
      same &= _mm512_cmp_ps_mask((__m512)exact, (__m512)middle, _CMP_LT_OQ) ==
              _mm512_cmp_ps_mask((__m512)found, (__m512)middle, _CMP_LT_OQ);
      same &= _mm512_cmp_ps_mask((__m512)exact, (__m512)middle, _CMP_GT_OQ) ==
              _mm512_cmp_ps_mask((__m512)found, (__m512)middle, _CMP_GT_OQ);
    });
    return same ? CodeScale{scale, reciprocal, rest} : by_division;
  }

 private:
  Floats quotient(Floats x) const { return fused(x, reciprocal_, x * rest_); }

  __m512i sum(Floats x) const {
    constexpr int kLargerMagnitude = 3;  // with the sign of the first
    const Floats divided = quotient(x);
    const Words larger = (Words)_mm512_range_ps((__m512)divided, _mm512_set1_ps(0x1p-19f), kLargerMagnitude);
    return (__m512i)fused((Floats)(larger & 0xff800000u), Floats{} + 0x1p20f, divided);
  }

  template <typename Order>
  __attribute__((always_inline)) __m512i bytes_of(const __m512i (&sums)[kGroup]) {
    constexpr int kNext = Order::kLaneStep == 2 ? 2 : 1, kOr = 0xfe;
    const __m512i first = packed(sums[0], sums[kNext]), second = packed(sums[3 - kNext], sums[3]);
    const __m512i magnitudes =
        either(first_bytes_, _mm512_srli_epi16(first, 4), _mm512_slli_epi16(second, 4));
    const __m512i signs = either(first_bytes_, _mm512_srli_epi16(first, 8), second);
    exponents_ = _mm512_ternarylogic_epi32(exponents_, sums[0], sums[1], kOr);
    exponents_ = _mm512_ternarylogic_epi32(exponents_, sums[2], sums[3], kOr);
    largest_ = _mm512_max_epu8(largest_, magnitudes);
    return in_order(Order(), either(top_bits_, signs, magnitudes));
  }

  // Words of sign, 1000, code and four zeros.
  __m512i packed(__m512i first, __m512i second) const {
    return _mm512_packs_epi32(_mm512_madd_epi16(first, weights_), _mm512_madd_epi16(second, weights_));
  }
  static __m512i either(__m512i mask, __m512i where_set, __m512i elsewhere) {
    return _mm512_ternarylogic_epi32(mask, where_set, elsewhere, 0xca);
  }
  // Of bytes that alternate between the vectors of `first` and `second`.
  static __m512i in_order(EvenOdd, __m512i bytes) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes);
  }
  template <typename Stored>
  static __m512i in_order(InOrder<Stored>, __m512i bytes) {
    const __m128i fours = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                    _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(fours)));
  }

  const __m512i weights_ = kept(1 << 16 | 16), first_bytes_ = kept(0x00ff00ff), top_bits_ = kept(0x80808080);
  Floats reciprocal_, rest_;
  __m512i exponents_, largest_;
  bool takes_;
};
#else
class Codes {
 public:
  static constexpr int kGroup = 1;

  static CodeScale prepared(float scale) { return {scale, 0.0f, 0.0f}; }

  void begin(const CodeScale& scale) { scaled_ = Quotient{scale.scale}; }

  template <typename Order, int V>
  __attribute__((always_inline)) void store(const Floats* x, uint8_t* codes) const {
    __builtin_prefetch(codes + kAhead, 1);
    Words found[V];
    each<V>([&](auto v) { found[v] = e4m3_codes(scaled_(x[v])); });
    Order::template store_bytes<V>(codes, found);
  }
  bool complete() const { return true; }

 private:
  Quotient scaled_{1.0f};
};
#endif

}  // namespace
}  // namespace zyfa::cpu::isa
