// Attention of a few query rows against a long cache (docs/kernels.md): bound by the memory that K and V come
// from. The query heads of a group and their rows are the columns of one matrix product, so that a workgroup
// reads K and V once for all of them. Keys are split over workgroups and, 32 at a time, over their four
// waves; a second launch puts the parts together in a fixed order.
#include "decode_arguments.hpp"
#include "lanes.hpp"

using namespace zyfa;
using namespace zyfa::kernels;

namespace {

using bf16x2 = vec<bf16, 2>;
using bf16x4 = vec<bf16, 4>;
using words = vec<uint32_t, 4>;  // 16 bytes of a cache row
struct e4m3 {
  uint8_t code;
};

constexpr uint32_t kWaves = kDecodeItems / kWaveLanes;
constexpr uint32_t kTile = 32;     // keys of a step of a wave
constexpr uint32_t kColumns = 16;  // rows of the problem in a matrix instruction
constexpr float kLog2E = 1.44269504f;
constexpr float kLn2 = 0.693147181f;
constexpr float kInfinity = __builtin_inff();

__device__ float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
// What is subtracted from scores: a row without any takes 0, -inf - -inf is NaN.
__device__ float subtrahend(float m) { return m == -kInfinity ? 0.0f : m; }

template <typename To, typename From>
__device__ To as(From from) {
  return __builtin_bit_cast(To, from);
}

// ---- cache rows
// ---------------------------------------------------------------------------------------------

// How 16 bytes of a row become fragments of eight bf16. `element(step, group)` is where lanes of `group`
// begin in step `step` of 32 elements; Q and K agree on it, so that any order of a row's elements would do.
template <typename T>
struct Cache;
template <>
struct Cache<bf16> {
  static constexpr uint32_t kFragments = 1;
  __device__ static bf16x8 fragment(words raw, uint32_t) { return as<bf16x8>(raw); }
  __device__ static uint32_t element(uint32_t step, uint32_t group) { return 32 * step + 8 * group; }
};
template <>
struct Cache<e4m3> {
  static constexpr uint32_t kFragments = 2;
  __device__ static bf16x8 widened(uint32_t low, uint32_t high) {
    const bf16x2 a = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(low, 1.0f, false);
    const bf16x2 b = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(low, 1.0f, true);
    const bf16x2 c = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(high, 1.0f, false);
    const bf16x2 d = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(high, 1.0f, true);
    return as<bf16x8>(words{as<uint32_t>(a), as<uint32_t>(b), as<uint32_t>(c), as<uint32_t>(d)});
  }
  __device__ static bf16x8 fragment(words raw, uint32_t i) { return widened(raw[2 * i], raw[2 * i + 1]); }
  __device__ static uint32_t element(uint32_t step, uint32_t group) {
    return 64 * (step / 2) + 16 * group + 8 * (step % 2);
  }
};

__device__ words load_words(const char* from) { return *reinterpret_cast<const words*>(from); }

// ---- what is visible
// ----------------------------------------------------------------------------------------

struct Range {
  int32_t begin, end;
};
__device__ int32_t clamped(int32_t x, int32_t most) { return x < 0 ? 0 : x > most ? most : x; }
__device__ Range keys_of_batch(const DecodeArguments& a, uint32_t b) {
  const int32_t keys = static_cast<int32_t>(a.keys);
  if (a.key_range == nullptr) return {0, keys};
  return {clamped(a.key_range[2 * b], keys), clamped(a.key_range[2 * b + 1], keys)};
}
__device__ Range visible_to(const DecodeArguments& a, Range batch, int32_t query) {
  const int32_t position = query + a.diagonal;
  const bool cut = a.window_left >= 0 && a.window_left < position;
  const int32_t from = cut ? position - a.window_left : 0;
  const bool stops = a.causal != 0 && position + 1 < batch.end;
  return {from > batch.begin ? from : batch.begin, stops ? position + 1 : batch.end};
}

// ---- one workgroup's share
// ----------------------------------------------------------------------------------

template <typename T, uint32_t Dqk, uint32_t Dv, uint32_t Tiles>
struct Decode {
  static constexpr uint32_t kSteps = Dqk / 32;                          // of K·Q
  static constexpr uint32_t kKeyLoads = kSteps / Cache<T>::kFragments;  // per 16 keys
  static constexpr uint32_t kChunk = 16 / sizeof(T);                    // elements of 16 bytes
  static constexpr uint32_t kValueLoads = kTile * Dv / kChunk / kWaveLanes;
  static constexpr uint32_t kRowLanes = Dv / kChunk;  // lanes that load a row of V
  static constexpr uint32_t kOutTiles = Dv / 16;
  // Rows of V in LDS: 32 bytes more than the row spread the eight rows of a transposed read over all banks.
  static constexpr uint32_t kPitch = 2 * Dv + 32;
  // The same bytes hold 16 rows of a wave's output at the end; four floats more, for the same reason.
  static constexpr uint32_t kOutPitch = Dv + 4;
  static constexpr uint32_t kWaveBytes = kTile * kPitch;
  static_assert(kColumns * kOutPitch * 4 <= kWaveBytes, "output rows take the place of V");

