// FP32 and BF16: online softmax over ascending tiles (docs/numerics.md, "precision = fp32 and bf16").
#include <cmath>
#include <limits>

#include "group.hpp"
#include "tile_order.hpp"

namespace zyfa::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Descales of float8e4m3fn inputs enter here: this path computes with the stored values.
struct Descales {
  float qk = 1.0f, v = 1.0f;
};

Descales descales(const AttentionCall& call, const Group& group) {
  const AttentionProblem& p = call.problem;
  if (p.dtype != DType::float8e4m3fn) return {};
  const int64_t kv_head = p.kv_head(group.head);
  const auto at = [&](const float* scales, ScaleStrides s, int64_t head) {
    return scales[group.batch * s.batch + head * s.head];
  };
  return {at(call.tensors.q_scale, p.q_scale, group.head) * at(call.tensors.k_scale, p.k_scale, kv_head),
          at(call.tensors.v_scale, p.v_scale, kv_head)};
}

ScoreScale score_scale(const AttentionCall& call, float descale) {
  const float natural = call.problem.scale * descale;
  // With a scale of 0 the difference of scores must not be multiplied: 0 * -inf is NaN.
  if (call.tensors.attn_bias != nullptr || call.problem.softcap > 0.0f || natural == 0.0f)
    return {natural, false, kLog2E, true};
  return {natural, natural < 0.0f, std::fabs(natural) * kLog2E, false};
}

void update_row(const AttentionCall& call, GroupState& state, int64_t r, float factor) {
  const float* s = state.scores + r * kTileKeys;
  const RowStats stats = call.kernels.row_stats(s);
  state.poisoned[r] |= stats.has_nan;
  if (stats.max == -kInfinity) return state.skip(r);
  const float before = state.anchor[r];
  const float now = stats.max > before ? stats.max : before;
  state.keep[r] = before == -kInfinity ? 0.0f : std::exp2((before - now) * factor);
  state.anchor[r] = now;
  const float added = call.kernels.softmax_row(s, now, factor, call.problem.precision == Precision::bf16,
                                               state.probability + r * kTileKeys);
  state.sum[r] = state.sum[r] * state.keep[r] + added;
}

}  // namespace

void softmax_group(const AttentionCall& call, const Group& group) {
  const AttentionProblem& p = call.problem;
  const bool to_bfloat16 = p.precision == Precision::bf16;
  Arena& arena = Arena::of_this_thread();
  arena.reset(GroupState::bytes(p) + Arena::bytes_for<float>(kGroupRows * p.qk_dim) +
              Arena::bytes_for<float>(p.qk_dim * kTileKeys));
  GroupState state(call, group, arena);
  float* q = arena.take<float>(kGroupRows * p.qk_dim);
  float* k = arena.take<float>(p.qk_dim * kTileKeys);

  const KeyRows keys = key_rows(p, call.tensors), values = value_rows(p, call.tensors);
  const Descales descale = descales(call, group);
  const ScoreScale scale = score_scale(call, descale.qk);
  load_query_tile(query_rows(p, call.tensors), group, p.qk_dim, to_bfloat16, scale.negate, state.row, q);

  const KeyRange tiles = ascending_tiles(p, call.mask.range(group.batch), group.first_row, group.rows);
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    if (!state.look_at(tile)) continue;
    load_key_tile(keys, group.batch, p.kv_head(group.head), tile, p.kv_len(), to_bfloat16, state.row, k);
    state.load_value_tile(values, tile, to_bfloat16, 1.0f);
    call.kernels.scores(q, k, group.rows, p.qk_dim, state.scores);
    for (int64_t r = 0; r < group.rows; ++r) {
      state.finish_scores(r, tile, scale, false);
      update_row(call, state, r, scale.factor);
    }
    state.accumulate();
  }
  state.write(0.0f, descale.v, scale.factor);
}

}  // namespace zyfa::cpu
