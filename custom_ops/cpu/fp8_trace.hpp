// What the FP8 path decided for one row in one tile. For tests: the codes are recomputed from the
// probabilities.
#pragma once

#include <cstdint>
#include <functional>

namespace zyfa::cpu {

struct Fp8TileRow {
  int64_t batch, head, row, tile;
  bool is_edge;
  float anchor;              // m
  int exponent;              // d
  const float* probability;  // rounded P of the tile's 64 keys, already multiplied by 2^d
};

using Fp8Trace = std::function<void(const Fp8TileRow&)>;

}  // namespace zyfa::cpu
