// Vectors of the width of one instruction set, and the stored types as vectors of FP32. Every alternative is
// computed and one selected; finite floats of one sign are ordered as their bits, so comparisons are of
// integers. Included by files that are compiled once per instruction set, and by no others.
#pragma once

#include <cstdint>
#include <cstring>

#include "../float_formats.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace zyfa::cpu::isa {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef int16_t Shorts __attribute__((vector_size(4 * kLanes)));  // twice as many lanes

constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

template <typename Vector>
inline Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <typename Vector>
inline void store(void* to, Vector vector) {
  std::memcpy(to, &vector, sizeof vector);
}

#if defined(__AVX512F__)
inline Floats fused(Floats a, Floats b, Floats c) {
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif defined(__FMA__)
inline Floats fused(Floats a, Floats b, Floats c) {
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#endif

inline Words select(Ints condition, Words yes, Words no) { return condition ? yes : no; }
// Of numbers below 2^31.
inline Ints less(Words a, Words b) { return (Ints)a < (Ints)b; }
#if defined(__AVX512F__)
// GCC 12 compares and blends for the plain forms. The masked ones do not warn of undefined lanes there.
inline Words smaller(Words a, Words b) {
  return (Words)_mm512_maskz_min_epu32(0xffff, (__m512i)a, (__m512i)b);
}
inline Words larger(Words a, Words b) {
  return (Words)_mm512_maskz_max_epu32(0xffff, (__m512i)a, (__m512i)b);
}
#else
inline Words smaller(Words a, Words b) { return select(less(a, b), a, b); }
inline Words larger(Words a, Words b) { return select(less(b, a), a, b); }
#endif

// Words from kLanes unsigned 16- or 8-bit elements, and the low 16 or 8 bits of each word to memory. Written
// out, as GCC 12 takes conversions of vectors apart below AVX-512.
#if defined(__AVX512F__)

inline Words load_halves(const void* from) {
  return (Words)_mm512_maskz_cvtepu16_epi32(0xffff, load<__m256i>(from));
}
inline Words load_bytes(const void* from) {
  return (Words)_mm512_maskz_cvtepu8_epi32(0xffff, load<__m128i>(from));
}
inline void store_halves(void* to, Words x) { store(to, _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)x)); }
inline void store_bytes(void* to, Words x) { store(to, _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)x)); }

#elif defined(__AVX2__)

inline Words load_halves(const void* from) { return (Words)_mm256_cvtepu16_epi32(load<__m128i>(from)); }
inline Words load_bytes(const void* from) {
  return (Words)_mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
}
inline __m128i packed_halves(Words x) {
  const __m256i words = (__m256i)(x & 0xffffu);
  return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
inline void store_halves(void* to, Words x) { store(to, packed_halves(x)); }
inline void store_bytes(void* to, Words x) {
  const __m128i halves = packed_halves(x & 0xffu);
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packus_epi16(halves, halves));
}

#elif defined(__x86_64__)

inline Words load_halves(const void* from) {
  return (Words)_mm_unpacklo_epi16(_mm_loadl_epi64(static_cast<const __m128i*>(from)), _mm_setzero_si128());
}
inline Words load_bytes(const void* from) {
  const __m128i bytes = _mm_cvtsi32_si128(load<int>(from)), zero = _mm_setzero_si128();
  return (Words)_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
}
inline __m128i packed_halves(Words x) {
  // SSE2 packs with signed saturation only: the low half as a signed number stays what it is.
  const __m128i words = (__m128i)((Ints)(x << 16) >> 16);
  return _mm_packs_epi32(words, words);
}
inline void store_halves(void* to, Words x) { _mm_storel_epi64(static_cast<__m128i*>(to), packed_halves(x)); }
inline void store_bytes(void* to, Words x) {
  const __m128i halves = packed_halves(x & 0xffu);
  const int four = _mm_cvtsi128_si32(_mm_packus_epi16(halves, halves));
  std::memcpy(to, &four, sizeof four);
}

#else

template <typename Stored>
inline void store_low_bits(void* to, Words x) {
  Stored low[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) low[lane] = static_cast<Stored>(x[lane]);
  std::memcpy(to, low, sizeof low);
}
template <typename Stored>
inline Words load_wider(const void* from) {
  Stored narrow[kLanes];
  std::memcpy(narrow, from, sizeof narrow);
  Words x;
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = narrow[lane];
  return x;
}
inline Words load_halves(const void* from) { return load_wider<uint16_t>(from); }
inline Words load_bytes(const void* from) { return load_wider<uint8_t>(from); }
inline void store_halves(void* to, Words x) { store_low_bits<uint16_t>(to, x); }
inline void store_bytes(void* to, Words x) { store_low_bits<uint8_t>(to, x); }

#endif

// Each stored type: a vector of its elements to and from FP32; its bits as signed integers for the search of
// the largest magnitude, and which of them infinity has.
struct Float32 {
  static constexpr int64_t kBytes = 4;
  using Signed = Ints;
  static constexpr int32_t kInfinite = kInfinity;
  static Floats widen(const void* from) { return load<Floats>(from); }
  static void narrow(void* to, Floats x) { store(to, x); }
};

