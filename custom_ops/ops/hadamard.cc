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
    const std::vector<int64_t>& shape = x.info->shape;
    check_shape(shape);
    void* y = context.output(0, shape);
    const int64_t dim = shape.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    if (dim == 0) return;
    context.parallel_for()((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
      const int64_t first = task * kRowsPerTask * dim,
                    last = std::min(rows * dim, first + kRowsPerTask * dim);
      const int64_t offset = first * static_cast<int64_t>(size_of(x.info->dtype));
      std::vector<float> scratch(hadamard_block(dim));
      cpu::elements().rotate(x.info->dtype, static_cast<const char*>(x.data) + offset, last - first,
                             hadamard_block(dim), x.info->dtype, static_cast<char*>(y) + offset,
                             scratch.data());
    });
  }
};

}  // namespace

void add_hadamard(OpTable& table, uint32_t version) {
  for (Overload& overload : hadamard_overloads()) table.add<HadamardKernel>(std::move(overload), version);
}

}  // namespace zyfa::ops
