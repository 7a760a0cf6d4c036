// BF16 prefill attention: docs/numerics.md, "precision = fp32 and bf16". Arguments: prefill_arguments.hpp.
//
// A wave owns 32 query rows, a workgroup 8 or 4 waves that share tiles of 64 keys. S^T = K·Q^T puts a
// query row's scores into lanes l and l + 32, so that softmax needs one exchange per tile, and P^T is an
// operand of O^T = V^T·P^T as it stands. While a tile is multiplied, the next one is on its way to the other
// LDS stage.
#pragma once

#include "prefill_arguments.hpp"
#include "score.hpp"
#include "tile.hpp"
#include "value_nonfinite.hpp"
#include "visibility.hpp"

namespace zyfa {

constexpr uint32_t kHalfSteps = 4;  // matrix instructions along the 64 keys of a tile

// Where this workgroup and wave are.
struct Place {
  uint32_t batch, head, kv_head, block_row, first_row, last_row, row;
  bool has_rows;
};
template <uint32_t kWaves>
__device__ Place place(Arguments& a) {
  constexpr uint32_t kRows = kWaves * kPrefillWaveRows;
  Place p;
  p.head = block_y();
  p.batch = block_z();
  p.kv_head = a.group_reciprocal == 0 ? p.head : (uint64_t{p.head} * a.group_reciprocal) >> 32;
  // Causal blocks see more keys the later they are: the longest start first.
  const uint32_t blocks = (a.queries - 1) / kRows;
  p.block_row = (a.causal != 0 ? blocks - block() : block()) * kRows;
  p.first_row = p.block_row + wave() * kPrefillWaveRows;
  p.has_rows = p.first_row < a.queries;
  const uint32_t end = p.first_row + kPrefillWaveRows;
  p.last_row = (end < a.queries ? end : a.queries) - 1;
  // Lanes without a row of their own repeat the last one.
  const uint32_t row = p.first_row + lane() % 32;
  p.row = row < a.queries ? row : a.queries - 1;
  return p;
}

// Running softmax of a query row; lanes l and l + 32 share the maximum, each sums its own keys.
template <uint32_t kValueDim>
struct Result {
  float max = -kInfinity, sum = 0.0f;
  floatx16 o[Tile<kValueDim>::kBlocks] = {};
};

template <uint32_t kDim>
__device__ void load_query(Arguments& a, const Place& p, bf16x8 (&q)[Tile<kDim>::kSteps]) {
  const auto* row = static_cast<const uint8_t*>(a.query) + p.batch * a.q_batch + p.head * a.q_head +
                    uint64_t{p.row} * a.q_row + lane() / 32 * kChunkBytes;
#pragma unroll
  for (uint32_t step = 0; step < Tile<kDim>::kSteps; ++step)
    q[step] = *reinterpret_cast<const bf16x8*>(row + step * 2 * kChunkBytes);
}

// The largest score of each row; the same in lanes l and l + 32.
__device__ float row_maximum(const floatx16 (&s)[2]) {
  float top = s[0][0];
#pragma unroll
  for (uint32_t i = 1; i < kHeld; ++i) top = maximum(top, s[i / 16][i % 16]);
  const floatx2 halves = both_halves(top);
  return maximum(halves[0], halves[1]);
}

// New maximum and a result to its measure. Returns what to subtract from scores.
template <uint32_t kValueDim>
__device__ float rescale(float tile_max, float factor, Result<kValueDim>& result) {
  const float top = maximum(tile_max, result.max);
  const float anchor = top == -kInfinity ? 0.0f : top;
  if (any(!(top == result.max))) {
    const float kept = exp2((result.max - anchor) * factor);
    result.sum *= kept;
#pragma unroll
    for (uint32_t block = 0; block < Tile<kValueDim>::kBlocks; ++block) result.o[block] *= kept;
    result.max = top;
  }
  return anchor;
}

// Rounded to bfloat16, and their sum. Where the factor is at most 1 one multiply-add is as good as a
// difference and a product: it cannot overflow, and what it loses is the same for all keys of the tile.
template <bool kFused>
__device__ void probabilities(const floatx16 (&s)[2], float anchor, float factor, bf16x8 (&p)[kHalfSteps],
                              float& sum) {
  const float shift = -anchor * factor;
  const auto probability = [&](float score) {
    return exp2(kFused ? __builtin_fmaf(score, factor, shift) : (score - anchor) * factor);
  };
#pragma unroll
  for (uint32_t i = 0; i < kHeld; i += 2) {
    const bf16x2 pair = to_bf16(probability(s[i / 16][i % 16]), probability(s[i / 16][i % 16 + 1]));
    sum = add_pair(pair, sum);
    p[i / 8][i % 8] = pair[0];
    p[i / 8][i % 8 + 1] = pair[1];
  }
}

// What a tile's worth of work needs besides the tile.
template <uint32_t kDim>
struct Work {
  Arguments& a;
  ScoreScale scale;
  Bias bias;
  Limits wave;
  KeyRange row;
  bf16x8 q[Tile<kDim>::kSteps];
};

// Returns whether the product is wrong for want of care: V is not finite at keys that some row does not see.
//
// The pieces of the next tile are asked for between matrix instructions: together they would hold up the wave
// for as long as a quarter of the tile takes.
template <uint32_t kDim, uint32_t kValueDim, bool kGeneral, bool kCareful, typename Next>
__device__ bool attend(const Work<kDim>& work, lds_ptr<const uint8_t> keys, lds_ptr<const uint8_t> values,
                       uint32_t tile, uint64_t unmasked, const Next& next, Result<kValueDim>& result) {
  constexpr uint32_t kBlocks = Tile<kValueDim>::kBlocks, kProducts = 2 * Tile<kDim>::kSteps;
  floatx16 s[2] = {};
  Operands<kProducts> key_operands;
  const auto key = [&](uint32_t i) { return key_operand<kDim>(keys, i % 2, i / 2); };
  key_operands.begin(key);
  key_operands.multiply_all(
      key, [&](uint32_t i) -> floatx16& { return s[i % 2]; }, [&](uint32_t i) { return work.q[i / 2]; },
      [&](uint32_t i) { next.beside(i, kProducts); });

  const bool masked =
      !covers(work.wave.all, tile) || unmasked != ~uint64_t{0} || (kGeneral && work.a.bias != nullptr);
  Seen seen(~uint64_t{0});
  if (masked) seen = Seen(range_bits(work.row, tile) & unmasked);
  if (kGeneral) finish_scores(reread(work.a), work.bias, tile, s, seen);
  if (masked) {
#pragma unroll
    for (uint32_t i = 0; i < kHeld; ++i) s[i / 16][i % 16] = seen.has(i) ? s[i / 16][i % 16] : -kInfinity;
  }

  float top = row_maximum(s);
  key_operands.end(top);
  const float anchor = rescale(top, work.scale.factor, result);
  bf16x8 p[kHalfSteps];
  if (kCareful) {
    probabilities<!kGeneral>(s, anchor, work.scale.factor, p, result.sum);
    multiply_nonfinite<kValueDim>(values, p, seen, result.o);
    return false;
  }
  Operands<kHalfSteps * kBlocks> value_operands;
  const auto value = [&](uint32_t i) { return value_operand<kValueDim>(values, i % kBlocks, i / kBlocks); };
  value_operands.begin(value);
  const bool wrong = masked && has_nonfinite<kValueDim>(values);
  probabilities<!kGeneral>(s, anchor, work.scale.factor, p, result.sum);
  value_operands.multiply_all(
      value, [&](uint32_t i) -> floatx16& { return result.o[i % kBlocks]; },
      [&](uint32_t i) { return p[i / kBlocks]; }, [](uint32_t) {});
  return wrong;
}

// 32 dims of a row to memory: register r of lane l is dim 8 (r / 4) + 4 (l / 32) + r % 4.
template <typename Out, typename Convert>
__device__ void store_halves(uint8_t* to, bool here, const floatx16& o, Convert convert) {
#pragma unroll
  for (uint32_t r = 0; r < 16; r += 8) {
    uint32_t low[2], high[2];
    for (uint32_t i = 0; i < 2; ++i) {
      low[i] = __builtin_bit_cast(uint32_t, convert(o[r + 2 * i], o[r + 2 * i + 1]));
      high[i] = __builtin_bit_cast(uint32_t, convert(o[r + 4 + 2 * i], o[r + 5 + 2 * i]));
    }
    // All lanes take part in the exchange, those without a row too.
    const uint32x2 first = swap_halves(low[0], high[0]), second = swap_halves(low[1], high[1]);
    const uint32x4 data = {first[0], second[0], first[1], second[1]};
    if (here) *reinterpret_cast<uint32x4*>(to + (2 * r + lane() / 32 * 8) * sizeof(Out)) = data;
  }
}
__device__ void store_floats(uint8_t* to, bool here, const floatx16& o) {
#pragma unroll
  for (uint32_t r = 0; r < 16; r += 4) {
    const floatx4 data = {o[r], o[r + 1], o[r + 2], o[r + 3]};
    if (here) *reinterpret_cast<floatx4*>(to + (2 * r + lane() / 32 * 4) * sizeof(float)) = data;
  }
}
template <uint32_t kDim>
__device__ void store(uint8_t* row, bool here, OutputType type, const floatx16 (&o)[Tile<kDim>::kBlocks]) {
#pragma unroll
  for (uint32_t block = 0; block < Tile<kDim>::kBlocks; ++block) {
    if (type == OutputType::f32)
      store_floats(row + block * 32 * sizeof(float), here, o[block]);
    else if (type == OutputType::f16)
      store_halves<half>(row + block * 32 * sizeof(half), here, o[block], to_half);
    else
      store_halves<bf16>(row + block * 32 * sizeof(bf16), here, o[block], to_bf16);
  }
}

// Division by the row sum, output and log-sum-exp.
template <uint32_t kValueDim>
__device__ void write(Arguments& a, const Place& p, const ScoreScale& scale, Result<kValueDim>& result) {
  const floatx2 sums = both_halves(result.sum);
  const float sum = sums[0] + sums[1];
  const bool nothing = result.max == -kInfinity;
  float total = sum;
  if (a.sinks != nullptr) total += exp2(a.sinks[p.head] * kLog2E - result.max * scale.factor);
  const float factor = nothing ? 0.0f : reciprocal(total);
#pragma unroll
  for (uint32_t block = 0; block < Tile<kValueDim>::kBlocks; ++block) result.o[block] *= factor;

  const bool own = p.first_row + lane() % 32 < a.queries;
  auto* row =
      static_cast<uint8_t*>(a.output) + p.batch * a.o_batch + p.head * a.o_head + uint64_t{p.row} * a.o_row;
  store<kValueDim>(row, own, a.output_type, result.o);
  if (own && a.lse != nullptr && lane() < 32) {
    auto* lse = reinterpret_cast<uint8_t*>(a.lse) + p.batch * a.lse_batch + p.head * a.lse_head;
    reinterpret_cast<float*>(lse)[p.row] =
        nothing ? -kInfinity : result.max * scale.natural + kLn2 * log2(sum);
  }
}

// The mask byte of this lane's key; the tile's 64 make a bit each.
__device__ uint32_t mask_byte(Arguments& a, const Place& p, uint32_t tile) {
  if (a.key_mask == nullptr) return 1;
  const uint32_t key = tile * kTileKeys + lane(), last = a.keys - 1;
  const auto* bytes = static_cast<const uint8_t*>(a.key_mask) + p.batch * a.mask_batch;
  return bytes[key < last ? key : last];
}

// Whether it holds in some wave of the workgroup; `flags` is LDS that nobody uses.
template <uint32_t kWaves>
__device__ bool in_some_wave(bool here, lds_ptr<uint32_t> flags) {
  flags[wave()] = here;
  barrier();
  uint32_t all = 0;
  for (uint32_t w = 0; w < kWaves; ++w) all |= flags[w];
  barrier();
  return __builtin_amdgcn_readfirstlane(all) != 0;
}

// The two LDS stages. Each is an array of its own, and the loop over tiles is written out for both: clang
// then knows which reads the loads into LDS cannot reach, and leaves out the waits.
struct Stage {
  lds_ptr<uint8_t> keys, values;
};
struct Stages {
  Stage even, odd;
};

// What a workgroup reads, tile by tile.
struct Source {
  Rows keys, values;
  uint32_t first, end;  // tiles
};

// A key and a value tile on their way to a stage.
template <uint32_t kDim, uint32_t kValueDim, uint32_t kWaves>
struct FetchBoth {
  FetchKeys<kDim, kWaves> keys;
  FetchValues<kValueDim, kWaves> values;
  static constexpr uint32_t kKeyPieces = decltype(keys)::kPieces;
  static constexpr uint32_t kPieces = kKeyPieces + decltype(values)::kPieces;

