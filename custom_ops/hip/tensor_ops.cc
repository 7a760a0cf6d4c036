// ZyfaQuantizeFp8 and ZyfaHadamard.
#include <algorithm>

#include "kernel_for.hpp"
#include "steps.hpp"

namespace zyfa::hip {
namespace {

void check_dim(int64_t dim) {
  std::string there;
  for (const int64_t known : kTensorDims) {
    if (known == dim) return;
    there += (there.empty() ? "" : ", ") + std::to_string(known);
  }
  refuse(kRefuseTensorDims, dim, there);
}

Choice nothing() { return {{}, 0, kReasonNothing}; }

}  // namespace

Choice select_quantize(const QuantizeProblem& q, const std::string& architecture) {
  check_architecture(architecture);
  check_dim(q.dim);
  if (q.rows > kMostQuantized) refuse(kRefuseQuantizedRows, q.rows, "x rows");
  const int64_t scales = q.granularity == kernels::kPerTensor ? 1
                         : q.granularity == kernels::kPerHead ? q.heads
                                                              : q.batch * q.heads;
  if (scales == 0) return nothing();
  // Without elements there still are scales to write, of 1: no rows of one head and batch entry make them.
  const int64_t rows = q.batch * q.heads != 0 ? q.rows : 0;
  const int64_t batch = std::max<int64_t>(q.batch, 1), heads = std::max<int64_t>(q.heads, 1);
  const Strides strides = q.layout == Layout::bhsd ? Strides{heads * rows * q.dim, rows * q.dim, q.dim}
                                                   : Strides{rows * heads * q.dim, q.dim, heads * q.dim};
  const Tensor x{{Buffer::x}, bytes(strides, q.dtype), q.dtype};
  check_strides("x", x.strides, kAnyRow);
  const Tensor y{{Buffer::y}, bytes(strides, DType::float8e4m3fn), DType::float8e4m3fn};
  const bool rotated = q.rotation == Rotation::hadamard;
  Steps steps;
  steps.quantise({x,
                  y,
                  {Buffer::scale},
                  batch,
                  heads,
                  rows,
                  q.dim,
                  rotated ? hadamard_block(q.dim) : 0,
                  q.granularity,
                  {0, rows},
                  false,
                  0,
                  1});
  steps.made.why = kReasonQuantiseOp;
  if (rotated) steps.made.why += kReasonRotateOp;
  return std::move(steps.made);
}

Choice select_hadamard(int64_t count, int64_t dim, DType dtype, const std::string& architecture) {
  check_architecture(architecture);
  check_dim(dim);
  if (count == 0) return nothing();
  const int64_t blocks = quantize_blocks(1, count);
  Steps steps;
  fill_hadamard(count, dim, blocks, steps.add(kernel_of(Family::hadamard, dtype), {blocks, 1, 1}));
  steps.made.why = kReasonHadamardOp;
  return std::move(steps.made);
}

}  // namespace zyfa::hip
