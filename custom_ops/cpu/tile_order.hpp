// The canonical order in which a group of query rows meets its key tiles (docs/numerics.md, "Order of
// tiles").
#pragma once

#include <cstdint>
#include <vector>

#include "../problem.hpp"
#include "work.hpp"

namespace zyfa::cpu {

// How one canonical group of rows takes part.
class Fp8Group {
 public:
  Fp8Group() = default;
  // `row` is any row of the group; `mask` the batch's visible key range.
  Fp8Group(const AttentionProblem& problem, KeyRange mask, int64_t row);

  bool meets(int64_t tile) const { return tile <= diagonal_; }
  bool is_edge(int64_t tile) const {
    return tile == first_ || (is_causal_ && (tile == diagonal_ || tile == diagonal_ - 1));
  }

 private:
  int64_t first_ = 0, diagonal_ = 0;
  bool is_causal_ = false;
};

// The order in which rows [first_row, first_row + rows) of one block meet tiles: each of its groups leaves
// out those that it does not meet.
std::vector<int64_t> fp8_tiles(const AttentionProblem& problem, KeyRange mask, int64_t first_row,
                               int64_t rows);

// Tiles that any of the rows may see, ascending: the order of the FP32 and BF16 paths.
KeyRange ascending_tiles(const AttentionProblem& problem, KeyRange mask, int64_t first_row, int64_t rows);

}  // namespace zyfa::cpu
