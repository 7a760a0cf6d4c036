// Sixteen lanes of FP32 or integers, in whatever registers the instruction set of the file has. Everything
// has internal linkage: code of a newer set must not stand in for that of an older one.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <limits>

#include "../kernels.hpp"

namespace zyfa::cpu::isa {
namespace {

typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename Vector, typename Memory>
inline Vector load_as(const Memory* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <typename Vector, typename Memory>
inline void store(Memory* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}
inline Floats load(const float* from) { return load_as<Floats>(from); }
inline Floats all(float x) { return x - Floats{}; }
inline Words bits_of(const Floats& v) { return (Words)v; }
inline Floats floats_of(const Words& v) { return (Floats)v; }
// The second operand where the first is NaN.
#if defined(__AVX512F__)
// GCC 12 compares and blends for the plain form of the smaller one.
inline Floats max_of(const Floats& a, const Floats& b) {
  return (Floats)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
}
inline Floats min_of(const Floats& a, const Floats& b) {
  return (Floats)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
}
#else
inline Floats max_of(const Floats& a, const Floats& b) { return a > b ? a : b; }
inline Floats min_of(const Floats& a, const Floats& b) { return a < b ? a : b; }
#endif

// One rounding, on every instruction set.
inline Floats fused(const Floats& a, const Floats& b, const Floats& c) {
#if defined(__AVX512F__)
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  Floats r;
  for (int i = 0; i < kLaneBlock; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#endif
}

// One rounding where that is free.
inline Floats mul_add(const Floats& a, const Floats& b, const Floats& c) {
#if defined(__FMA__) || defined(__aarch64__)
  return fused(a, b, c);
#else
  return a * b + c;
#endif
}

constexpr float kRoundingShift = 12582912.0f;  // 1.5 * 2^23: the low bits of x + shift hold rint(x)

// 2^f on [-0.5, 0.5] with 2^0 = 1, relative error 2e-9 before and 8e-8 with FP32 rounding (minimax), by
// powers of f from the sixth down.
constexpr float kExp2[] = {1.5353362e-4f, 1.3398875e-3f, 9.6184369e-3f, 5.5503324e-2f,
                           2.4022648e-1f, 6.9314718e-1f, 1.0f};
constexpr int kExp2Terms = 7;

template <typename Coefficient>
inline Floats exp2_fraction(const Floats& f, const Coefficient& coefficient) {
  Floats y = coefficient(0);
  for (int i = 1; i < kExp2Terms; ++i) y = mul_add(y, f, coefficient(i));
  return y;
}

// 2^x up to 2^127, something large beyond, 0 below 2^-126; NaN stays NaN. Coefficients that are a power of
// two times kExp2 multiply the result by it, exactly.
template <typename Coefficient>
inline Floats exp2_of(const Floats& x, const Coefficient& coefficient) {
#if defined(__AVX512DQ__)
  const __m512 f = _mm512_reduce_ps((__m512)x, 0);
  const __mmask16 normal = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return (Floats)_mm512_maskz_scalef_ps(normal, (__m512)exp2_fraction((Floats)f, coefficient),
                                        (__m512)(x - (Floats)f));
#else
  const Floats bounded = x > 127.4f ? all(127.4f) : x;  // beyond that the exponent would wrap
  const Floats shifted = bounded + kRoundingShift;
  const Floats y = exp2_fraction(bounded - (shifted - kRoundingShift), coefficient);
  const Floats scaled = y * floats_of((bits_of(shifted) << 23) + 0x3f800000u);
  return x < -126.0f ? Floats{} : scaled;
#endif
}
inline Floats exp2_of(const Floats& x) {
  return exp2_of(x, [](int i) { return all(kExp2[i]); });
}

// 2^n for integral n in [-126, 127].
inline Floats power_of_two(const Floats& n) {
  return floats_of((bits_of(n + kRoundingShift) << 23) + 0x3f800000u);
}

// x to 8 significant bits, for finite |x| < 2^111 (Veltkamp's splitting); NaN stays NaN.
inline Floats to_eight_bits(const Floats& x) {
  const Floats c = x * 65537.0f;
  return c - (c - x);
}

// The bfloat16 number towards zero.
inline Floats upper_half(const Floats& x) { return floats_of(bits_of(x) & 0xffff0000u); }

// The nearest one of finite values, ties away from zero.
inline Floats nearest_bfloat16(const Floats& x) { return floats_of((bits_of(x) + 0x8000u) & 0xffff0000u); }

// bfloat16 numbers of two keys, towards zero, as a pair.
inline Words pair_of(const Floats& first, const Floats& second) {
#if defined(__AVX512BW__)
  return (Words)_mm512_mask_mov_epi16((__m512i)(bits_of(first) >> 16), 0xaaaaaaaa, (__m512i)second);
#else
  return (bits_of(first) >> 16) | (bits_of(second) & 0xffff0000u);
#endif
}

}  // namespace
}  // namespace zyfa::cpu::isa
