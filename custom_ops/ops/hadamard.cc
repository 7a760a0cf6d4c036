// ZyfaHadamard on the CPU: x -> x * H / sqrt(n) over the last dimension.
#include "../cpu/hadamard.hpp"

#include <algorithm>

#include "../cpu/rows.hpp"
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
      std::vector<float> row(dim);
      for (int64_t at = task * kRowsPerTask; at < std::min(rows, (task + 1) * kRowsPerTask); ++at) {
        cpu::load_row(x.info->dtype, x.data, at * dim, dim, row.data());
        cpu::hadamard_row(row.data(), dim, hadamard_block(dim));
        cpu::store_row(x.info->dtype, row.data(), dim, y, at * dim);
      }
    });
  }
};

}  // namespace

void add_hadamard(OpTable& table, uint32_t version) {
  for (Overload& overload : hadamard_overloads()) table.add<HadamardKernel>(std::move(overload), version);
}

}  // namespace zyfa::ops
