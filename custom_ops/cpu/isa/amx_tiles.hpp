// Squares of sums in the tile registers of AMX: 0 to 3 hold 2 x 2 of them, 4 and 5 left operands, 6 and 7
// right ones. Included by files that are compiled for AMX.
#pragma once

#include <immintrin.h>

#include "../kernels.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr int kSide = 16;  // rows of a tile register, and words of its rows
constexpr int kInner = kStep;

inline void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

inline void store_sums(float* sums, int64_t lanes) {
  const int64_t bytes = lanes * 4;
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + kSide, bytes);
  _tile_stored(2, sums + kSide * lanes, bytes);
  _tile_stored(3, sums + kSide * lanes + kSide, bytes);
}

// Of half a square: registers 0 and 2.
inline void store_half_sums(float* sums, int64_t lanes) {
  _tile_stored(0, sums, lanes * 4);
  _tile_stored(2, sums + kSide * lanes, lanes * 4);
}

}  // namespace
}  // namespace zyfa::cpu::isa
