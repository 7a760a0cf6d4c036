// Scores to logits: scale, softcap and bias, in FP32.
#pragma once

#include "visibility.hpp"

namespace zyfa {

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2 = 0.69314718f;
constexpr float kInfinity = __builtin_inff();
constexpr float kSmallestNormal = 1.17549435e-38f, kLargest = 3.40282347e38f;

// p = exp2((s - max) · factor). Without softcap and bias s is the product itself and the scale is in the factor; a
// factor that could make 0 · inf of a difference is not.
struct ScoreScale {
  float factor, natural;  // to log2 units, to nats
  bool finished;          // s has been scaled, capped and biased
};
__device__ ScoreScale score_scale(const Bf16PrefillArguments& a) {
  const float factor = a.scale * kLog2E;
  const bool plain = factor >= kSmallestNormal && factor <= kLargest;
  if (plain && a.softcap == 0.0f && a.bias == nullptr) return {factor, a.scale, false};
  return {kLog2E, 1.0f, true};
}

// Relative error below 1e-6 everywhere: 1 - exp(-2x) cancels for small x, the series does not.
__device__ float tanh(float x) {
  const float size = __builtin_fabsf(x), square = x * x;
  const float e = exp2(size * (-2.0f * kLog2E));
  const float large = __builtin_copysignf((1.0f - e) * reciprocal(1.0f + e), x);
  const float series = 1.0f + square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315)));
  return size < 0.1f ? x * series : large;
}

// Biases of one query row.
struct BiasRow {
  const uint8_t* base;
  uint32_t column;
  bool is_float;
  __device__ float at(uint32_t key) const {
    const uint8_t* from = base + uint64_t{key} * column;
    if (is_float) return *reinterpret_cast<const float*>(from);
    return static_cast<float>(*reinterpret_cast<const bf16*>(from));
  }
};
__device__ BiasRow bias_row(const Bf16PrefillArguments& a, uint32_t batch, uint32_t head, uint32_t row) {
  const auto* base = static_cast<const uint8_t*>(a.bias);
  return {base + batch * a.bias_batch + head * a.bias_head + row * a.bias_row, a.bias_column,
          a.bias_is_float != 0};
}

// Scores become logits; keys whose bias says so become invisible.
__device__ void finish_scores(const Bf16PrefillArguments& a, const BiasRow& bias, uint32_t tile, floatx16 (&s)[2],
                              Seen& seen) {
  const float rcp_cap = a.softcap == 0.0f ? 0.0f : 1.0f / a.softcap;
#pragma unroll
  for (uint32_t i = 0; i < kHeld; ++i) s[i / 16][i % 16] *= a.scale;
  if (a.softcap != 0.0f) {
#pragma unroll
    for (uint32_t i = 0; i < kHeld; ++i) s[i / 16][i % 16] = a.softcap * tanh(s[i / 16][i % 16] * rcp_cap);
  }
  if (a.bias == nullptr) return;
  const uint32_t first = tile * kTileKeys + lane() / 32 * 4, last = a.keys - 1;
#pragma unroll
  for (uint32_t i = 0; i < kHeld; ++i) {
    const uint32_t key = first + held_key(i);
    const float b = bias.at(key < last ? key : last);
    const float y = s[i / 16][i % 16] + b;
    seen.remove(i, b == -kInfinity || y == -kInfinity);
    s[i / 16][i % 16] = y;
  }
}

}  // namespace zyfa
