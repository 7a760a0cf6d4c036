#include "steps.hpp"

#include <algorithm>

#include "kernel_for.hpp"

namespace zyfa::hip {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t quantize_blocks(int64_t batch_heads, int64_t elements) {
  const int64_t most = kQuantizeWorkgroups / std::max<int64_t>(batch_heads, 1);
  return std::max<int64_t>(1, std::min(most, ceil_div(elements, kQuantizeElements)));
}

const KernelRow& kernel_of(Family family, DType reads) {
  for (const KernelRow& row : kKernels)
    if (row.family == family && row.reads == reads) return row;
  fail("kernel table: no row for ", zyfa::name(reads));
}

ByteStrides bytes(const Strides& strides, DType dtype) {
  const int64_t size = static_cast<int64_t>(size_of(dtype));
  return {strides.batch * size, strides.head * size, strides.row * size};
}

At Steps::take(int64_t size) {
  const At at{Buffer::workspace, made.workspace_bytes};
  made.workspace_bytes += ceil_div(size, kSliceBytes) * kSliceBytes;
  return at;
}

Launch& Steps::add(const KernelRow& row, const std::array<int64_t, 3>& grid) {
  check_grid(row, grid);
  made.launches.push_back(Launch{&row, grid, {}, {}});
  return made.launches.back();
}

void Steps::rows(const KernelRow& row, const Rows& job) {
  const auto [batch, heads, rows] = job.counts;
  if (batch * heads * rows * job.units <= 0) return;
  const int64_t blocks = quantize_blocks(batch * heads, rows * job.units * kUnitElements);
  fill_rows(job, blocks, add(row, {blocks, heads, batch}));
}

void Steps::copy(const Tensor& source, At target, const ByteStrides& strides,
                 const std::array<int64_t, 3>& counts, int64_t row_bytes) {
  bool wide =
      source.at.offset % kCopyBytes == 0 && target.offset % kCopyBytes == 0 && row_bytes % kCopyBytes == 0;
  for (size_t axis = 0; axis < 3; ++axis)
    wide &= source.strides[axis] % kCopyBytes == 0 && strides[axis] % kCopyBytes == 0;
  rows(kernel_of(wide ? Family::copy_16 : Family::copy_1, DType::float32),
       {source.at, target, source.strides, strides, counts, wide ? row_bytes / kCopyBytes : row_bytes});
}

void Steps::zero(At target, int64_t size) {
  rows(kernel_of(Family::zero_16, DType::float32),
       {std::nullopt, target, {}, {0, 0, kSliceBytes}, {1, 1, size / kSliceBytes}, kSliceBytes / kCopyBytes});
}

Tensor Steps::cast(const Tensor& x, const std::array<int64_t, 3>& counts, int64_t dim) {
  const auto [batch, heads, rows] = counts;
  const Tensor cast{take(2 * batch * heads * rows * dim),
                    {2 * heads * rows * dim, 2 * rows * dim, 2 * dim},
                    DType::bfloat16};
  this->rows(kernel_of(Family::cast, x.dtype),
             {x.at, cast.at, x.strides, cast.strides, counts, dim / kUnitElements});
  return cast;
}

void Steps::quantise(const Quantization& job) {
  const int64_t blocks = quantize_blocks(job.batch * job.heads, job.rows * job.dim);
  const At partial = take(4 * job.batch * job.heads * blocks);
  for (const Family family : {Family::quantize_amax, Family::quantize_convert})
    fill_quantize(job, partial, blocks, add(kernel_of(family, job.x.dtype), {blocks, job.heads, job.batch}));
}

}  // namespace zyfa::hip
