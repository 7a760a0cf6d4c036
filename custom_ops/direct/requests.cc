// What a node asks for, checked against the shapes that it is given.
#include <algorithm>

#include "../error.hpp"
#include "node.hpp"

namespace zyfa::direct {
namespace {

std::string text_of(const TensorInfo& tensor) {
  return std::string(name(tensor.dtype)) + " " + shape_text(tensor.shape);
}

void check_output(const Request& request, size_t index, const char* output, bool required,
                  const TensorInfo& expected) {
  const std::optional<TensorInfo>& got =
      index < request.outputs.size() ? request.outputs[index] : std::nullopt;
  if (!got && !required) return;
  if (!got) fail(output, ": expected ", text_of(expected), ", got no such output");
  if (got->dtype != expected.dtype || got->shape != expected.shape)
    fail(output, ": expected ", text_of(expected), ", got ", text_of(*got));
}

void check_count(const char* what, size_t got, size_t most) {
  if (got > most) fail(what, ": expected at most ", most, ", got ", got);
}

// Of a tensor operator, whose one input is required.
const TensorInfo& x_of(const Request& request, size_t outputs) {
  check_count("inputs", request.inputs.size(), 1);
  check_count("outputs", request.outputs.size(), outputs);
  if (request.inputs.empty() || !request.inputs[0]) fail("x: required, got none");
  if (!is_float(request.inputs[0]->dtype))
    fail("x type: expected float, float16 or bfloat16, got ", name(request.inputs[0]->dtype));
  return *request.inputs[0];
}

}  // namespace

AttentionProblem attention_problem(const Request& request) {
  check_count("inputs", request.inputs.size(), ops::kAttentionInputs);
  check_count("outputs", request.outputs.size(), ops::kAttentionOutputs);
  ops::StaticInputs inputs;
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (const std::optional<TensorInfo>& info = request.inputs[i])
      inputs[i] = ops::StaticTensor{info->dtype, true, info->shape};
  if (!inputs[ops::kQuery]) fail("query: required, got none");
  if (!inputs[ops::kKey]) fail("key: required, got none");
  if (!inputs[ops::kValue]) fail("value: required, got none");
  const AttentionProblem p =
      *ops::check_static(inputs, ops::read_attributes(ops::NodeAttributes(&request.attributes)));
  check_output(request, ops::kOutput, "output", true, {p.out_dtype, p.output_shape});
  check_output(request, ops::kPresentKey, "present_key", false, {p.dtype, p.present_key_shape});
  check_output(request, ops::kPresentValue, "present_value", false, {p.dtype, p.present_value_shape});
  check_output(request, ops::kLse, "lse", false, {DType::float32, p.lse_shape});
  return p;
}

ops::QuantizeNode quantize_node(const Request& request) {
  const TensorInfo& x = x_of(request, 2);
  ops::QuantizeNode node(ops::NodeAttributes(&request.attributes), request.name,
                         ops::StaticTensor{x.dtype, true, x.shape});
  check_output(request, 0, "y", true, {DType::float8e4m3fn, x.shape});
  check_output(request, 1, "scale", true, {DType::float32, node.scale_shape(node.sizes(x.shape))});
  return node;
}

const TensorInfo& hadamard_input(const Request& request) {
  const TensorInfo& x = x_of(request, 1);
  ops::HadamardNode::check_shape(x.shape);
  check_output(request, 0, "y", true, x);
  return x;
}

}  // namespace zyfa::direct
