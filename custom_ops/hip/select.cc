// The steps of a problem: past and new put together, inputs quantised, attention, and for decode the sum of
// the parts.
#include "select.hpp"

#include <algorithm>

#include "kernel_for.hpp"
#include "steps.hpp"

namespace zyfa::hip {
namespace {

// By shape alone: the number is part of the result's bits.
int64_t decode_splits(int64_t visible, int64_t tiles, int64_t batch_heads) {
  return std::max<int64_t>(
      1, std::min(kDecodeWorkgroups / (tiles * batch_heads), ceil_div(visible, kDecodeSplitKeys)));
}

class Plan {
 public:
  Plan(const AttentionProblem& problem, const GpuRequest& request) : p(problem), r(request) {}

  Choice choice() {
    check_attributes(p, r);
    if (p.batch * p.q_heads * p.q_len == 0 || (p.v_dim == 0 && !r.lse)) {
      steps.made.why = kReasonNothing;
      check_sizes(p, false);
      key_and_value();
      return std::move(steps.made);
    }
    const KernelRow& row = kernel_for(p, r);
    const bool quantise = row.reads == DType::float8e4m3fn && p.dtype != DType::float8e4m3fn;
    check_sizes(p, quantise);
    Tensors tensors = inputs();
    const bool cast = row.reads == DType::bfloat16 && p.dtype != DType::bfloat16;
    const bool padded = is_padded(p, row);
    if (row.reads == DType::float8e4m3fn && (quantise || padded)) tensors = coded(row, tensors, quantise);
    if (cast) tensors = cast_to_bf16(tensors);
    const Tensor output = tensors.output;
    if (padded) tensors.output = room(p.q_heads, p.q_len, row.v_dim, p.out_dtype);
    check_strides("query", tensors.query.strides, row.most_query_row_bytes);
    check_strides("key", tensors.key.strides, row.most_row_bytes);
    check_strides("value", tensors.value.strides, row.most_row_bytes);
    check_strides("output", tensors.output.strides, row.most_query_row_bytes);
    masked(row, tensors);
    biased(tensors);
    if (is_decode(p, r))
      decode(row, tensors);
    else
      prefill(row, tensors);
    if (padded)
      steps.copy(tensors.output, output.at, output.strides, {p.batch, p.q_heads, p.q_len},
                 p.v_dim * static_cast<int64_t>(size_of(p.out_dtype)));
    if (quantise) steps.made.why += kReasonQuantise;
    if (quantise && p.rotation == Rotation::hadamard) steps.made.why += kReasonRotate;
    if (padded)
      steps.made.why +=
          filled(filled(kReasonPad, "{from}", dims(p.qk_dim, p.v_dim)), "{to}", dims(row.qk_dim, row.v_dim));
    if (cast) steps.made.why += kReasonCast;
    if (row.family == Family::fp8_prefill && r.key_mask == KeyMask::unread) steps.made.why += kReasonUnread;
    if (p.past_len != 0) steps.made.why += kReasonConcatenate;
    return std::move(steps.made);
  }

 private:
  // ---- tensors

  Tensors inputs() {
    const auto [key, value] = key_and_value();
    const auto scale = [&](Buffer buffer, ScaleStrides strides) {
      return Scale{p.dtype == DType::float8e4m3fn ? std::optional(At{buffer}) : std::nullopt, strides};
    };
    return {{{Buffer::query}, bytes(p.query, p.dtype), p.dtype},
            key,
            value,
            {{Buffer::output}, bytes(p.output, p.out_dtype), p.out_dtype},
            scale(Buffer::q_scale, p.q_scale),
            scale(Buffer::k_scale, p.k_scale),
            scale(Buffer::v_scale, p.v_scale),
            {},
            {},
            {},
            p.dtype};
  }

  // The whole of past and new where one tensor has it: the input, present_*, or a part of the workspace.
  std::pair<Tensor, Tensor> key_and_value() {
    const Tensor key = whole({{Buffer::key}, bytes(p.key, p.dtype), p.dtype}, Buffer::past_key,
                             Buffer::present_key, p.qk_dim, r.present_key);
    return {key, whole({{Buffer::value}, bytes(p.value, p.dtype), p.dtype}, Buffer::past_value,
                       Buffer::present_value, p.v_dim, r.present_value)};
  }

