// The order in which vectors of FP32 hold stored elements: V vectors for V * kLanes of them. Included as
// lanes.hpp is.
#pragma once

#include "loops.hpp"
#include "unroll.hpp"

namespace zyfa::cpu::isa {
namespace {

// Vector v holds the elements from v * kLanes on.
template <typename Stored>
struct InOrder {
  using Type = Stored;
  static constexpr int kLaneStep = 1;  // from the element of a lane to that of the next one

  template <int V>
  __attribute__((always_inline)) static void load(const void* x, Floats* values) {
    each<V>([&](auto v) {
      __builtin_prefetch(at(x, v * kLanes * Stored::kBytes + kAhead));
      values[v] = Stored::widen(at(x, v * kLanes * Stored::kBytes));
    });
  }
  template <int V>
  __attribute__((always_inline)) static void store(void* y, const Floats* values) {
    each<V>([&](auto v) { Stored::narrow(at(y, v * kLanes * Stored::kBytes), values[v]); });
  }
  template <int V>
  __attribute__((always_inline)) static void store_bytes(uint8_t* y, const Words* bytes) {
    each<V>([&](auto v) { isa::store_bytes(y + v * kLanes, bytes[v]); });
  }
};

// Vectors v and v + 1, v even, hold the even and the odd elements from v * kLanes on: two bfloat16 numbers of
// a word are two of FP32 without a shuffle.
struct EvenOdd {
  using Type = BFloat16;
  static constexpr int kLaneStep = 2;

  template <int V>
  __attribute__((always_inline)) static void load(const void* x, Floats* values) {
    each<V / 2>([&](auto pair) {
      __builtin_prefetch(at(x, pair * sizeof(Words) + kAhead));
      const Words both = isa::load<Words>(at(x, pair * sizeof(Words)));
      values[2 * pair] = (Floats)(both << 16);
      values[2 * pair + 1] = (Floats)(both & 0xffff0000u);
    });
  }
  template <int V>
  __attribute__((always_inline)) static void store(void* y, const Floats* values) {
    each<V / 2>([&](auto pair) {
      const Words even = BFloat16::rounded(values[2 * pair]), odd = BFloat16::rounded(values[2 * pair + 1]);
      isa::store(at(y, pair * sizeof(Words)), even >> 16 | (odd & 0xffff0000u));
    });
  }
  template <int V>
  __attribute__((always_inline)) static void store_bytes(uint8_t* y, const Words* bytes) {
    each<V / 2>(
        [&](auto pair) { store_halves(y + pair * 2 * kLanes, bytes[2 * pair] | bytes[2 * pair + 1] << 8); });
  }
};

}  // namespace
}  // namespace zyfa::cpu::isa
