// Matrix instructions as a table: sizes, formats, and where an element of A, B or D sits.
#pragma once

#include <cstdint>

#include "isa.hpp"
#include "matrix_formats.hpp"

namespace zyfa::emulator {

enum class MatrixResult : uint8_t { f32, f64, i32 };

struct MatrixShape {
  Op op;
  uint8_t m;  // rows of D; it has as many columns
  uint8_t k;  // of B; a sparse A stores half of them
  uint8_t blocks;
  ElementFormat a, b;  // of f8f6f4: fp8, the instruction's CBSZ and BLGP decide
  MatrixResult result;
  bool sparse;
  // Consecutive k that a lane holds before the next group of lanes goes on: 0 all of its elements, else this
  // many.
  uint8_t run;

  // Groups of m lanes that share the k of one block.
  int groups() const { return 64 / (m * blocks); }
  int elements_b() const { return k / groups(); }
  int elements_a() const { return elements_b() / (sparse ? 2 : 1); }
};

// Where a value sits: element of a lane and the first of the m lanes whose rows (A) or columns (B) follow
// each other.
struct Slot {
  int element, lane;
};

// Of A[:, k] or B[k, :]. `run` 0: every lane holds `elements` consecutive k.
inline Slot input_slot(const MatrixShape& shape, int elements, int run, int block, int k) {
  if (run == 0) run = elements;
  const int span = run * shape.groups(), within = k % span;
  return {k / span * run + within % run, shape.m * (block + shape.blocks * (within / run))};
}

// Of D[row, :]. Four rows follow each other in a lane's registers, of f64 one.
inline Slot output_slot(const MatrixShape& shape, int block, int row) {
  const int height = shape.result == MatrixResult::f64 ? 1 : 4;
  const int per_block = shape.m * shape.m / height;  // lanes' worth of row groups
  const int blocks_together = per_block < 64 ? 64 / per_block : 1;
  const int rows_together = 64 / blocks_together / shape.m;
  const int row_groups = shape.m / (height * rows_together);
  return {row % height + height * (row / (height * rows_together) + row_groups * (block / blocks_together)),
          shape.m * (row / height % rows_together + rows_together * (block % blocks_together))};
}

// nullptr: no matrix instruction.
const MatrixShape* find_shape(Op op);

}  // namespace zyfa::emulator
