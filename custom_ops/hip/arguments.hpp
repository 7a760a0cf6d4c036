// Argument blocks of the kernels: values from the problem, pointers as places in tensors.
#pragma once

#include "select.hpp"

namespace zyfa::hip {

struct Tensor {
  At at;
  ByteStrides strides;
  DType dtype;
};

// Scales are absent when the inputs have none; their strides are in elements.
struct Scale {
  std::optional<At> at;
  ScaleStrides strides;
};

// What the attention kernel is called with.
struct Tensors {
  Tensor query, key, value, output;
  Scale q_scale, k_scale, v_scale;
  std::optional<At> key_range, key_mask, bias;  // key_mask: bytes
  DType bias_dtype = DType::bfloat16;
};

// Rows of `units` of what the kernel handles at a time, (batch, heads, rows) of them.
struct Rows {
  std::optional<At> source;
  At target;
  ByteStrides source_strides, target_strides;
  std::array<int64_t, 3> counts;
  int64_t units;
};

struct Quantization {
  Tensor x, codes;
  At scale;
  int64_t batch, heads, rows, dim;
  int64_t rotation;  // block, 0: none
  kernels::QuantizeGranularity granularity;
  KeyRange counted;  // rows that make the scale
  bool masked;       // those that key_mask leaves
  int64_t mask_batch, mask_bytes;
};

void fill_fp8(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, Launch& launch);
void fill_bf16(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, Launch& launch);
void fill_decode(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, int64_t splits,
                 At partial_out, At partial_sums, Launch& launch);
void fill_quantize(const Quantization& q, At partial, int64_t blocks, Launch& launch);
void fill_rows(const Rows& rows, int64_t blocks, Launch& launch);
void fill_key_range(const AttentionProblem& p, const Scale& q_scale, At range, At guarded, Launch& launch);
void fill_hadamard(int64_t count, int64_t dim, int64_t blocks, Launch& launch);

}  // namespace zyfa::hip
