// D = A * B + C of one matrix instruction over arrays of lanes: no wave, no registers, no decoding.
#pragma once

#include <cstdint>

#include "matrix_shapes.hpp"
#include "state.hpp"

namespace zyfa::emulator {

struct MatrixJob {
  const MatrixShape* shape = nullptr;
  ElementFormat a_format{}, b_format{};
  // Registers: rows of 64 lanes. D may be any of the inputs.
  const uint32_t* a[8];
  const uint32_t* b[8];
  const uint32_t* c[32];
  uint32_t* d[32];
  // Block scales or nullptr: lane r + m * n has the factor of the 32 k from 32 n of row (column) r.
  const double *a_scale = nullptr, *b_scale = nullptr;
  const uint32_t* index = nullptr;  // sparse A: two bits per element, where it stands among four k
  uint8_t index_shift = 0;
  uint8_t negate = 0;  // f64: bit 0 A, bit 1 B, bit 2 C
  Accumulation accumulation = Accumulation::exact;
  bool saturate = false;  // overflow gives the largest number instead of infinity or the low 32 bits
};

void multiply(const MatrixJob& job);

constexpr int kMaxTerms = 128, kMaxRows = 32;

// One block, its elements as doubles. D[i][j] is the sum over t of a[t][i] * b[row(t, i)][j].
struct MatrixBlock {
  int size = 0;   // rows and columns
  int terms = 0;  // products in each element of D
  const double* a[kMaxTerms];
  const double* b[kMaxTerms];
  bool sparse = false;
  uint8_t rows[kMaxTerms][kMaxRows];  // of B, for sparse A; else row(t, i) is t

  int row(int t, int i) const { return sparse ? rows[t][i] : t; }
};

// D[i][j] with one rounding (f32: every product is exact in double).
float exact_element(const MatrixBlock& block, int i, int j, float c, bool saturate);
// D[i][j] of doubles in any of the orders.
double f64_element(const MatrixBlock& block, int i, int j, double c, Accumulation accumulation,
                   bool saturate);

}  // namespace zyfa::emulator
