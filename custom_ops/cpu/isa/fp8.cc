// Probabilities of the FP8 path (docs/numerics.md, "A row in a tile"), a lane per query row. Compiled without
// contraction: the fused multiply-adds are the ones of that page.
#include <algorithm>

#include "isa.hpp"
#include "vector.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr float kTau = 0.25f;  // log2 units a tile may exceed the anchor before the row is re-anchored
constexpr float kAnchorCode = 126.0f;  // e4m3 code of 448

// Below that in e, two-term p stays below 464, from where e4m3 saturates, and codes below 2^16: the sums of
// steps 4 and 5 err by less than 2^-4 and 2^-7.
constexpr float kSaturatesFrom = 65536.0f;

// Exponent or code of a score: fma(s, factor, offset), of a Finished one fma(s - shift, factor, offset).
template <bool Finished>
struct BlockMap {
  Floats shift, factor, offset;
  Floats power;    // 2^d
  bool saturates;  // p may

  Floats operator()(const Floats& s) const { return fused(Finished ? s - shift : s, factor, offset); }
};

inline bool any(const Ints& condition) {
#if defined(__AVX512DQ__)
  return _mm512_movepi32_mask((__m512i)condition) != 0;
#else
  int32_t found = 0;
  for (int lane = 0; lane < kLaneBlock; ++lane) found |= condition[lane];
  return found != 0;
#endif
}

// The largest score of each lane.
inline Floats largest(const KeySpan& keys, int64_t lanes, const float* s) {
  constexpr int kChains = 8;
  Floats best[kChains];
  for (Floats& lane : best) lane = all(-kInfinity);
  int64_t key = keys.first;
  for (; key + kChains <= keys.past(); key += kChains)
    for (int c = 0; c < kChains; ++c) best[c] = max_of(load(s + (key + c) * lanes), best[c]);
  for (; key < keys.past(); key += 2)
    for (int c = 0; c < 2; ++c) best[c] = max_of(load(s + (key + c) * lanes), best[c]);
  for (int step = kChains / 2; step > 0; step /= 2)
    for (int c = 0; c < step; ++c) best[c] = max_of(best[c], best[c + step]);
  return best[0];
}

// Steps 1 to 3: anchor, keep, block exponent.
template <bool Finished>
inline BlockMap<Finished> look(const LaneScale& scale, BlockKind kind, int64_t at, int64_t lanes,
                               const KeySpan& keys, LaneState& state, const float* s) {
  const Floats top = largest(keys, lanes, s + at);
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
  const bool saturates = any(~((e < kSaturatesFrom) & (e > -kSaturatesFrom)));
  const float unit = lean ? kAnchorCode : kFp8Unit, per_log2 = lean ? 8.0f : 1.0f;
  const Floats power = power_of_two(d);
  if (Finished) return {e, all(per_log2), all(unit), power, saturates};
  return {Floats{}, a * per_log2, lean ? kAnchorCode - 8.0f * e : kFp8Unit - e, power, saturates};
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
inline Floats to_four_bits(const Floats& x, const Floats& smallest) {
  constexpr float kShift = kRoundingShift * 0.125f;
  const Floats power = max_of(floats_of(bits_of(x) & 0x7f800000u), smallest);
  return mul_add(power, all(-kShift), mul_add(power, all(kShift), x));  // products are exact
}

struct Terms {
  Floats high, low;  // both as they count
};

// Two terms of p = exp2(x), times 2^d: e4m3(p) and e4m3(16 * (p - high)) / 16. Both saturate where scores of
// millions are rounded to p beyond 448.
template <bool Saturates>
struct TwoTerms {
  explicit TwoTerms(const Floats& power)
      : power(power), high_step(power * 0x1p-6f), low_step(power * 0x1p-10f) {
    for (int i = 0; i < kExp2Terms; ++i) coefficients[i] = power * kExp2[i];
  }

  Terms operator()(const Floats& x) const {
    const Floats p = exp2_of(x, [this](int i) { return coefficients[i]; });
    Floats high = to_four_bits(p, high_step);
    if (Saturates) high = min_of(high, power * 448.0f);
    const Floats rest = Saturates ? min_of(p - high, power * 28.0f) : p - high;
    return {high, to_four_bits(rest, low_step)};
  }

 private:
  const Floats power, high_step, low_step;
  Floats coefficients[kExp2Terms];
};

#if defined(__AVX512BW__)
// Lean P of two keys as a pair: codes turn into bfloat16 numbers in 16-bit lanes, both keys at once.
template <bool Saturates>
struct LeanPairs {
  explicit LeanPairs(const Floats& power) {
    // d in the exponent field of both halves.
    const __m512i d =
        _mm512_sub_epi16(_mm512_srli_epi32((__m512i)bits_of(power), 16), _mm512_set1_epi32(0x3f80));
    exponent = _mm512_or_si512(_mm512_and_si512(d, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(d, 16));
    normal_base = _mm512_add_epi16(exponent, _mm512_set1_epi16(120 << 7));
  }

  Words operator()(const Floats& first, const Floats& second) const {
    const __m512i code = codes(first, second);
    const __m512i normal = _mm512_add_epi16(_mm512_slli_epi16(code, 4), normal_base);
    const __mmask32 is_subnormal = _mm512_cmplt_epi16_mask(code, _mm512_set1_epi16(8));
    const __m512i multiple = _mm512_permutexvar_epi16(code, multiples);
    const __m512i subnormal = _mm512_maskz_add_epi16(_mm512_test_epi16_mask(code, code), multiple, exponent);
    return (Words)_mm512_mask_mov_epi16(normal, is_subnormal, subnormal);
  }

 private:
  // What does not saturate is far below 2^16, where packing and the smaller one are the clamp.
  static __m512i codes(const Floats& first, const Floats& second) {
    const __m512i halves = _mm512_packus_epi32(rounded(first), rounded(second));
    const __m512i interleave =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    return _mm512_shuffle_epi8(Saturates ? halves : _mm512_min_epu16(halves, _mm512_set1_epi16(126)),
                               interleave);
  }
  static __m512i rounded(const Floats& t) { return _mm512_cvtps_epi32((__m512)(Saturates ? clamped(t) : t)); }

  __m512i exponent, normal_base;
  // bfloat16 multiples of 2^-9, by code.
  const __m512i multiples =
      _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60));
};
#endif

