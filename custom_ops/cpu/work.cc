#include "work.hpp"

#include <algorithm>
#include <thread>

namespace zyfa::cpu {
namespace {

constexpr int64_t kMaxPanels = 8;       // states of more leave a 1 MB cache
constexpr int64_t kItemsPerThread = 4;  // for balance; the split does not change results
constexpr int64_t kPartKeys = 1024;     // at least, so that merging costs little
constexpr int64_t kParts = 64;          // wanted in all

// Enough for all panels of an item; FP8 items stay within a canonical block.
int64_t rows_per_block(const AttentionProblem& p) {
  if (p.precision == Precision::fp8) return kBlockRows;
  return std::max(kBlockRows, kMaxPanels * kPanelLanes / std::max<int64_t>(1, p.group_size()));
}

}  // namespace

Work::Work(const AttentionProblem& p)
    : problem_(p),
      flat_(p.q_len <= kGroupRows),
      block_rows_(rows_per_block(p)),
      blocks_((p.q_len + block_rows_ - 1) / block_rows_),
      heads_(p.batch * p.kv_heads) {
  const int64_t threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  const int64_t block = panels_of_block(0);
  panels_per_item_ =
      std::clamp<int64_t>(blocks_ * heads_ * block / (threads * kItemsPerThread), 1, kMaxPanels);
  panels_per_item_ = std::min(panels_per_item_, std::max<int64_t>(block, 1));
  items_per_block_ = (block + panels_per_item_ - 1) / panels_per_item_;
  const int64_t few =
      flat_ && p.precision != Precision::fp8 && heads_ * block > 0 ? kParts / (heads_ * block) : 1;
  parts_ = std::clamp<int64_t>(p.kv_len() / kPartKeys, 1, std::max<int64_t>(few, 1));
}

int64_t Work::panels_of_block(int64_t block_row) const {
  if (flat_) return (problem_.group_size() * problem_.q_len + kPanelLanes - 1) / kPanelLanes;
  const int64_t rows = std::min(block_rows_, problem_.q_len - block_row);
  return problem_.group_size() * ((rows + kPanelLanes - 1) / kPanelLanes);
}

WorkItem Work::item(int64_t index) const {
  const int64_t part = index % items_per_block_, head = index / items_per_block_ % heads_;
  const int64_t block = blocks_ - 1 - index / items_per_block_ / heads_;
  WorkItem item{head / problem_.kv_heads, head % problem_.kv_heads, block * block_rows_, 0, 0};
  const int64_t there = panels_of_block(item.block_row);
  item.first_panel = std::min(part * panels_per_item_, there);
  item.panels = std::min(panels_per_item_, there - item.first_panel);
  return item;
}

PanelRows Work::panel(const WorkItem& item, int64_t index) const {
  const int64_t group = problem_.group_size(), panel = item.first_panel + index;
  const int64_t first_head = item.kv_head * group;
  if (flat_) {
    const int64_t first_lane = panel * kPanelLanes;
    return {first_head, first_lane, std::min(kPanelLanes, group * problem_.q_len - first_lane),
            problem_.q_len};
  }
  const int64_t first_row = item.block_row + panel / group * kPanelLanes;
  return {first_head + panel % group, first_row, std::min(kPanelLanes, problem_.q_len - first_row),
          problem_.q_len};
}

RowRange Work::rows(const WorkItem& item) const {
  if (flat_) return {0, problem_.q_len};
  const int64_t first = panel(item, 0).row(0);
  const PanelRows last = panel(item, item.panels - 1);
  return {first, last.row(last.lanes - 1) + 1 - first};
}

}  // namespace zyfa::cpu
