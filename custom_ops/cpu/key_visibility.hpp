// Which keys a query row sees, as one bit per key of a tile.
#pragma once

#include <cstdint>
#include <vector>

#include "../problem.hpp"
#include "kernels.hpp"

namespace zyfa::cpu {

constexpr int64_t tile_of(int64_t key) {
  return key >= 0 ? key / kTileKeys : -((kTileKeys - 1 - key) / kTileKeys);
}

// Bits of the keys of `tile` that lie in `range`.
uint64_t range_bits(KeyRange range, int64_t tile);

// The key mask of every batch, packed; all keys when there is no mask.
class KeyMask {
 public:
  KeyMask(const AttentionProblem& problem, const void* mask);

  uint64_t bits(int64_t batch, int64_t tile) const { return words_[batch * tiles_ + tile]; }
  bool visible(int64_t batch, int64_t key) const {
    return bits(batch, key / kTileKeys) >> (key % kTileKeys) & 1;
  }
  // From the first visible key to one past the last.
  KeyRange range(int64_t batch) const { return ranges_[batch]; }

 private:
  int64_t tiles_;
  std::vector<uint64_t> words_;
  std::vector<KeyRange> ranges_;
};

}  // namespace zyfa::cpu