  struct Shared {
    alignas(16) char values[kWaves][kWaveBytes];
    float maximum[kWaves][Tiles * kColumns], sum[kWaves][Tiles * kColumns];
  };

  const DecodeArguments& a;
  Shared& shared;
  const uint32_t batch, kv_head, rows;  // rows: of the key head
  const uint32_t column, group;         // lane % 16: row in a tile; lane / 16
  int32_t start, stop;                  // keys of this workgroup
  int32_t all_from, all_to;             // keys that every row sees
  const char *keys, *values;
  const uint8_t* mask;  // of this batch, or null

  // By tile of 16 rows; a lane stands for row `column`.
  Range seen[Tiles];
  float factor[Tiles], maximum[Tiles], sum[Tiles];
  bf16x8 query[Tiles][kSteps];
  floatx4 out[Tiles][kOutTiles];
  // Of the next 32 keys, on their way from memory.
  words key_words[2][kKeyLoads], value_words[kValueLoads];

  __device__ Decode(const DecodeArguments& args, Shared& lds)
      : a(args),
        shared(lds),
        batch(block_z() / args.kv_heads),
        kv_head(block_z() % args.kv_heads),
        rows(args.heads / args.kv_heads * args.queries),
        column(lane() % 16),
        group(lane() / 16) {
    const Range all = keys_of_batch(a, batch);
    const Range first = visible_to(a, all, 0), last = visible_to(a, all, a.queries - 1);
    const int32_t count = last.end > first.begin ? last.end - first.begin : 0;
    const uint32_t each = (static_cast<uint32_t>(count) + a.splits - 1) / a.splits;
    const uint32_t share = (each + kWaves * kTile - 1) / (kWaves * kTile) * (kWaves * kTile);
    const uint64_t skipped = uint64_t{share} * block();
    start = first.begin + static_cast<int32_t>(skipped < static_cast<uint64_t>(count) ? skipped : count);
    stop = static_cast<uint32_t>(last.end - start) < share ? last.end : start + static_cast<int32_t>(share);
    if (count == 0) stop = start;
    all_from = last.begin;
    all_to = first.end < stop ? first.end : stop;
    keys = static_cast<const char*>(a.k) + batch * a.k_batch + kv_head * a.k_head;
    values = static_cast<const char*>(a.v) + batch * a.v_batch + kv_head * a.v_head;
    mask = a.key_mask != nullptr ? a.key_mask + batch * a.mask_batch : nullptr;
    for (uint32_t t = 0; t < Tiles; ++t) open_row(all, t);
  }

  // A row that does not exist is one of zeros that sees nothing.
  __device__ void open_row(Range all, uint32_t t) {
    const uint32_t row = (block_y() * Tiles + t) * kColumns + column;
    const bool exists = row < rows;
    const uint32_t head = kv_head * (a.heads / a.kv_heads) + (exists ? row / a.queries : 0);
    const uint32_t index = exists ? row % a.queries : 0;
    const Range visible = visible_to(a, all, index);
    const int32_t end = visible.end < stop ? visible.end : stop;
    seen[t] = {visible.begin, exists && end > visible.begin ? end : visible.begin};
    const float q_scale = a.q_scale ? a.q_scale[batch * a.q_scale_batch + head * a.q_scale_head] : 1.0f;
    const float k_scale = a.k_scale ? a.k_scale[batch * a.k_scale_batch + kv_head * a.k_scale_head] : 1.0f;
    factor[t] = a.scale * q_scale * k_scale * kLog2E;
    maximum[t] = -kInfinity;
    sum[t] = 0.0f;
    const char* from = static_cast<const char*>(a.q) + batch * a.q_batch + uint64_t{head} * a.q_head +
                       uint64_t{index} * a.q_row;
#pragma unroll
    for (uint32_t s = 0; s < kSteps; ++s) {
      const bf16x8 loaded = query_fragment(from, Cache<T>::element(s, group));
      query[t][s] = exists ? loaded : bf16x8{};
    }
#pragma unroll
    for (uint32_t d = 0; d < kOutTiles; ++d) out[t][d] = 0.0f;
  }

