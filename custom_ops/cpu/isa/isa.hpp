// One tag per instruction set. The templates are defined in elements.cc, products.cc and rows.cc and
// instantiated there for the tag of the set that the file is compiled for (ZYFA_ISA), so that no code of a
// newer set leaks into an older one.
#pragma once

#include <cstdint>

#include "../kernels.hpp"

namespace zyfa::cpu::isa {

struct Baseline {
  static constexpr const char* name = "baseline";
};
struct Avx2 {
  static constexpr const char* name = "avx2";
};
struct Avx512 {
  static constexpr const char* name = "avx512";
};

template <typename Tag>
struct Products {
  static void scores(const float* q, const float* k, int64_t rows, int64_t dim, float* s);
  static void exact_scores(const double* q, const double* k, int64_t rows, int64_t dim, float* s);
  static void accumulate(const float* p, const float* v, int64_t rows, int64_t columns, const float* keep,
                         float* o);
};

template <typename Tag>
struct Rows {
  static RowStats row_stats(const float* s);
  static float softmax_row(const float* s, float max, float factor, bool to_bfloat16, float* p);
  static float lean_row(const float* s, ScoreMap map, float block_scale, float* p);
  static float two_term_row(const float* s, ScoreMap map, float block_scale, float* p);
  static float bfloat16_row(const float* s, ScoreMap map, float block_scale, float* p);
};

}  // namespace zyfa::cpu::isa
