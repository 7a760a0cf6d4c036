#include "hadamard.hpp"

#include "elements.hpp"

namespace zyfa::cpu {

void hadamard_row(float* row, int64_t dim, int64_t block) {
  elements().rotate(DType::float32, row, dim, block, DType::float32, row, nullptr);
}

}  // namespace zyfa::cpu
