// Online softmax of one tile, a lane per query row. Compiled without contraction, so that every set rounds
// alike.
#include <type_traits>

#include "isa.hpp"
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
void Softmax<Tag>::hide(uint64_t keys, const int32_t* begin, const int32_t* end, int64_t lanes, float* s) {
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
    const Ints first = load_as<Ints>(begin + block), past = load_as<Ints>(end + block);
    for (int32_t key = 0; key < kTileKeys; ++key) {
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

template struct Softmax<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
