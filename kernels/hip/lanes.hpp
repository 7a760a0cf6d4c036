// Values that cross the lanes of a wave without LDS.
#pragma once

#include "device.hpp"

namespace zyfa {

// Lane permutations of v_mov_dpp; each is its own inverse except the rotations.
enum Dpp : int {
  kXor1 = 0xB1,   // quad_perm [1, 0, 3, 2]
  kXor2 = 0x4E,   // quad_perm [2, 3, 0, 1]
  kXor7 = 0x141,  // row_half_mirror
  kRotate1 = 0x121,
  kRotate2 = 0x122,
  kRotate4 = 0x124,
  kXor8 = 0x128,  // row_ror:8
};

template <int Permutation>
__device__ float permuted(float x) {
  return __builtin_bit_cast(
      float, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, x), Permutation, 0xF, 0xF, true));
}

struct Pair {
  float first, second;
};
template <typename Swapped>
__device__ Pair pair_of(Swapped swapped) {
  const uint32_t first = swapped[0], second = swapped[1];
  return {__builtin_bit_cast(float, first), __builtin_bit_cast(float, second)};
}

// Lanes 16 to 31 (of each half wave) of `a` change places with lanes 0 to 15 of `b`.
__device__ Pair swap16(float a, float b) {
  const auto swapped = __builtin_amdgcn_permlane16_swap(__builtin_bit_cast(uint32_t, a),
                                                        __builtin_bit_cast(uint32_t, b), false, false);
  return pair_of(swapped);
}
// Lanes 32 to 63 of `a` change places with lanes 0 to 31 of `b`.
__device__ Pair swap32(float a, float b) {
  const auto swapped = __builtin_amdgcn_permlane32_swap(__builtin_bit_cast(uint32_t, a),
                                                        __builtin_bit_cast(uint32_t, b), false, false);
  return pair_of(swapped);
}

// Over lanes that are equal modulo 16; every lane gets the result. A NaN gives way to a number.
__device__ float max_of_groups(float x) {
  const Pair sixteens = swap16(x, x);
  x = __builtin_fmaxf(sixteens.first, sixteens.second);
  const Pair halves = swap32(x, x);
  return __builtin_fmaxf(halves.first, halves.second);
}
__device__ float sum_of_groups(float x) {
  const Pair sixteens = swap16(x, x);
  x = sixteens.first + sixteens.second;
  const Pair halves = swap32(x, x);
  return halves.first + halves.second;
}

__device__ float wave_max(float x) {
  x = __builtin_fmaxf(x, permuted<kXor8>(x));
  x = __builtin_fmaxf(x, permuted<kRotate4>(x));
  x = __builtin_fmaxf(x, permuted<kRotate2>(x));
  x = __builtin_fmaxf(x, permuted<kRotate1>(x));
  return max_of_groups(x);
}

// All lanes get the same bits: at each step both lanes of a pair add the same two numbers.
__device__ float wave_sum(float x) {
  x += permuted<kXor8>(x);
  x += permuted<kRotate4>(x);
  x += permuted<kRotate2>(x);
  x += permuted<kRotate1>(x);
  return sum_of_groups(x);
}

}  // namespace zyfa
