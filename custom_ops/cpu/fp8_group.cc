// FP8: Lean P in interior tiles, two-term or BF16 P in edge tiles (docs/numerics.md, "precision = fp8").
#include <algorithm>
#include <cmath>
#include <limits>

#include "fp8_inputs.hpp"
#include "group.hpp"
#include "tile_order.hpp"

namespace zyfa::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kTau = 1.0f;  // log2 units a tile may exceed the anchor before the row is re-anchored
constexpr float kAnchorCode = 126.0f;  // e4m3 code of 448
constexpr float kUnit = 8.80708f;      // log2 of what a probability of one is worth: 8 + (6 + 0.45665) / 8

ScoreScale score_scale(const AttentionCall& call, float q_scale, float k_scale) {
  const float natural = call.problem.scale * q_scale * k_scale;
  if (call.tensors.attn_bias != nullptr || call.problem.softcap > 0.0f) return {natural, false, 1.0f, true};
  return {natural, natural < 0.0f, std::fabs(natural * kLog2E), false};
}

float exp2_rounded(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }

// Operands of one of the two kinds of tile: codes, or (edge tiles with fp8_edges = "bf16") bfloat16 values.
struct Operands {
  KeyRows key, value;
  const double* q;
  ScoreScale scale;
  bool to_bfloat16;
  float value_factor;
};

class Fp8Group {
 public:
  Fp8Group(const AttentionCall& call, const Fp8Inputs& inputs, const Group& group, const Fp8Trace* trace)
      : call_(call), trace_(trace), arena_(reserve(call.problem)), state_(call, group, arena_) {
    const AttentionProblem& p = call.problem;
    const int64_t kv = group.batch * p.kv_heads + p.kv_head(group.head);
    key_tile_ = arena_.take<double>(p.qk_dim * kTileKeys);
    value_scale_ = inputs.v_scale[kv];
    codes_ = {inputs.key,
              inputs.value,
              nullptr,
              score_scale(call, inputs.q_scale[group.batch * p.q_heads + group.head], inputs.k_scale[kv]),
              false,
              1.0f};
    codes_.q = load_query(inputs.query, codes_.scale, false);
    if (p.fp8_edges != Fp8Edges::bf16) return;
    bfloat16_ = {
        key_rows(p, call.tensors), value_rows(p, call.tensors), nullptr, score_scale(call, 1.0f, 1.0f), true,
        1.0f / value_scale_};
    bfloat16_.q = load_query(query_rows(p, call.tensors), bfloat16_.scale, true);
  }

  void run() {
    const Group& group = state_.group;
    const KeyRange mask = call_.mask.range(group.batch);
    for (const TileVisit& visit : fp8_tile_order(call_.problem, mask, group.first_row, group.rows)) {
      if (!state_.look_at(visit.tile)) continue;
      const bool edge = visit.is_edge && call_.problem.fp8_edges != Fp8Edges::none;
      const Operands& from = edge && call_.problem.fp8_edges == Fp8Edges::bf16 ? bfloat16_ : codes_;
      multiply(from, visit.tile);
      for (int64_t r = 0; r < group.rows; ++r) {
        state_.finish_scores(r, visit.tile, from.scale, true);
        update_row(from, r, {visit.tile, edge});
      }
      state_.accumulate();
    }
    state_.write(kUnit, value_scale_, 1.0f);
  }

 private:
  static Arena& reserve(const AttentionProblem& p) {
    Arena& arena = Arena::of_this_thread();
    arena.reset(GroupState::bytes(p) + 2 * Arena::bytes_for<double>(kGroupRows * p.qk_dim) +
                Arena::bytes_for<double>(p.qk_dim * kTileKeys));
    return arena;
  }

  const double* load_query(const RowView& view, ScoreScale& scale, bool to_bfloat16) {
    const int64_t count = state_.group.rows * call_.problem.qk_dim;
    double* q = arena_.take<double>(kGroupRows * call_.problem.qk_dim);
    load_query_tile(view, state_.group, call_.problem.qk_dim, to_bfloat16, scale.negate, state_.row, q);
    if (!scale.finished && scale.factor == 0.0f) {
      // Equal scores whatever the keys; NaN stays NaN.
      for (int64_t i = 0; i < count; ++i) q[i] = q[i] == q[i] ? 0.0 : q[i];
      scale.factor = 1.0f;
    }
    return q;
  }

  void multiply(const Operands& from, int64_t tile) {
    const AttentionProblem& p = call_.problem;
    const Group& group = state_.group;
    load_key_tile(from.key, group.batch, p.kv_head(group.head), tile, p.kv_len(), from.to_bfloat16,
                  state_.row, key_tile_);
    state_.load_value_tile(from.value, tile, from.to_bfloat16, from.value_factor);
    call_.kernels.exact_scores(from.q, key_tile_, group.rows, p.qk_dim, state_.scores);
  }

  void update_row(const Operands& from, int64_t r, TileVisit visit) {
    const float* s = state_.scores + r * kTileKeys;
    const RowStats stats = call_.kernels.row_stats(s);
    state_.poisoned[r] |= stats.has_nan;
    if (stats.max == -kInfinity) return state_.skip(r);
    const float a = from.scale.factor;
    const float b = a * stats.max;
    float& m = state_.anchor[r];
    state_.keep[r] = 1.0f;
    if (m == -kInfinity) {
      m = b;
    } else if (b > m + kTau) {
      state_.keep[r] = exp2_rounded(m - b);
      m = b;
    }
    const float d = std::clamp(std::ceil(b - m), -60.0f, 60.0f);
    const float e = m + d;
    const float block_scale = std::exp2(d);
    float* p = state_.probability + r * kTileKeys;
    float added;
    if (!visit.is_edge) {
      const ScoreMap map = from.scale.finished ? ScoreMap{e, 8.0f, kAnchorCode}
                                               : ScoreMap{0.0f, 8.0f * a, kAnchorCode - 8.0f * e};
      added = call_.kernels.lean_row(s, map, block_scale, p);
    } else {
      const ScoreMap map = from.scale.finished ? ScoreMap{e, 1.0f, kUnit} : ScoreMap{0.0f, a, kUnit - e};
      const auto row = from.to_bfloat16 ? call_.kernels.bfloat16_row : call_.kernels.two_term_row;
      added = row(s, map, block_scale, p);
    }
    state_.sum[r] = state_.sum[r] * state_.keep[r] + added;
    if (trace_ != nullptr)
      (*trace_)({state_.group.batch, state_.group.head, state_.group.first_row + r, visit.tile, visit.is_edge,
                 m, static_cast<int>(d), p});
  }

  const AttentionCall& call_;
  const Fp8Trace* trace_;
  Arena& arena_;
  GroupState state_;
  double* key_tile_;
  float value_scale_;
  Operands codes_, bfloat16_;
};

}  // namespace

void fp8_group(const AttentionCall& call, const Fp8Inputs& inputs, const Group& group,
               const Fp8Trace* trace) {
  Fp8Group(call, inputs, group, trace).run();
}

}  // namespace zyfa::cpu
