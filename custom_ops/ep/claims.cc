#include "claims.hpp"

#include <cmath>
#include <cstring>

#include "../error.hpp"

namespace zyfa::ep {
namespace {

// Lengths that are not known yet are those of a prefill: what can be decoded alone is not taken.
constexpr int64_t kSomeLength = 1024;

// A dimension of a static shape; `otherwise` when it is not known.
int64_t size_at(const std::optional<ops::StaticTensor>& tensor, size_t axis, int64_t otherwise) {
  if (!tensor || axis >= tensor->shape.size() || tensor->shape[axis] < 0) return otherwise;
  return tensor->shape[axis];
}

Strides contiguous(Layout layout, int64_t heads, int64_t rows, int64_t dim) {
  return layout == Layout::bhsd ? Strides{heads * rows * dim, rows * dim, dim, 1}
                                : Strides{rows * heads * dim, dim, heads * dim, 1};
}

struct Part {
  int64_t heads, rows, dim;  // dim is -1 when it is not known
};

Part part_of(const std::optional<ops::StaticTensor>& tensor, Layout layout, std::optional<int64_t> heads) {
  const bool flat = tensor && tensor->shape.size() == 3;
  const int64_t rows = size_at(tensor, !flat && layout == Layout::bhsd ? 2 : 1, kSomeLength);
  if (!flat) {
    const int64_t there = size_at(tensor, layout == Layout::bhsd ? 1 : 2, heads.value_or(1));
    return {there, rows, size_at(tensor, 3, -1)};
  }
  const int64_t width = size_at(tensor, 2, -1);
  const bool known = width >= 0 && heads && *heads > 0 && width % *heads == 0;
  return {heads.value_or(1), rows, known ? width / *heads : -1};
}

AttentionProblem likely_problem(const ops::StaticInputs& in, const AttentionAttributes& a, const Part& q,
                                const Part& k, const Part& v) {
  const Layout layout = a.layout.value_or(Layout::bshd);
  const DType dtype = in[ops::kQuery]->dtype;
  AttentionProblem p{};
  p.batch = size_at(in[ops::kQuery], 0, 1);
  p.q_heads = q.heads;
  p.kv_heads = k.heads;
  p.q_len = q.rows;
  p.new_len = k.rows;
  p.past_len = size_at(in[ops::kPastKey], 2, in[ops::kPastKey] ? kSomeLength : 0);
  p.qk_dim = q.dim;
  p.v_dim = v.dim;
  p.dtype = dtype;
  p.out_dtype = a.out_dtype.value_or(dtype);
  p.query = contiguous(layout, q.heads, q.rows, q.dim);
  p.key = contiguous(layout, k.heads, k.rows, k.dim);
  p.value = contiguous(layout, v.heads, v.rows, v.dim);
  p.output = contiguous(layout, q.heads, q.rows, v.dim);
  p.mask_dtype = in[ops::kKeyMask] ? in[ops::kKeyMask]->dtype : DType::boolean;
  p.scale =
      a.scale.value_or(q.dim > 0 ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(q.dim))) : 1.0f);
  p.softcap = a.softcap;
  p.is_causal = a.is_causal;
  p.causal_alignment = a.causal_alignment;
  p.window_left = a.window_left;
  p.precision = a.precision.value_or(dtype == DType::float8e4m3fn ? Precision::fp8
                                     : dtype == DType::bfloat16   ? Precision::bf16
                                                                  : Precision::fp32);
  p.fp8_edges = a.fp8_edges.value_or(Fp8Edges::hilo);
  p.rotation = a.rotation.value_or(Rotation::none);
  return p;
}

}  // namespace

AttentionAttributes with_options(AttentionAttributes attributes, DType dtype, const Options& options) {
  if (!options.precision || dtype == DType::float8e4m3fn) return attributes;
  if (*options.precision != Precision::fp8) {
    attributes.fp8_edges = std::nullopt;
    attributes.rotation = std::nullopt;
  }
  attributes.precision = options.precision;
  return attributes;
}

void check_attention(const ops::StaticInputs& in, const AttentionAttributes& a, const Target& target) {
  if (!in[ops::kQuery]) fail("query: required, got none");
  const Layout layout = a.layout.value_or(Layout::bshd);
  const Part q = part_of(in[ops::kQuery], layout, a.num_heads),
             k = part_of(in[ops::kKey], layout, a.kv_num_heads),
             v = part_of(in[ops::kValue], layout, a.kv_num_heads);
  hip::GpuRequest request;
  request.architecture = target.device.architecture;
  request.byte_rounding = target.options.byte_rounding;
  request.key_mask = in[ops::kKeyMask] ? hip::KeyMask::unread : hip::KeyMask::none;
  request.bias = in[ops::kAttnBias].has_value();
  AttentionProblem problem = likely_problem(in, a, q, k, v);
  if (q.dim < 0 || v.dim < 0 ||
      k.heads == 0) {  // a shape that every kernel takes, for what does not hang on it
    problem = likely_problem(in, a, {1, kSomeLength, 128}, {1, kSomeLength, 128}, {1, kSomeLength, 128});
  }
  hip::select(problem, request);
}

void check_tensor_op(const std::optional<ops::StaticTensor>& x, const Target& target) {
  const int64_t dim = x && x->has_shape ? x->shape.back() : -1;
  if (dim < 0) return;
  hip::select_hadamard(dim, dim, x->dtype, target.device.architecture);
}

void check_node(const OrtNode* node, const Target& target) {
  const char* op = nullptr;
  ops::check(ops::api->Node_GetOperatorType(node, &op));
  if (std::strcmp(op, ops::AttentionNode::kName) != 0) {
    check_tensor_op(ops::static_input(node, 0), target);
    return;
  }
  ops::StaticInputs inputs;
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = ops::static_input(node, i);
  if (!inputs[ops::kQuery]) fail("query: required, got none");
  check_attention(inputs,
                  with_options(ops::read_attributes(ops::NodeAttributes(node)), inputs[ops::kQuery]->dtype,
                               target.options),
                  target);
}

}  // namespace zyfa::ep
