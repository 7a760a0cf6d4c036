// Online softmax of one tile, a lane per query row. Compiled without contraction, so that every set rounds
// alike.
#include <type_traits>

#include "isa.hpp"
#include "terms.hpp"
#include "vector.hpp"

namespace zyfa::cpu::isa {
namespace {

// Maxima of the tile, then anchors and keep. Returns the anchors that scores are compared with: finite where
// a lane has seen nothing yet.
template <int B>
inline void move_anchors(const float* factor, int64_t lanes, LaneState& state, const float* s,
                         Floats (&against)[B]) {
  Floats best[B];
  for (int b = 0; b < B; ++b) best[b] = all(-kInfinity);
  for (int64_t key = 0; key < kTileKeys; ++key)
    for (int b = 0; b < B; ++b) best[b] = max_of(load(s + key * lanes + b * kLaneBlock), best[b]);
  for (int b = 0; b < B; ++b) {
    const int64_t at = b * kLaneBlock;
    const Floats before = load(state.anchor + at), now = max_of(best[b], before);
    const Floats kept = exp2_of((before - now) * load(factor + at));
    store(state.keep + at, before == now ? all(1.0f) : before == -kInfinity ? Floats{} : kept);
    store(state.anchor + at, now);
    against[b] = now == -kInfinity ? Floats{} : now;
  }
}

// Calls add(b, key, p) for every probability and finishes the sums with what it returned.
template <int B, typename Add>
inline void probabilities(const float* factor, int64_t lanes, LaneState& state, const float* s, Add add) {
  Floats against[B], sum[B] = {};
  move_anchors<B>(factor, lanes, state, s, against);
  Floats scale[B];
  for (int b = 0; b < B; ++b) scale[b] = load(factor + b * kLaneBlock);
  for (int64_t key = 0; key < kTileKeys; key += 2)
    for (int b = 0; b < B; ++b) {
      const float* at = s + key * lanes + b * kLaneBlock;
      const Floats first = exp2_of((load(at) - against[b]) * scale[b]);
      const Floats second = exp2_of((load(at + lanes) - against[b]) * scale[b]);
      sum[b] += add(b, key, first, second);
    }
  for (int b = 0; b < B; ++b) {
    const int64_t at = b * kLaneBlock;
    store(state.sum + at, load(state.sum + at) * load(state.keep + at) + sum[b]);
  }
}

// Probabilities of two keys in terms.
template <int B>
inline void two_keys(TermSoftmax& of, int64_t index) {
  constexpr int64_t lanes = B * kLaneBlock;
  const TermStrides strides = strides_of_lanes(kTileKeys, lanes);
  const float* s = of.s + 2 * index * lanes;
  for (int b = 0; b < B; ++b, s += kLaneBlock) {
    const int64_t at = b * kLaneBlock;
    const Floats against = load(of.against + at), factor = load(of.factor + at);
    Floats first = exp2_of((load(s) - against) * factor);
    Floats second = exp2_of((load(s + lanes) - against) * factor);
    store(of.sum + at, load(of.sum + at) + (first + second));
    uint32_t* p = of.p + b * strides.step + index * kLaneBlock;
    for (int term = 0; term < kMostTerms; ++term, p += strides.term) {
      store(p, pair_of(first, second));
      first -= upper_half(first);
      second -= upper_half(second);
    }
  }
}

inline uint64_t bits_below(int64_t key) { return key >= 64 ? ~uint64_t{0} : (uint64_t{1} << key) - 1; }

template <typename Body>
inline void by_blocks(int64_t lanes, const Body& body) {
  switch (lanes / kLaneBlock) {
    case 1:
      return body(std::integral_constant<int, 1>());
    case 2:
      return body(std::integral_constant<int, 2>());
    case 3:
      return body(std::integral_constant<int, 3>());
    default:
      return body(std::integral_constant<int, 4>());
  }
}

}  // namespace

template <typename Tag>
void Softmax<Tag>::hide(uint64_t keys, const int32_t* begin, const int32_t* end, int64_t lanes,
                        const KeySpans& within, float* s) {
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
    const Ints first = load_as<Ints>(begin + block), past = load_as<Ints>(end + block);
    int32_t common = 0, common_past = kTileKeys;
    for (int lane = 0; lane < kLaneBlock; ++lane) {
      common = begin[block + lane] > common ? begin[block + lane] : common;
      common_past = end[block + lane] < common_past ? end[block + lane] : common_past;
    }
    const uint64_t all_see = keys & bits_below(common_past) & ~bits_below(common);
    const KeySpan& span = within.block[block / kLaneBlock];
    uint64_t left = bits_below(span.past()) & ~bits_below(span.first) & ~all_see;
    for (; left != 0; left &= left - 1) {
      const int32_t key = __builtin_ctzll(left);
      float* at = s + key * lanes + block;
      const Ints seen = (keys >> key & 1) != 0 ? (first <= key) & (past > key) : Ints{};
      store(at, seen ? load(at) : all(-kInfinity));
    }
  }
}

