// Elements of D one at a time: what the vector code leaves open, and double precision.
#include <cmath>
#include <limits>

#include "exact_sum.hpp"
#include "matrix_multiply.hpp"

namespace zyfa::emulator {

float exact_element(const MatrixBlock& block, int i, int j, float c, bool saturate) {
  ExactSum sum;
  sum.add(c);
  for (int t = 0; t < block.terms; ++t) sum.add(block.a[t][i] * block.b[block.row(t, i)][j]);
  return sum.to_float(saturate);
}

double f64_element(const MatrixBlock& block, int i, int j, double c, Accumulation accumulation,
                   bool saturate) {
  constexpr double kMax = std::numeric_limits<double>::max();
  double value;
  if (accumulation == Accumulation::exact) {
    ExactSum sum;
    sum.add(c);
    for (int t = 0; t < block.terms; ++t) sum.add_product(block.a[t][i], block.b[t][j]);
    return sum.to_double(saturate);
  }
  bool finite = std::isfinite(c);
  for (int t = 0; t < block.terms; ++t)
    finite &= std::isfinite(block.a[t][i]) && std::isfinite(block.b[t][j]);
  if (accumulation == Accumulation::sequential) {
    value = c;
    for (int t = 0; t < block.terms; ++t) value = std::fma(block.a[t][i], block.b[t][j], value);
  } else {
    double tree[kMaxTerms];
    for (int t = 0; t < block.terms; ++t) tree[t] = block.a[t][i] * block.b[t][j];
    for (int width = block.terms; width > 1; width /= 2)
      for (int t = 0; t < width / 2; ++t) tree[t] = tree[2 * t] + tree[2 * t + 1];
    value = tree[0] + c;
  }
  return saturate && finite && std::isinf(value) ? std::copysign(kMax, value) : value;
}

}  // namespace zyfa::emulator
