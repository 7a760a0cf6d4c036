// A tile of 64 key or value rows in LDS: how it gets there and how matrix operands are read from it.
#pragma once

#include "intrinsics.hpp"

namespace zyfa {

constexpr uint32_t kTileKeys = 64;
constexpr uint32_t kChunkBytes = 16;

// Which chunk of its row holds chunk c: without a swizzle all rows of a column lie in the same LDS banks.
// ds_read_b128 serves 16 lanes at a time, each with a row of its own; ds_read_b64_tr_b16 serves 32 lanes, 64
// bytes of each of four rows. Both are free of conflicts on 64 banks of 4 bytes.
template <uint32_t kDim>
__device__ uint32_t key_chunk(uint32_t row, uint32_t c) {
  return c ^ (kDim % 128 == 0 ? row % 16 : row / 2 % 8);
}
template <uint32_t kDim>
__device__ uint32_t value_chunk(uint32_t row, uint32_t c) {
  return c ^ 4 * (kDim % 128 == 0 ? row % 4 : row / 2 % 2);
}

template <uint32_t kDim>
struct Tile {
  static constexpr uint32_t kRowBytes = kDim * sizeof(bf16);
  static constexpr uint32_t kRowChunks = kRowBytes / kChunkBytes;
  static constexpr uint32_t kBytes = kTileKeys * kRowBytes;
  static constexpr uint32_t kSteps = kDim / 16;   // matrix instructions along a row
  static constexpr uint32_t kBlocks = kDim / 32;  // matrix instructions across a row
};

// Key rows first .. end - 1 of one head in memory.
struct Rows {
  const uint8_t* base;
  uint32_t pitch, first, end;
};

// A tile on its way to LDS, in pieces that each wave of the workgroup asks for; rows outside of `rows` become
// zeros, and all of them when there is no such tile.
template <uint32_t kDim, uint32_t kWaves, uint32_t (*chunk)(uint32_t, uint32_t)>
struct Fetch {
  using T = Tile<kDim>;
  static constexpr uint32_t kItems = kWaves * kWaveLanes;
  static constexpr uint32_t kPieces = kTileKeys * T::kRowChunks / kItems;
  static_assert(kTileKeys * T::kRowChunks % kItems == 0);

  window from;
  uint32_t pitch, hidden;  // leading rows outside
  lds_ptr<uint8_t> to;

  __device__ Fetch(const Rows& rows, uint32_t tile, lds_ptr<uint8_t> to) : pitch(rows.pitch), to(to) {
    const uint32_t first = tile * kTileKeys;
    const uint32_t left = first < rows.end ? rows.end - first : 0;
    const uint32_t here = left < kTileKeys ? left : kTileKeys;
    hidden = first < rows.first ? rows.first - first : 0;
    // clang would compute them per lane, and loop over lanes with different windows.
    const uint32_t bytes = uniform(here == 0 ? 0 : (here - 1) * pitch + T::kRowBytes);
    from = window_of(rows.base + uint64_t{first} * pitch, bytes);
  }
  __device__ void piece(uint32_t i) const {
    const uint32_t slot = i * kItems + thread();
    const uint32_t row = slot / T::kRowChunks;
    // The swizzles are their own inverse.
    const uint32_t source = row * pitch + kChunkBytes * chunk(row, slot % T::kRowChunks);
    load_to_lds(from, row < hidden ? kOutside : source,
                to + kChunkBytes * (i * kItems + wave() * kWaveLanes));
  }
};
template <uint32_t kDim, uint32_t kWaves>
using FetchKeys = Fetch<kDim, kWaves, key_chunk<kDim>>;
template <uint32_t kDim, uint32_t kWaves>
using FetchValues = Fetch<kDim, kWaves, value_chunk<kDim>>;

// Operand A of S^T = K·Q^T: rows are the keys 32 half + l % 32, k the dims 16 step + 8 (l / 32) + e.
template <uint32_t kDim>
__device__ bf16x8 key_operand(lds_ptr<const uint8_t> tile, uint32_t half, uint32_t step) {
  const uint32_t row = lane() % 32;
  const uint32_t chunk = key_chunk<kDim>(row, 2 * step + lane() / 32);
  return *(lds_ptr<const bf16x8>)(tile + (32 * half + row) * Tile<kDim>::kRowBytes + kChunkBytes * chunk);
}

// Operand A of O^T = V^T·P^T: rows are the dims 32 block + l % 32, k the keys that registers 8 step % 16 ...
// of S^T hold in this lane: 16 step + 8 (e / 4) + 4 (l / 32) + e % 4.
template <uint32_t kDim>
__device__ bf16x8 value_operand(lds_ptr<const uint8_t> tile, uint32_t block, uint32_t step) {
  const uint32_t l = lane(), row = 4 * (l / 32) + l % 16 / 4;
  const uint32_t chunk = value_chunk<kDim>(row, 4 * block + l / 16 % 2 * 2 + l % 4 / 2);
  const lds_ptr<const uint8_t> from =
      tile + (16 * step + row) * Tile<kDim>::kRowBytes + kChunkBytes * chunk + l % 2 * 8;
  const bf16x4 low = read_transposed((lds_ptr<const bf16x4>)from);
  const bf16x4 high = read_transposed((lds_ptr<const bf16x4>)(from + 8 * Tile<kDim>::kRowBytes));
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Multiplies operands 0 .. kCount - 1 that `load` reads from LDS, kAhead of them on their way. An operand's
// registers are filled again only behind the next matrix instruction: the one that reads them may still be
// running (G21).
constexpr uint32_t kAhead = 4;
template <uint32_t kCount>
struct Operands {
  bf16x8 a[kAhead];

  template <typename Load>
  __device__ void begin(Load load) {
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) a[i] = load(i);
  }
  // `sum(i)` is the accumulator of operand i, `b(i)` what it is multiplied with, `also(i)` what goes on
  // besides.
  template <typename Load, typename Sum, typename Other, typename Also>
  __device__ void multiply_all(Load load, Sum sum, Other b, Also also) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      floatx16& d = sum(i);
      d = multiply(a[i % kAhead], b(i), d);
      if (i > 0) {
        const uint32_t last = i - 1, next = last + kAhead;
        keep(a[last % kAhead], b(last), d);
        if (next < kCount) a[last % kAhead] = load(next);
      }
      also(i);
      pin_order();
    }
  }
  // The last operand is no longer read when `result` depends on its product.
  __device__ void end(float& result) { keep(a[(kCount - 1) % kAhead], a[(kCount - 1) % kAhead], result); }
};

}  // namespace zyfa
