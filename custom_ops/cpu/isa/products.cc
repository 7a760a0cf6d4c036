// FP32 products of one tile and one panel: a few rows of the tile times all lanes stay in registers while the
// inner dimension runs. Every sum is sequential, so that the vector width changes speed and not the order of
// additions; a tile's sum is added to the output as a whole, or 8,192 keys would cost 4e-5 of a sum.
#include <type_traits>

#include "isa.hpp"

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

template <int N>
using Count = std::integral_constant<int, N>;

inline Vector at(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
inline void put(float* to, const Vector& v) { *reinterpret_cast<Unaligned*>(to) = v; }

// sums[r][lane] = sums[r][lane] * keep[lane] + sum over i of left[r * row_step + i * inner_step] *
// right[i][lane]; without `keep` what was there counts as 0.
template <int R, int V>
__attribute__((always_inline)) inline void block(const float* left, int64_t row_step, int64_t inner_step,
                                                 const float* right, int64_t inner, int64_t lanes,
                                                 const float* keep, float* sums) {
  Vector sum[R][V] = {};
  for (int64_t i = 0; i < inner; ++i) {
    Vector lane[V];
    for (int v = 0; v < V; ++v) lane[v] = at(right + i * lanes + v * kVectorLanes);
    for (int r = 0; r < R; ++r) {
      const float factor = left[r * row_step + i * inner_step];
      for (int v = 0; v < V; ++v) sum[r][v] += factor * lane[v];
    }
  }
  for (int v = 0; v < V; ++v) {
    const Vector kept = keep == nullptr ? Vector{} : at(keep + v * kVectorLanes);
    for (int r = 0; r < R; ++r) {
      float* to = sums + r * lanes + v * kVectorLanes;
      put(to, keep == nullptr ? sum[r][v] : at(to) * kept + sum[r][v]);
    }
  }
}

// All rows for V vectors of lanes, R at a time.
template <int R, int V>
inline void column(const float* left, int64_t row_step, int64_t inner_step, int64_t rows, const float* right,
                   int64_t inner, int64_t lanes, const float* keep, float* sums) {
  int64_t row = 0;
  const auto next = [&](auto count) {
    block<count(), V>(left + row * row_step, row_step, inner_step, right, inner, lanes, keep,
                      sums + row * lanes);
    row += count();
  };
  while (row + R <= rows) next(Count<R>());
  while (row + 4 <= rows) next(Count<4>());
  while (row < rows) next(Count<2>());
}

// `rows` is a multiple of 4, `lanes` of kLaneBlock.
inline void product(const float* left, int64_t row_step, int64_t inner_step, int64_t rows, const float* right,
                    int64_t inner, int64_t lanes, const float* keep, float* sums) {
  int64_t lane = 0;
  const auto run = [&](auto r, auto vectors) {
    column<r(), vectors()>(left, row_step, inner_step, rows, right + lane, inner, lanes,
                           keep == nullptr ? nullptr : keep + lane, sums + lane);
    lane += vectors() * kVectorLanes;
  };
  // 16 to 24 sums in registers hide the latency of a multiply-add.
  while (lane + kVectors * kVectorLanes <= lanes) run(Count<6>(), Count<kVectors>());
  if constexpr (kVectors == 4) {
    if (lane + 2 * kVectorLanes <= lanes) run(Count<12>(), Count<2>());
    if (lane < lanes) run(Count<16>(), Count<1>());
  }
}

}  // namespace

template <typename Tag>
void Products<Tag>::scores(const float* k, int64_t k_stride, const float* q, int64_t dim, int64_t lanes,
                           float* s) {
  product(k, k_stride, 1, kTileKeys, q, dim, lanes, nullptr, s);
}

template <typename Tag>
void Products<Tag>::accumulate(const float* v, int64_t v_stride, const float* p, int64_t columns,
                               int64_t lanes, const float* keep, float* o) {
  product(v, 1, v_stride, columns, p, kTileKeys, lanes, keep, o);
}

template struct Products<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