  __device__ bf16x8 query_fragment(const char* row, uint32_t element) const {
    if (a.q_type == kDecodeBf16) return *reinterpret_cast<const bf16x8*>(row + 2 * element);
    const auto* codes = reinterpret_cast<const uint32_t*>(row + element);
    return Cache<e4m3>::widened(codes[0], codes[1]);
  }

  // ---- loads: keys at or after `stop` repeat the last one and are masked or zeroed where they are used

  __device__ const char* row_of(const char* base, uint32_t stride, int32_t key) const {
    return base + uint64_t{static_cast<uint32_t>(key < stop ? key : stop - 1)} * stride;
  }
  __device__ void load(int32_t tile) {
    for (uint32_t u = 0; u < 2; ++u) {
      const char* row = row_of(keys, a.k_row, tile + 16 * u + column);
#pragma unroll
      for (uint32_t s = 0; s < kKeyLoads; ++s) key_words[u][s] = load_words(row + 64 * s + 16 * group);
    }
#pragma unroll
    for (uint32_t i = 0; i < kValueLoads; ++i)
      value_words[i] = load_words(row_of(values, a.v_row, tile + value_key(i)) + lane() % kRowLanes * 16);
  }
  // The key within the tile of this lane's load `i` of V.
  __device__ static uint32_t value_key(uint32_t i) { return (i * kWaveLanes + lane()) / kRowLanes; }

  // ---- V: through LDS, because matrix instructions want a column's keys side by side

  __device__ char* staging() const { return shared.values[wave()]; }

  template <bool Clean>
  __device__ bool store_values(int32_t tile) const {
    bool unclean = false;
#pragma unroll
    for (uint32_t i = 0; i < kValueLoads; ++i) {
      const uint32_t key = value_key(i);
      const words raw = tile + static_cast<int32_t>(key) < stop ? value_words[i] : words{};
      char* to = staging() + key * kPitch + lane() % kRowLanes * (2 * kChunk);
      for (uint32_t f = 0; f < Cache<T>::kFragments; ++f) {
        words fragment = as<words>(Cache<T>::fragment(raw, f));
        if constexpr (Clean) unclean |= clean(fragment);
        *reinterpret_cast<words*>(to + 16 * f) = fragment;
      }
    }
    return unclean;
  }

  // NaN and infinities of eight bf16 to 0; whether there were any.
  __device__ static bool clean(words& fragment) {
    bool any = false;
    for (uint32_t w = 0; w < 4; ++w) {
      const uint32_t word = fragment[w];
      const bool low = (word & 0x7F80u) == 0x7F80u, high = (word & 0x7F800000u) == 0x7F800000u;
      fragment[w] = word & (low ? 0xFFFF0000u : ~0u) & (high ? 0x0000FFFFu : ~0u);
      any |= low || high;
    }
    return any;
  }

  // In a tile that not all rows see, 0 · NaN would reach rows that must not know of it: NaN and infinities
  // leave V and go to the rows that see their key, whatever its probability.
  __device__ void add_unclean(int32_t tile, const uint32_t (&visible)[Tiles]) {
    for (uint32_t key = 0; key < kTile && tile + static_cast<int32_t>(key) < stop; ++key) {
      const char* row = values + uint64_t{static_cast<uint32_t>(tile) + key} * a.v_row;
#pragma unroll
      for (uint32_t d = 0; d < kOutTiles; ++d)
        for (uint32_t r = 0; r < 4; ++r) {
          const float value = element_of(row, 16 * d + 4 * group + r);
          for (uint32_t t = 0; t < Tiles; ++t)
            out[t][d][r] += __builtin_isfinite(value) || (visible[t] >> key & 1) == 0 ? 0.0f : value;
        }
    }
  }
  __device__ static float element_of(const char* row, uint32_t d) {
    if constexpr (sizeof(T) == 2) return static_cast<float>(reinterpret_cast<const bf16*>(row)[d]);
    return __builtin_amdgcn_cvt_f32_fp8(static_cast<uint8_t>(row[d]), 0);
  }

  // ---- one tile