template <typename Tag>
void Softmax<Tag>::fp32(const float* factor, int64_t lanes, LaneState& state, float* s) {
  by_blocks(lanes, [&](auto blocks) {
    probabilities<blocks()>(factor, lanes, state, s, [&](int b, int64_t key, Floats first, Floats second) {
      float* at = s + key * lanes + b * kLaneBlock;
      store(at, first);
      store(at + lanes, second);
      return first + second;
    });
  });
}

template <typename Tag>
void Softmax<Tag>::bfloat16(const float* factor, int64_t lanes, LaneState& state, float* s) {
  by_blocks(lanes, [&](auto blocks) {
    probabilities<blocks()>(factor, lanes, state, s, [&](int b, int64_t key, Floats first, Floats second) {
      float* at = s + key * lanes + b * kLaneBlock;
      const Floats one = to_eight_bits(first), two = to_eight_bits(second);
      store(at, one);
      store(at + lanes, two);
      return one + two;
    });
  });
}

template <typename Tag>
void Softmax<Tag>::pairs(const float* factor, int64_t lanes, LaneState& state, const float* s, uint32_t* p) {
  by_blocks(lanes, [&](auto blocks) {
    probabilities<blocks()>(factor, lanes, state, s, [&](int b, int64_t key, Floats first, Floats second) {
      const Floats one = to_eight_bits(first), two = to_eight_bits(second);
      store(p + key / 2 * lanes + b * kLaneBlock, pair_of(one, two));
      return one + two;
    });
  });
}

template <typename Tag>
void SoftmaxPieces<Tag>::begin(TermSoftmax& of) {
  by_blocks(of.lanes, [&](auto blocks) {
    Floats against[blocks()];
    move_anchors<blocks()>(of.factor, of.lanes, *of.state, of.s, against);
    for (int64_t b = 0; b < blocks(); ++b) {
      store(of.against + b * kLaneBlock, against[b]);
      store(of.sum + b * kLaneBlock, Floats{});
    }
  });
}

template <typename Tag>
void SoftmaxPieces<Tag>::piece(TermSoftmax& of, int64_t index) {
  by_blocks(of.lanes, [&](auto blocks) { two_keys<blocks()>(of, index); });
}

template <typename Tag>
void SoftmaxPieces<Tag>::end(TermSoftmax& of) {
  LaneState& state = *of.state;
  for (int64_t lane = 0; lane < of.lanes; lane += kLaneBlock)
    store(state.sum + lane, load(state.sum + lane) * load(state.keep + lane) + load(of.sum + lane));
}

template struct Softmax<ZYFA_ISA>;
#if defined(__AVX512F__)
template struct SoftmaxPieces<ZYFA_ISA>;  // beside AMX
#endif

}  // namespace zyfa::cpu::isa
