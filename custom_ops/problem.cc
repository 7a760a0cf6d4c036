#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "error.hpp"

namespace zyfa {
namespace {

void expect(bool holds, const std::string& what, const std::string& expected, const std::string& got) {
  if (!holds) fail(what, ": expected ", expected, ", got ", got);
}

// Sizes of one Q, K or V input, whatever its layout.
struct Sizes {
  int64_t batch, heads, rows, dim;
};

Sizes sizes_of(const char* input, const TensorInfo& tensor, Layout layout, std::optional<int64_t> heads,
               const char* heads_attribute) {
  const std::vector<int64_t>& s = tensor.shape;
  if (s.size() == 4) {
    const Sizes sizes =
        layout == Layout::bshd ? Sizes{s[0], s[2], s[1], s[3]} : Sizes{s[0], s[1], s[2], s[3]};
    if (heads && *heads != sizes.heads)
      fail(heads_attribute, ": expected ", sizes.heads, " as in the shape ", shape_text(s), " of ", input,
           ", got ", *heads);
    return sizes;
  }
  if (!heads) fail(heads_attribute, ": required when ", input, " is 3-D ", shape_text(s), ", got none");
  if (*heads <= 0 || s[2] % *heads != 0)
    fail(heads_attribute, ": expected a divisor of the width ", s[2], " of ", input, ", got ", *heads);
  return {s[0], *heads, s[1], s[2] / *heads};
}

Strides strides_of(const TensorInfo& tensor, Layout layout, const Sizes& z) {
  if (tensor.shape.size() == 4 && layout == Layout::bhsd)
    return {z.heads * z.rows * z.dim, z.rows * z.dim, z.dim, 1};
  return {z.rows * z.heads * z.dim, z.dim, z.heads * z.dim, 1};
}

void check_sizes_fit(const AttentionProblem& p) {
  const int64_t widest = std::max(p.qk_dim, p.v_dim);
  for (const int64_t heads : {p.q_heads, p.kv_heads}) {
    int64_t product = 8;
    for (const int64_t factor : {p.batch, heads, std::max(p.q_len, p.kv_len()), widest}) {
      if (__builtin_mul_overflow(product, std::max<int64_t>(factor, 1), &product))
        fail("query: the problem ", shape_text({p.batch, heads, std::max(p.q_len, p.kv_len()), widest}),
             " does not fit 64-bit offsets");
    }
  }
}

ScaleStrides scale_strides(const char* input, const std::optional<TensorInfo>& scale, bool needed,
                           int64_t batch, int64_t heads) {
  if (!needed) {
    if (scale) fail(input, ": only taken when query is float8e4m3fn, remove it or quantise the inputs");
    return {};
  }
  if (!scale) fail(input, ": required when query is float8e4m3fn, got none");
  expect(scale->dtype == DType::float32, std::string(input) + " type", "float", name(scale->dtype));
  const std::vector<int64_t>& s = scale->shape;
  if (s.empty() || (s.size() == 1 && s[0] == 1)) return {0, 0};
  if (s.size() == 1 && s[0] == heads) return {0, 1};
  if (s.size() == 2 && s[0] == batch && s[1] == heads) return {heads, 1};
  fail(input, " shape: expected 1, ", heads, " or ", batch, "x", heads, ", got ", shape_text(s));
}

Strides bias_strides(const TensorInfo& bias, const AttentionProblem& p) {
  expect(bias.dtype == p.dtype, "attn_bias type", std::string(name(p.dtype)) + " as query", name(bias.dtype));
  const std::vector<int64_t> full = {p.batch, p.q_heads, p.q_len, p.kv_len()};
  const std::string expected = "broadcastable to " + shape_text(full);
  expect(bias.shape.size() <= 4, "attn_bias shape", expected, shape_text(bias.shape));
  int64_t stride[4] = {0, 0, 0, 0};
  int64_t step = 1;
  for (size_t back = 1; back <= bias.shape.size(); ++back) {
    const int64_t size = bias.shape[bias.shape.size() - back];
    const size_t axis = 4 - back;
    if (size != 1 && size != full[axis])
      fail("attn_bias shape: expected ", expected, ", got ", shape_text(bias.shape));
    stride[axis] = size == 1 ? 0 : step;
    step *= size;
  }
  return {stride[0], stride[1], stride[2], stride[3]};
}

void check_same_type(const char* input, const TensorInfo& tensor, DType dtype) {
  expect(tensor.dtype == dtype, std::string(input) + " type", std::string(name(dtype)) + " as query",
         name(tensor.dtype));
}

void check_past(const AttentionInputs& in, AttentionProblem& p) {
  if (in.past_key.has_value() != in.past_value.has_value())
    fail(in.past_key ? "past_value" : "past_key", ": expected together with ",
         in.past_key ? "past_key" : "past_value", ", got none");
  if (!in.past_key) return;
  check_same_type("past_key", *in.past_key, p.dtype);
  check_same_type("past_value", *in.past_value, p.dtype);
  const std::vector<int64_t>& s = in.past_key->shape;
  p.past_len = s.size() == 4 ? s[2] : 0;
  const auto check = [&p](const char* input, const TensorInfo& past, int64_t dim) {
    const std::vector<int64_t> expected = {p.batch, p.kv_heads, p.past_len, dim};
    if (past.shape != expected)
      fail(input, " shape: expected ", shape_text(expected), " (batch, kv_num_heads, past, head_dim), got ",
           shape_text(past.shape));
  };
  check("past_key", *in.past_key, p.qk_dim);
  check("past_value", *in.past_value, p.v_dim);
}

void check_rest(const AttentionInputs& in, AttentionProblem& p) {
  if (in.key_mask) {
    const DType type = in.key_mask->dtype;
    expect(type == DType::boolean || type == DType::int32 || type == DType::int64, "key_mask type",
           "bool, int32 or int64", name(type));
    const std::vector<int64_t> expected = {p.batch, p.kv_len()};
    expect(in.key_mask->shape == expected, "key_mask shape",
           shape_text(expected) + " (batch, past + new keys)", shape_text(in.key_mask->shape));
    p.mask_dtype = type;
  }
  if (in.attn_bias) p.bias = bias_strides(*in.attn_bias, p);
  if (in.sinks) {
    expect(in.sinks->dtype == DType::float32, "sinks type", "float", name(in.sinks->dtype));
    expect(in.sinks->shape == std::vector<int64_t>{p.q_heads}, "sinks shape",
           shape_text({p.q_heads}) + " (num_heads)", shape_text(in.sinks->shape));
  }
}

void set_outputs(const TensorInfo& query, Layout layout, AttentionProblem& p) {
  const Sizes z = {p.batch, p.q_heads, p.q_len, p.v_dim};
  TensorInfo output{p.out_dtype, {p.batch, p.q_len, p.q_heads * p.v_dim}};
  if (query.shape.size() == 4)
    output.shape = layout == Layout::bshd ? std::vector<int64_t>{z.batch, z.rows, z.heads, z.dim}
                                          : std::vector<int64_t>{z.batch, z.heads, z.rows, z.dim};
  p.output = strides_of(output, layout, z);
  p.output_shape = output.shape;
  p.present_key_shape = {p.batch, p.kv_heads, p.kv_len(), p.qk_dim};
  p.present_value_shape = {p.batch, p.kv_heads, p.kv_len(), p.v_dim};
  p.lse_shape = {p.batch, p.q_heads, p.q_len};
}

Precision default_precision(DType dtype) {
  if (dtype == DType::float8e4m3fn) return Precision::fp8;
  return dtype == DType::bfloat16 ? Precision::bf16 : Precision::fp32;
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

int64_t hadamard_block(int64_t dim) {
  if (dim == 192) return 64;
  return dim > 0 && (dim & (dim - 1)) == 0 ? dim : 0;
}

KeyRange AttentionProblem::visible_keys(int64_t row) const {
  const int64_t p = diagonal(row);
  const int64_t end = is_causal ? std::min(p + 1, kv_len()) : kv_len();
  const int64_t begin = window_left >= 0 && window_left < p ? p - window_left : 0;
  return {begin, std::max<int64_t>(end, 0)};
}

KeyRange AttentionProblem::visible_keys_of_any_row() const {
  // Each row's range is the previous one's moved by one key, so the union has no holes.
  if (q_len == 0) return {};
  return {visible_keys(0).begin, visible_keys(q_len - 1).end};
}

void check_attributes(const AttentionAttributes& a, DType dtype) {
  const Precision precision = a.precision.value_or(default_precision(dtype));
  const bool quantised = dtype == DType::float8e4m3fn;
  if (!quantised && !is_float(dtype))
    fail("query type: expected float, float16, bfloat16 or float8e4m3fn, got ", name(dtype));
  if (a.scale && !std::isfinite(*a.scale)) fail("scale: expected a finite number, got ", *a.scale);
  if (!(a.softcap >= 0.0f) || !std::isfinite(a.softcap))
    fail("softcap: expected 0 (none) or a positive number, got ", a.softcap);
  if (a.window_left < -1) fail("window_left: expected -1 (unlimited) or more, got ", a.window_left);
  for (const auto& [attribute, heads] :
       {std::pair{"num_heads", a.num_heads}, std::pair{"kv_num_heads", a.kv_num_heads}})
    if (heads && *heads < 1) fail(attribute, ": expected at least 1, got ", *heads);
  if (a.num_heads && a.kv_num_heads && *a.num_heads % *a.kv_num_heads != 0)
    fail("kv_num_heads: expected a divisor of num_heads ", *a.num_heads, ", got ", *a.kv_num_heads);
  if (a.fp8_edges && precision != Precision::fp8)
    fail("fp8_edges: only taken with precision \"fp8\", remove it or set the precision");
  if (a.fp8_edges == Fp8Edges::bf16 && quantised)
    fail("fp8_edges: \"bf16\" needs unquantised query, key and value, got float8e4m3fn; use \"hilo\"");
  if (a.rotation == Rotation::hadamard && precision != Precision::fp8)
    fail("rotation: \"hadamard\" is only taken with precision \"fp8\", remove it or set the precision");
  if (a.rotation == Rotation::hadamard && quantised)
    fail("rotation: \"hadamard\" needs unquantised query and key, got float8e4m3fn; rotate when quantising");
  if (quantised && !a.out_dtype) fail("out_dtype: required when query is float8e4m3fn, got none");
  if (a.out_dtype && !is_float(*a.out_dtype))
    fail("out_dtype: expected float, float16 or bfloat16, got ", name(*a.out_dtype));
  if (a.out_dtype && !quantised && *a.out_dtype != dtype)
    fail("out_dtype: expected ", name(dtype), " as query (only float8e4m3fn inputs leave a choice), got ",
         name(*a.out_dtype));
}

AttentionProblem make_attention_problem(const AttentionAttributes& a, const AttentionInputs& in) {
  const DType dtype = in.query.dtype;
  check_attributes(a, dtype);
  check_same_type("key", in.key, dtype);
  check_same_type("value", in.value, dtype);

  const size_t rank = in.query.shape.size();
  expect(rank == 3 || rank == 4, "query shape", "3 or 4 dimensions", shape_text(in.query.shape));
  for (const auto& [input, tensor] : {std::pair{"key", &in.key}, std::pair{"value", &in.value}})
    expect(tensor->shape.size() == rank, std::string(input) + " shape",
           std::to_string(rank) + " dimensions as query", shape_text(tensor->shape));
  if (rank == 3 && a.layout == Layout::bhsd)
    fail("layout: 3-D query ", shape_text(in.query.shape),
         " is always (batch, rows, heads * head_dim), got \"BHSD\"");
  const Layout layout = a.layout.value_or(Layout::bshd);

  const Sizes q = sizes_of("query", in.query, layout, a.num_heads, "num_heads");
  const Sizes k = sizes_of("key", in.key, layout, a.kv_num_heads, "kv_num_heads");
  const Sizes v = sizes_of("value", in.value, layout, a.kv_num_heads, "kv_num_heads");
  const auto same = [](const char* what, int64_t expected, const char* as, int64_t got) {
    expect(expected == got, what, std::to_string(expected) + " as " + as, std::to_string(got));
  };
  same("key batch", q.batch, "query", k.batch);
  same("value batch", q.batch, "query", v.batch);
  same("key head_dim", q.dim, "query", k.dim);
  same("value heads", k.heads, "key", v.heads);
  same("value rows", k.rows, "key", v.rows);
  if (q.heads != 0 && (k.heads == 0 || q.heads % k.heads != 0))
    fail("kv_num_heads: expected a divisor of num_heads ", q.heads, ", got ", k.heads);

  AttentionProblem p{};
  p.batch = q.batch;
  p.q_heads = q.heads;
  p.kv_heads = k.heads;
  p.q_len = q.rows;
  p.new_len = k.rows;
  p.qk_dim = q.dim;
  p.v_dim = v.dim;
  p.dtype = dtype;
  p.out_dtype = a.out_dtype.value_or(dtype);
  check_past(in, p);
  check_sizes_fit(p);
  p.query = strides_of(in.query, layout, q);
  p.key = strides_of(in.key, layout, k);
  p.value = strides_of(in.value, layout, v);
  p.past_key = {p.kv_heads * p.past_len * p.qk_dim, p.past_len * p.qk_dim, p.qk_dim, 1};
  p.past_value = {p.kv_heads * p.past_len * p.v_dim, p.past_len * p.v_dim, p.v_dim, 1};
  p.mask_dtype = DType::boolean;
  // An empty dot product is 0 whatever the scale; 1/sqrt(0) would make it NaN.
  p.scale =
      a.scale.value_or(q.dim == 0 ? 1.0f : static_cast<float>(1.0 / std::sqrt(static_cast<double>(q.dim))));
  p.softcap = a.softcap;
  p.is_causal = a.is_causal;
  p.causal_alignment = a.causal_alignment;
  p.window_left = a.window_left;
  p.precision = a.precision.value_or(default_precision(dtype));
  p.fp8_edges = a.fp8_edges.value_or(Fp8Edges::hilo);
  p.rotation = a.rotation.value_or(Rotation::none);
  if (p.rotation == Rotation::hadamard && p.qk_dim != 0 && hadamard_block(p.qk_dim) == 0)
    fail("rotation: \"hadamard\" needs a head_dim that is a power of two or 192, got ", p.qk_dim);
  const bool quantised = dtype == DType::float8e4m3fn;
  p.q_scale = scale_strides("q_scale", in.q_scale, quantised, p.batch, p.q_heads);
  p.k_scale = scale_strides("k_scale", in.k_scale, quantised, p.batch, p.kv_heads);
  p.v_scale = scale_strides("v_scale", in.v_scale, quantised, p.batch, p.kv_heads);
  check_rest(in, p);
  set_outputs(in.query, layout, p);
  return p;
}

}  // namespace zyfa
