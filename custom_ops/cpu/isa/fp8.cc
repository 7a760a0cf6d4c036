// Probabilities of the FP8 path (docs/numerics.md, "A row in a tile"), a lane per query row. Compiled without
// contraction: the fused multiply-adds are the ones of that page.
#include "isa.hpp"
#include "vector.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr float kTau = 1.0f;           // log2 units a tile may exceed the anchor before the row is re-anchored
constexpr float kAnchorCode = 126.0f;  // e4m3 code of 448
constexpr float kUnit = 8.80708f;      // log2 of what a probability of one is worth: 8 + (6 + 0.45665) / 8

struct BlockMap {
  Floats shift, factor, offset;  // exponent or code of a score: fma(s - shift, factor, offset)
  Floats power;                  // 2^d

  Floats operator()(const Floats& s) const { return fused(s - shift, factor, offset); }
};

// Steps 1 to 3: anchor, keep, block exponent.
inline BlockMap look(const LaneScale& scale, BlockKind kind, int64_t at, int64_t lanes, LaneState& state,
                     const float* s) {
  constexpr int kChains = 4;
  Floats best[kChains];
  Ints nan[kChains] = {};
  for (Floats& lane : best) lane = all(-kInfinity);
  for (int64_t key = 0; key < kTileKeys; key += kChains)
    for (int c = 0; c < kChains; ++c) {
      const Floats x = load(s + (key + c) * lanes);
      best[c] = max_of(x, best[c]);
      nan[c] |= x != x;
    }
  const Floats top = max_of(max_of(best[0], best[1]), max_of(best[2], best[3]));
  store(state.nan + at, load_as<Ints>(state.nan + at) | nan[0] | nan[1] | nan[2] | nan[3]);

  const Floats a = load(scale.factor + at), m = load(state.anchor + at), b = a * top;
  const Ints none = top == -kInfinity, first = m == -kInfinity;
  const Ints moves = ~none & (first | (b > m + kTau));
  const Floats anchor = moves ? b : m;
  store(state.anchor + at, anchor);
  store(state.keep + at, moves & ~first ? exp2_of(m - b) : all(1.0f));
  // ceil by rounding up what rint rounded down; b - m is at most 1 here.
  Floats d = none ? Floats{} : max_of(b - anchor, all(-60.0f));
  const Floats nearest = (d + kRoundingShift) - kRoundingShift;
  d = nearest < d ? nearest + 1.0f : nearest;
  d = min_of(d, all(60.0f));
  store(state.exponent + at, __builtin_convertvector(d, Ints));
  const Floats e = none ? Floats{} : anchor + d;

  const bool lean = kind == BlockKind::lean;
  const float unit = lean ? kAnchorCode : kUnit, per_log2 = lean ? 8.0f : 1.0f;
  const Floats power = power_of_two(d);
  if (scale.finished) return {e, all(per_log2), all(unit), power};
  return {Floats{}, a * per_log2, lean ? kAnchorCode - 8.0f * e : kUnit - e, power};
}

// e4m3 value of min(max(rint(t), 0), 126) as a code; NaN gives 0.
inline Floats lean(const Floats& t) {
  const Floats shifted = min_of(max_of(t, Floats{}), all(126.0f)) + kRoundingShift;
  const Words code = bits_of(shifted) & 0x7fu;
  const Floats subnormal = (shifted - kRoundingShift) * 0x1p-9f;
  return code < 8u ? subnormal : floats_of((code << 20) + (120u << 23));
}

// The e4m3 value nearest to x in [0, 448].
inline Floats nearest_e4m3(const Floats& x) {
  const Words bits = bits_of(x);
  const Floats normal = floats_of((bits + 0x7ffffu + ((bits >> 20) & 1u)) & ~0xfffffu);
  const Floats subnormal = (x + 24576.0f) - 24576.0f;  // 1.5 * 2^23 * 2^-9: rounds to a multiple of 2^-9
  return min_of(x < 0x1p-6f ? subnormal : normal, all(448.0f));
}

struct Terms {
  Floats high, low;  // low as e4m3, worth a sixteenth
};

inline Terms two_terms(const Floats& x) {
  const Floats p = exp2_of(x), high = nearest_e4m3(p);
  const Floats residual = 16.0f * (p - high);
  const Words sign = bits_of(residual) & 0x80000000u;
  const Floats low = nearest_e4m3(floats_of(bits_of(residual) & 0x7fffffffu));
  return {high, floats_of(bits_of(low) | sign)};
}

// Calls put(key, first, second) with what two keys are worth: pairs of high and low terms.
template <typename Probability, typename Put>
inline void each_pair(const BlockMap& map, int64_t lanes, const float* s, const Probability& probability,
                      const Put& put) {
  for (int64_t key = 0; key < kTileKeys; key += 2)
    put(key, probability(map(load(s + key * lanes))), probability(map(load(s + (key + 1) * lanes))));
}

template <typename Put>
inline void by_kind(BlockKind kind, const BlockMap& map, int64_t lanes, const float* s, const Put& put) {
  if (kind == BlockKind::lean)
    each_pair(map, lanes, s, [&](const Floats& t) { return Terms{lean(t) * map.power, Floats{}}; }, put);
  else if (kind == BlockKind::two_term)
    each_pair(
        map, lanes, s,
        [&](const Floats& x) {
          const Terms terms = two_terms(x);
          return Terms{terms.high * map.power, terms.low * (map.power * 0.0625f)};
        },
        put);
  else
    each_pair(
        map, lanes, s,
        [&](const Floats& x) { return Terms{floats_of(rounded_to_bfloat16(exp2_of(x))) * map.power, Floats{}}; },
        put);
}

inline void finish_sum(int64_t at, LaneState& state, const Floats& added) {
  store(state.sum + at, load(state.sum + at) * load(state.keep + at) + added);
}

}  // namespace

template <typename Tag>
void Fp8<Tag>::fp32(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, LaneState& state, float* s) {
  for (int64_t at = 0; at < lanes; at += kLaneBlock) {
    float* block = s + at;
    const BlockKind kind = kinds[at / kLaneBlock];
    if (kind == BlockKind::skip) {
      store(state.keep + at, all(1.0f));
      for (int64_t key = 0; key < kTileKeys; ++key) store(block + key * lanes, Floats{});
      continue;
    }
    const BlockMap map = look(scale, kind, at, lanes, state, block);
    Floats sum{};
    by_kind(kind, map, lanes, block, [&](int64_t key, const Terms& first, const Terms& second) {
      const Floats one = first.high + first.low, two = second.high + second.low;
      store(block + key * lanes, one);
      store(block + (key + 1) * lanes, two);
      sum += one + two;
    });
    finish_sum(at, state, sum);
  }
}

template <typename Tag>
void Fp8<Tag>::pairs(const LaneScale& scale, const BlockKind* kinds, int64_t lanes, LaneState& state,
                     const float* s, uint32_t* p, uint32_t* low) {
  const auto pair = [](const Floats& first, const Floats& second) {
    return (bits_of(first) >> 16) | (bits_of(second) & 0xffff0000u);
  };
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
    const BlockMap map = look(scale, kind, at, lanes, state, s + at);
    Floats sum{};
    by_kind(kind, map, lanes, s + at, [&](int64_t key, const Terms& first, const Terms& second) {
      store(p + key / 2 * lanes + at, pair(first.high, second.high));
      if (low != nullptr)
        store(low + key / 2 * lanes + at, pair(first.low, second.low));
      sum += (first.high + first.low) + (second.high + second.low);
    });
    finish_sum(at, state, sum);
  }
}

template struct Fp8<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
