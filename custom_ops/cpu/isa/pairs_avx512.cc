// Products of bfloat16 pairs with the dot product instruction of AVX-512 BF16: FP32 sums, pair after pair.
#include <immintrin.h>

#include <cstring>

#include "isa.hpp"
#include "unroll.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr int kRows = 4;

inline __m512bh as_pairs(__m512i words) { return (__m512bh)words; }

// sums[r][lane] = sums[r][lane] * keep[lane] + sum over `inner` words of left[r] times right; without `keep`
// what was there counts as 0.
template <int V>
inline void block(const uint16_t* left, int64_t left_stride, const uint32_t* right, const uint32_t* more,
                  int64_t inner, int64_t lanes, const float* keep, float* sums) {
  __m512 sum[kRows][V];
  each<kRows>([&](auto r) { each<V>([&](auto v) { sum[r][v] = _mm512_setzero_ps(); }); });
  for (const uint32_t* from : {right, more}) {
    for (int64_t i = 0; from != nullptr && i < inner; ++i) {
      __m512bh lane[V];
      each<V>([&](auto v) { lane[v] = as_pairs(_mm512_loadu_si512(from + i * lanes + v * kLaneBlock)); });
      each<kRows>([&](auto r) {
        int32_t word;
        std::memcpy(&word, left + r * left_stride + 2 * i, sizeof word);
        const __m512bh factor = as_pairs(_mm512_set1_epi32(word));
        each<V>([&](auto v) { sum[r][v] = _mm512_dpbf16_ps(sum[r][v], factor, lane[v]); });
      });
    }
  }
  each<kRows>([&](auto r) {
    each<V>([&](auto v) {
      float* to = sums + r * lanes + v * kLaneBlock;
      if (keep != nullptr)
        sum[r][v] = _mm512_fmadd_ps(_mm512_loadu_ps(to), _mm512_loadu_ps(keep + v * kLaneBlock), sum[r][v]);
      _mm512_storeu_ps(to, sum[r][v]);
    });
  });
}

// Calls body(V, first lane, keys) with V vectors of lanes at a time.
template <typename Body>
inline void over_lanes(int64_t lanes, const KeySpans& spans, const Body& body) {
  if (lanes == kPanelLanes && spans.are_one())
    return body(std::integral_constant<int, 4>(), int64_t{0}, spans.of(0));
  for (int64_t lane = 0; lane < lanes; lane += kLaneBlock)
    body(std::integral_constant<int, 1>(), lane, spans.of(lane));
}

}  // namespace

template <typename Tag>
void Pairs<Tag>::scores(const uint16_t* k, int64_t k_stride, const uint32_t* q, int64_t dim, int64_t lanes,
                        const KeySpans& spans, float* s) {
  over_lanes(lanes, spans, [&](auto vectors, int64_t lane, const KeySpan& keys) {
    for (int64_t key = keys.first / kRows * kRows; key < keys.first + keys.count; key += kRows)
      block<vectors()>(k + key * k_stride, k_stride, q + lane, nullptr, dim / 2, lanes, nullptr,
                       s + key * lanes + lane);
  });
}

template <typename Tag>
void Pairs<Tag>::accumulate(const uint16_t* v, const uint32_t* p, const uint32_t* low, int64_t columns,
                            int64_t lanes, const KeySpans& spans, const float* keep, float* o) {
  over_lanes(lanes, spans, [&](auto vectors, int64_t lane, const KeySpan& keys) {
    const int64_t at = keys.first / 2 * lanes + lane;
    for (int64_t column = 0; column < columns; column += kRows)
      block<vectors()>(v + column * kTileKeys + keys.first, kTileKeys, p + at,
                       low == nullptr ? nullptr : low + at, keys.count / 2, lanes, keep + lane,
                       o + column * lanes + lane);
  });
}

template <typename Tag>
void Pairs<Tag>::begin() {}
template <typename Tag>
void Pairs<Tag>::end() {}

template struct Pairs<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
