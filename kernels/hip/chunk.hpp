// Eight consecutive elements of a row as floats: what one lane loads, rotates and stores.
#pragma once

#include "lanes.hpp"

namespace zyfa {

constexpr uint32_t kChunk = 8;
using floatx8 = vec<float, 8>;

template <typename T>
__device__ floatx8 load_chunk(const void* from) {
  return __builtin_convertvector(*static_cast<const vec<T, 8>*>(from), floatx8);
}
template <>
__device__ floatx8 load_chunk<float>(const void* from) {
  const auto* parts = static_cast<const floatx4*>(from);
  return __builtin_shufflevector(parts[0], parts[1], 0, 1, 2, 3, 4, 5, 6, 7);
}

template <typename T>
__device__ void store_chunk(void* to, floatx8 x) {
  *static_cast<vec<T, 8>*>(to) = __builtin_convertvector(x, vec<T, 8>);
}
template <>
__device__ void store_chunk<float>(void* to, floatx8 x) {
  auto* parts = static_cast<floatx4*>(to);
  parts[0] = __builtin_shufflevector(x, x, 0, 1, 2, 3);
  parts[1] = __builtin_shufflevector(x, x, 4, 5, 6, 7);
}

// Which chunk lane `i` of a run of lanes holds. Lanes whose chunks are four apart are each other's mirror
// image in eight lanes, which one DPP modifier reaches; lanes four apart would need two.
__device__ uint32_t chunk_of_lane(uint32_t i) { return i ^ ((i & 4) != 0 ? 3 : 0); }

// Stage `Span` inside of the lane: (u, v) -> (u + v, u - v).
template <uint32_t Span>
__device__ floatx8 butterfly(floatx8 x) {
  floatx8 y;
  for (uint32_t i = 0; i < kChunk; ++i) y[i] = (i & Span) == 0 ? x[i] + x[i ^ Span] : x[i ^ Span] - x[i];
  return y;
}

// A stage between two lanes; the one with the later elements has `second`.
template <int Permutation>
__device__ floatx8 lane_butterfly(floatx8 x, bool second) {
  const uint32_t flip = second ? 0x80000000u : 0u;
  for (uint32_t i = 0; i < kChunk; ++i) {
    const float own = x[i];  // __builtin_bit_cast of a vector's element would read element 0 (clang 22)
    x[i] = permuted<Permutation>(own) + __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, own) ^ flip);
  }
  return x;
}

// The stage between lanes that are 16 apart, two elements at a time.
__device__ floatx8 half_butterfly(floatx8 x) {
  for (uint32_t i = 0; i < kChunk; i += 2) {
    const Pair u_v = swap16(x[i], x[i + 1]);
    const Pair y = swap16(u_v.first + u_v.second, u_v.first - u_v.second);
    x[i] = y.first;
    x[i + 1] = y.second;
  }
  return x;
}

// The orthonormal Hadamard rotation of blocks of 64, 128 or 256 elements, FP32, spans 1, 2, 4, ... in this
// order. All lanes of a block take part. `chunk` is chunk_of_lane of this lane.
__device__ floatx8 rotated(floatx8 x, uint32_t chunk, uint32_t block) {
  x = butterfly<1>(x);
  x = butterfly<2>(x);
  x = butterfly<4>(x);
  x = lane_butterfly<kXor1>(x, (chunk & 1) != 0);
  x = lane_butterfly<kXor2>(x, (chunk & 2) != 0);
  x = lane_butterfly<kXor7>(x, (chunk & 4) != 0);
  if (block >= 128) x = lane_butterfly<kXor8>(x, (chunk & 8) != 0);
  if (block >= 256) x = half_butterfly(x);
  // 1 / sqrt(block), rounded to FP32.
  return x * (block == 64 ? 0.125f : block == 128 ? 0.08838834764831845f : 0.0625f);
}

}  // namespace zyfa
