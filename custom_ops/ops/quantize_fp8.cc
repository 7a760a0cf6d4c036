// ZyfaQuantizeFp8: x -> float8e4m3fn codes and the scale that turns them back.
#include "../cpu/quantize.hpp"
#include "../error.hpp"
#include "choice.hpp"
#include "op.hpp"
#include "ops.hpp"
#include "shape_inference.hpp"

namespace zyfa::ops {
namespace {

enum class Granularity { tensor, head, batch_head };
constexpr Choice<Granularity> kGranularities[] = {
    {"tensor", Granularity::tensor}, {"head", Granularity::head}, {"batch_head", Granularity::batch_head}};

struct QuantizeKernel {
  static constexpr const char* kName = "ZyfaQuantizeFp8";

  explicit QuantizeKernel(const OrtKernelInfo* info) : node_name(ops::node_name(info)) {
    const NodeAttributes node(info);
    granularity = choice(node, "granularity", kGranularities).value_or(Granularity::batch_head);
    rotation = choice(node, "rotation", kRotations).value_or(Rotation::none);
    layout = choice(node, "layout", kLayouts).value_or(Layout::bshd);
    const std::optional<StaticTensor> x = static_input(info, 0);
    if (x && x->has_shape) check_shape(x->shape);
  }

  void check_shape(const std::vector<int64_t>& shape) const {
    if (shape.size() != 4) fail("x shape: expected 4 dimensions, got ", shape_text(shape));
    if (rotation == Rotation::hadamard && shape[3] > 0 && hadamard_block(shape[3]) == 0)
      fail("rotation: \"hadamard\" needs a head_dim that is a power of two or 192, got ", shape[3]);
  }

  void run(const RunContext& context) const {
    const RunContext::Input x = context.input(0);
    const std::vector<int64_t>& shape = x.info->shape;
    check_shape(shape);
    const bool bhsd = layout == Layout::bhsd;
    const int64_t batch = shape[0], heads = shape[bhsd ? 1 : 2], rows = shape[bhsd ? 2 : 1], dim = shape[3];
    const Strides strides = bhsd ? Strides{heads * rows * dim, rows * dim, dim, 1}
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
    const std::vector<float> scales = write_scales(context, amax, batch, heads);
    auto* codes = static_cast<uint8_t*>(context.output(0, shape));
    cpu::quantize_heads(source, parallel_for, scales.data(), codes, strides);
  }

  // Writes the scale output and returns one scale per (batch, head).
  std::vector<float> write_scales(const RunContext& context, const std::vector<float>& amax, int64_t batch,
                                  int64_t heads) const {
    std::vector<int64_t> shape = {batch, heads};
    if (granularity == Granularity::tensor) shape = {1};
    if (granularity == Granularity::head) shape = {heads};
    const int64_t scales = granularity == Granularity::tensor ? 1
                           : granularity == Granularity::head ? heads
                                                              : batch * heads;
    std::vector<float> largest(scales, 0.0f);
    for (size_t i = 0; i < amax.size(); ++i) largest[i % scales] = std::max(largest[i % scales], amax[i]);
    auto* out = static_cast<float*>(context.output(1, shape));
    std::vector<float> spread(amax.size());
    for (float& value : largest) value = cpu::fp8_scale(value);
    std::copy(largest.begin(), largest.end(), out);
    for (size_t i = 0; i < spread.size(); ++i) spread[i] = largest[i % scales];
    return spread;
  }

  static void infer_shapes(OrtShapeInferContext* raw) {
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

  const std::string node_name;
  Granularity granularity;
  Rotation rotation;
  Layout layout;
};

}  // namespace

void add_quantize_fp8(OpTable& table, uint32_t version) {
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16})
    table.add<QuantizeKernel>(
        {{{onnx_type(type), false}},
         {{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, false}, {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, false}}},
        version);
}

}  // namespace zyfa::ops
