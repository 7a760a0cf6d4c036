// Scores to logits: scale, softcap and bias, in FP32.
#pragma once

#include "visibility.hpp"

namespace zyfa {

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2 = 0.69314718f;
constexpr float kInfinity = __builtin_inff();

// p = exp2((s - max) · factor).
struct ScoreScale {
  float factor, natural;  // to log2 units, to nats
};
// With kGeneral s is scaled, capped and biased; without it s is the product itself, and the scale is in the
// factor.
template <bool kGeneral>
__device__ ScoreScale score_scale(Arguments& a) {
  if (kGeneral) return {kLog2E, 1.0f};
  return {a.scale * kLog2E, a.scale};
}

// Relative error below 1e-6 everywhere: 1 - exp(-2x) cancels for small x, the series does not.
__device__ float tanh(float x) {
  const float size = __builtin_fabsf(x), square = x * x;
  const float e = exp2(size * (-2.0f * kLog2E));
  const float large = __builtin_copysignf((1.0f - e) * reciprocal(1.0f + e), x);
  const float series = 1.0f + square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315)));
  return size < 0.1f ? x * series : large;
}

// Biases of the rows of a wave: keys of the next row lie where a row ends, and zeros behind the last one.
struct Bias {
  const uint8_t* base;  // of the wave's first row
  uint32_t row, rows;   // bytes to this lane's row and to the last one
};
__device__ Bias bias_of(Arguments& a, uint32_t batch, uint32_t head, uint32_t first_row, uint32_t last_row,
                        uint32_t row) {
  const auto* base = static_cast<const uint8_t*>(a.bias);
  const uint32_t pitch = static_cast<uint32_t>(a.bias_row);
  return {base + batch * a.bias_batch + head * a.bias_head + first_row * a.bias_row,
          (row - first_row) * pitch, (last_row - first_row) * pitch};
}

// Keys whose bias is -inf become invisible.
template <typename T, bool kBroadcast>
__device__ void add_bias(Arguments& a, const Bias& bias, uint32_t tile, floatx16 (&s)[2], Seen& seen) {
  const uint32_t first = kBroadcast ? 0 : tile * kTileKeys;
  const uint32_t keys = kBroadcast ? 1 : a.keys - first;
  const window from = window_of(bias.base + uint64_t{first} * sizeof(T), bias.rows + keys * sizeof(T));
  uint32_t offset = bias.row + (kBroadcast ? 0 : lane() / 32 * 4 * sizeof(T));
  not_invariant(offset);
#pragma unroll
  for (uint32_t i = 0; i < kHeld; ++i) {
    const float b = load<T>(from, offset + (kBroadcast ? 0 : held_key(i) * sizeof(T)));
    const float y = s[i / 16][i % 16] + b;
    seen.remove(i, b == -kInfinity || y == -kInfinity);
    s[i / 16][i % 16] = y;
    if (i % 8 == 7) pin_all();
  }
}
template <typename T>
__device__ void add_bias(Arguments& a, const Bias& bias, uint32_t tile, floatx16 (&s)[2], Seen& seen) {
  if (a.bias_column == 0)
    add_bias<T, true>(a, bias, tile, s, seen);
  else
    add_bias<T, false>(a, bias, tile, s, seen);
}

// Scores become logits.
__device__ void finish_scores(Arguments& a, const Bias& bias, uint32_t tile, floatx16 (&s)[2], Seen& seen) {
  const float rcp_cap = a.softcap == 0.0f ? 0.0f : 1.0f / a.softcap;
#pragma unroll
  for (uint32_t i = 0; i < kHeld; ++i) s[i / 16][i % 16] *= a.scale;
  if (a.softcap != 0.0f) {
#pragma unroll
    for (uint32_t i = 0; i < kHeld; ++i) {
      s[i / 16][i % 16] = a.softcap * tanh(s[i / 16][i % 16] * rcp_cap);
      if (i % 8 == 7) pin_all();
    }
  }
  if (a.bias == nullptr) return;
  if (a.bias_is_float != 0)
    add_bias<float>(a, bias, tile, s, seen);
  else
    add_bias<bf16>(a, bias, tile, s, seen);
}

}  // namespace zyfa
