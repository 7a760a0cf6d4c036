// Probabilities of the FP8 path (docs/numerics.md, "A row in a tile"), a lane per query row. Compiled without
// contraction: the fused multiply-adds are the ones of that page.
#include "isa.hpp"
#include "vector.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr float kTau = 0.25f;  // log2 units a tile may exceed the anchor before the row is re-anchored
constexpr float kAnchorCode = 126.0f;  // e4m3 code of 448

// Exponent or code of a score: fma(s, factor, offset), of a Finished one fma(s - shift, factor, offset).
template <bool Finished>
struct BlockMap {
  Floats shift, factor, offset;
  Floats power;       // 2^d
  Floats watch = {};  // NaN once a score was

  Floats operator()(const Floats& s) {
    const Floats mapped = fused(Finished ? s - shift : s, factor, offset);
    watch += mapped;
    return mapped;
  }
};

// Steps 1 to 3: anchor, keep, block exponent.
template <bool Finished>
inline BlockMap<Finished> look(const LaneScale& scale, BlockKind kind, int64_t at, int64_t lanes,
                               LaneState& state, const float* s) {
  constexpr int kChains = 4;
  Floats best[kChains];
  for (Floats& lane : best) lane = all(-kInfinity);
  for (int64_t key = 0; key < kTileKeys; key += kChains)
    for (int c = 0; c < kChains; ++c) best[c] = max_of(load(s + (key + c) * lanes), best[c]);
  const Floats top = max_of(max_of(best[0], best[1]), max_of(best[2], best[3]));

  const Floats a = load(scale.factor + at), m = load(state.anchor + at), b = a * top;
  const Ints none = top == -kInfinity, first = m == -kInfinity;
  const Ints moves = ~none & (first | (b > m + kTau));
  const Floats anchor = moves ? b : m;
  store(state.anchor + at, anchor);
  store(state.keep + at, moves & ~first ? exp2_of(m - b) : all(1.0f));
  // ceil by rounding up what rint rounded down; b - m is at most tau here.
  Floats d = none ? Floats{} : max_of(b - anchor, all(-60.0f));
  const Floats nearest = (d + kRoundingShift) - kRoundingShift;
  d = nearest < d ? nearest + 1.0f : nearest;
  d = min_of(d, all(60.0f));
  store(state.exponent + at, __builtin_convertvector(d, Ints));
  const Floats e = none ? Floats{} : anchor + d;

  const bool lean = kind == BlockKind::lean;
  const float unit = lean ? kAnchorCode : kFp8Unit, per_log2 = lean ? 8.0f : 1.0f;
  const Floats power = power_of_two(d);
  if (Finished) return {e, all(per_log2), all(unit), power};
  return {Floats{}, a * per_log2, lean ? kAnchorCode - 8.0f * e : kFp8Unit - e, power};
}

// The code of t: min(max(rint(t), 0), 126), 0 for NaN; as 32-bit lanes of rint's magic number.
inline Floats clamped(const Floats& t) { return min_of(max_of(t, Floats{}), all(126.0f)); }

// e4m3 value of the code, exact.
inline Floats lean(const Floats& t) {
  const Floats shifted = clamped(t) + kRoundingShift;
  const Words code = bits_of(shifted) & 0x7fu;
  const Floats subnormal = (shifted - kRoundingShift) * 0x1p-9f;
  return code < 8u ? subnormal : floats_of((code << 20) + (120u << 23));
}

// x to a multiple of 2^-3 of its power of two, or of that of `smallest`, nearest even: adding 1.5 * 2^23 of
// such steps rounds.
inline Floats to_four_bits(const Floats& x, float smallest) {
  const Floats power = max_of(floats_of(bits_of(x) & 0x7f800000u), all(smallest));
  const Floats shift = power * (kRoundingShift * 0.125f);
  return (x + shift) - shift;
}

struct Terms {
  Floats high, low;  // both as they count
};

// e4m3(p) and e4m3(16 * (p - high)) / 16 of p = exp2(x). Both saturate where scores of millions are rounded
// to p beyond 448.
inline Terms two_terms(const Floats& x) {
  const Floats p = exp2_of(x), high = min_of(to_four_bits(p, 0x1p-6f), all(448.0f));
  return {high, to_four_bits(min_of(p - high, all(28.0f)), 0x1p-10f)};
}

#if defined(__AVX512BW__)
// Lean P of two keys as a pair: codes turn into bfloat16 numbers in 16-bit lanes, both keys at once.
template <bool Finished>
struct LeanPairs {
  explicit LeanPairs(BlockMap<Finished>& map) : map(map) {
    // d in the exponent field of both halves.
    const __m512i d =
        _mm512_sub_epi16(_mm512_srli_epi32((__m512i)bits_of(map.power), 16), _mm512_set1_epi32(0x3f80));
    exponent = _mm512_or_si512(_mm512_and_si512(d, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(d, 16));
    normal_base = _mm512_add_epi16(exponent, _mm512_set1_epi16(120 << 7));
  }

  Words operator()(const Floats& first, const Floats& second) const {
    const __m512i code = _mm512_or_si512(rounded(first), _mm512_slli_epi32(rounded(second), 16));
    const __m512i normal = _mm512_add_epi16(_mm512_slli_epi16(code, 4), normal_base);
    const __mmask32 is_subnormal = _mm512_cmplt_epi16_mask(code, _mm512_set1_epi16(8));
    const __m512i multiple = _mm512_permutexvar_epi16(code, multiples);
    const __m512i subnormal = _mm512_maskz_add_epi16(_mm512_test_epi16_mask(code, code), multiple, exponent);
    return (Words)_mm512_mask_mov_epi16(normal, is_subnormal, subnormal);
  }

 private:
  __m512i rounded(const Floats& s) const { return _mm512_cvtps_epi32((__m512)clamped(map(s))); }

  BlockMap<Finished>& map;
  __m512i exponent, normal_base;
  // bfloat16 multiples of 2^-9, by code.
  const __m512i multiples =
      _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60));
};
#endif

