// ZyfaHadamard on the CPU: x -> x * H / sqrt(n) over the last dimension.
#include <algorithm>

#include "../cpu/elements.hpp"
#include "ops.hpp"
#include "tensor_nodes.hpp"

namespace zyfa::ops {
namespace {

constexpr int64_t kRowsPerTask = 256;

struct HadamardKernel : HadamardNode {
  static constexpr const char* kProvider = nullptr;

  using HadamardNode::HadamardNode;

  void run(const RunContext& context) const {
    const RunContext::Input x = context.input(0);
    check_shape(x.info->shape);
    hadamard(*x.info, x.data, context.parallel_for(), context.output(0, x.info->shape));
  }
};

}  // namespace

void hadamard(const TensorInfo& info, const void* x, const cpu::ParallelFor& parallel_for, void* y) {
  const int64_t dim = info.shape.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < info.shape.size(); ++i) rows *= info.shape[i];
  if (dim == 0) return;
  parallel_for((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    const int64_t first = task * kRowsPerTask * dim, last = std::min(rows * dim, first + kRowsPerTask * dim);
    const int64_t offset = first * static_cast<int64_t>(size_of(info.dtype));
    std::vector<float> scratch(hadamard_block(dim));
    cpu::elements().rotate(info.dtype, static_cast<const char*>(x) + offset, last - first,
                           hadamard_block(dim), info.dtype, static_cast<char*>(y) + offset, scratch.data());
  });
}

void add_hadamard(OpTable& table, uint32_t version) {
  for (Overload& overload : hadamard_overloads()) table.add<HadamardKernel>(std::move(overload), version);
}

}  // namespace zyfa::ops
