// What the FP32/BF16 and the FP8 path share: a panel of query rows, its state and its steps through a tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "arena.hpp"
#include "attention.hpp"
#include "elements.hpp"
#include "kernels.hpp"
#include "key_visibility.hpp"
#include "operands.hpp"
#include "work.hpp"

namespace zyfa::cpu {

constexpr float kLog2E = 1.44269504f;

// Everything that is the same for all items of a call.
struct AttentionCall {
  const AttentionProblem& problem;
  const AttentionTensors& tensors;
  const KeyMask& mask;
  const Kernels& kernels;
  const Work& work;
};

// Scores of a head are raw dot products S, to be multiplied by `factor` (log2 units); or, with softcap or
// bias, finished logits.
struct ScoreScale {
  float natural;  // softmax scale times descales, its sign included
  bool negate;    // flip the sign of Q, so that `factor` is not negative
  bool zero;      // Q counts as 0, but for NaN
  float factor;   // |natural| * log2(e); 1 when `finished` in log2 units, log2(e) when in natural units
  bool finished;
};

// Scratch for one panel at a time.
struct PanelScratch {
  PanelScratch(int64_t row_words, Arena& arena);
  static size_t bytes(int64_t row_words);

  float* scores;                // kTileKeys x lanes; FP32 probabilities too
  float* next_scores;           // of another panel
  uint32_t *pairs, *low_pairs;  // probabilities and their second terms; or, from `pairs` on, kMostTerms
  uint32_t* rows;               // lanes x dims or columns, before and after the transposition
};

// What happens to a query row first.
struct QueryForm {
  bool to_bfloat16 = false;
  const CodeScale* fp8_scales = nullptr;  // by head: rounded to e4m3 of x / scale
  int64_t rotation_block = 0;             // before that; 0: none
};

// Queries of a panel in the form of the products, with what turns their scores into logits.
struct PanelQuery {
  void* data;  // dims x lanes, or rows of padded dims for few rows
  LaneScale scale;
  float natural[kPanelLanes];
};

class Panel;

// What a panel has after some of its tiles.
class PartialPanel {
 public:
  void save(const Panel& panel);

 private:
  friend class Panel;
  std::vector<float> output_, anchor_, sum_;
};

class Panel {
 public:
  Panel(const AttentionCall& call, const WorkItem& item, int64_t index, Operand form,
        const PanelScratch& scratch, Arena& arena);
  // Output and `queries` loaded queries.
  static size_t bytes(const AttentionProblem& problem, Operand form, int64_t queries);
  // Words of a row of the scratch.
  static int64_t row_words(const AttentionProblem& problem, Operand form);

  // Reads the rows of the panel and turns them into lanes.
  PanelQuery load_query(const RowView& view, const QueryForm& form,
                        const std::function<ScoreScale(int64_t head)>& scale_of, Arena& arena) const;

  PanelSize size() const { return {rows.lanes, lanes, spans_}; }
  // Sets what lanes see of the tile; false when none sees anything.
  bool look_at(int64_t tile);
  // Softcap and bias (when the problem has them), then -inf for what a lane does not see. Logits are left in
  // natural units, or in log2 units clamped to finite values when `log2_units`.
  void finish_scores(const PanelQuery& query, bool log2_units);
  // output = output * keep + P V, never touching values that a lane does not see. P is in the scratch: scores
  // or pairs and, when `low`, second terms. Blocks of lanes whose kind is skip take no part; null: all do.
  void accumulate(TileOperands& operands, const BlockKind* kinds, bool low);
  // Probability of a key of the current tile.
  float probability(int64_t key, int64_t lane, bool low) const;
  // Keys of the current tile that a lane sees.
  uint64_t seen(int64_t lane) const;

  // The sum of partial panels, in order: partials[0], partials[step], ... `parts` of them.
  void merge(const PartialPanel* partials, int64_t step, int64_t parts, const float* log2_per_anchor);

  // Divides by the sums and writes output and lse. `unit` is what a probability of one is worth in `sum`
  // (log2), `value_scale` multiplies V, `log2_per_anchor[lane]` converts the anchor's unit to log2.
  void write(float unit, const std::function<float(int64_t head)>& value_scale,
             const float* log2_per_anchor) const;

  const PanelRows rows;
  const int64_t lanes;  // with padding; lanes of padding repeat lane 0 with a query of 0
  LaneState state;
  float* output;  // columns x lanes

 private:
  void read_query(const RowView& view, const QueryForm& form, int64_t lane, float* row) const;
  // A row of Q as it enters the products: `row` in FP32, or `pairs`.
  void prepare_row(const RowView& view, const QueryForm& form, const ScoreScale& scale, int64_t lane,
                   float* row, uint16_t* pairs) const;

  friend class PartialPanel;
  void find_spans();
  void finish_logits(const PanelQuery& query, bool log2_units);
  std::byte* output_row(int64_t lane) const;
  void fetch_output(int64_t lane) const;
  void accumulate_around(uint64_t keys, TileOperands& operands, const BlockKind* kinds, bool low);
  Probabilities probabilities(bool low) const {
    return {scratch_.scores, scratch_.pairs, low ? scratch_.low_pairs : nullptr};
  }

  const AttentionCall& call_;
  const PanelScratch& scratch_;
  const int64_t batch_, columns_;
  const Operand form_;
  KeyRange range_[kPanelLanes];
  KeyRange common_, together_;  // keys that every lane and that any lane sees
  int64_t tile_ = 0;
  uint64_t unmasked_ = 0;
  bool partial_ = false;                           // range or mask hides keys of the tile from some lane
  bool removes_ = false;                           // the bias does
  int32_t begin_[kPanelLanes], end_[kPanelLanes];  // keys that lanes see of a partial tile
  KeySpans spans_;
  uint64_t removed_[kPanelLanes] = {};  // keys that the bias hides
};

}  // namespace zyfa::cpu