// Calls put(key, first, second) with what two keys are worth: pairs of high and low terms.
template <bool Finished, typename Probability, typename Put>
inline void each_pair(BlockMap<Finished>& map, int64_t lanes, const float* s, const Probability& probability,
                      const Put& put) {
  for (int64_t key = 0; key < kTileKeys; key += 2)
    put(key, probability(map(load(s + key * lanes))), probability(map(load(s + (key + 1) * lanes))));
}

template <bool Finished, typename Put>
inline void by_kind(BlockKind kind, BlockMap<Finished>& map, int64_t lanes, const float* s, const Put& put) {
  if (kind == BlockKind::lean)
    each_pair(map, lanes, s, [&](const Floats& t) { return Terms{lean(t) * map.power, Floats{}}; }, put);
  else if (kind == BlockKind::two_term)
    each_pair(
        map, lanes, s,
        [&](const Floats& x) {
          const Terms terms = two_terms(x);
          return Terms{terms.high * map.power, terms.low * map.power};
        },
        put);
  else
    each_pair(
        map, lanes, s,
        [&](const Floats& x) { return Terms{to_eight_bits(exp2_of(x)) * map.power, Floats{}}; }, put);
}

#if defined(__AVX512BW__)
template <bool Finished>
inline Floats lean_pairs(BlockMap<Finished>& map, int64_t lanes, const float* s, uint32_t* p) {
  const LeanPairs<Finished> lean(map);
  Floats first{}, second{};
  for (int64_t key = 0; key < kTileKeys; key += 2) {
    const Words pair = lean(load(s + key * lanes), load(s + (key + 1) * lanes));
    store(p + key / 2 * lanes, pair);
    first += floats_of(pair << 16);
    second += floats_of(pair & 0xffff0000u);
  }
  return first + second;
}
#endif

template <bool Finished>
inline void finish(int64_t at, LaneState& state, const BlockMap<Finished>& map, const Floats& added) {
  store(state.sum + at, load(state.sum + at) * load(state.keep + at) + added);
  store(state.nan + at, load_as<Ints>(state.nan + at) | (map.watch != map.watch));
}

template <bool Finished>
void fp32_tile(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, LaneState& state, float* s) {
  for (int64_t at = 0; at < lanes; at += kLaneBlock) {
    float* block = s + at;
    const BlockKind kind = kinds[at / kLaneBlock];
    if (kind == BlockKind::skip) {
      store(state.keep + at, all(1.0f));
      for (int64_t key = 0; key < kTileKeys; ++key) store(block + key * lanes, Floats{});
      continue;
    }
    BlockMap<Finished> map = look<Finished>(scale, kind, at, lanes, state, block);
    Floats sum{};
    by_kind(kind, map, lanes, block, [&](int64_t key, const Terms& first, const Terms& second) {
      const Floats one = first.high + first.low, two = second.high + second.low;
      store(block + key * lanes, one);
      store(block + (key + 1) * lanes, two);
      sum += one + two;
    });
    finish(at, state, map, sum);
  }
}

template <bool Finished>
void pairs_tile(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, LaneState& state,
                const float* s, uint32_t* p, uint32_t* low) {
  const auto clear = [lanes](uint32_t* block) {
    for (int64_t key = 0; key < kTileKeys; key += 2) store(block + key / 2 * lanes, Words{});
  };
  for (int64_t at = 0; at < lanes; at += kLaneBlock) {
    const BlockKind kind = kinds[at / kLaneBlock];
    if (kind == BlockKind::skip) {
      store(state.keep + at, all(1.0f));
      clear(p + at);
      if (low != nullptr) clear(low + at);
      continue;
    }
    BlockMap<Finished> map = look<Finished>(scale, kind, at, lanes, state, s + at);
#if defined(__AVX512BW__)
    if (kind == BlockKind::lean) {
      const Floats sum = lean_pairs(map, lanes, s + at, p + at);
      finish(at, state, map, sum);
      if (low != nullptr) clear(low + at);
      continue;
    }
#endif
    Floats sum{};
    by_kind(kind, map, lanes, s + at, [&](int64_t key, const Terms& first, const Terms& second) {
      store(p + key / 2 * lanes + at, pair_of(first.high, second.high));
      if (low != nullptr) store(low + key / 2 * lanes + at, pair_of(first.low, second.low));
      sum += (first.high + first.low) + (second.high + second.low);
    });
    finish(at, state, map, sum);
  }
}

}  // namespace

template <typename Tag>
void Fp8<Tag>::fp32(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, LaneState& state,
                    float* s) {
  (scale.finished ? fp32_tile<true> : fp32_tile<false>)(scale, kinds, lanes, state, s);
}

template <typename Tag>
void Fp8<Tag>::pairs(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, LaneState& state,
                     const float* s, uint32_t* p, uint32_t* low) {
  (scale.finished ? pairs_tile<true> : pairs_tile<false>)(scale, kinds, lanes, state, s, p, low);
}

template struct Fp8<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
