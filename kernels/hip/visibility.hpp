// Which keys a query row sees: docs/numerics.md, "What is visible".
#pragma once

#include "intrinsics.hpp"
#include "prefill_arguments.hpp"
#include "tile.hpp"

namespace zyfa {

// The kernel's arguments where the launch left them.
using Arguments = const Bf16PrefillArguments __attribute__((address_space(4)));
__device__ Arguments& arguments() { return *(Arguments*)(__builtin_amdgcn_kernarg_segment_ptr()); }
// The same ones, read from memory again: all of them at once do not fit into scalar registers.
__device__ Arguments& reread(Arguments& a) {
  Arguments* from = &a;
  asm volatile("" : "+s"(from));
  return *from;
}

// Half-open; empty when end <= first.
struct KeyRange {
  int first, end;
};

__device__ int clamped(long long x, int low, int high) {
  return static_cast<int>(x < low ? low : x > high ? high : x);
}

// The keys of a batch that its table leaves.
__device__ KeyRange keys_of_batch(Arguments& a, uint32_t batch) {
  const int keys = static_cast<int>(a.keys);
  if (a.key_range == nullptr) return {0, keys};
  return {uniform(clamped(a.key_range[2 * batch], 0, keys)),
          uniform(clamped(a.key_range[2 * batch + 1], 0, keys))};
}

// Those of them that causality and window leave to a row.
__device__ KeyRange keys_of_row(Arguments& a, KeyRange batch, uint32_t row) {
  const long long position = static_cast<long long>(row) + a.diagonal;
  KeyRange seen = batch;
  if (a.causal != 0) seen.end = clamped(position + 1, 0, batch.end);
  if (a.window_left >= 0)
    seen.first = clamped(position - a.window_left, batch.first, static_cast<int>(a.keys));
  return seen;
}

// The keys of rows first .. last: what any of them sees, and what all of them see.
struct Limits {
  KeyRange any, all;
};
__device__ Limits limits_of_rows(Arguments& a, KeyRange batch, uint32_t first, uint32_t last) {
  const KeyRange low = keys_of_row(a, batch, first), high = keys_of_row(a, batch, last);
  return {{low.first, high.end}, {high.first, low.end}};
}

__device__ bool touches(KeyRange range, uint32_t tile) {
  const int first = static_cast<int>(tile * kTileKeys), end = first + static_cast<int>(kTileKeys);
  return range.first < range.end && first < range.end && end > range.first;
}
__device__ bool covers(KeyRange range, uint32_t tile) {
  const int first = static_cast<int>(tile * kTileKeys), end = first + static_cast<int>(kTileKeys);
  return range.first <= first && end <= range.end;
}

// Bit j: key j of the tile lies in the range.
__device__ uint64_t range_bits(KeyRange range, uint32_t tile) {
  const int first = static_cast<int>(tile * kTileKeys);
  const auto below = [](int n) { return n >= 64 ? ~uint64_t{0} : n <= 0 ? 0 : (uint64_t{1} << n) - 1; };
  return below(range.end - first) & ~below(range.first - first);
}

// Of the 64 keys of a tile a lane holds scores of 32: register r of half t is key 32 t + 8 (r / 4) + 4 (l /
// 32) + r % 4.
constexpr uint32_t kHeld = 32;
__device__ constexpr uint32_t held_key(uint32_t i) { return i / 16 * 32 + i % 16 / 4 * 8 + i % 4; }
// Which of them are visible; bit held_key(i) stands for score i.
struct Seen {
  uint32_t bits[2];
  __device__ explicit Seen(uint64_t tile_bits) {
    const uint64_t own = tile_bits >> (lane() / 32 * 4);
    bits[0] = static_cast<uint32_t>(own);
    bits[1] = static_cast<uint32_t>(own >> 32);
  }
  __device__ bool has(uint32_t i) const { return (bits[i / 16] >> (held_key(i) % 32) & 1) != 0; }
  __device__ void remove(uint32_t i, bool invisible) {
    bits[i / 16] &= ~(static_cast<uint32_t>(invisible) << (held_key(i) % 32));
  }
};

}  // namespace zyfa
