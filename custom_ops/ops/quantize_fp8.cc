// ZyfaQuantizeFp8 on the CPU: x -> float8e4m3fn codes and the scale that turns them back.
#include <algorithm>

#include "../cpu/quantize.hpp"
#include "ops.hpp"
#include "tensor_nodes.hpp"

namespace zyfa::ops {
namespace {

// Writes the scale output and returns one scale per (batch, head).
std::vector<float> write_scales(const std::vector<float>& amax, int64_t scales, float* out) {
  std::vector<float> largest(scales, 0.0f);
  for (size_t i = 0; i < amax.size(); ++i) largest[i % scales] = std::max(largest[i % scales], amax[i]);
  std::vector<float> spread(amax.size());
  for (float& value : largest) value = cpu::fp8_scale(value);
  std::copy(largest.begin(), largest.end(), out);
  for (size_t i = 0; i < spread.size(); ++i) spread[i] = largest[i % scales];
  return spread;
}

struct QuantizeKernel : QuantizeNode {
  static constexpr const char* kProvider = nullptr;

  using QuantizeNode::QuantizeNode;

  void run(const RunContext& context) const {
    const RunContext::Input x = context.input(0);
    auto* const scales = static_cast<float*>(context.output(1, scale_shape(sizes(x.info->shape))));
    auto* const codes = static_cast<uint8_t*>(context.output(0, x.info->shape));
    quantize(*this, *x.info, x.data, context.parallel_for(), codes, scales);
  }
};

}  // namespace

void quantize(const QuantizeNode& node, const TensorInfo& info, const void* x,
              const cpu::ParallelFor& parallel_for, uint8_t* codes, float* scales) {
  const QuantizeNode::Sizes z = node.sizes(info.shape);
  const Strides strides = node.layout == Layout::bhsd
                              ? Strides{z.heads * z.rows * z.dim, z.rows * z.dim, z.dim, 1}
                              : Strides{z.rows * z.heads * z.dim, z.dim, z.heads * z.dim, 1};
  const cpu::HeadRows source{z.batch,
                             z.heads,
                             z.rows,
                             {{}, {info.dtype, x, strides}, 0, z.dim},
                             node.rotation == Rotation::hadamard ? hadamard_block(z.dim) : 0,
                             {}};
  std::vector<float> amax(z.batch * z.heads);
  cpu::head_amax(source, parallel_for, amax.data());
  const std::vector<float> spread = write_scales(amax, element_count(node.scale_shape(z)), scales);
  cpu::quantize_heads(source, parallel_for, spread.data(), codes, strides);
}

void add_quantize_fp8(OpTable& table, uint32_t version) {
  for (Overload& overload : quantize_overloads()) table.add<QuantizeKernel>(std::move(overload), version);
}

}  // namespace zyfa::ops
