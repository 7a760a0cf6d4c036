#include "trace_abi.h"

#include <cmath>
#include <cstdio>
#include <string>

#include "attention.hpp"
#include "kernels.hpp"

namespace {

using namespace zyfa;

AttentionProblem problem_of(const zyfa_trace_problem& t, bool masked, bool with_sinks) {
  AttentionAttributes a;
  a.scale = t.scale;
  a.is_causal = t.is_causal != 0;
  a.causal_alignment = t.top_left != 0 ? Alignment::top_left : Alignment::bottom_right;
  a.window_left = t.window_left;
  a.layout = Layout::bhsd;
  a.precision = Precision::fp8;
  const std::string edges = t.fp8_edges;
  a.fp8_edges = edges == "none" ? Fp8Edges::none : edges == "bf16" ? Fp8Edges::bf16 : Fp8Edges::hilo;
  a.rotation = std::string(t.rotation) == "hadamard" ? Rotation::hadamard : Rotation::none;
  AttentionInputs in{{DType::float32, {t.batch, t.num_heads, t.q_len, t.qk_dim}},
                     {DType::float32, {t.batch, t.kv_num_heads, t.kv_len, t.qk_dim}},
                     {DType::float32, {t.batch, t.kv_num_heads, t.kv_len, t.v_dim}},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {},
                     {}};
  if (masked) in.key_mask = TensorInfo{DType::boolean, {t.batch, t.kv_len}};
  if (with_sinks) in.sinks = TensorInfo{DType::float32, {t.num_heads}};
  return make_attention_problem(a, in);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int zyfa_trace_fp8(
    const zyfa_trace_problem* problem, const float* q, const float* k, const float* v,
    const uint8_t* key_mask, const float* sinks, zyfa_trace_row_tile callback, void* user, float* output,
    float* lse, char* error, int64_t error_size) {
  try {
    cpu::AttentionTensors tensors{};
    tensors.query = q;
    tensors.key = k;
    tensors.value = v;
    tensors.key_mask = key_mask;
    tensors.sinks = sinks;
    tensors.output = output;
    tensors.lse = lse;
    const cpu::Fp8Trace trace = [&](const cpu::Fp8TileRow& row) {
      float unscaled[cpu::kTileKeys];
      for (int64_t c = 0; c < cpu::kTileKeys; ++c)
        unscaled[c] = std::ldexp(row.probability[c], -row.exponent);
      callback(user, row.batch, row.head, row.row, row.tile, row.is_edge, row.anchor, row.exponent, unscaled);
    };
    const cpu::ParallelFor serial = [](int64_t count, const std::function<void(int64_t)>& body) {
      for (int64_t i = 0; i < count; ++i) body(i);
    };
    cpu::attention(problem_of(*problem, key_mask != nullptr, sinks != nullptr), tensors, serial, &trace);
    return 0;
  } catch (const std::exception& failure) {
    std::snprintf(error, static_cast<size_t>(error_size), "%s", failure.what());
    return 1;
  }
}

extern "C" __attribute__((visibility("default"))) const char* zyfa_trace_isa(void) {
  return zyfa::cpu::kernels().isa;
}
