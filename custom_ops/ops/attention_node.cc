#include "attention_node.hpp"

#include <utility>

#include "../error.hpp"
#include "choice.hpp"
#include "shape_inference.hpp"

namespace zyfa::ops {
namespace {

// Names that attention operators elsewhere use. ONNX Runtime checks no attribute names for custom operators,
// and a misnamed one would be a silent change of meaning.
constexpr std::pair<const char*, const char*> kForeignAttributes[] = {
    {"causal", "is_causal"},
    {"unidirectional", "is_causal"},
    {"alignment", "causal_alignment"},
    {"q_num_heads", "num_heads"},
    {"n_heads", "num_heads"},
    {"heads", "num_heads"},
    {"num_kv_heads", "kv_num_heads"},
    {"num_key_value_heads", "kv_num_heads"},
    {"n_kv_heads", "kv_num_heads"},
    {"softmax_scale", "scale"},
    {"sm_scale", "scale"},
    {"attn_scale", "scale"},
    {"local_window_size", "window_left"},
    {"window_size", "window_left"},
    {"window", "window_left"},
    {"sliding_window", "window_left"},
    {"window_right", "is_causal"},
    {"soft_cap", "softcap"},
    {"logits_soft_cap", "softcap"},
    {"do_rotary", "none of ours: rotate query and key before the node"},
    {"qk_matmul_output_mode", "none of ours: scores are never written"},
    {"softmax_precision", "precision"},
    {"rotate", "rotation"},
    {"output_dtype", "out_dtype"},
    {"edges", "fp8_edges"},
};

}  // namespace

AttentionAttributes read_attributes(const NodeAttributes& node) {
  for (const auto& [foreign, ours] : kForeignAttributes)
    if (node.present(foreign)) fail("attribute ", foreign, " is unknown, expected ", ours);
  AttentionAttributes a;
  a.num_heads = node.integer("num_heads");
  a.kv_num_heads = node.integer("kv_num_heads");
  a.scale = node.real("scale");
  const int64_t causal = node.integer("is_causal").value_or(1);
  if (causal != 0 && causal != 1) fail("is_causal: expected 0 or 1, got ", causal);
  a.is_causal = causal == 1;
  a.causal_alignment = choice(node, "causal_alignment", kAlignments).value_or(Alignment::bottom_right);
  a.window_left = node.integer("window_left").value_or(-1);
  a.softcap = node.real("softcap").value_or(0.0f);
  a.layout = choice(node, "layout", kLayouts);
  a.precision = choice(node, "precision", kPrecisions);
  a.fp8_edges = choice(node, "fp8_edges", kEdges);
  a.rotation = choice(node, "rotation", kRotations);
  if (const std::optional<int64_t> type = node.integer("out_dtype")) {
    a.out_dtype = dtype_of(static_cast<ONNXTensorElementDataType>(*type));
    if (!a.out_dtype || !is_float(*a.out_dtype))
      fail("out_dtype: expected 1 (float), 10 (float16) or 16 (bfloat16), got ", *type);
  }
  return a;
}

std::optional<AttentionProblem> check_static(const StaticInputs& inputs,
                                             const AttentionAttributes& attributes) {
  std::optional<TensorInfo> tensors[kAttentionInputs];
  bool complete = true;
  for (size_t i = 0; i < kAttentionInputs; ++i) {
    const std::optional<StaticTensor>& known = inputs[i];
    if (!known) continue;
    tensors[i] = TensorInfo{known->dtype, known->shape};
    complete &= known->has_shape;
    for (const int64_t size : known->shape) complete &= size >= 0;
  }
  if (!tensors[kQuery]) fail("query: required, got none");
  check_attributes(attributes, tensors[kQuery]->dtype);
  if (!complete || !tensors[kKey] || !tensors[kValue]) return std::nullopt;
  return make_attention_problem(
      attributes, {*tensors[kQuery], *tensors[kKey], *tensors[kValue], tensors[kPastKey], tensors[kPastValue],
                   tensors[kKeyMask], tensors[kAttnBias], tensors[kQScale], tensors[kKScale],
                   tensors[kVScale], tensors[kSinks]});
}

namespace {

// The width of one head; a width that is only a symbol says nothing about it.
Dim per_head(const Dim& width, const Dim& heads) {
  return width.value < 0 || heads.value < 1 ? Dim{} : Dim{width.value / heads.value, ""};
}

Dim number_or(std::optional<int64_t> number, const Dim& otherwise) {
  return number && *number > 0 ? Dim{*number, ""} : otherwise;
}

// Output type with float8e4m3fn inputs. Wrong values get a type that has an overload, so that the kernel can
// refuse them.
ONNXTensorElementDataType output_type(std::optional<int64_t> out_dtype) {
  if (!out_dtype) return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN;
  const auto type = static_cast<ONNXTensorElementDataType>(*out_dtype);
  const std::optional<DType> known = dtype_of(type);
  return known && is_float(*known) ? type : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

}  // namespace

AttentionNode::AttentionNode(const OrtKernelInfo* info)
    : node_name(ops::node_name(info)), attributes(read_attributes(NodeAttributes(info))) {
  for (size_t i = 0; i < kAttentionInputs; ++i) static_inputs[i] = static_input(info, i);
  check_static(static_inputs, attributes);
}

AttentionNode::Run AttentionNode::read(const RunContext& context) const {
  Run run{};
  auto& in = run.inputs;
  for (size_t i = 0; i < kAttentionInputs; ++i) in[i] = context.input(i);
  for (const auto& [index, input] :
       {std::pair{kQuery, "query"}, std::pair{kKey, "key"}, std::pair{kValue, "value"}})
    if (!in[index].info) fail(input, ": required, got none");
  run.problem = make_attention_problem(
      attributes, {*in[kQuery].info, *in[kKey].info, *in[kValue].info, in[kPastKey].info, in[kPastValue].info,
                   in[kKeyMask].info, in[kAttnBias].info, in[kQScale].info, in[kKScale].info,
                   in[kVScale].info, in[kSinks].info});
  return run;
}

void AttentionNode::infer_shapes(OrtShapeInferContext* raw) {
  const ShapeContext context(raw);
  const ShapeContext::Tensor query = context.input(kQuery), key = context.input(kKey),
                             value = context.input(kValue), past = context.input(kPastKey);
  const size_t rank = query.dims.size();
  if (rank != key.dims.size() || rank != value.dims.size() || (rank != 3 && rank != 4)) return;
  const bool bhsd = rank == 4 && context.text("layout").value_or("BSHD") == "BHSD";
  const size_t heads_at = bhsd ? 1 : 2, rows_at = bhsd ? 2 : 1;
  const Dim batch = query.dims[0], rows = query.dims[rows_at];
  const Dim heads = number_or(context.integer("num_heads"), rank == 4 ? query.dims[heads_at] : Dim{});
  const Dim kv_heads = number_or(context.integer("kv_num_heads"), rank == 4 ? key.dims[heads_at] : Dim{});
  const Dim qk_dim = rank == 4 ? query.dims[3] : per_head(query.dims[2], heads);
  const Dim v_dim = rank == 4 ? value.dims[3] : per_head(value.dims[2], kv_heads);
  const Dim keys = past.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ? key.dims[rows_at]
                   : past.dims.size() == 4                              ? past.dims[2] + key.dims[rows_at]
                                                                        : Dim{};
  std::vector<Dim> output = {batch, rows, heads, v_dim};
  if (bhsd) output = {batch, heads, rows, v_dim};
  if (rank == 3)
    output = {batch, rows, heads.value < 0 || v_dim.value < 0 ? Dim{} : Dim{heads.value * v_dim.value, ""}};
  ONNXTensorElementDataType type = query.type;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN) {
    // Only this call can tell ONNX Runtime which of the overloads' output types is meant, so it must be
    // made.
    type = output_type(context.integer("out_dtype"));
    for (Dim& dim : output)
      if (!dim.known()) dim = fresh_dim();
  }
  context.set_output(kOutput, type, output);
  context.set_output(kPresentKey, query.type, {batch, kv_heads, keys, qk_dim});
  context.set_output(kPresentValue, query.type, {batch, kv_heads, keys, v_dim});
  context.set_output(kLse, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {batch, heads, rows});
}

std::vector<Overload> attention_overloads() {
  constexpr DType kInputTypes[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8e4m3fn};
  // The last one is never right: it is there so that a node without out_dtype is refused by name.
  constexpr DType kFp8Outputs[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8e4m3fn};
  constexpr DType kMaskTypes[] = {DType::boolean, DType::int32, DType::int64};
  constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  std::vector<Overload> overloads;
  const auto add = [&](DType input, DType output, DType mask) {
    const ONNXTensorElementDataType t = onnx_type(input);
    Overload overload;
    overload.inputs.assign(kAttentionInputs, {t, true});
    for (const AttentionInput required : {kQuery, kKey, kValue}) overload.inputs[required].optional = false;
    overload.inputs[kKeyMask].type = onnx_type(mask);
    for (const AttentionInput floats : {kQScale, kKScale, kVScale, kSinks})
      overload.inputs[floats].type = kFloat;
    overload.outputs = {{onnx_type(output), false}, {t, true}, {t, true}, {kFloat, true}};
    overloads.push_back(std::move(overload));
  };
  for (const DType input : kInputTypes) {
    for (const DType mask : kMaskTypes) {
      if (input != DType::float8e4m3fn) {
        add(input, input, mask);
        continue;
      }
      for (const DType output : kFp8Outputs) add(input, output, mask);
    }
  }
  return overloads;
}

}  // namespace zyfa::ops
