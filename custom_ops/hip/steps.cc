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
  made.steps.push_back(Launch{&row, grid, {}, {}});
  return std::get<Launch>(made.steps.back());
}

void Steps::quantise(const Quantization& job) {
  const int64_t blocks = quantize_blocks(job.batch * job.heads, job.rows * job.dim);
  const At partial = take(4 * job.batch * job.heads * blocks);
  for (const Family family : {Family::quantize_amax, Family::quantize_convert})
    fill_quantize(job, partial, blocks, add(kernel_of(family, job.x.dtype), {blocks, job.heads, job.batch}));
}

}  // namespace zyfa::hip