  __device__ FetchBoth(const Source& from, uint32_t tile, const Stage& to)
      : keys(from.keys, tile, to.keys), values(from.values, tile, to.values) {}
  __device__ void piece(uint32_t i) const { i < kKeyPieces ? keys.piece(i) : values.piece(i - kKeyPieces); }
  // The pieces that go with product i of `products`.
  __device__ void beside(uint32_t i, uint32_t products) const {
#pragma unroll
    for (uint32_t j = 0; j < kPieces; ++j)
      if (j * products / kPieces + 1 == i) piece(j);
  }
  __device__ void all() const {
#pragma unroll
    for (uint32_t i = 0; i < kPieces; ++i) piece(i);
  }
};
struct NothingToFetch {
  __device__ void beside(uint32_t, uint32_t) const {}
};

__device__ void arrive() {
  wait_for_loads();
  barrier();
}

// All tiles in ascending order, the next one being loaded meanwhile. Returns what attend() does, for this
// wave.
template <uint32_t kDim, uint32_t kValueDim, uint32_t kWaves, bool kGeneral>
__device__ bool attend_tiles(const Work<kDim>& work, const Place& p, const Source& from, const Stages& stages,
                             Result<kValueDim>& result) {
  using Next = FetchBoth<kDim, kValueDim, kWaves>;
  uint32_t mask = mask_byte(work.a, p, from.first);
  Next(from, from.first, stages.even).all();
  arrive();

  bool wrong = false;
  const auto step = [&](uint32_t tile, const Stage& here, const Stage& other) {
    const uint64_t unmasked = __builtin_amdgcn_ballot_w64(mask != 0);
    mask = mask_byte(work.a, p, tile + 1);
    const Next next(from, tile + 1, other);
    if (touches(work.wave.any, tile))
      wrong |= attend<kDim, kValueDim, kGeneral, false>(work, here.keys, here.values, tile, unmasked, next,
                                                        result);
    else
      next.all();
    arrive();
  };
  for (uint32_t tile = from.first; tile < from.end; tile += 2) {
    step(tile, stages.even, stages.odd);
    if (tile + 1 < from.end) step(tile + 1, stages.odd, stages.even);
  }
  return wrong;
}

// The same tile after tile in one stage: with care, which is rare, or where two stages do not fit.
template <uint32_t kDim, uint32_t kValueDim, uint32_t kWaves, bool kGeneral, bool kCareful>
__device__ bool attend_tiles_singly(const Work<kDim>& work, const Place& p, const Source& from,
                                    const Stage& stage, Result<kValueDim>& result) {
  bool wrong = false;
  for (uint32_t tile = from.first; tile < from.end; ++tile) {
    const uint64_t unmasked = __builtin_amdgcn_ballot_w64(mask_byte(work.a, p, tile) != 0);
    FetchBoth<kDim, kValueDim, kWaves>(from, tile, stage).all();
    arrive();
    if (touches(work.wave.any, tile))
      wrong |= attend<kDim, kValueDim, kGeneral, kCareful>(work, stage.keys, stage.values, tile, unmasked,
                                                           NothingToFetch{}, result);
    barrier();
  }
  return wrong;
}

template <uint32_t kWaves>
__device__ Source source(Arguments& a, const Place& p, KeyRange batch) {
  const uint32_t block_end = p.block_row + kWaves * kPrefillWaveRows;
  const KeyRange seen =
      limits_of_rows(a, batch, p.block_row, (block_end < a.queries ? block_end : a.queries) - 1).any;
  const uint32_t first = seen.first / kTileKeys;
  const uint32_t end = seen.first < seen.end ? (seen.end + kTileKeys - 1) / kTileKeys : first;
  const auto rows = [&](const void* base, long long by_batch, long long by_head, uint32_t pitch) {
    return Rows{static_cast<const uint8_t*>(base) + p.batch * by_batch + p.kv_head * by_head, pitch,
                static_cast<uint32_t>(batch.first), static_cast<uint32_t>(batch.end)};
  };
  return {rows(a.key, a.k_batch, a.k_head, a.k_row), rows(a.value, a.v_batch, a.v_head, a.v_row), first, end};
}

template <uint32_t kDim, uint32_t kValueDim, uint32_t kWaves, bool kGeneral>
__device__ void prefill(Arguments& a) {
  __shared__ uint8_t keys_even[Tile<kDim>::kBytes] __attribute__((aligned(128)));
  __shared__ uint8_t values_even[Tile<kValueDim>::kBytes] __attribute__((aligned(128)));
  __shared__ uint8_t keys_odd[kTwoStages ? Tile<kDim>::kBytes : 16] __attribute__((aligned(128)));
  __shared__ uint8_t values_odd[kTwoStages ? Tile<kValueDim>::kBytes : 16] __attribute__((aligned(128)));
  const Stages stages = {{(lds_ptr<uint8_t>)keys_even, (lds_ptr<uint8_t>)values_even},
                         {(lds_ptr<uint8_t>)keys_odd, (lds_ptr<uint8_t>)values_odd}};

  const Place p = place<kWaves>(a);
  const KeyRange batch = keys_of_batch(a, p.batch);
  const Source from = source<kWaves>(a, p, batch);
  Work<kDim> work = {
      a,  score_scale<kGeneral>(a),     bias_of(a, p.batch, p.head, p.first_row, p.last_row, p.row),
      {}, keys_of_row(a, batch, p.row), {}};
  if (p.has_rows) work.wave = limits_of_rows(a, batch, p.first_row, p.last_row);
  load_query<kDim>(reread(a), p, work.q);

  Result<kValueDim> result;
  if (from.first < from.end) {
    bool wrong;
    if constexpr (kTwoStages)
      wrong = attend_tiles<kDim, kValueDim, kWaves, kGeneral>(work, p, from, stages, result);
    else
      wrong =
          attend_tiles_singly<kDim, kValueDim, kWaves, kGeneral, false>(work, p, from, stages.even, result);
    if (in_some_wave<kWaves>(wrong, (lds_ptr<uint32_t>)keys_even)) {
      result = {};
      attend_tiles_singly<kDim, kValueDim, kWaves, kGeneral, true>(work, p, from, stages.even, result);
    }
  }
  if (p.has_rows) write<kValueDim>(reread(a), p, work.scale, result);
}

#define ZYFA_PREFILL_KERNEL(name, dim, value_dim, waves, general)                                  \
  __global__ __launch_bounds__(waves* kWaveLanes) void bf16_prefill_##name(Bf16PrefillArguments) { \
    prefill<dim, value_dim, waves, general>(arguments());                                          \
  }

}  // namespace zyfa
