// Loops over contiguous elements as they are stored, compiled once per instruction set (isa/elements.cc):
// largest value, e4m3 codes, Hadamard rotation. Bits are the same for every instruction set. Types are
// float32, float16 and bfloat16.
#pragma once

#include <cstdint>

#include "../dtype.hpp"

namespace zyfa::cpu {

// A scale of codes, and its reciprocal in two terms for the loops that take one; 0 where they divide.
struct CodeScale {
  float scale, reciprocal, rest;
};

// Rows one after the other, to be rotated by blocks. `scratch` holds a row.
struct RotatedRows {
  DType type;
  const void* x;
  int64_t count, dim, block;
  float* scratch;
};

// Where the codes of rows go, `stride` apart, and their scales, `scale_step` apart.
struct RowCodes {
  const CodeScale* scales;
  int64_t scale_step;
  uint8_t* codes;
  int64_t stride;

  const CodeScale& scale(int64_t row) const { return scales[row * scale_step]; }
  uint8_t* row(int64_t row) const { return codes + row * stride; }
};

struct Elements {
  // The largest finite magnitude, 0 without one.
  float (*largest_finite)(DType type, const void* x, int64_t count);
  CodeScale (*code_scale)(float scale);
  // codes = e4m3(x / scale), a division and a rounding.
  void (*to_fp8)(DType type, const void* x, int64_t count, const CodeScale& scale, uint8_t* codes);
  // Orthonormal Hadamard rotation of each `block` of x (problem.hpp's hadamard_block): butterflies of span 1,
  // 2, 4, ... in FP32, one multiplication by 1 / sqrt(block), rounded once to `y_type`, which is that of x or
  // float32. y may be x. `scratch` holds `block` floats; float32 results need none.
  void (*rotate)(DType type, const void* x, int64_t count, int64_t block, DType y_type, void* y,
                 float* scratch);
  // The largest finite magnitude of each row, rotated to float32.
  void (*rotated_largest)(const RotatedRows& rows, float* largest);
  // to_fp8 of rows rotated to float32.
  void (*rotated_to_fp8)(const RotatedRows& rows, const RowCodes& to);
};

// Those of the instruction set that kernels() chose.
const Elements& elements();

}  // namespace zyfa::cpu
