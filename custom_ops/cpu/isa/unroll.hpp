// Loops of a known length, written out. Included as lanes.hpp is.
#pragma once

#include <type_traits>
#include <utility>

namespace zyfa::cpu::isa {
namespace {

template <int N>
using Count = std::integral_constant<int, N>;

template <typename Body, int... I>
__attribute__((always_inline)) inline void each_of(const Body& body, std::integer_sequence<int, I...>) {
  (body(Count<I>()), ...);
}

// body(Count<0>()), ... body(Count<N - 1>()): written out, or GCC keeps arrays of vectors in memory (200
// cycles a block).
template <int N, typename Body>
__attribute__((always_inline)) inline void each(const Body& body) {
  each_of(body, std::make_integer_sequence<int, N>());
}

}  // namespace
}  // namespace zyfa::cpu::isa
