// ZyfaHadamard: x -> x * H / sqrt(n) over the last dimension.
#include <algorithm>

#include "../cpu/elements.hpp"
#include "../error.hpp"
#include "op.hpp"
#include "ops.hpp"
#include "shape_inference.hpp"

namespace zyfa::ops {
namespace {

constexpr int64_t kRowsPerTask = 256;

void check_dim(const std::vector<int64_t>& shape) {
  if (shape.empty()) fail("x shape: expected at least 1 dimension, got a scalar");
  if (shape.back() > 0 && hadamard_block(shape.back()) == 0)
    fail("x shape: expected a last dimension that is a power of two or 192, got ", shape.back());
}

struct HadamardKernel {
  static constexpr const char* kName = "ZyfaHadamard";

  explicit HadamardKernel(const OrtKernelInfo* info) : node_name(ops::node_name(info)) {
    const std::optional<StaticTensor> x = static_input(info, 0);
    if (x && x->has_shape) check_dim(x->shape);
  }

  void run(const RunContext& context) const {
    const RunContext::Input x = context.input(0);
    const std::vector<int64_t>& shape = x.info->shape;
    check_dim(shape);
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

  static void infer_shapes(OrtShapeInferContext* raw) {
    const ShapeContext context(raw);
    const ShapeContext::Tensor x = context.input(0);
    context.set_output(0, x.type, x.dims);
  }

  const std::string node_name;
};

}  // namespace

void add_hadamard(OpTable& table, uint32_t version) {
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16})
    table.add<HadamardKernel>({{{onnx_type(type), false}}, {{onnx_type(type), false}}}, version);
}

}  // namespace zyfa::ops
