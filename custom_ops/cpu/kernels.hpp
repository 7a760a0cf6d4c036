// The inner loops, compiled once per instruction set (isa/) and chosen at load.
#pragma once

#include <cstdint>

namespace zyfa::cpu {

constexpr int64_t kTileKeys = 64;    // one bit per key fits a 64-bit word
constexpr int64_t kGroupRows = 32;   // query rows that share a tile; the canonical group of docs/numerics.md
constexpr int64_t kColumnStep = 16;  // V tiles are zero-padded to a multiple of this many columns

constexpr int64_t padded_columns(int64_t columns) {
  return (columns + kColumnStep - 1) / kColumnStep * kColumnStep;
}

struct RowStats {
  float max;  // over everything that is not NaN; -inf when nothing is
  bool has_nan;
};

// Affine map from a score to the exponent it stands for: fma(s - shift, factor, offset), two roundings.
struct ScoreMap {
  float shift, factor, offset;
};

struct Kernels {
  const char* isa;

  // s[r][c] = sum over d of q[r][d] * k[d][c]; q is rows x dim, k is dim x kTileKeys, s is rows x kTileKeys.
  void (*scores)(const float* q, const float* k, int64_t rows, int64_t dim, float* s);
  // The same with operands whose products and sums are exact in double precision; one rounding at the end.
  void (*exact_scores)(const double* q, const double* k, int64_t rows, int64_t dim, float* s);
  // o[r][c] = o[r][c] * keep[r] + sum over keys of p[r][key] * v[key][c]; `columns` is a multiple of
  // kColumnStep.
  void (*accumulate)(const float* p, const float* v, int64_t rows, int64_t columns, const float* keep,
                     float* o);

  // The functions below work on one row of kTileKeys scores, where invisible keys are -inf. All return the
  // sum of p.
  RowStats (*row_stats)(const float* s);
  // p = exp2((s - max) * factor), FP32 polynomial (relative error below 2e-7), rounded to bfloat16 when
  // asked.
  float (*softmax_row)(const float* s, float max, float factor, bool to_bfloat16, float* p);
  // Lean P: p = decode(min(max(rint(t), 0), 126)) * block_scale with t = map(s).
  float (*lean_row)(const float* s, ScoreMap map, float block_scale, float* p);
  // Two-term P: p = (hi + lo / 16) * block_scale with hi, lo the e4m3 roundings of exp2(map(s)).
  float (*two_term_row)(const float* s, ScoreMap map, float block_scale, float* p);
  // p = bfloat16(exp2(map(s))) * block_scale.
  float (*bfloat16_row)(const float* s, ScoreMap map, float block_scale, float* p);
};

// The best set this machine has, or the one ZYFA_CPU_ISA names (baseline, avx2, avx512). Throws Error when
// that one is unknown or not supported here.
const Kernels& kernels();

}  // namespace zyfa::cpu
