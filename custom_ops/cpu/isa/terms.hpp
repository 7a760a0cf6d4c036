// Where bfloat16 terms lie: in pieces that fill a tile register, 16 rows or lanes of kStep dims or keys next
// to each other (by rows for K and the transposed V, as pairs by lanes for Q and P).
#pragma once

#include <cstdint>

#include "../kernels.hpp"
#include "unroll.hpp"

namespace zyfa::cpu::isa {

// In elements: from one term to the next; and from one kStep of dims or keys (K, V) or block of lanes (Q, P)
// to the next.
struct TermStrides {
  int64_t term, step;
};

constexpr TermStrides strides_of_keys(int64_t dim) {
  return {kTileKeys * padded(dim, kStep), kTileKeys * kStep};
}
constexpr TermStrides strides_of_values(int64_t columns) {
  return {kTileKeys * padded(columns, kStep), padded(columns, kStep) * kStep};
}
// `inner` dims or keys, in words.
constexpr TermStrides strides_of_lanes(int64_t inner, int64_t lanes) {
  return {padded(inner, kStep) / 2 * lanes, padded(inner, kStep) / 2 * kLaneBlock};
}

namespace {

// Calls body with the number of terms as a constant.
template <typename Body>
inline auto with_terms(int64_t terms, const Body& body) {
  if (terms == 1) return body(Count<1>());
  if (terms == 2) return body(Count<2>());
  return body(Count<3>());
}

}  // namespace
}  // namespace zyfa::cpu::isa
