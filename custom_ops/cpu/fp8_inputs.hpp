// Q, K and V on the e4m3 grid: the op's own inputs when they are float8e4m3fn; else quantised (and rotated)
// copies of K and V, and how to quantise a row of Q, which is read only once.
#pragma once

#include <cstdint>
#include <vector>

#include "elements.hpp"
#include "key_visibility.hpp"
#include "parallel.hpp"
#include "sources.hpp"

namespace zyfa::cpu {

class Fp8Inputs {
 public:
  Fp8Inputs(const AttentionProblem& problem, const AttentionTensors& tensors, const KeyMask& mask,
            const ParallelFor& parallel_for);

  // Views of codes; real value = code value * scale. `query` is of codes, or of rows still to be
  // rotated and quantised.
  RowView query;
  KeyRows key, value;
  // One scale per (batch, head).
  std::vector<float> q_scale, k_scale, v_scale;
  std::vector<CodeScale> query_codes;  // of rows still to be quantised
  int64_t rotation_block = 0;          // of a query row, before it is quantised

 private:
  std::vector<uint8_t> key_codes_, value_codes_;
};

}  // namespace zyfa::cpu
