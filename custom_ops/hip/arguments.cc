#include "arguments.hpp"

#include <algorithm>
#include <cstring>

namespace zyfa::hip {
namespace {

// Offset and place of every pointer, those that stay null left out.
using Places = std::initializer_list<std::pair<size_t, std::optional<At>>>;

template <typename Arguments>
void fill(const Arguments& arguments, Places places, Launch& launch) {
  static_assert(sizeof(Arguments) <= sizeof(launch.arguments));
  launch.arguments = {};
  std::memcpy(launch.arguments.data(), &arguments, sizeof(arguments));
  launch.pointers.clear();
  for (const auto& [offset, at] : places)
    if (at) launch.pointers.push_back({offset, *at});
  std::sort(launch.pointers.begin(), launch.pointers.end(),
            [](const Pointer& a, const Pointer& b) { return a.offset < b.offset; });
}

std::optional<At> when(bool present, Buffer buffer) {
  return present ? std::optional(At{buffer}) : std::nullopt;
}

unsigned group_reciprocal(int64_t group) {
  return group == 1 ? 0 : static_cast<unsigned>(((int64_t{1} << 32) + group - 1) / group);
}

// More than every distance says nothing more.
int window(const AttentionProblem& p) {
  if (p.window_left < 0) return -1;
  return static_cast<int>(std::min({p.window_left, p.q_len + p.kv_len(), kMostLength}));
}

int64_t mask_batch(const AttentionProblem& p, const Tensors& t) { return t.key_mask ? p.kv_len() : 0; }

// What both prefill kernels call by the same names.
template <typename Arguments>
void set_shared(const AttentionProblem& p, const Tensors& t, Arguments& a) {
  const auto set = [](const ByteStrides& from, long long& batch, long long& head, unsigned& row) {
    batch = from[0], head = from[1], row = static_cast<unsigned>(from[2]);
  };
  set(t.query.strides, a.q_batch, a.q_head, a.q_row);
  set(t.key.strides, a.k_batch, a.k_head, a.k_row);
  set(t.value.strides, a.v_batch, a.v_head, a.v_row);
  set(t.output.strides, a.o_batch, a.o_head, a.o_row);
  a.lse_batch = 4 * p.q_heads * p.q_len;
  a.lse_head = 4 * p.q_len;
  a.queries = static_cast<unsigned>(p.q_len);
  a.keys = static_cast<unsigned>(p.kv_len());
  a.group_reciprocal = group_reciprocal(p.group_size());
  a.causal = p.is_causal;
  a.diagonal = static_cast<int>(p.diagonal(0));
  a.window_left = window(p);
  a.scale = p.scale;
}

// Scale strides of FP8 prefill and of decode.
template <typename Arguments>
void set_scales(const Tensors& t, Arguments& a) {
  const auto set = [](const Scale& scale, unsigned& batch, unsigned& head) {
    batch = static_cast<unsigned>(scale.strides.batch), head = static_cast<unsigned>(scale.strides.head);
  };
  set(t.q_scale, a.q_scale_batch, a.q_scale_head);
  set(t.k_scale, a.k_scale_batch, a.k_scale_head);
  set(t.v_scale, a.v_scale_batch, a.v_scale_head);
}

OutputType output_type(DType dtype) {
  return dtype == DType::bfloat16  ? OutputType::bf16
         : dtype == DType::float16 ? OutputType::f16
                                   : OutputType::f32;
}

kernels::DecodeType decode_type(DType dtype) {
  return dtype == DType::bfloat16       ? kernels::kDecodeBf16
         : dtype == DType::float16      ? kernels::kDecodeF16
         : dtype == DType::float8e4m3fn ? kernels::kDecodeE4m3
                                        : kernels::kDecodeF32;
}

}  // namespace

void fill_fp8(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, Launch& launch) {
  using Arguments = Fp8PrefillArguments;
  Arguments a{};
  set_shared(p, t, a);
  set_scales(t, a);
  a.o_queries = a.queries;
  fill(a,
       {{offsetof(Arguments, query), t.query.at},
        {offsetof(Arguments, key), t.key.at},
        {offsetof(Arguments, value), t.value.at},
        {offsetof(Arguments, output), t.output.at},
        {offsetof(Arguments, q_scale), t.q_scale.at},
        {offsetof(Arguments, k_scale), t.k_scale.at},
        {offsetof(Arguments, v_scale), t.v_scale.at},
        {offsetof(Arguments, key_range), t.key_range},
        {offsetof(Arguments, lse), when(r.lse, Buffer::lse)},
        {offsetof(Arguments, sinks), when(r.sinks, Buffer::sinks)}},
       launch);
}

void fill_bf16(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, Launch& launch) {
  using Arguments = Bf16PrefillArguments;
  const int64_t element = static_cast<int64_t>(size_of(t.bias_dtype));
  Arguments a{};
  set_shared(p, t, a);
  a.mask_batch = mask_batch(p, t);
  if (r.bias) {
    a.bias_batch = element * p.bias.batch;
    a.bias_head = element * p.bias.head;
    a.bias_row = element * p.bias.row;
    a.bias_column = static_cast<unsigned>(element * p.bias.column);
    a.bias_is_float = t.bias_dtype == DType::float32;
  }
  a.softcap = p.softcap;
  a.output_type = output_type(p.out_dtype);
  fill(a,
       {{offsetof(Arguments, query), t.query.at},
        {offsetof(Arguments, key), t.key.at},
        {offsetof(Arguments, value), t.value.at},
        {offsetof(Arguments, output), t.output.at},
        {offsetof(Arguments, lse), when(r.lse, Buffer::lse)},
        {offsetof(Arguments, key_range), t.key_range},
        {offsetof(Arguments, sinks), when(r.sinks, Buffer::sinks)},
        {offsetof(Arguments, key_mask), t.key_mask},
        {offsetof(Arguments, bias), t.bias}},
       launch);
}

void fill_decode(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, int64_t splits,
                 At partial_out, At partial_sums, Launch& launch) {
  using Arguments = kernels::DecodeArguments;
  const auto row = [](const Tensor& tensor) { return static_cast<unsigned>(tensor.strides[2]); };
  Arguments a{};
  a.q_batch = t.query.strides[0];
  a.q_head = static_cast<unsigned>(t.query.strides[1]);
  a.k_batch = t.key.strides[0];
  a.k_head = t.key.strides[1];
  a.v_batch = t.value.strides[0];
  a.v_head = t.value.strides[1];
  a.out_batch = t.output.strides[0];
  a.out_head = t.output.strides[1];
  a.q_row = row(t.query);
  a.k_row = row(t.key);
  a.v_row = row(t.value);
  a.out_row = row(t.output);
  a.mask_batch = mask_batch(p, t);
  set_scales(t, a);
  a.heads = static_cast<unsigned>(p.q_heads);
  a.kv_heads = static_cast<unsigned>(p.kv_heads);
  a.queries = static_cast<unsigned>(p.q_len);
  a.keys = static_cast<unsigned>(p.kv_len());
  a.diagonal = static_cast<int>(p.diagonal(0));
  a.causal = p.is_causal;
  a.window_left = window(p);
  a.scale = p.scale;
  a.v_dim = static_cast<unsigned>(p.v_dim);
  a.splits = static_cast<unsigned>(splits);
  a.q_type = decode_type(t.query.dtype);
  a.out_type = decode_type(p.out_dtype);
  fill(a,
       {{offsetof(Arguments, q), t.query.at},
        {offsetof(Arguments, k), t.key.at},
        {offsetof(Arguments, v), t.value.at},
        {offsetof(Arguments, out), t.output.at},
        {offsetof(Arguments, lse), when(r.lse, Buffer::lse)},
        {offsetof(Arguments, q_scale), t.q_scale.at},
        {offsetof(Arguments, k_scale), t.k_scale.at},
        {offsetof(Arguments, v_scale), t.v_scale.at},
        {offsetof(Arguments, sinks), when(r.sinks, Buffer::sinks)},
        {offsetof(Arguments, key_range), t.key_range},
        {offsetof(Arguments, key_mask), t.key_mask},
        {offsetof(Arguments, partial_out), partial_out},
        {offsetof(Arguments, partial_sums), partial_sums}},
       launch);
}

void fill_quantize(const Quantization& q, At partial, int64_t blocks, Launch& launch) {
  using Arguments = kernels::QuantizeArguments;
  Arguments a{};
  a.x_batch = q.x.strides[0];
  a.x_head = q.x.strides[1];
  a.x_row = static_cast<unsigned>(q.x.strides[2]);
  a.codes_batch = q.codes.strides[0];
  a.codes_head = q.codes.strides[1];
  a.codes_row = static_cast<unsigned>(q.codes.strides[2]);
  a.mask_batch = q.mask_batch;
  a.mask_bytes = static_cast<unsigned>(q.mask_bytes);
  a.rows = static_cast<unsigned>(q.rows);
  a.heads = static_cast<unsigned>(q.heads);
  a.batch = static_cast<unsigned>(q.batch);
  a.dim = static_cast<unsigned>(q.dim);
  a.rotation = static_cast<unsigned>(q.rotation);
  a.row_begin = static_cast<unsigned>(q.counted.begin);
  a.row_end = static_cast<unsigned>(q.counted.end);
  a.granularity = q.granularity;
  a.blocks = static_cast<unsigned>(blocks);
  fill(a,
       {{offsetof(Arguments, x), q.x.at},
        {offsetof(Arguments, codes), q.codes.at},
        {offsetof(Arguments, scale), q.scale},
        {offsetof(Arguments, partial), partial},
        {offsetof(Arguments, mask), when(q.masked, Buffer::key_mask)}},
       launch);
}

void fill_rows(const Rows& rows, int64_t blocks, Launch& launch) {
  using Arguments = kernels::RowsArguments;
  Arguments a{};
  a.source_batch = rows.source_strides[0];
  a.source_head = rows.source_strides[1];
  a.source_row = rows.source_strides[2];
  a.target_batch = rows.target_strides[0];
  a.target_head = rows.target_strides[1];
  a.target_row = rows.target_strides[2];
  a.rows = static_cast<unsigned>(rows.counts[2]);
  a.units = static_cast<unsigned>(rows.units);
  a.blocks = static_cast<unsigned>(blocks);
  fill(a, {{offsetof(Arguments, source), rows.source}, {offsetof(Arguments, target), rows.target}}, launch);
}

void fill_key_range(const AttentionProblem& p, const Scale& q_scale, At range, At guarded, Launch& launch) {
  using Arguments = kernels::KeyRangeArguments;
  const int64_t number = static_cast<int64_t>(size_of(p.mask_dtype));
  Arguments a{};
  a.mask_batch = p.kv_len() * number;
  a.mask_bytes = static_cast<unsigned>(number);
  a.keys = static_cast<unsigned>(p.kv_len());
  a.heads = static_cast<unsigned>(p.q_heads);
  a.q_scale_batch = static_cast<unsigned>(q_scale.strides.batch);
  a.q_scale_head = static_cast<unsigned>(q_scale.strides.head);
  fill(a,
       {{offsetof(Arguments, mask), At{Buffer::key_mask}},
        {offsetof(Arguments, range), range},
        {offsetof(Arguments, q_scale), q_scale.at},
        {offsetof(Arguments, guarded), guarded},
        {offsetof(Arguments, status), At{Buffer::status}}},
       launch);
}

void fill_hadamard(int64_t count, int64_t dim, int64_t blocks, Launch& launch) {
  using Arguments = kernels::HadamardArguments;
  Arguments a{};
  a.count = static_cast<unsigned long long>(count);
  a.rotation = static_cast<unsigned>(hadamard_block(dim));
  a.blocks = static_cast<unsigned>(blocks);
  fill(a, {{offsetof(Arguments, x), At{Buffer::x}}, {offsetof(Arguments, y), At{Buffer::y}}}, launch);
}

}  // namespace zyfa::hip