// What a block adds to the sums of its lanes; `watch` is NaN once the exponent or code of a score was, where
// `sum` would not be.
struct Added {
  Floats sum{}, watch{};
};

// Calls put(key, first, second) with what two keys are worth: pairs of high and low terms.
template <bool Finished, typename Probability, typename Put>
inline Floats each_pair(const BlockMap<Finished>& map, const KeySpan& keys, int64_t lanes, const float* s,
                        const Probability& probability, const Put& put) {
  Floats sum{};
  for (int64_t key = keys.first; key < keys.past(); key += 2) {
    const Terms first = probability(map(load(s + key * lanes)));
    const Terms second = probability(map(load(s + (key + 1) * lanes)));
    put(key, first, second);
    sum += (first.high + first.low) + (second.high + second.low);
  }
  return sum;
}

template <bool Finished, typename Put>
inline Added by_kind(BlockKind kind, const BlockMap<Finished>& map, const KeySpan& keys, int64_t lanes,
                     const float* s, const Put& put) {
  Added added;
  const auto each = [&](const auto& probability) {
    added.sum = each_pair(map, keys, lanes, s, probability, put);
  };
  const auto watched = [&](const auto& probability) {
    each([&](const Floats& x) {
      added.watch += x;
      return probability(x);
    });
  };
  if (kind == BlockKind::bfloat16)
    each([&](const Floats& x) { return Terms{to_eight_bits(exp2_of(x)) * map.power, Floats{}}; });
  else if (kind == BlockKind::lean)
    watched([&](const Floats& t) { return Terms{lean(t) * map.power, Floats{}}; });
  else if (map.saturates)
    watched(TwoTerms<true>(map.power));
  else
    each(TwoTerms<false>(map.power));
  return added;
}

#if defined(__AVX512BW__)
template <bool Saturates, bool Finished>
inline Added lean_pairs(const BlockMap<Finished>& map, const KeySpan& keys, int64_t lanes, const float* s,
                        uint32_t* p) {
  const LeanPairs<Saturates> lean(map.power);
  Floats first{}, second{}, watch{};
  for (int64_t key = keys.first; key < keys.past(); key += 2) {
    const Floats one = map(load(s + key * lanes)), two = map(load(s + (key + 1) * lanes));
    watch += one;
    watch += two;
    const Words pair = lean(one, two);
    store(p + key / 2 * lanes, pair);
    first += floats_of(pair << 16);
    second += floats_of(pair & 0xffff0000u);
  }
  return {first + second, watch};
}
#endif