struct BFloat16 {
  static constexpr int64_t kBytes = 2;
  using Signed = Shorts;
  static constexpr int16_t kInfinite = 0x7f80;
  static Floats widen(const void* from) { return (Floats)(load_halves(from) << 16); }
  // The number's bits above 16 others.
  static Words rounded(Floats x) {
    const Words bits = (Words)x;
    const Ints is_nan = less(Words{} + kInfinity, bits & kMagnitude);
    return select(is_nan, bits | 0x400000u, bits + 0x7fffu + (bits >> 16 & 1u));
  }
  static void narrow(void* to, Floats x) { store_halves(to, rounded(x) >> 16); }
};

struct Float16 {
  static constexpr int64_t kBytes = 2;
  using Signed = Shorts;
  static constexpr int16_t kInfinite = 0x7c00;
#if defined(__AVX512F__)
  // As below but for the payload of NaN, which no result shows.
  static Floats widen(const void* from) { return _mm512_maskz_cvtph_ps(0xffff, load<__m256i>(from)); }
  static void narrow(void* to, Floats x) {
    const auto halves = _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT);
    const Words value = (Words)_mm512_maskz_cvtepu16_epi32(0xffff, halves);
    const Words bits = (Words)x, nan = (bits >> 16 & 0x8000u) | 0x7e00u;
    store_halves(to, select(less(Words{} + kInfinity, bits & kMagnitude), nan, value));
  }
#else
  static Floats widen(const void* from) {
    const Words bits = load_halves(from), magnitude = bits & 0x7fffu;
    // 2^-14 and the subnormal's bits behind it, minus 2^-14: exact, and no FP32 subnormal on the way.
    constexpr uint32_t kSmallest = 113u << 23;
    const Words subnormal = (Words)((Floats)((magnitude << 13) + kSmallest) - float_of(kSmallest));
    const Words normal = (magnitude << 13) + (112u << 23), special = magnitude << 13 | kInfinity;
    const Words finite = select(less(magnitude, Words{} + 0x400u), subnormal, normal);
    const Words value = select(less(magnitude, Words{} + 0x7c00u), finite, special);
    return (Floats)((bits & 0x8000u) << 16 | value);
  }
  static void narrow(void* to, Floats x) {
    const Words bits = (Words)x, magnitude = bits & kMagnitude;
    // Adding 0.5 aligns the last kept bit with 2^-24; the addition itself rounds to nearest even.
    const Words subnormal = (Words)((Floats)magnitude + 0.5f) - bits_of(0.5f);
    const Words rebased = magnitude - (112u << 23);
    const Words normal = (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13;
    const Words finite = select(less(magnitude, Words{} + 0x38800000u), subnormal, normal);
    const Words bounded =  // 65520 and up round to infinity
        select(less(magnitude, Words{} + 0x477ff000u), finite, Words{} + 0x7c00u);
    const Words value = select(less(Words{} + kInfinity, magnitude), Words{} + 0x7e00u, bounded);
    store_halves(to, (bits >> 16 & 0x8000u) | value);
  }
#endif
};

struct Float8 {
  static constexpr int64_t kBytes = 1;
  static Floats widen(const void* from) {
#if defined(__AVX512BW__)
    // As float16, whose exponent counts from 8 lower; the instruction that widens it takes subnormals in its
    // stride.
    const __m128i codes = load<__m128i>(from);
    const __m256i halves =
        _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7), _mm256_set1_epi16(~0x4000));
    const __mmask16 numbers =
        _mm_cmpneq_epi8_mask(_mm_or_si128(codes, _mm_set1_epi8(-0x80)), _mm_set1_epi8(-1));
    return (Floats)_mm512_mask_mul_ps(_mm512_set1_ps(__builtin_nanf("")), numbers, _mm512_cvtph_ps(halves),
                                      _mm512_set1_ps(256.0f));
#else
    const Words code = load_bytes(from), magnitude = code & 0x7fu;
    // 2^-6 and the subnormal's bits behind it, minus 2^-6.
    const Words subnormal = (Words)((Floats)((magnitude << 20) + (121u << 23)) - 0x1p-6f);
    const Words normal = (magnitude << 20) + (120u << 23);
    const Words number = select(less(magnitude, Words{} + 8u), subnormal, normal);
    const Words value = select(less(magnitude, Words{} + 0x7fu), number, Words{} + 0x7fc00000u);
    return (Floats)((code & 0x80u) << 24 | value);
#endif
  }
};

// float8e4m3fn codes, nearest even; values beyond +-448 saturate, NaN gives 0x7f with its sign. A power of
// two whose last bit is worth the code's last bit is added, which rounds to nearest even; the sum's bits
// count from there. Below 2^-6 that bit is worth 2^-9 for all.
inline Words e4m3_codes(Floats x) {
  constexpr uint32_t kLeastNormal = 121u << 23, kTwentyUp = 20u << 23;
  const Words bits = (Words)x, magnitude = bits & kMagnitude;
  const Words saturated = smaller(magnitude, Words{} + bits_of(kFp8Max));
  const Words power = larger(saturated & kInfinity, Words{} + kLeastNormal);
  const Words eighths = (Words)((Floats)saturated + (Floats)(power + kTwentyUp)) - (power + kTwentyUp);
  const Words code = eighths + ((power - kLeastNormal) >> 20);
  return select(less(Words{} + kInfinity, magnitude), Words{} + 0x7fu, code) | (bits >> 24 & 0x80u);
}

}  // namespace
}  // namespace zyfa::cpu::isa
