#include "hadamard.hpp"

#include <cmath>

namespace zyfa::cpu {

void hadamard_row(float* row, int64_t dim, int64_t block) {
  for (int64_t span = 1; span < block; span *= 2) {
    for (int64_t base = 0; base < dim; base += 2 * span) {
      for (int64_t i = base; i < base + span; ++i) {
        const float u = row[i], v = row[i + span];
        row[i] = u + v;
        row[i + span] = u - v;
      }
    }
  }
  const float normalise = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)));
  for (int64_t i = 0; i < dim; ++i) row[i] *= normalise;
}

}  // namespace zyfa::cpu
