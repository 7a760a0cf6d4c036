#include "tile_order.hpp"

#include <algorithm>

#include "key_visibility.hpp"

namespace zyfa::cpu {
namespace {

// First tile of the whole block: a workgroup streams the same tiles to all its rows.
int64_t first_tile_of_block(const AttentionProblem& p, KeyRange mask, int64_t block_row) {
  int64_t first = mask.begin;
  if (p.window_left >= 0 && p.diagonal(block_row) > p.window_left)
    first = std::max(first, p.diagonal(block_row) - p.window_left);
  return tile_of(first);
}

int64_t diagonal_tile(const AttentionProblem& p, KeyRange mask, int64_t row) {
  return tile_of(std::min(p.diagonal(row), mask.end - 1));
}

}  // namespace

Fp8Group::Fp8Group(const AttentionProblem& p, KeyRange mask, int64_t row)
    : first_(first_tile_of_block(p, mask, row / kBlockRows * kBlockRows)),
      diagonal_(p.is_causal ? diagonal_tile(p, mask,
                                            std::min(row / kGroupRows * kGroupRows + kGroupRows, p.q_len) - 1)
                            : tile_of(mask.end - 1)),
      is_causal_(p.is_causal) {}

std::vector<int64_t> fp8_tiles(const AttentionProblem& p, KeyRange mask, int64_t first_row, int64_t rows) {
  std::vector<int64_t> order;
  if (mask.empty()) return order;
  const int64_t block_row = first_row / kBlockRows * kBlockRows;
  const int64_t first = first_tile_of_block(p, mask, block_row);
  if (!p.is_causal) {
    for (int64_t tile = first; tile <= tile_of(mask.end - 1); ++tile) order.push_back(tile);
    return order;
  }
  const int64_t diagonal = diagonal_tile(p, mask, first_row + rows - 1);
  const int64_t turn = std::max(diagonal_tile(p, mask, block_row) - 1, first);
  for (int64_t tile = diagonal; tile >= turn; --tile) order.push_back(tile);
  for (int64_t tile = first; tile < std::min(turn, diagonal + 1); ++tile) order.push_back(tile);
  return order;
}

KeyRange ascending_tiles(const AttentionProblem& p, KeyRange mask, int64_t first_row, int64_t rows) {
  const int64_t begin = std::max(p.visible_keys(first_row).begin, mask.begin);
  const int64_t end = std::min(p.visible_keys(first_row + rows - 1).end, mask.end);
  if (begin >= end) return {};
  return {tile_of(begin), tile_of(end - 1) + 1};
}

}  // namespace zyfa::cpu
