// Orthonormal Hadamard rotation of one row: x -> x * H / sqrt(block) for each block of the row.
#pragma once

#include <cstdint>

namespace zyfa::cpu {

// `block` is a power of two that divides `dim` (problem.hpp's hadamard_block). FP32, butterflies of span 1,
// 2, 4, ...
void hadamard_row(float* row, int64_t dim, int64_t block);

}  // namespace zyfa::cpu
