// Steps in the making, and the two launches of a quantisation.
#pragma once

#include "arguments.hpp"

namespace zyfa::hip {

int64_t ceil_div(int64_t a, int64_t b);
// Workgroups for a head of so many elements; changes no bit.
int64_t quantize_blocks(int64_t batch_heads, int64_t elements);
const KernelRow& kernel_of(Family family, DType reads);
// Of a (batch, head, row, column) view.
ByteStrides bytes(const Strides& strides, DType dtype);

struct Steps {
  // The next part of the workspace.
  At take(int64_t size);
  Launch& add(const KernelRow& row, const std::array<int64_t, 3>& grid);
  // Launches nothing for no rows.
  void rows(const KernelRow& row, const Rows& job);
  // Rows of `row_bytes`.
  void copy(const Tensor& source, At target, const ByteStrides& strides, const std::array<int64_t, 3>& counts,
            int64_t row_bytes);
  // Whole slices of the workspace.
  void zero(At target, int64_t size);
  // To bfloat16, contiguous per head.
  Tensor cast(const Tensor& x, const std::array<int64_t, 3>& counts, int64_t dim);
  void quantise(const Quantization& job);

  Choice made;
};

}  // namespace zyfa::hip
