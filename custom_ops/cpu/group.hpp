// What the FP32/BF16 and the FP8 path share: one group of up to 32 query rows of one head, its state and its
// tiles.
#pragma once

#include <cstdint>

#include "arena.hpp"
#include "attention.hpp"
#include "kernels.hpp"
#include "key_visibility.hpp"
#include "sources.hpp"

namespace zyfa::cpu {

// Everything that is the same for all groups of a call.
struct AttentionCall {
  const AttentionProblem& problem;
  const AttentionTensors& tensors;
  const KeyMask& mask;
  const Kernels& kernels;
};

struct Group {
  int64_t batch, head, first_row, rows;
};

// Scores are raw dot products S, to be multiplied by `factor` (log2 units); or, with softcap or bias,
// finished logits.
struct ScoreScale {
  float natural;  // softmax scale times descales, its sign included
  bool negate;    // flip the sign of Q, so that `factor` is not negative
  float factor;   // |natural| * log2(e); 1 when `finished` in log2 units, log2(e) when in natural units
  bool finished;
};

class GroupState {
 public:
  GroupState(const AttentionCall& call, const Group& group, Arena& arena);
  static size_t bytes(const AttentionProblem& problem);

  const Group group;
  const int64_t columns;  // padded v_dim

  float* scores;       // rows x kTileKeys
  float* probability;  // rows x kTileKeys
  float* value;        // kTileKeys x columns
  float* output;       // rows x columns
  float* row;          // scratch for one row of Q, K or V
  float anchor[kGroupRows];
  float sum[kGroupRows];
  float keep[kGroupRows];     // factor for what was accumulated before the current tile
  bool poisoned[kGroupRows];  // saw a NaN score of a visible key
  uint64_t seen[kGroupRows];  // visible keys of the current tile

  // Loads the tile's V rows, multiplied by `factor`, optionally rounded to bfloat16 first; out of range keys
  // are zero.
  void load_value_tile(const KeyRows& rows, int64_t tile, bool to_bfloat16, float factor);
  // Sets `seen`; true when any row sees a key of the tile.
  bool look_at(int64_t tile);
  // Softcap and bias (when the problem has them), then -inf for what `row` does not see. Logits are left in
  // natural units, or in log2 units clamped to finite values when `log2_units`.
  void finish_scores(int64_t row, int64_t tile, const ScoreScale& scale, bool log2_units);
  // The row has nothing to add in this tile.
  void skip(int64_t row);
  // output = output * keep + probability * value, never touching keys that a row does not see.
  void accumulate();
  // Divides by the row sums and writes output and lse. `unit` is what a probability of one is worth in `sum`
  // (log2), `value_scale` multiplies V, `log2_per_anchor` converts the anchor's unit to log2.
  void write(float unit, float value_scale, float log2_per_anchor);

 private:
  const AttentionCall& call_;
  float* clean_value_;   // a copy of the value tile, for rows that must not touch some of its keys
  uint64_t not_finite_;  // keys of the value tile that hold NaN or infinity
};

// The kv head's K rows of a tile, transposed to dim x kTileKeys; out of range keys are zero.
template <typename Scalar>
void load_key_tile(const KeyRows& rows, int64_t batch, int64_t kv_head, int64_t tile, int64_t kv_len,
                   bool to_bfloat16, float* row, Scalar* transposed) {
  for (int64_t c = 0; c < kTileKeys; ++c) {
    const int64_t key = tile * kTileKeys + c;
    if (key >= kv_len) {
      for (int64_t i = 0; i < rows.dim; ++i) transposed[i * kTileKeys + c] = Scalar{0};
      continue;
    }
    rows.read(batch, kv_head, key, row);
    if (to_bfloat16) round_row_to_bfloat16(row, rows.dim);
    for (int64_t i = 0; i < rows.dim; ++i) transposed[i * kTileKeys + c] = static_cast<Scalar>(row[i]);
  }
}

// Query rows of a group, rows x dim, sign flipped when asked.
template <typename Scalar>
void load_query_tile(const RowView& view, const Group& group, int64_t dim, bool to_bfloat16, bool negate,
                     float* row, Scalar* q) {
  for (int64_t r = 0; r < group.rows; ++r) {
    view.read(group.batch, group.head, group.first_row + r, dim, row);
    if (to_bfloat16) round_row_to_bfloat16(row, dim);
    for (int64_t i = 0; i < dim; ++i) q[r * dim + i] = static_cast<Scalar>(negate ? -row[i] : row[i]);
  }
}

constexpr float kLog2E = 1.44269504f;

void softmax_group(const AttentionCall& call, const Group& group);

class Fp8Inputs;
void fp8_group(const AttentionCall& call, const Fp8Inputs& inputs, const Group& group, const Fp8Trace* trace);

}  // namespace zyfa::cpu
