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
};

struct Quantization {
  Tensor x, codes;
  At scale, partial;
  bool masked;
  int64_t mask_batch, mask_bytes;
  int64_t rows, heads, batch, dim, rotation, row_begin, row_end, blocks;
};

void fill_fp8(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, Launch& launch);
void fill_bf16(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, Launch& launch);
void fill_decode(const AttentionProblem& p, const GpuRequest& r, const Tensors& t, int64_t splits,
                 At partial_out, At partial_sums, Launch& launch);
void fill_quantize(const Quantization& q, Launch& launch);

}  // namespace zyfa::hip