inline void finish(int64_t at, LaneState& state, const Added& added) {
  store(state.sum + at, load(state.sum + at) * load(state.keep + at) + added.sum);
  const Floats either = added.sum + added.watch;
  store(state.nan + at, load_as<Ints>(state.nan + at) | (either != either));
}

// Looks at all blocks, so that one does not wait for the anchors of another, then calls
// body(first lane, kind, map) for each; `map` says nothing for those to skip.
template <bool Finished, typename Body>
inline void each_block(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                       LaneState& state, const float* s, const Body& body) {
  BlockMap<Finished> maps[kPanelLanes / kLaneBlock];
  for (int64_t block = 0; block < lanes / kLaneBlock; ++block) {
    const int64_t at = block * kLaneBlock;
    if (kinds[block] == BlockKind::skip)
      store(state.keep + at, all(1.0f));
    else
      maps[block] = look<Finished>(scale, kinds[block], at, lanes, spans.block[block], state, s);
  }
  for (int64_t block = 0; block < lanes / kLaneBlock; ++block)
    body(block * kLaneBlock, kinds[block], maps[block]);
}

template <bool Finished>
void fp32_tile(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
               LaneState& state, float* s) {
  each_block<Finished>(
      scale, kinds, lanes, spans, state, s, [&](int64_t at, BlockKind kind, const BlockMap<Finished>& map) {
        float* block = s + at;
        const KeySpan keys = kind == BlockKind::skip ? KeySpan{0, 0} : spans.block[at / kLaneBlock];
        for (int64_t key = 0; key < keys.first; ++key) store(block + key * lanes, Floats{});
        for (int64_t key = keys.past(); key < kTileKeys; ++key) store(block + key * lanes, Floats{});
        if (kind == BlockKind::skip) return;
        finish(
            at, state,
            by_kind(kind, map, keys, lanes, block, [&](int64_t key, const Terms& first, const Terms& second) {
              store(block + key * lanes, first.high + first.low);
              store(block + (key + 1) * lanes, second.high + second.low);
            }));
      });
}

// Pairs of `within` but those of `keys` become 0.
inline void clear(const KeySpan& within, const KeySpan& keys, int64_t lanes, uint32_t* p) {
  for (int64_t key = within.first; key < std::min(keys.first, within.past()); key += 2)
    store(p + key / 2 * lanes, Words{});
  for (int64_t key = std::max(keys.past(), within.first); key < within.past(); key += 2)
    store(p + key / 2 * lanes, Words{});
}

template <bool Finished>
void pairs_tile(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                LaneState& state, const float* s, uint32_t* p, uint32_t* low) {
  each_block<Finished>(
      scale, kinds, lanes, spans, state, s, [&](int64_t at, BlockKind kind, const BlockMap<Finished>& map) {
        const KeySpan read = outward(spans.of(at)), none = {read.first, 0};
        const KeySpan& keys = kind == BlockKind::skip ? none : spans.block[at / kLaneBlock];
        clear(read, keys, lanes, p + at);
        if (low != nullptr) clear(read, kind == BlockKind::two_term ? keys : none, lanes, low + at);
        if (kind == BlockKind::skip) return;
#if defined(__AVX512BW__)
        if (kind == BlockKind::lean)
          return finish(at, state,
                        (map.saturates ? lean_pairs<true, Finished>
                                       : lean_pairs<false, Finished>)(map, keys, lanes, s + at, p + at));
#endif
        const auto put = [&](int64_t key, const Terms& first, const Terms& second) {
          store(p + key / 2 * lanes + at, pair_of(first.high, second.high));
          if (kind == BlockKind::two_term) store(low + key / 2 * lanes + at, pair_of(first.low, second.low));
        };
        finish(at, state, by_kind(kind, map, keys, lanes, s + at, put));
      });
}

}  // namespace

template <typename Tag>
void Fp8<Tag>::fp32(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                    LaneState& state, float* s) {
  (scale.finished ? fp32_tile<true> : fp32_tile<false>)(scale, kinds, lanes, spans, state, s);
}

template <typename Tag>
void Fp8<Tag>::pairs(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, const KeySpans& spans,
                     LaneState& state, const float* s, uint32_t* p, uint32_t* low) {
  (scale.finished ? pairs_tile<true> : pairs_tile<false>)(scale, kinds, lanes, spans, state, s, p, low);
}

template struct Fp8<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
