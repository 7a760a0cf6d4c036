#include "tensor_nodes.hpp"

#include <utility>

#include "../error.hpp"
#include "choice.hpp"
#include "shape_inference.hpp"

namespace zyfa::ops {
namespace {

constexpr Choice<Granularity> kGranularities[] = {
    {"tensor", Granularity::tensor}, {"head", Granularity::head}, {"batch_head", Granularity::batch_head}};
constexpr DType kFloats[] = {DType::float32, DType::float16, DType::bfloat16};

}  // namespace

QuantizeNode::QuantizeNode(const OrtKernelInfo* info)
    : QuantizeNode(NodeAttributes(info), ops::node_name(info), static_input(info, 0)) {}

QuantizeNode::QuantizeNode(const NodeAttributes& node, std::string name, std::optional<StaticTensor> x)
    : node_name(std::move(name)), static_x(std::move(x)) {
  granularity = choice(node, "granularity", kGranularities).value_or(Granularity::batch_head);
  rotation = choice(node, "rotation", kRotations).value_or(Rotation::none);
  layout = choice(node, "layout", kLayouts).value_or(Layout::bshd);
  if (static_x && static_x->has_shape) sizes(static_x->shape);
}

QuantizeNode::Sizes QuantizeNode::sizes(const std::vector<int64_t>& shape) const {
  if (shape.size() != 4) fail("x shape: expected 4 dimensions, got ", shape_text(shape));
  if (rotation == Rotation::hadamard && shape[3] > 0 && hadamard_block(shape[3]) == 0)
    fail("rotation: \"hadamard\" needs a head_dim that is a power of two or 192, got ", shape[3]);
  const bool bhsd = layout == Layout::bhsd;
  return {shape[0], shape[bhsd ? 1 : 2], shape[bhsd ? 2 : 1], shape[3]};
}

std::vector<int64_t> QuantizeNode::scale_shape(const Sizes& z) const {
  if (granularity == Granularity::tensor) return {1};
  if (granularity == Granularity::head) return {z.heads};
  return {z.batch, z.heads};
}

void QuantizeNode::infer_shapes(OrtShapeInferContext* raw) {
  const ShapeContext context(raw);
  const ShapeContext::Tensor x = context.input(0);
  // An attention that reads the codes has to know their rank to name the type of its output.
  std::vector<Dim> codes = x.dims;
  for (Dim& dim : codes)
    if (!dim.known()) dim = fresh_dim();
  context.set_output(0, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, codes);
  if (x.dims.size() != 4) return;
  const Dim heads = x.dims[context.text("layout").value_or("BSHD") == "BHSD" ? 1 : 2];
  const std::string granularity = context.text("granularity").value_or("batch_head");
  std::vector<Dim> scale = {x.dims[0], heads};
  if (granularity == "tensor") scale = {Dim{1, ""}};
  if (granularity == "head") scale = {heads};
  context.set_output(1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, scale);
}

HadamardNode::HadamardNode(const OrtKernelInfo* info)
    : node_name(ops::node_name(info)), static_x(static_input(info, 0)) {
  if (static_x && static_x->has_shape) check_shape(static_x->shape);
}

void HadamardNode::check_shape(const std::vector<int64_t>& shape) {
  if (shape.empty()) fail("x shape: expected at least 1 dimension, got a scalar");
  if (shape.back() > 0 && hadamard_block(shape.back()) == 0)
    fail("x shape: expected a last dimension that is a power of two or 192, got ", shape.back());
}

void HadamardNode::infer_shapes(OrtShapeInferContext* raw) {
  const ShapeContext context(raw);
  const ShapeContext::Tensor x = context.input(0);
  context.set_output(0, x.type, x.dims);
}

std::vector<Overload> quantize_overloads() {
  std::vector<Overload> overloads;
  for (const DType type : kFloats)
    overloads.push_back({{{onnx_type(type), false}},
                         {{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, false},
                          {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, false}}});
  return overloads;
}

std::vector<Overload> hadamard_overloads() {
  std::vector<Overload> overloads;
  for (const DType type : kFloats)
    overloads.push_back({{{onnx_type(type), false}}, {{onnx_type(type), false}}});
  return overloads;
}

}  // namespace zyfa::ops
