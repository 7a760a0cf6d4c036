// 16 x 16 words, rows to columns. Included as vector.hpp is.
#pragma once

#include "vector.hpp"

namespace zyfa::cpu::isa {
namespace {

// Rows whose number lacks the bit take lanes Low of themselves and the row that has it, which takes those
// Step further.
template <int Step, int... Low>
inline void swap_lanes(Words (&row)[kLaneBlock]) {
  for (int r = 0; r < kLaneBlock; ++r) {
    if (r & Step) continue;
    const Words a = row[r], b = row[r + Step];
    row[r] = __builtin_shufflevector(a, b, Low...);
    row[r + Step] = __builtin_shufflevector(a, b, (Low + Step)...);
  }
}

inline void transpose_block(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  Words row[kLaneBlock];
  for (int r = 0; r < kLaneBlock; ++r) row[r] = load_as<Words>(from + r * from_stride);
  // Swaps a bit of the row number with the same bit of the column number, four times.
  swap_lanes<1, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30>(row);
  swap_lanes<2, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29>(row);
  swap_lanes<4, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27>(row);
  swap_lanes<8, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23>(row);
  for (int r = 0; r < kLaneBlock; ++r) store(to + r * to_stride, row[r]);
}

}  // namespace
}  // namespace zyfa::cpu::isa
