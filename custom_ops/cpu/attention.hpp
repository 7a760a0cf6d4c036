// Attention on the CPU, all precisions of the contract (docs/numerics.md).
#pragma once

#include <cstdint>

#include "../problem.hpp"
#include "fp8_trace.hpp"
#include "parallel.hpp"

namespace zyfa::cpu {

// Data of a problem's tensors; optional ones are null when absent.
struct AttentionTensors {
  const void *query, *key, *value, *past_key, *past_value, *key_mask, *attn_bias;
  const float *q_scale, *k_scale, *v_scale, *sinks;
  void *output, *present_key, *present_value;
  float* lse;
};

// Computes every output. Work is split over (batch, key head, query rows); scratch memory is per thread and
// does not grow with the lengths. `trace` receives the FP8 path's probabilities, for tests; it must be
// thread-safe.
void attention(const AttentionProblem& problem, const AttentionTensors& tensors,
               const ParallelFor& parallel_for, const Fp8Trace* trace = nullptr);

}  // namespace zyfa::cpu
