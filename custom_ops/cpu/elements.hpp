// Loops over contiguous elements as they are stored, compiled once per instruction set (isa/elements.cc):
// largest value, e4m3 codes, Hadamard rotation. Bits are the same for every instruction set. Types are
// float32, float16 and bfloat16.
#pragma once

#include <cstdint>

#include "../dtype.hpp"

namespace zyfa::cpu {

struct Elements {
  // The largest finite magnitude, 0 without one.
  float (*largest_finite)(DType type, const void* x, int64_t count);
  // codes = e4m3(x / scale), a division and a rounding.
  void (*to_fp8)(DType type, const void* x, int64_t count, float scale, uint8_t* codes);
  // Orthonormal Hadamard rotation of each `block` of x (problem.hpp's hadamard_block): butterflies of span 1,
  // 2, 4, ... in FP32, one multiplication by 1 / sqrt(block), rounded once to `y_type`, which is that of x or
  // float32. y may be x. `scratch` holds `block` floats; float32 results need none.
  void (*rotate)(DType type, const void* x, int64_t count, int64_t block, DType y_type, void* y,
                 float* scratch);
};

// Those of the instruction set that kernels() chose.
const Elements& elements();

}  // namespace zyfa::cpu
