// FP32 products of one tile and one panel: a few rows of the tile times all lanes stay in registers while the
// inner dimension runs. Every sum is sequential, so that the vector width changes speed and not the order of
// additions; a tile's sum is added to the output as a whole, or 8,192 keys would cost 4e-5 of a sum.
#include <algorithm>
#include <array>
#include <type_traits>

#include "isa.hpp"
#include "unroll.hpp"

namespace zyfa::cpu::isa {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kVectors = 4;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kVectors = 2;
#else
constexpr int kVectorBytes = 16, kVectors = 2;
#endif
constexpr int kVectorLanes = kVectorBytes / 4;

typedef float Vector __attribute__((vector_size(kVectorBytes)));
typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

constexpr int64_t kMostDims = 128;  // of Q at a time: 32 KB stay in the first cache
constexpr std::array<float, kPanelLanes> kOnes = [] {
  std::array<float, kPanelLanes> ones{};
  for (float& one : ones) one = 1.0f;
  return ones;
}();

inline Vector at(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
inline void put(float* to, const Vector& v) { *reinterpret_cast<Unaligned*>(to) = v; }

// The left factors of up to 16 rows at one step of the inner dimension: K, a row behind the other.
struct Rows {
  const float* first;
  int64_t stride;

  template <int R>
  Rows advanced() const {
    return {first + R * stride, stride};
  }
  // A pointer for every third row, so that all addresses are one of them and once or twice the stride.
  template <int R, typename Body>
  inline void each_step(int64_t steps, const Body& body) const {
    const float* third[(R + 2) / 3];
    each<(R + 2) / 3>([&](auto t) { third[t] = first + 3 * t * stride; });
    for (int64_t i = 0; i < steps; ++i) body(i, [&](auto r) { return third[r / 3][r % 3 * stride + i]; });
  }
};

// The same of V: next to each other.
struct Columns {
  const float* first;
  int64_t stride;  // from one step to the next

  template <int R>
  Columns advanced() const {
    return {first + R, stride};
  }
  template <int R, typename Body>
  inline void each_step(int64_t steps, const Body& body) const {
    const float* row = first;
    for (int64_t i = 0; i < steps; ++i, row += stride) body(i, [&](auto r) { return row[r]; });
  }
};

// sums = sums * keep + left right, for R rows and V vectors of lanes; without Keep what was there counts as
// 0.
template <int R, int V, bool Keep, typename Left>
__attribute__((always_inline)) inline void block(const Left& left, const float* right, int64_t inner,
                                                 int64_t lanes, const float* keep, float* sums) {
  Vector sum[R][V];
  each<R>([&](auto r) { each<V>([&](auto v) { sum[r][v] = Vector{}; }); });
  left.template each_step<R>(inner, [&](int64_t i, const auto& factor) {
    Vector lane[V];
    each<V>([&](auto v) { lane[v] = at(right + i * lanes + v * kVectorLanes); });
    each<R>([&](auto r) {
      const float x = factor(r);
      each<V>([&](auto v) { sum[r][v] += x * lane[v]; });
    });
  });
  each<R>([&](auto r) {
    each<V>([&](auto v) {
      float* to = sums + r * lanes + v * kVectorLanes;
      put(to, Keep ? at(to) * at(keep + v * kVectorLanes) + sum[r][v] : sum[r][v]);
    });
  });
}

// All rows, an even number, for V vectors of lanes, R at a time.
template <int R, int V, bool Keep, typename Left>
inline void column(Left left, int64_t rows, const float* right, int64_t inner, int64_t lanes,
                   const float* keep, float* sums) {
  const auto next = [&](auto count) {
    block<count(), V, Keep>(left, right, inner, lanes, keep, sums);
    left = left.template advanced<count()>();
    sums += count() * lanes;
    rows -= count();
  };
  while (rows >= R) next(Count<R>());
  while (rows >= 4) next(Count<4>());
  while (rows > 0) next(Count<2>());
}

// Calls run(rows at a time, vectors of lanes, first lane, keys): 16 to 24 sums in registers hide the latency
// of a multiply-add. `lanes` is a multiple of kLaneBlock.
template <typename Run>
inline void by_lanes(int64_t lanes, const KeySpans& spans, const Run& run) {
  int64_t lane = 0;
  const auto next = [&](auto rows, auto vectors) {
    run(rows, vectors, lane, spans.of(lane));
    lane += vectors() * kVectorLanes;
  };
  const int64_t wide = kVectors < 4 || spans.are_one() ? lanes : 0;
  while (lane + kVectors * kVectorLanes <= wide) next(Count<6>(), Count<kVectors>());
  if constexpr (kVectors == 4) {
    while (lane + 2 * kVectorLanes <= lanes) next(Count<12>(), Count<2>());
    if (lane < lanes) next(Count<16>(), Count<1>());
  }
}

}  // namespace

template <typename Tag>
void Products<Tag>::scores(const float* k, int64_t k_stride, const float* q, int64_t dim, int64_t lanes,
                           const KeySpans& spans, float* s) {
  const int64_t parts = (dim + kMostDims - 1) / kMostDims,
                step = (dim + parts - 1) / std::max<int64_t>(parts, 1);
  const auto add = [&](auto keep, int64_t from, int64_t dims) {
    by_lanes(lanes, spans, [&](auto rows, auto vectors, int64_t lane, const KeySpan& keys) {
      column<rows(), vectors(), keep()>(Rows{k + keys.first * k_stride + from, k_stride}, keys.count,
                                        q + from * lanes + lane, dims, lanes, kOnes.data() + lane,
                                        s + keys.first * lanes + lane);
    });
  };
  add(std::false_type(), 0, step);
  for (int64_t d = step; d < dim; d += step) add(std::true_type(), d, std::min(step, dim - d));
}

template <typename Tag>
void Products<Tag>::accumulate(const float* v, int64_t v_stride, const float* p, int64_t columns,
                               int64_t lanes, const KeySpans& spans, const float* keep, float* o) {
  by_lanes(lanes, spans, [&](auto rows, auto vectors, int64_t lane, const KeySpan& keys) {
    column<rows(), vectors(), true>(Columns{v + keys.first * v_stride, v_stride}, columns,
                                    p + keys.first * lanes + lane, keys.count, lanes, keep + lane, o + lane);
  });
}

template struct Products<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
