#include "fp8_inputs.hpp"

#include "attention.hpp"
#include "quantize.hpp"

namespace zyfa::cpu {
namespace {

std::vector<float> spread_scales(const float* scales, ScaleStrides strides, int64_t batch, int64_t heads) {
  std::vector<float> spread;
  spread.reserve(batch * heads);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) spread.push_back(scales[b * strides.batch + h * strides.head]);
  return spread;
}

// One scale per (batch, head).
std::vector<float> head_scales(const HeadRows& source, const ParallelFor& parallel_for) {
  std::vector<float> scales(source.batch * source.heads);
  head_amax(source, parallel_for, scales.data());
  for (float& scale : scales) scale = fp8_scale(scale);
  return scales;
}

// Fills codes and scales; `rows` becomes their view.
void quantize_keys(const HeadRows& source, const ParallelFor& parallel_for, std::vector<uint8_t>& codes,
                   std::vector<float>& scales, KeyRows& rows) {
  const int64_t dim = source.stored.dim;
  const Strides strides = {source.heads * source.rows * dim, source.rows * dim, dim, 1};
  codes.resize(source.batch * strides.batch);
  scales = head_scales(source, parallel_for);
  quantize_heads(source, parallel_for, scales.data(), codes.data(), strides);
  rows = {{}, {DType::float8e4m3fn, codes.data(), strides}, 0, dim};
}

}  // namespace

Fp8Inputs::Fp8Inputs(const AttentionProblem& p, const AttentionTensors& t, const KeyMask& mask,
                     const ParallelFor& parallel_for)
    : query(query_rows(p, t)), key(key_rows(p, t)), value(value_rows(p, t)) {
  if (p.dtype == DType::float8e4m3fn) {
    q_scale = spread_scales(t.q_scale, p.q_scale, p.batch, p.q_heads);
    k_scale = spread_scales(t.k_scale, p.k_scale, p.batch, p.kv_heads);
    v_scale = spread_scales(t.v_scale, p.v_scale, p.batch, p.kv_heads);
    return;
  }
  rotation_block = p.rotation == Rotation::hadamard ? hadamard_block(p.qk_dim) : 0;
  const KeyRange seen = p.visible_keys_of_any_row();
  const auto counts = [&](int64_t b, int64_t at) {
    return at >= seen.begin && at < seen.end && mask.visible(b, at);
  };
  q_scale =
      head_scales({p.batch, p.q_heads, p.q_len, {{}, query, 0, p.qk_dim}, rotation_block, {}}, parallel_for);
  query_codes = code_scales(q_scale.data(), p.batch * p.q_heads);
  quantize_keys({p.batch, p.kv_heads, p.kv_len(), key, rotation_block, counts}, parallel_for, key_codes_,
                k_scale, key);
  quantize_keys({p.batch, p.kv_heads, p.kv_len(), value, 0, counts}, parallel_for, value_codes_, v_scale,
                value);
}

}  // namespace zyfa::cpu
