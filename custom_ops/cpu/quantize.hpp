// Scale and codes of float8e4m3fn tensors (docs/numerics.md, "Quantisation").
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../problem.hpp"
#include "elements.hpp"
#include "parallel.hpp"
#include "sources.hpp"

namespace zyfa::cpu {

// amax / 448; 1 for 0; never subnormal.
float fp8_scale(float amax);

std::vector<CodeScale> code_scales(const float* scales, int64_t count);

// A (batch, heads, rows, dim) source of any layout, in one tensor or in past and new rows.
struct HeadRows {
  int64_t batch, heads, rows;
  KeyRows stored;
  int64_t rotation_block;                              // Hadamard block, 0: no rotation
  std::function<bool(int64_t b, int64_t row)> counts;  // whether a row enters amax; empty: all do
};

// Largest finite magnitude of every (batch, head), rotation included; NaN and infinities do not count.
void head_amax(const HeadRows& source, const ParallelFor& parallel_for, float* amax);

// codes = e4m3(row / scale), one scale per (batch, head). Rows that do not count are written as well: they
// saturate.
void quantize_heads(const HeadRows& source, const ParallelFor& parallel_for, const float* scales,
                    uint8_t* codes, const Strides& strides);

}  // namespace zyfa::cpu
