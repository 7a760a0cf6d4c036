// FP32 products of one tile and one panel: a few rows of the tile times all lanes stay in registers while the
// inner dimension runs. Every sum is sequential, so that the vector width changes speed and not the order of
// additions.
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
constexpr int kRows = 4;
constexpr int kVectorLanes = kVectorBytes / 4;

typedef float Vector __attribute__((vector_size(kVectorBytes)));
typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

inline Vector at(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
inline void put(float* to, const Vector& v) { *reinterpret_cast<Unaligned*>(to) = v; }

// sum[r][lane] = start(r, lane) + sum over i of left[r * row_step + i * inner_step] * right[i * lanes + lane].
template <int V, typename Start>
inline void block(const float* left, int64_t row_step, int64_t inner_step, const float* right, int64_t inner,
                  int64_t lanes, float* sums, Start start) {
  Vector sum[kRows][V];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = start(r, v * kVectorLanes);
  for (int64_t i = 0; i < inner; ++i) {
    Vector lane[V];
    for (int v = 0; v < V; ++v) lane[v] = at(right + i * lanes + v * kVectorLanes);
    for (int r = 0; r < kRows; ++r) {
      const float factor = left[r * row_step + i * inner_step];
      for (int v = 0; v < V; ++v) sum[r][v] += factor * lane[v];
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < V; ++v) put(sums + r * lanes + v * kVectorLanes, sum[r][v]);
}

// Calls body.template operator()<V>(first lane) until all lanes are done.
template <typename Body>
inline void over_lanes(int64_t lanes, const Body& body) {
  int64_t lane = 0;
  for (; lane + kVectors * kVectorLanes <= lanes; lane += kVectors * kVectorLanes)
    body(std::integral_constant<int, kVectors>(), lane);
  if constexpr (kVectors == 4) {
    if (lane + 2 * kVectorLanes <= lanes) {
      body(std::integral_constant<int, 2>(), lane);
      lane += 2 * kVectorLanes;
    }
    if (lane < lanes) body(std::integral_constant<int, 1>(), lane);
  }
}

}  // namespace

template <typename Tag>
void Products<Tag>::scores(const float* k, int64_t k_stride, const float* q, int64_t dim, int64_t lanes,
                           float* s) {
  for (int64_t key = 0; key < kTileKeys; key += kRows)
    over_lanes(lanes, [&](auto vectors, int64_t lane) {
      block<vectors()>(k + key * k_stride, k_stride, 1, q + lane, dim, lanes, s + key * lanes + lane,
                       [](int, int) { return Vector{}; });
    });
}

template <typename Tag>
void Products<Tag>::accumulate(const float* v, int64_t v_stride, const float* p, int64_t columns,
                               int64_t lanes, const float* keep, float* o) {
  for (int64_t column = 0; column < columns; column += kRows)
    over_lanes(lanes, [&](auto vectors, int64_t lane) {
      float* out = o + column * lanes + lane;
      block<vectors()>(v + column, 1, v_stride, p + lane, kTileKeys, lanes, out,
                       [&](int r, int at_lane) { return at(out + r * lanes + at_lane) * at(keep + lane + at_lane); });
    });
}

template struct Products<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