  // Bit k: key k of the tile.
  __device__ uint32_t unmasked(int32_t tile) const {
    if (mask == nullptr) return ~0u;
    const int32_t key = tile + static_cast<int32_t>(lane() % kTile);
    return static_cast<uint32_t>(__builtin_amdgcn_ballot_w64(mask[key < stop ? key : stop - 1] != 0));
  }
  __device__ static uint32_t bits_below(int32_t n) {
    return n <= 0 ? 0 : n >= static_cast<int32_t>(kTile) ? ~0u : (1u << n) - 1;
  }
  __device__ uint32_t visible_to_row(uint32_t t, int32_t tile, uint32_t allowed) const {
    return bits_below(seen[t].end - tile) & ~bits_below(seen[t].begin - tile) & allowed;
  }

  // Scores of the tile in log2 units: register r of product u is key 16 u + 4 group + r.
  struct Scores {
    floatx4 of[2];
  };
  __device__ Scores scores(uint32_t t, uint32_t visible) const {
    Scores s;
    for (uint32_t u = 0; u < 2; ++u) {
      s.of[u] = 0.0f;
#pragma unroll
      for (uint32_t step = 0; step < kSteps; ++step)
        s.of[u] = mfma_16x16x32(
            Cache<T>::fragment(key_words[u][step / Cache<T>::kFragments], step % Cache<T>::kFragments),
            query[t][step], s.of[u]);
      s.of[u] *= factor[t];
      const uint32_t own = visible >> (16 * u + 4 * group);
      for (uint32_t r = 0; r < 4; ++r) s.of[u][r] = (own >> r & 1) != 0 ? s.of[u][r] : -kInfinity;
    }
    return s;
  }

  // Probabilities of the tile, rounded; `sum` takes what was rounded.
  __device__ bf16x8 probabilities(uint32_t t, const Scores& s) {
    float largest = maximum[t];
    for (uint32_t u = 0; u < 2; ++u)
      for (uint32_t r = 0; r < 4; ++r) largest = __builtin_fmaxf(largest, s.of[u][r]);
    largest = max_of_groups(largest);
    if (__builtin_amdgcn_ballot_w64(largest != maximum[t]) != 0) rescale(t, largest);
    bf16x8 p;
    for (uint32_t e = 0; e < 8; ++e) p[e] = static_cast<bf16>(exp2(s.of[e / 4][e % 4] - subtrahend(largest)));
    for (uint32_t e = 0; e < 8; ++e) sum[t] += static_cast<float>(p[e]);
    return p;
  }
  __device__ void rescale(uint32_t t, float largest) {
    const float keep = largest == maximum[t] ? 1.0f : exp2(maximum[t] - largest);
    sum[t] *= keep;
#pragma unroll
    for (uint32_t d = 0; d < kOutTiles; ++d) out[t][d] *= keep;
    maximum[t] = largest;
  }

  // Eight keys of column `d` of V, in the order of the probabilities' registers.
  __device__ bf16x8 value_fragment(uint32_t d) const {
    const uint32_t at = (4 * group + column / 4) * kPitch + 32 * d + column % 4 * 8;
    const bf16x4 low = read_transposed(staging() + at), high = read_transposed(staging() + at + 16 * kPitch);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
  }

  // Four columns at a time, the next four on their way: registers of V are written only when others were used
  // in between (rule G21).
  __device__ void add_products(const bf16x8 (&p)[Tiles]) {
    constexpr uint32_t kAtOnce = 4;
    bf16x8 v[2][kAtOnce];
#pragma unroll
    for (uint32_t d = 0; d < kOutTiles + kAtOnce; d += kAtOnce) {
      if (d < kOutTiles)
        for (uint32_t i = 0; i < kAtOnce; ++i) {
          v[d / kAtOnce % 2][i] = value_fragment(d + i);
          __builtin_amdgcn_sched_barrier(0);
        }
      if (d == 0) continue;
      for (uint32_t i = 0; i < kAtOnce; ++i)
        for (uint32_t t = 0; t < Tiles; ++t) {
          floatx4& sum = out[t][d - kAtOnce + i];
          sum = mfma_16x16x32(v[(d / kAtOnce + 1) % 2][i], p[t], sum);
        }
      __builtin_amdgcn_sched_barrier(0);
    }
  }

