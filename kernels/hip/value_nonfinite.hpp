// P·V where V has NaN or infinity at keys that some row does not see. 0 · NaN is NaN, so such values are
// taken out of the product and reach the rows that see them by a product of zeros and ones.
#pragma once

#include "visibility.hpp"

namespace zyfa {

// Some value of the tile is NaN or infinite.
template <uint32_t kDim>
__device__ bool has_nonfinite(lds_ptr<const uint8_t> tile) {
  uint32_t carry = 0;
  for (uint32_t i = 0; i < Tile<kDim>::kBytes / (kWaveLanes * kChunkBytes); ++i) {
    const auto words = *(lds_ptr<const uint32x4>)(tile + (i * kWaveLanes + lane()) * kChunkBytes);
    for (uint32_t w = 0; w < 4; ++w) carry |= (words[w] & 0x7F807F80) + 0x00800080;
  }
  return any((carry & 0x80008000) != 0);
}

// Of two bfloat16 in a word: 1.0 where the infinity of this sign or NaN is.
__device__ uint32_t ones_of_infinity(uint32_t word, bool negative) {
  const uint32_t nonfinite = (((word & 0x7F807F80) + 0x00800080) & 0x80008000) >> 15;
  const uint32_t nan = nonfinite & ((word & 0x007F007F) + 0x007F007F) >> 7;
  const uint32_t sign = (negative ? word : ~word) >> 15;
  return (nan | (nonfinite & sign)) * 0x3F80;
}
__device__ uint32_t without_nonfinite(uint32_t word) {
  const uint32_t nonfinite = (((word & 0x7F807F80) + 0x00800080) & 0x80008000) >> 15;
  return word & ~(nonfinite * 0xFFFF);
}

template <typename Change>
__device__ bf16x8 changed(bf16x8 values, Change change) {
  auto words = __builtin_bit_cast(uint32x4, values);
  for (uint32_t w = 0; w < 4; ++w) words[w] = change(words[w]);
  return __builtin_bit_cast(bf16x8, words);
}

// O^T += V^T·P^T.
template <uint32_t kDim>
__device__ void multiply_nonfinite(lds_ptr<const uint8_t> tile, const bf16x8 (&p)[4], const Seen& seen,
                                   floatx16 (&o)[Tile<kDim>::kBlocks]) {
  bf16x8 visible[4];
#pragma unroll
  for (uint32_t i = 0; i < kHeld; ++i) visible[i / 8][i % 8] = seen.has(i) ? 1.0f : 0.0f;
#pragma unroll
  for (uint32_t block = 0; block < Tile<kDim>::kBlocks; ++block) {
    floatx16 plus = 0.0f, minus = 0.0f;
#pragma unroll
    for (uint32_t step = 0; step < 4; ++step) {
      const bf16x8 v = value_operand<kDim>(tile, block, step);
      o[block] = multiply(changed(v, without_nonfinite), p[step], o[block]);
      plus = multiply(changed(v, [](uint32_t w) { return ones_of_infinity(w, false); }), visible[step], plus);
      minus =
          multiply(changed(v, [](uint32_t w) { return ones_of_infinity(w, true); }), visible[step], minus);
      drain_matrix_pipe();  // before the operands' registers are loaded again
    }
#pragma unroll
    for (uint32_t r = 0; r < 16; ++r) {
      o[block][r] += plus[r] > 0.0f ? kInfinity : 0.0f;
      o[block][r] += minus[r] > 0.0f ? -kInfinity : 0.0f;
    }
  }
}

}  // namespace zyfa