  Tensor whole(const Tensor& fresh, Buffer past_buffer, Buffer present_buffer, int64_t dim, bool present) {
    if (p.past_len == 0 && !present) return fresh;
    const int64_t row = dim * static_cast<int64_t>(size_of(p.dtype));
    const int64_t head = p.kv_len() * row, past_head = p.past_len * row;
    const At place = present ? At{present_buffer} : steps.take(p.batch * p.kv_heads * head);
    const Tensor all{place, {p.kv_heads * head, head, row}, p.dtype};
    const Tensor past{{past_buffer}, {p.kv_heads * past_head, past_head, row}, p.dtype};
    steps.copy(past, place, all.strides, {p.batch, p.kv_heads, p.past_len}, row);
    steps.copy(fresh, {place.buffer, place.offset + past_head}, all.strides, {p.batch, p.kv_heads, p.new_len},
               row);
    return p.past_len != 0 ? all : fresh;
  }

  // ---- what kernels read instead of the inputs

  Tensors cast_to_bf16(Tensors t) {
    check_strides("query", t.query.strides, kAnyRow);
    check_strides("key", t.key.strides, kAnyRow);
    check_strides("value", t.value.strides, kAnyRow);
    t.query = steps.cast(t.query, {p.batch, p.q_heads, p.q_len}, p.qk_dim);
    t.key = steps.cast(t.key, {p.batch, p.kv_heads, p.kv_len()}, p.qk_dim);
    t.value = steps.cast(t.value, {p.batch, p.kv_heads, p.kv_len()}, p.v_dim);
    return t;
  }

  void masked(const KernelRow& row, Tensors& t) {
    if (r.key_mask == KeyMask::none) return;
    if (r.key_mask == KeyMask::range) {
      t.key_range = At{Buffer::key_range};
      return;
    }
    if (row.family == Family::fp8_prefill) return ranged(t);
    t.key_mask = At{Buffer::key_mask};
    if (p.mask_dtype == DType::boolean) return;
    t.key_mask = steps.take(p.batch * p.kv_len());
    const int64_t number = static_cast<int64_t>(size_of(p.mask_dtype));
    steps.rows(kernel_of(Family::mask_bytes, p.mask_dtype), {At{Buffer::key_mask},
                                                             *t.key_mask,
                                                             {p.kv_len() * number, 0, 0},
                                                             {p.kv_len(), 0, 0},
                                                             {p.batch, 1, 1},
                                                             p.kv_len()});
  }

  void ranged(Tensors& t) {
    t.key_range = steps.take(8 * p.batch);
    const At guarded = steps.take(4 * p.batch * p.q_heads);
    fill_key_range(p, t.q_scale, *t.key_range, guarded,
                   steps.add(kernel_of(Family::key_range, DType::float32), {1, 1, p.batch}));
    t.q_scale = {guarded, {p.q_heads, 1}};
  }

  void biased(Tensors& t) {
    if (!r.bias) return;
    t.bias = At{Buffer::bias};
    t.bias_dtype = p.dtype;
    if (p.dtype != DType::float16) return;
    const auto there = [](int64_t size, int64_t step) {
      return step != 0 ? size : std::min<int64_t>(size, 1);
    };
    const int64_t batch = there(p.batch, p.bias.batch), heads = there(p.q_heads, p.bias.head),
                  rows = there(p.q_len, p.bias.row), columns = there(p.kv_len(), p.bias.column);
    t.bias = steps.take(4 * batch * heads * rows * columns);
    t.bias_dtype = DType::float32;
    steps.rows(kernel_of(Family::widen, p.dtype), {At{Buffer::bias},
                                                   *t.bias,
                                                   bytes(p.bias, DType::float16),
                                                   bytes(p.bias, DType::float32),
                                                   {batch, heads, rows},
                                                   columns});
  }

  // ---- codes

  struct Coding {
    const char* name;
    Tensor Tensors::* tensor;
    Scale Tensors::* scale;
    int64_t heads, rows, dim, wide;
    KeyRange counted;
    bool masked, rotated;
  };

