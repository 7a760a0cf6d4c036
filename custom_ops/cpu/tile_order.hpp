// The canonical order in which a group of query rows meets its key tiles (docs/numerics.md, "Order of
// tiles").
#pragma once

#include <cstdint>
#include <vector>

#include "../problem.hpp"

namespace zyfa::cpu {

constexpr int64_t kBlockRows = 256;

struct TileVisit {
  int64_t tile;
  bool is_edge;
};

// Tiles for the rows [first_row, first_row + rows) of one block; `mask` is the batch's visible key range.
std::vector<TileVisit> fp8_tile_order(const AttentionProblem& problem, KeyRange mask, int64_t first_row,
                                      int64_t rows);

// Tiles that any of the rows may see, ascending: the order of the FP32 and BF16 paths.
KeyRange ascending_tiles(const AttentionProblem& problem, KeyRange mask, int64_t first_row, int64_t rows);

}  // namespace zyfa::cpu
