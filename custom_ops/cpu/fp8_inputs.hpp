// Q, K and V on the e4m3 grid: the op's own inputs when they are float8e4m3fn, else quantised (and rotated)
// copies.
#pragma once

#include <cstdint>
#include <vector>

#include "key_visibility.hpp"
#include "parallel.hpp"
#include "sources.hpp"

namespace zyfa::cpu {

class Fp8Inputs {
 public:
  Fp8Inputs(const AttentionProblem& problem, const AttentionTensors& tensors, const KeyMask& mask,
            const ParallelFor& parallel_for);

  // Views of codes; real value = code value * scale.
  RowView query;
  KeyRows key, value;
  // One scale per (batch, head).
  std::vector<float> q_scale, k_scale, v_scale;

 private:
  std::vector<uint8_t> query_codes_, key_codes_, value_codes_;
};

}  // namespace zyfa::cpu
