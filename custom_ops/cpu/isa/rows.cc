// What happens to one row of a tile's scores: statistics, probabilities, their rounding and their sum.
// Compiled without contraction: the fused multiply-adds of docs/numerics.md are the ones written here, no
// others.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../float_formats.hpp"
#include "isa.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr int kLanes =
    16;  // partial sums of a row; fixed, so that the sum is the same for every vector width

template <typename P>
inline float row_sum(const P& p) {
  float partial[kLanes] = {};
  for (int c = 0; c < kTileKeys; c += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) partial[lane] += p[c + lane];
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) partial[lane] += partial[lane + width];
  return partial[0];
}

// 2^x for x <= 128; anything below 2^-126 becomes 0, NaN stays NaN. Taylor polynomial of degree 7 on [-0.5,
// 0.5].
inline float exp2_fast(float x) {
  const float shifted = x + 12582912.0f;  // 1.5 * 2^23: the low bits hold rint(x)
  const float f = x - (shifted - 12582912.0f);
  float y = 1.52527338e-05f;
  y = std::fma(y, f, 1.54035304e-04f);
  y = std::fma(y, f, 1.33335581e-03f);
  y = std::fma(y, f, 9.61812911e-03f);
  y = std::fma(y, f, 5.55041087e-02f);
  y = std::fma(y, f, 2.40226507e-01f);
  y = std::fma(y, f, 6.93147181e-01f);
  y = std::fma(y, f, 1.0f);
  const float scaled = y * float_of((bits_of(shifted) << 23) + 0x3f800000u);
  return x < -126.0f ? 0.0f : scaled;
}

// The double-precision 2^x of docs/numerics.md for x <= 16, Taylor polynomial of degree 13 (remainder below
// 5e-18).
inline double exp2_precise(double x) {
  constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52
  x = x < -1000.0 ? -1000.0 : x;
  const double shifted = x + kMagic;
  const double f = (x - (shifted - kMagic)) * 0.69314718055994530942;
  double y = 1.0 / 6227020800.0;
  constexpr double inverse_factorials[] = {1.0 / 479001600.0,
                                           1.0 / 39916800.0,
                                           1.0 / 3628800.0,
                                           1.0 / 362880.0,
                                           1.0 / 40320.0,
                                           1.0 / 5040.0,
                                           1.0 / 720.0,
                                           1.0 / 120.0,
                                           1.0 / 24.0,
                                           1.0 / 6.0,
                                           0.5,
                                           1.0,
                                           1.0};
  for (const double coefficient : inverse_factorials) y = std::fma(y, f, coefficient);
  uint64_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 52) + 0x3ff0000000000000ull;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return y * power;
}

inline float mapped(float s, ScoreMap map) { return std::fma(s - map.shift, map.factor, map.offset); }

}  // namespace

template <typename Tag>
RowStats Rows<Tag>::row_stats(const float* s) {
  float best[kLanes];
  int nan[kLanes] = {};
  for (int lane = 0; lane < kLanes; ++lane) best[lane] = -std::numeric_limits<float>::infinity();
  for (int c = 0; c < kTileKeys; c += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float x = s[c + lane];
      best[lane] = x > best[lane] ? x : best[lane];
      nan[lane] |= x != x;
    }
  }
  RowStats stats{best[0], nan[0] != 0};
  for (int lane = 1; lane < kLanes; ++lane) {
    stats.max = best[lane] > stats.max ? best[lane] : stats.max;
    stats.has_nan |= nan[lane] != 0;
  }
  return stats;
}

template <typename Tag>
float Rows<Tag>::softmax_row(const float* s, float max, float factor, bool to_bfloat16, float* p) {
  for (int c = 0; c < kTileKeys; ++c) p[c] = exp2_fast((s[c] - max) * factor);
  if (to_bfloat16)
    for (int c = 0; c < kTileKeys; ++c) p[c] = from_bfloat16(cpu::to_bfloat16(p[c]));
  return row_sum(p);
}

template <typename Tag>
float Rows<Tag>::lean_row(const float* s, ScoreMap map, float block_scale, float* p) {
  for (int c = 0; c < kTileKeys; ++c) {
    float t = mapped(s[c], map);
    t = t > 0.0f ? t : 0.0f;
    t = t < 126.0f ? t : 126.0f;
    const float magic = t + 12582912.0f;
    const uint32_t code = bits_of(magic) & 0x7fu;
    const float subnormal = (magic - 12582912.0f) * 0x1p-9f;
    p[c] = (code < 8 ? subnormal : float_of((code << 20) + (120u << 23))) * block_scale;
  }
  return row_sum(p);
}

template <typename Tag>
float Rows<Tag>::two_term_row(const float* s, ScoreMap map, float block_scale, float* p) {
  for (int c = 0; c < kTileKeys; ++c) {
    const float exact = static_cast<float>(exp2_precise(static_cast<double>(mapped(s[c], map))));
    const float hi = round_to_fp8_magnitude(exact);
    const float residual = 16.0f * (exact - hi);
    const float lo = std::copysign(round_to_fp8_magnitude(std::fabs(residual)), residual);
    p[c] = (hi + lo * 0.0625f) * block_scale;
  }
  return row_sum(p);
}

template <typename Tag>
float Rows<Tag>::bfloat16_row(const float* s, ScoreMap map, float block_scale, float* p) {
  for (int c = 0; c < kTileKeys; ++c) {
    const float exact = static_cast<float>(exp2_precise(static_cast<double>(mapped(s[c], map))));
    p[c] = from_bfloat16(to_bfloat16(exact)) * block_scale;
  }
  return row_sum(p);
}

template struct Rows<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
