// Problems as tests give them.
#pragma once

#include "select.hpp"
#include "select_abi.h"

namespace zyfa::hip {

inline constexpr DType kInputTypes[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8e4m3fn};
inline constexpr DType kMaskTypes[] = {DType::boolean, DType::int32, DType::int64};

inline Strides strides(const int64_t (&s)[4]) { return {s[0], s[1], s[2], s[3]}; }

inline AttentionProblem problem_of(const zyfa_select_problem& t) {
  AttentionProblem p{};
  p.batch = t.batch;
  p.q_heads = t.q_heads;
  p.kv_heads = t.kv_heads;
  p.q_len = t.q_len;
  p.new_len = t.new_len;
  p.past_len = t.past_len;
  p.qk_dim = t.qk_dim;
  p.v_dim = t.v_dim;
  p.window_left = t.window_left;
  p.query = strides(t.query);
  p.key = strides(t.key);
  p.value = strides(t.value);
  p.output = strides(t.output);
  p.bias = strides(t.bias);
  p.q_scale = {t.q_scale[0], t.q_scale[1]};
  p.k_scale = {t.k_scale[0], t.k_scale[1]};
  p.v_scale = {t.v_scale[0], t.v_scale[1]};
  p.scale = t.scale;
  p.softcap = t.softcap;
  p.is_causal = t.is_causal != 0;
  p.dtype = kInputTypes[t.dtype];
  p.out_dtype = kInputTypes[t.out_dtype];
  p.mask_dtype = kMaskTypes[t.mask_dtype];
  p.precision = static_cast<Precision>(t.precision);
  p.fp8_edges = static_cast<Fp8Edges>(t.fp8_edges);
  p.rotation = static_cast<Rotation>(t.rotation);
  p.causal_alignment = static_cast<Alignment>(t.causal_alignment);
  return p;
}

inline GpuRequest request_of(const zyfa_select_problem& t) {
  return {t.architecture,
          static_cast<ByteRounding>(t.byte_rounding),
          static_cast<KeyMask>(t.key_mask),
          t.has_bias != 0,
          t.sinks != 0,
          t.lse != 0,
          t.present_key != 0,
          t.present_value != 0};
}

}  // namespace zyfa::hip
