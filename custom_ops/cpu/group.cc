#include "group.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace zyfa::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

size_t GroupState::bytes(const AttentionProblem& p) {
  const int64_t columns = padded_columns(p.v_dim);
  return 2 * Arena::bytes_for<float>(kGroupRows * kTileKeys) +
         2 * Arena::bytes_for<float>(kTileKeys * columns) + Arena::bytes_for<float>(kGroupRows * columns) +
         Arena::bytes_for<float>(std::max(p.qk_dim, columns));
}

GroupState::GroupState(const AttentionCall& call, const Group& group, Arena& arena)
    : group(group), columns(padded_columns(call.problem.v_dim)), call_(call), not_finite_(0) {
  scores = arena.take<float>(kGroupRows * kTileKeys);
  probability = arena.take<float>(kGroupRows * kTileKeys);
  value = arena.take<float>(kTileKeys * columns);
  clean_value_ = arena.take<float>(kTileKeys * columns);
  output = arena.take<float>(kGroupRows * columns);
  row = arena.take<float>(std::max(call.problem.qk_dim, columns));
  std::fill_n(output, kGroupRows * columns, 0.0f);
  std::fill_n(anchor, kGroupRows, -kInfinity);
  std::fill_n(sum, kGroupRows, 0.0f);
  std::fill_n(poisoned, kGroupRows, false);
}

void GroupState::load_value_tile(const KeyRows& rows, int64_t tile, bool to_bfloat16, float factor) {
  const int64_t kv_head = call_.problem.kv_head(group.head);
  not_finite_ = 0;
  for (int64_t c = 0; c < kTileKeys; ++c) {
    float* target = value + c * columns;
    const int64_t key = tile * kTileKeys + c;
    std::fill(target + (key < call_.problem.kv_len() ? rows.dim : 0), target + columns, 0.0f);
    if (key >= call_.problem.kv_len()) continue;
    rows.read(group.batch, kv_head, key, target);
    if (to_bfloat16) round_row_to_bfloat16(target, rows.dim);
    bool finite = true;
    for (int64_t i = 0; i < rows.dim; ++i) {
      target[i] *= factor;
      finite &= std::fabs(target[i]) <= FLT_MAX;
    }
    if (!finite) not_finite_ |= uint64_t{1} << c;
  }
}

bool GroupState::look_at(int64_t tile) {
  const uint64_t unmasked = call_.mask.bits(group.batch, tile);
  uint64_t any = 0;
  for (int64_t r = 0; r < group.rows; ++r) {
    seen[r] = unmasked & range_bits(call_.problem.visible_keys(group.first_row + r), tile);
    any |= seen[r];
  }
  return any != 0;
}

void GroupState::finish_scores(int64_t r, int64_t tile, const ScoreScale& scale, bool log2_units) {
  const AttentionProblem& p = call_.problem;
  float* s = scores + r * kTileKeys;
  if (scale.finished) {
    const int64_t in_range = std::min(kTileKeys, p.kv_len() - tile * kTileKeys);
    float bias[kTileKeys] = {};
    if (call_.tensors.attn_bias != nullptr) {
      const int64_t at = group.batch * p.bias.batch + group.head * p.bias.head +
                         (group.first_row + r) * p.bias.row + tile * kTileKeys * p.bias.column;
      if (p.bias.column == 0) {
        load_row(p.dtype, call_.tensors.attn_bias, at, 1, bias);
        std::fill_n(bias, in_range, bias[0]);
      } else {
        load_row(p.dtype, call_.tensors.attn_bias, at, in_range, bias);
      }
    }
    for (int64_t c = 0; c < in_range; ++c) {
      float y = s[c] * scale.natural;
      if (p.softcap > 0.0f) y = p.softcap * std::tanh(y / p.softcap);
      y += bias[c];
      if (y == -kInfinity || bias[c] == -kInfinity) seen[r] &= ~(uint64_t{1} << c);
      const float x = y * kLog2E;
      s[c] = !log2_units ? y : std::fabs(y) <= FLT_MAX ? std::clamp(x, -FLT_MAX, FLT_MAX) : x;
    }
  }
  if (seen[r] != ~uint64_t{0})
    for (int64_t c = 0; c < kTileKeys; ++c)
      if ((seen[r] >> c & 1) == 0) s[c] = -kInfinity;
}

void GroupState::skip(int64_t r) {
  keep[r] = 1.0f;
  std::fill_n(probability + r * kTileKeys, kTileKeys, 0.0f);
}

void GroupState::accumulate() {
  if (not_finite_ == 0)
    return call_.kernels.accumulate(probability, value, group.rows, columns, keep, output);
  // 0 * NaN is NaN: a row that does not see such a key multiplies a tile without it. Everything else stays as
  // it is, so that what is invisible does not even change the order of the additions.
  uint64_t removed = 0;
  std::copy_n(value, kTileKeys * columns, clean_value_);
  for (int64_t r = 0; r < group.rows; ++r) {
    const uint64_t unseen = not_finite_ & ~seen[r];
    for (int64_t c = 0; c < kTileKeys; ++c) {
      if (((unseen ^ removed) >> c & 1) == 0) continue;
      float* row_of_key = clean_value_ + c * columns;
      if (unseen >> c & 1)
        std::fill_n(row_of_key, columns, 0.0f);
      else
        std::copy_n(value + c * columns, columns, row_of_key);
    }
    removed = unseen;
    call_.kernels.accumulate(probability + r * kTileKeys, clean_value_, 1, columns, keep + r,
                             output + r * columns);
  }
}

void GroupState::write(float unit, float value_scale, float log2_per_anchor) {
  const AttentionProblem& p = call_.problem;
  for (int64_t r = 0; r < group.rows; ++r) {
    float* o = output + r * columns;
    float lse = -kInfinity;
    if (poisoned[r]) {
      std::fill_n(o, p.v_dim, std::nanf(""));
      lse = std::nanf("");
    } else if (anchor[r] == -kInfinity) {
      std::fill_n(o, p.v_dim, 0.0f);
    } else {
      const float log2_anchor = anchor[r] * log2_per_anchor;
      float denominator = sum[r];
      if (call_.tensors.sinks != nullptr)
        denominator += std::exp2(std::fma(call_.tensors.sinks[group.head], kLog2E, unit - log2_anchor));
      for (int64_t i = 0; i < p.v_dim; ++i) o[i] = o[i] * value_scale / denominator;
      constexpr double kLn2 = 0.69314718055994530942;
      lse = static_cast<float>(
          kLn2 * (static_cast<double>(log2_anchor) + std::log2(static_cast<double>(sum[r])) - unit));
    }
    const int64_t row_index = group.first_row + r;
    store_row(p.out_dtype, o, p.v_dim, call_.tensors.output,
              group.batch * p.output.batch + group.head * p.output.head + row_index * p.output.row);
    if (call_.tensors.lse != nullptr)
      call_.tensors.lse[(group.batch * p.q_heads + group.head) * p.q_len + row_index] = lse;
  }
}

}  // namespace zyfa::cpu