  __device__ void run() {
    int32_t tile = start + static_cast<int32_t>(wave() * kTile);
    if (tile < stop) load(tile);
    for (; tile < stop; tile += kWaves * kTile) {
      const bool full = mask == nullptr && tile >= all_from && tile + static_cast<int32_t>(kTile) <= all_to;
      const bool unclean = full ? store_values<false>(tile) : store_values<true>(tile);
      const uint32_t allowed = unmasked(tile);
      uint32_t visible[Tiles];
      Scores s[Tiles];
      for (uint32_t t = 0; t < Tiles; ++t) {
        visible[t] = visible_to_row(t, tile, allowed);
        s[t] = scores(t, visible[t]);
      }
      // The products have read K when their sums have been scaled: no load lands in an operand (rule G21).
      __builtin_amdgcn_sched_barrier(0);
      load(tile + kWaves * kTile);
      bf16x8 p[Tiles];
      for (uint32_t t = 0; t < Tiles; ++t) p[t] = probabilities(t, s[t]);
      add_products(p);
      if (__builtin_amdgcn_ballot_w64(unclean) != 0) add_unclean(tile, visible);
    }
  }

  // ---- the four waves together, wave 0 first

  __device__ void join() {
    for (uint32_t t = 0; t < Tiles; ++t) {
      const float total = sum_of_groups(sum[t]);
      if (group == 0) {
        shared.maximum[wave()][t * kColumns + column] = maximum[t];
        shared.sum[wave()][t * kColumns + column] = total;
      }
    }
    barrier();
    for (uint32_t t = 0; t < Tiles; ++t) {
      if (t != 0) barrier();  // readers of the previous tile are done
      join_sums(t);
      barrier();
      join_outputs(t);
    }
  }
  __device__ uint64_t part_of(uint32_t row) const {
    return ((uint64_t{block_z()} * rows) + row) * a.splits + block();
  }
  __device__ void join_sums(uint32_t t) {
    float largest = -kInfinity, total = 0.0f;
    for (uint32_t w = 0; w < kWaves; ++w)
      largest = __builtin_fmaxf(largest, shared.maximum[w][t * kColumns + column]);
    for (uint32_t w = 0; w < kWaves; ++w)
      total += shared.sum[w][t * kColumns + column] *
               exp2(shared.maximum[w][t * kColumns + column] - subtrahend(largest));
    const float keep = exp2(maximum[t] - subtrahend(largest));
    auto* to = reinterpret_cast<float*>(staging());
#pragma unroll
    for (uint32_t d = 0; d < kOutTiles; ++d)
      *reinterpret_cast<floatx4*>(to + column * kOutPitch + 16 * d + 4 * group) = out[t][d] * keep;
    const uint32_t row = (block_y() * Tiles + t) * kColumns + column;
    if (wave() == 0 && group == 0 && row < rows) {
      a.partial_sums[2 * part_of(row)] = largest;
      a.partial_sums[2 * part_of(row) + 1] = total;
    }
  }
  __device__ void join_outputs(uint32_t t) const {
    for (uint32_t i = 4 * thread(); i < kColumns * Dv; i += 4 * kDecodeItems) {
      const uint32_t row = (block_y() * Tiles + t) * kColumns + i / Dv;
      if (row >= rows) return;
      const uint32_t at = i / Dv * kOutPitch + i % Dv;
      floatx4 total = 0.0f;
      for (uint32_t w = 0; w < kWaves; ++w)
        total += *reinterpret_cast<const floatx4*>(reinterpret_cast<const float*>(shared.values[w]) + at);
      *reinterpret_cast<floatx4*>(a.partial_out + part_of(row) * Dv + i % Dv) = total;
    }
  }
};

template <typename T, uint32_t Dqk, uint32_t Dv, uint32_t Tiles>
__device__ void decode(const DecodeArguments& a) {
  using Kernel = Decode<T, Dqk, Dv, Tiles>;
  __shared__ typename Kernel::Shared shared;
  Kernel kernel(a, shared);
  kernel.run();
  kernel.join();
}

__device__ void store(void* to, uint32_t type, float x) {
  if (type == kDecodeF32) {
    *static_cast<float*>(to) = x;
  } else if (type == kDecodeF16) {
    *static_cast<half*>(to) = static_cast<half>(x);
  } else {
    *static_cast<bf16*>(to) = static_cast<bf16>(x);
  }
}

}  // namespace

#define ZYFA_DECODE(kv, T, dqk, dv)                                                                    \
  __global__ __launch_bounds__(kDecodeItems) void decode_##kv##_##dqk##_##dv##_16(DecodeArguments a) { \
    decode<T, dqk, dv, 1>(a);                                                                          \
  }                                                                                                    \
  __global__ __launch_bounds__(kDecodeItems) void decode_##kv##_##dqk##_##dv##_32(DecodeArguments a) { \
    decode<T, dqk, dv, 2>(a);                                                                          \
  }