  // Codes in rows as long as the kernel reads them, made here or copied, zeros behind them.
  Tensors coded(const KernelRow& row, const Tensors& t, bool quantise) {
    const KeyRange keys = p.visible_keys_of_any_row();
    const bool masked = r.key_mask != KeyMask::none, rotated = p.rotation == Rotation::hadamard;
    const Coding codings[] = {{"query",
                               &Tensors::query,
                               &Tensors::q_scale,
                               p.q_heads,
                               p.q_len,
                               p.qk_dim,
                               row.qk_dim,
                               {0, p.q_len},
                               false,
                               rotated},
                              {"key", &Tensors::key, &Tensors::k_scale, p.kv_heads, p.kv_len(), p.qk_dim,
                               row.qk_dim, keys, masked, rotated},
                              {"value", &Tensors::value, &Tensors::v_scale, p.kv_heads, p.kv_len(), p.v_dim,
                               row.v_dim, keys, masked, false}};
    Tensors made = t;
    const int64_t first = steps.made.workspace_bytes;
    for (const Coding& c : codings) made.*c.tensor = room(c.heads, c.rows, c.wide, DType::float8e4m3fn);
    for (const Coding& c : codings) check_strides(c.name, (t.*c.tensor).strides, kAnyRow);
    if (is_padded(p, row)) steps.zero({Buffer::workspace, first}, steps.made.workspace_bytes - first);
    for (const Coding& c : codings) {
      const Tensor &x = t.*c.tensor, &codes = made.*c.tensor;
      if (quantise)
        made.*c.scale = this->quantise(c, x, codes);
      else
        steps.copy(x, codes.at, codes.strides, {p.batch, c.heads, c.rows}, c.dim);
    }
    return made;
  }

  Tensor room(int64_t heads, int64_t rows, int64_t dim, DType dtype) {
    const int64_t step = dim * static_cast<int64_t>(size_of(dtype));
    return {steps.take(p.batch * heads * rows * step), {heads * rows * step, rows * step, step}, dtype};
  }

  Scale quantise(const Coding& c, const Tensor& x, const Tensor& codes) {
    const Scale scale{steps.take(4 * p.batch * c.heads), {c.heads, 1}};
    const int64_t number = c.masked ? static_cast<int64_t>(size_of(p.mask_dtype)) : 1;
    steps.quantise({x, codes, *scale.at, p.batch, c.heads, c.rows, c.dim,
                    c.rotated ? hadamard_block(c.dim) : 0, kernels::kPerBatchHead, c.counted, c.masked,
                    c.masked ? p.kv_len() * number : 0, number});
    return scale;
  }

  // ---- attention

  void prefill(const KernelRow& row, const Tensors& t) {
    const int64_t blocks = ceil_div(p.q_len, row.rows);
    if (row.family == Family::fp8_prefill) {
      steps.made.why += kReasonFp8Prefill;
      fill_fp8(p, r, t, steps.add(row, {p.q_heads, blocks, p.batch}));
      return;
    }
    steps.made.why += filled(kReasonBf16Prefill, "{rows}", std::to_string(row.rows));
    if (row.family == Family::bf16_prefill_general)
      steps.made.why += p.softcap != 0 ? kReasonSoftcap : r.bias ? kReasonBias : kReasonScale;
    constexpr int64_t most_bias_row = (1 << 26) - 1;
    const int64_t bias_row = r.bias ? static_cast<int64_t>(size_of(t.bias_dtype)) * p.bias.row : 0;
    if (bias_row > most_bias_row) refuse(kRefuseRowStride, bias_row, "attn_bias row", most_bias_row);
    fill_bf16(p, r, t, steps.add(row, {blocks, p.q_heads, p.batch}));
  }

  void decode(const KernelRow& row, const Tensors& t) {
    const int64_t tiles = ceil_div(p.group_size() * p.q_len, row.rows);
    const KeyRange keys = p.visible_keys_of_any_row();
    const int64_t splits =
        decode_splits(std::max<int64_t>(keys.end - keys.begin, 0), tiles, p.batch * p.kv_heads);
    const int64_t parts = p.batch * p.q_heads * p.q_len * splits;
    const At partial_out = steps.take(4 * parts * p.v_dim), partial_sums = steps.take(8 * parts);
    if (t.query.strides[1] > kAnyRow) refuse(kRefuseRowStride, t.query.strides[1], "query head", kAnyRow);
    const auto launch = [&](const KernelRow& kernel, const std::array<int64_t, 3>& grid) {
      fill_decode(p, r, t, splits, partial_out, partial_sums, steps.add(kernel, grid));
    };
    launch(row, {splits, tiles, p.batch * p.kv_heads});
    launch(kernel_of(Family::combine, DType::float32), {p.q_heads, p.q_len, p.batch});
    steps.made.why +=
        filled(filled(kReasonDecode, "{rows}", std::to_string(row.rows)), "{splits}", std::to_string(splits));
    if (row.reads == DType::float8e4m3fn) steps.made.why += kReasonDecodeExact;
  }

  const AttentionProblem& p;
  const GpuRequest& r;
  Steps steps;
};

}  // namespace

Choice select(const AttentionProblem& problem, const GpuRequest& request) {
  return Plan(problem, request).choice();
}

}  // namespace zyfa::hip
