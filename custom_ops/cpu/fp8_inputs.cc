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

// Fills codes and scales, one scale per (batch, head), and returns the view of the codes.
RowView quantize_by_head(const HeadRows& source, const ParallelFor& parallel_for, std::vector<uint8_t>& codes,
                         std::vector<float>& scales) {
  const Strides strides = {source.heads * source.rows * source.dim, source.rows * source.dim, source.dim, 1};
  codes.resize(source.batch * strides.batch);
  scales.resize(source.batch * source.heads);
  head_amax(source, parallel_for, scales.data());
  for (float& scale : scales) scale = fp8_scale(scale);
  quantize_heads(source, parallel_for, scales.data(), codes.data(), strides);
  return {DType::float8e4m3fn, codes.data(), strides};
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
  const int64_t block = p.rotation == Rotation::hadamard ? hadamard_block(p.qk_dim) : 0;
  const KeyRange seen = p.visible_keys_of_any_row();
  const auto counts = [&](int64_t b, int64_t at) {
    return at >= seen.begin && at < seen.end && mask.visible(b, at);
  };
  const auto quantize_keys = [&](KeyRows& rows, int64_t rotation_block, std::vector<uint8_t>& codes,
                                 std::vector<float>& scales) {
    const auto read = [&](int64_t b, int64_t h, int64_t at, float* out) { rows.read(b, h, at, out); };
    const RowView view =
        quantize_by_head({p.batch, p.kv_heads, p.kv_len(), rows.dim, rotation_block, read, counts},
                         parallel_for, codes, scales);
    rows = {{}, view, 0, rows.dim};
  };
  const auto read = [&](int64_t b, int64_t h, int64_t at, float* out) {
    query.read(b, h, at, p.qk_dim, out);
  };
  query = quantize_by_head({p.batch, p.q_heads, p.q_len, p.qk_dim, block, read, {}}, parallel_for,
                           query_codes_, q_scale);
  quantize_keys(key, block, key_codes_, k_scale);
  quantize_keys(value, 0, value_codes_, v_scale);
}

}  // namespace zyfa::cpu