ZYFA_DECODE(bf16, bf16, 64, 64)
ZYFA_DECODE(bf16, bf16, 128, 128)
ZYFA_DECODE(bf16, bf16, 192, 128)
ZYFA_DECODE(bf16, bf16, 256, 256)
ZYFA_DECODE(e4m3, e4m3, 64, 64)
ZYFA_DECODE(e4m3, e4m3, 128, 128)
ZYFA_DECODE(e4m3, e4m3, 192, 128)
ZYFA_DECODE(e4m3, e4m3, 256, 256)

namespace {

// Largest maximum of a row's parts, and the sum of its exponentials.
struct Total {
  float largest, sum;
};
__device__ Total total_of(const float* sums, uint32_t splits) {
  Total total = {-kInfinity, 0.0f};
  for (uint32_t s = lane(); s < splits; s += kWaveLanes)
    total.largest = __builtin_fmaxf(total.largest, sums[2 * s]);
  total.largest = wave_max(total.largest);
  for (uint32_t s = lane(); s < splits; s += kWaveLanes)
    total.sum += sums[2 * s + 1] * exp2(sums[2 * s] - subtrahend(total.largest));
  total.sum = wave_sum(total.sum);
  return total;
}

// The sum of every `step`-th part of the row from `first` on, four columns; several loads on their way.
__device__ floatx4 sum_of_parts(const DecodeArguments& a, uint64_t part, float largest, uint32_t first,
                                uint32_t step, uint32_t column) {
  constexpr uint32_t kAtOnce = 8;
  const float *outs = a.partial_out + part * a.v_dim, *sums = a.partial_sums + 2 * part;
  floatx4 out = 0.0f;
  for (uint32_t base = first; base < a.splits; base += kAtOnce * step) {
    floatx4 parts[kAtOnce];
    float maxima[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t s = base + i * step < a.splits ? base + i * step : first;
      parts[i] = *reinterpret_cast<const floatx4*>(outs + (s * a.v_dim + column));
      maxima[i] = sums[2 * s];
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i)
      if (base + i * step < a.splits) out += parts[i] * exp2(maxima[i] - subtrahend(largest));
  }
  return out;
}

__device__ void store_row(const DecodeArguments& a, uint32_t column, floatx4 out, Total total) {
  const uint32_t head = block(), query = block_y(), batch = block_z();
  const uint32_t kv_head = head / (a.heads / a.kv_heads);
  const float v_scale = a.v_scale ? a.v_scale[batch * a.v_scale_batch + kv_head * a.v_scale_head] : 1.0f;
  // A sink enlarges the denominator and is not part of lse.
  const float sink = a.sinks ? exp2(a.sinks[head] * kLog2E - subtrahend(total.largest)) : 0.0f;
  const uint32_t bytes = a.out_type == kDecodeF32 ? 4 : 2;
  char* to =
      static_cast<char*>(a.out) + batch * a.out_batch + head * a.out_head + uint64_t{query} * a.out_row;
  for (uint32_t i = 0; i < 4; ++i)
    store(to + (column + i) * bytes, a.out_type,
          total.sum == 0.0f ? 0.0f : out[i] * v_scale / (total.sum + sink));
}

}  // namespace

// Output and lse of one row: work-items of four columns each, the rest of the workgroup shares its parts.
__global__ __launch_bounds__(kDecodeItems) void decode_combine(DecodeArguments a) {
  __shared__ floatx4 sums[kDecodeItems];
  const uint64_t row = (uint64_t{block_z()} * a.heads + block()) * a.queries + block_y(),
                 part = row * a.splits;
  const uint32_t columns = a.v_dim / 4, groups = kDecodeItems / columns;
  const uint32_t column = 4 * (thread() % columns), group = thread() / columns;
  const Total total = total_of(a.partial_sums + 2 * part, a.splits);
  sums[thread()] = sum_of_parts(a, part, total.largest, group, groups, column);
  barrier();
  if (group != 0) return;
  floatx4 out = sums[thread()];
  for (uint32_t g = 1; g < groups; ++g) out += sums[g * columns + thread()];
  store_row(a, column, out, total);
  if (a.lse != nullptr && thread() == 0)
    a.lse[row] = total.sum == 0.0f ? -kInfinity : kLn2 * (total.largest + __builtin_amdgcn_logf(total.sum));
}
