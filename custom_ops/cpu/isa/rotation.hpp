// Hadamard butterflies on vectors. Included as lanes.hpp is.
#pragma once

#include <utility>

#include "orders.hpp"

namespace zyfa::cpu::isa {
namespace {

// Vectors that stay in registers while they are rotated.
#if defined(__AVX512F__)
constexpr int kMaxVectors = 16;
#else
constexpr int kMaxVectors = 8;
#endif

// Own lane and the one whose index differs by Span: their sum where Span is not in the lane's index, else the
// other's value minus the own one.
template <int Span, int... Lane>
inline Floats butterfly(Floats own, std::integer_sequence<int, Lane...>) {
  const Floats other = __builtin_shufflevector(own, own, (Lane ^ Span)...);
#if defined(__FMA__)
  const Floats sign = {((Lane & Span) != 0 ? -1.0f : 1.0f)...};
  return fused(own, sign, other);
#else
  const Ints upper = {((Lane & Span) != 0 ? -1 : 0)...};
  return upper ? other - own : own + other;
#endif
}

// Stages between lanes whose indices differ by Span, 2 * Span, ... below `lanes`.
template <int Span, int V>
__attribute__((always_inline)) inline void stages_within_vectors(Floats (&x)[V], int64_t lanes) {
  if constexpr (Span < kLanes) {
    if (Span >= lanes) return;
    each<V>([&](auto v) { x[v] = butterfly<Span>(x[v], std::make_integer_sequence<int, kLanes>()); });
    stages_within_vectors<2 * Span>(x, lanes);
  }
}

// Stages between vectors whose indices differ by Span, 2 * Span, ... below End.
template <int Span, int End, int V>
__attribute__((always_inline)) inline void stages_between_vectors(Floats (&x)[V]) {
  if constexpr (Span < End) {
    each<V>([&](auto v) {
      if constexpr ((v & Span) == 0) {
        const Floats u = x[v], w = x[v + Span];
        x[v] = u + w;
        x[v + Span] = u - w;
      }
    });
    stages_between_vectors<2 * Span, End>(x);
  }
}

// The stages of blocks that come before those between vectors End apart.
template <typename Order, int End, int V>
__attribute__((always_inline)) inline void stages_below(Floats (&x)[V]) {
  stages_between_vectors<1, Order::kLaneStep>(x);
  stages_within_vectors<1>(x, kLanes);
  stages_between_vectors<Order::kLaneStep, End>(x);
}

#if defined(__AVX512DQ__)
inline Floats larger_magnitude(Floats x, Floats largest) {
  constexpr int kLargerMagnitudeUnsigned = 11;
  return (Floats)_mm512_range_ps((__m512)x, (__m512)largest, kLargerMagnitudeUnsigned);
}
#else
inline Floats larger_magnitude(Floats x, Floats largest) {
  const Floats magnitude = (Floats)((Words)x & kMagnitude);
  return magnitude > largest ? magnitude : largest;
}
#endif

// Puts the magnitudes of rotated blocks of V vectors before the factor into `largest`, one for each; NaN does
// not enter. Those of each pair of the last stage by the larger one: of u + w and u - w it is that of u + w
// with the sign of u at w.
template <typename Order, int V, int N>
__attribute__((always_inline)) inline void largest_magnitudes(Floats (&x)[N], Floats* largest) {
  constexpr bool kPairs = V > Order::kLaneStep;
  constexpr int kCount = kPairs ? V / 2 : V;
  stages_below<Order, kCount>(x);
  each<N>([&](auto v) {
    if constexpr (v % V < kCount) {
      Floats found = x[v];
      if constexpr (kPairs)
        found += (Floats)(((Words)x[v + kCount] & kMagnitude) | ((Words)found & ~kMagnitude));
      largest[v / V] = larger_magnitude(found, largest[v / V]);
    }
  });
}

template <int Span, int... Lane>
__attribute__((always_inline)) inline float largest_lane(Floats x,
                                                         std::integer_sequence<int, Lane...> lanes) {
  if constexpr (Span == kLanes)
    return x[0];
  else
    return largest_lane<2 * Span>(larger_magnitude(__builtin_shufflevector(x, x, (Lane ^ Span)...), x),
                                  lanes);
}

// One stage; span is a multiple of kLanes.
inline void stage_in_memory(float* row, int64_t block, int64_t span) {
  for (int64_t base = 0; base < block; base += 2 * span) {
    for (float* own = row + base; own < row + base + span; own += kLanes) {
      const Floats u = load<Floats>(own), w = load<Floats>(own + span);
      store(own, u + w);
      store(own + span, u - w);
    }
  }
}

// How stored elements stand in V vectors: 16-bit pairs where that leaves stages between vectors.
template <typename Stored, int V>
using OrderOf = std::conditional_t<std::is_same_v<Stored, BFloat16> && V >= 4, EvenOdd, InOrder<Stored>>;

// Calls body(Count<V>) for a block of V vectors, at least Fewest and no more than stay in registers; false if
// it is none.
template <int Fewest, typename Body>
inline bool with_registers(int64_t block, const Body& body) {
  if (block < kLanes) return false;
  bool done = false;
  each<5>([&](auto power) {
    constexpr int kVectors = 1 << power;
    if constexpr (kVectors >= Fewest && kVectors <= kMaxVectors)
      if (block == kVectors * kLanes) {
        body(Count<kVectors>());
        done = true;
      }
  });
  return done;
}

}  // namespace
}  // namespace zyfa::cpu::isa
