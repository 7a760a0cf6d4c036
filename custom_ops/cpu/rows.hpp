// Contiguous runs of tensor elements to and from FP32.
#pragma once

#include <cstdint>

#include "../dtype.hpp"

namespace zyfa::cpu {

// Reads `count` elements of type `type` starting at element `offset` of `data`.
void load_row(DType type, const void* data, int64_t offset, int64_t count, float* row);

// Rounds `count` floats to `type` and writes them at element `offset` of `data`.
void store_row(DType type, const float* row, int64_t count, void* data, int64_t offset);

void round_row_to_bfloat16(float* row, int64_t count);

}  // namespace zyfa::cpu
