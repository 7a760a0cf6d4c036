#include "matrix_shapes.hpp"

#include <array>
#include <cstddef>

namespace zyfa::emulator {
namespace {

using F = ElementFormat;
using R = MatrixResult;

// The rules of where things sit are those of AMD's CDNA4 instruction set, chapter 7. Its formula for 8-bit
// f8f6f4 operands (32 consecutive k per lane) contradicts its own figures; AMD's shipped MXFP8 kernels settle
// it: runs of 16. FP6 and FP4 operands have one run. Sparse B operands of eight registers come in two runs,
// A's in runs half as long.
constexpr MatrixShape kShapes[] = {
    // op, m, k, blocks, A, B, result, sparse, run
    {Op::v_mfma_f32_16x16x128_f8f6f4, 16, 128, 1, F::fp8, F::fp8, R::f32, false, 16},
    {Op::v_mfma_f32_32x32x64_f8f6f4, 32, 64, 1, F::fp8, F::fp8, R::f32, false, 16},
    {Op::v_mfma_f32_16x16x32_bf16, 16, 32, 1, F::bf16, F::bf16, R::f32, false, 0},
    {Op::v_mfma_i32_16x16x64_i8, 16, 64, 1, F::i8, F::i8, R::i32, false, 0},
    {Op::v_mfma_f32_32x32x16_bf16, 32, 16, 1, F::bf16, F::bf16, R::f32, false, 0},
    {Op::v_mfma_i32_32x32x32_i8, 32, 32, 1, F::i8, F::i8, R::i32, false, 0},
    {Op::v_smfmac_f32_16x16x64_bf16, 16, 64, 1, F::bf16, F::bf16, R::f32, true, 8},
    {Op::v_smfmac_i32_16x16x128_i8, 16, 128, 1, F::i8, F::i8, R::i32, true, 16},
    {Op::v_smfmac_f32_16x16x128_bf8_bf8, 16, 128, 1, F::bf8, F::bf8, R::f32, true, 16},
    {Op::v_smfmac_f32_16x16x128_bf8_fp8, 16, 128, 1, F::bf8, F::fp8, R::f32, true, 16},
    {Op::v_smfmac_f32_16x16x128_fp8_bf8, 16, 128, 1, F::fp8, F::bf8, R::f32, true, 16},
    {Op::v_mfma_f32_32x32x1_2b_f32, 32, 1, 2, F::f32, F::f32, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x1_4b_f32, 16, 1, 4, F::f32, F::f32, R::f32, false, 0},
    {Op::v_mfma_f32_4x4x1_16b_f32, 4, 1, 16, F::f32, F::f32, R::f32, false, 0},
    {Op::v_smfmac_f32_16x16x128_fp8_fp8, 16, 128, 1, F::fp8, F::fp8, R::f32, true, 16},
    {Op::v_mfma_f32_32x32x2_f32, 32, 2, 1, F::f32, F::f32, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x4_f32, 16, 4, 1, F::f32, F::f32, R::f32, false, 0},
    {Op::v_smfmac_f32_32x32x32_bf16, 32, 32, 1, F::bf16, F::bf16, R::f32, true, 8},
    {Op::v_smfmac_i32_32x32x64_i8, 32, 64, 1, F::i8, F::i8, R::i32, true, 16},
    {Op::v_mfma_f32_32x32x4_2b_f16, 32, 4, 2, F::f16, F::f16, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x4_4b_f16, 16, 4, 4, F::f16, F::f16, R::f32, false, 0},
    {Op::v_mfma_f32_4x4x4_16b_f16, 4, 4, 16, F::f16, F::f16, R::f32, false, 0},
    {Op::v_smfmac_f32_32x32x64_bf8_bf8, 32, 64, 1, F::bf8, F::bf8, R::f32, true, 16},
    {Op::v_mfma_f32_32x32x8_f16, 32, 8, 1, F::f16, F::f16, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x16_f16, 16, 16, 1, F::f16, F::f16, R::f32, false, 0},
    {Op::v_smfmac_f32_32x32x64_bf8_fp8, 32, 64, 1, F::bf8, F::fp8, R::f32, true, 16},
    {Op::v_smfmac_f32_32x32x64_fp8_bf8, 32, 64, 1, F::fp8, F::bf8, R::f32, true, 16},
    {Op::v_mfma_i32_32x32x4_2b_i8, 32, 4, 2, F::i8, F::i8, R::i32, false, 0},
    {Op::v_mfma_i32_16x16x4_4b_i8, 16, 4, 4, F::i8, F::i8, R::i32, false, 0},
    {Op::v_mfma_i32_4x4x4_16b_i8, 4, 4, 16, F::i8, F::i8, R::i32, false, 0},
    {Op::v_smfmac_f32_32x32x64_fp8_fp8, 32, 64, 1, F::fp8, F::fp8, R::f32, true, 16},
    {Op::v_mfma_f32_16x16x32_f16, 16, 32, 1, F::f16, F::f16, R::f32, false, 0},
    {Op::v_mfma_f32_32x32x16_f16, 32, 16, 1, F::f16, F::f16, R::f32, false, 0},
    {Op::v_mfma_i32_32x32x16_i8, 32, 16, 1, F::i8, F::i8, R::i32, false, 0},
    {Op::v_mfma_i32_16x16x32_i8, 16, 32, 1, F::i8, F::i8, R::i32, false, 0},
    {Op::v_smfmac_f32_16x16x64_f16, 16, 64, 1, F::f16, F::f16, R::f32, true, 8},
    {Op::v_smfmac_f32_32x32x32_f16, 32, 32, 1, F::f16, F::f16, R::f32, true, 8},
    {Op::v_mfma_f32_32x32x4_2b_bf16, 32, 4, 2, F::bf16, F::bf16, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x4_4b_bf16, 16, 4, 4, F::bf16, F::bf16, R::f32, false, 0},
    {Op::v_mfma_f32_4x4x4_16b_bf16, 4, 4, 16, F::bf16, F::bf16, R::f32, false, 0},
    {Op::v_mfma_f32_32x32x8_bf16, 32, 8, 1, F::bf16, F::bf16, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x16_bf16, 16, 16, 1, F::bf16, F::bf16, R::f32, false, 0},
    {Op::v_smfmac_f32_16x16x32_f16, 16, 32, 1, F::f16, F::f16, R::f32, true, 0},
    {Op::v_smfmac_f32_32x32x16_f16, 32, 16, 1, F::f16, F::f16, R::f32, true, 0},
    {Op::v_smfmac_f32_16x16x32_bf16, 16, 32, 1, F::bf16, F::bf16, R::f32, true, 0},
    {Op::v_smfmac_f32_32x32x16_bf16, 32, 16, 1, F::bf16, F::bf16, R::f32, true, 0},
    {Op::v_smfmac_i32_16x16x64_i8, 16, 64, 1, F::i8, F::i8, R::i32, true, 0},
    {Op::v_smfmac_i32_32x32x32_i8, 32, 32, 1, F::i8, F::i8, R::i32, true, 0},
    {Op::v_mfma_f64_16x16x4_f64, 16, 4, 1, F::f64, F::f64, R::f64, false, 0},
    {Op::v_mfma_f64_4x4x4_4b_f64, 4, 4, 4, F::f64, F::f64, R::f64, false, 0},
    {Op::v_mfma_f32_16x16x32_bf8_bf8, 16, 32, 1, F::bf8, F::bf8, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x32_bf8_fp8, 16, 32, 1, F::bf8, F::fp8, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x32_fp8_bf8, 16, 32, 1, F::fp8, F::bf8, R::f32, false, 0},
    {Op::v_mfma_f32_16x16x32_fp8_fp8, 16, 32, 1, F::fp8, F::fp8, R::f32, false, 0},
    {Op::v_mfma_f32_32x32x16_bf8_bf8, 32, 16, 1, F::bf8, F::bf8, R::f32, false, 0},
    {Op::v_mfma_f32_32x32x16_bf8_fp8, 32, 16, 1, F::bf8, F::fp8, R::f32, false, 0},
    {Op::v_mfma_f32_32x32x16_fp8_bf8, 32, 16, 1, F::fp8, F::bf8, R::f32, false, 0},
    {Op::v_mfma_f32_32x32x16_fp8_fp8, 32, 16, 1, F::fp8, F::fp8, R::f32, false, 0},
    {Op::v_smfmac_f32_16x16x64_bf8_bf8, 16, 64, 1, F::bf8, F::bf8, R::f32, true, 0},
    {Op::v_smfmac_f32_16x16x64_bf8_fp8, 16, 64, 1, F::bf8, F::fp8, R::f32, true, 0},
    {Op::v_smfmac_f32_16x16x64_fp8_bf8, 16, 64, 1, F::fp8, F::bf8, R::f32, true, 0},
    {Op::v_smfmac_f32_16x16x64_fp8_fp8, 16, 64, 1, F::fp8, F::fp8, R::f32, true, 0},
    {Op::v_smfmac_f32_32x32x32_bf8_bf8, 32, 32, 1, F::bf8, F::bf8, R::f32, true, 0},
    {Op::v_smfmac_f32_32x32x32_bf8_fp8, 32, 32, 1, F::bf8, F::fp8, R::f32, true, 0},
    {Op::v_smfmac_f32_32x32x32_fp8_bf8, 32, 32, 1, F::fp8, F::bf8, R::f32, true, 0},
    {Op::v_smfmac_f32_32x32x32_fp8_fp8, 32, 32, 1, F::fp8, F::fp8, R::f32, true, 0},
};

constexpr size_t kOps = static_cast<size_t>(Op::count);

std::array<const MatrixShape*, kOps> index_shapes() {
  std::array<const MatrixShape*, kOps> by_op{};
  for (const MatrixShape& shape : kShapes) by_op[static_cast<size_t>(shape.op)] = &shape;
  return by_op;
}

}  // namespace

const MatrixShape* find_shape(Op op) {
  static const std::array<const MatrixShape*, kOps> by_op = index_shapes();
  return by_op[static_cast<size_t>(op)];
}

}  // namespace zyfa::emulator
