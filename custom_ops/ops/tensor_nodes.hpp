// ZyfaQuantizeFp8 and ZyfaHadamard as nodes: attributes and shapes, whatever computes them.
#pragma once

#include <vector>

#include "op.hpp"

namespace zyfa::ops {

enum class Granularity { tensor, head, batch_head };

struct QuantizeNode {
  static constexpr const char* kName = "ZyfaQuantizeFp8";

  explicit QuantizeNode(const OrtKernelInfo* info);
  QuantizeNode(const NodeAttributes& node, std::string name, std::optional<StaticTensor> x);

  struct Sizes {
    int64_t batch, heads, rows, dim;
  };
  // Throws Error for shapes that are none.
  Sizes sizes(const std::vector<int64_t>& shape) const;
  std::vector<int64_t> scale_shape(const Sizes& sizes) const;
  static void infer_shapes(OrtShapeInferContext* context);

  const std::string node_name;
  const std::optional<StaticTensor> static_x;
  Granularity granularity;
  Rotation rotation;
  Layout layout;
};

struct HadamardNode {
  static constexpr const char* kName = "ZyfaHadamard";

  explicit HadamardNode(const OrtKernelInfo* info);

  // Throws Error for shapes that are none.
  static void check_shape(const std::vector<int64_t>& shape);
  static void infer_shapes(OrtShapeInferContext* context);

  const std::string node_name;
  const std::optional<StaticTensor> static_x;
};

// On the CPU; `scales` has the elements of scale_shape.
void quantize(const QuantizeNode& node, const TensorInfo& info, const void* x,
              const cpu::ParallelFor& parallel_for, uint8_t* codes, float* scales);
void hadamard(const TensorInfo& info, const void* x, const cpu::ParallelFor& parallel_for, void* y);

std::vector<Overload> quantize_overloads();
std::vector<Overload> hadamard_overloads();

}  // namespace zyfa::ops
