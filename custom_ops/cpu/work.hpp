// How a call is cut into panels of query rows, and panels into items that share one pass over K and V.
#pragma once

#include <cstdint>

#include "../problem.hpp"
#include "kernels.hpp"

namespace zyfa::cpu {

constexpr int64_t kGroupRows = 32;   // rows of a canonical group of docs/numerics.md, "Order of tiles"
constexpr int64_t kBlockRows = 256;  // and of a block

// Panels of one key head and one block of rows.
struct WorkItem {
  int64_t batch, kv_head, block_row;
  int64_t first_panel, panels;
};

// Query rows of a panel: lane i is row (first_row + i) of one head; or, where all rows of a head fit one
// group, row i % q_len of head (first_head + i / q_len).
struct PanelRows {
  int64_t first_head, first_lane, lanes, rows_per_head;

  int64_t head(int64_t lane) const { return first_head + (first_lane + lane) / rows_per_head; }
  int64_t row(int64_t lane) const { return (first_lane + lane) % rows_per_head; }
};

struct RowRange {
  int64_t first, count;
};

class Work {
 public:
  explicit Work(const AttentionProblem& problem);

  int64_t items() const { return blocks_ * heads_ * items_per_block_; }
  // The longest items of a causal problem come first. `panels` may be 0.
  WorkItem item(int64_t index) const;
  PanelRows panel(const WorkItem& item, int64_t index) const;
  // All rows of a key head are one panel of up to kFewRows.
  bool has_few_rows() const { return flat_ && problem_.group_size() * problem_.q_len <= kFewRows; }
  int64_t max_panels() const { return panels_per_item_; }  // of an item
  // Into how many parts the keys of an item are cut, so that few items (decoding) employ many threads.
  // Follows from the shape: it shows in the last bits.
  int64_t parts() const { return parts_; }
  // Query rows of the item, of whatever heads.
  RowRange rows(const WorkItem& item) const;

 private:
  int64_t panels_of_block(int64_t block_row) const;

  const AttentionProblem& problem_;
  const bool flat_;  // rows of several heads share panels
  const int64_t block_rows_;
  int64_t blocks_, heads_, panels_per_item_, items_per_block_, parts_;
};

}  // namespace zyfa::cpu
