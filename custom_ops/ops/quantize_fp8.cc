// ZyfaQuantizeFp8 on the CPU: x -> float8e4m3fn codes and the scale that turns them back.
#include "../cpu/quantize.hpp"
#include "ops.hpp"
#include "tensor_nodes.hpp"

namespace zyfa::ops {
namespace {

struct QuantizeKernel : QuantizeNode {
  static constexpr const char* kProvider = nullptr;

  using QuantizeNode::QuantizeNode;

  void run(const RunContext& context) const {
    const RunContext::Input x = context.input(0);
    const std::vector<int64_t>& shape = x.info->shape;
    const auto [batch, heads, rows, dim] = sizes(shape);
    const Strides strides = layout == Layout::bhsd ? Strides{heads * rows * dim, rows * dim, dim, 1}
                                                   : Strides{rows * heads * dim, dim, heads * dim, 1};
    const cpu::HeadRows source{batch,
                               heads,
                               rows,
                               {{}, {x.info->dtype, x.data, strides}, 0, dim},
                               rotation == Rotation::hadamard ? hadamard_block(dim) : 0,
                               {}};
    const cpu::ParallelFor parallel_for = context.parallel_for();
    std::vector<float> amax(batch * heads);
    cpu::head_amax(source, parallel_for, amax.data());
    const std::vector<float> scales = write_scales(context, amax, sizes(shape));
    auto* codes = static_cast<uint8_t*>(context.output(0, shape));
    cpu::quantize_heads(source, parallel_for, scales.data(), codes, strides);
  }

  // Writes the scale output and returns one scale per (batch, head).
  std::vector<float> write_scales(const RunContext& context, const std::vector<float>& amax,
                                  const Sizes& z) const {
    const std::vector<int64_t> shape = scale_shape(z);
    int64_t scales = 1;
    for (const int64_t size : shape) scales *= size;
    std::vector<float> largest(scales, 0.0f);
    for (size_t i = 0; i < amax.size(); ++i) largest[i % scales] = std::max(largest[i % scales], amax[i]);
    auto* out = static_cast<float*>(context.output(1, shape));
    std::vector<float> spread(amax.size());
    for (float& value : largest) value = cpu::fp8_scale(value);
    std::copy(largest.begin(), largest.end(), out);
    for (size_t i = 0; i < spread.size(); ++i) spread[i] = largest[i % scales];
    return spread;
  }
};

}  // namespace

void add_quantize_fp8(OpTable& table, uint32_t version) {
  for (Overload& overload : quantize_overloads()) table.add<QuantizeKernel>(std::move(overload), version);
}

}  // namespace zyfa::ops
