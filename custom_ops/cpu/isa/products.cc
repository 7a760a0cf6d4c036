// Matrix products of one tile: a block of rows times a block of columns stays in registers while the inner
// dimension runs. Every output is one sequential sum, so the vector width changes speed and not the order of
// additions.
#include "isa.hpp"

namespace zyfa::cpu::isa {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kVectorsPerRow = 4;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kVectorsPerRow = 2;
#else
constexpr int kVectorBytes = 16, kVectorsPerRow = 2;
#endif
constexpr int kRows = 4;

template <typename Scalar>
struct Vector {
  typedef Scalar Type __attribute__((vector_size(kVectorBytes)));
  typedef Scalar Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(Scalar)), may_alias));
  static constexpr int lanes = kVectorBytes / static_cast<int>(sizeof(Scalar));
};

// acc[r][c] = sum over i of left[r * left_stride + i] * right[i * right_stride + c], for R rows and V vectors
// of columns.
template <int R, int V, typename Scalar, typename Store>
inline void block_product(const Scalar* left, int64_t left_stride, const Scalar* right, int64_t right_stride,
                          int64_t inner, Store store) {
  using Vec = Vector<Scalar>;
  typename Vec::Type acc[R][V] = {};
  for (int64_t i = 0; i < inner; ++i) {
    typename Vec::Type columns[V];
    for (int v = 0; v < V; ++v)
      columns[v] =
          *reinterpret_cast<const typename Vec::Unaligned*>(right + i * right_stride + v * Vec::lanes);
    for (int r = 0; r < R; ++r) {
      const Scalar factor = left[r * left_stride + i];
      for (int v = 0; v < V; ++v) acc[r][v] += factor * columns[v];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) store(r, v * Vec::lanes, acc[r][v]);
}

template <int V, typename Scalar, typename Store>
inline void column_block(const Scalar* left, int64_t left_stride, const Scalar* right, int64_t right_stride,
                         int64_t rows, int64_t inner, Store store) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows)
    block_product<kRows, V>(left + row * left_stride, left_stride, right, right_stride, inner,
                            [&](int r, int c, const auto& sum) { store(row + r, c, sum); });
  for (; row < rows; ++row)
    block_product<1, V>(left + row * left_stride, left_stride, right, right_stride, inner,
                        [&](int, int c, const auto& sum) { store(row, c, sum); });
}

template <typename Scalar>
void tile_scores(const Scalar* q, const Scalar* k, int64_t rows, int64_t dim, float* s) {
  constexpr int lanes = Vector<Scalar>::lanes;
  for (int64_t c = 0; c < kTileKeys; c += kVectorsPerRow * lanes)
    column_block<kVectorsPerRow>(q, dim, k + c, kTileKeys, rows, dim,
                                 [&](int64_t row, int64_t at, const auto& sum) {
                                   for (int lane = 0; lane < lanes; ++lane)
                                     s[row * kTileKeys + c + at + lane] = static_cast<float>(sum[lane]);
                                 });
}

}  // namespace

template <typename Tag>
void Products<Tag>::scores(const float* q, const float* k, int64_t rows, int64_t dim, float* s) {
  tile_scores(q, k, rows, dim, s);
}

template <typename Tag>
void Products<Tag>::exact_scores(const double* q, const double* k, int64_t rows, int64_t dim, float* s) {
  tile_scores(q, k, rows, dim, s);
}

template <typename Tag>
void Products<Tag>::accumulate(const float* p, const float* v, int64_t rows, int64_t columns,
                               const float* keep, float* o) {
  using Vec = Vector<float>;
  int64_t c = 0;
  const auto store = [&](int64_t row, int64_t at, const auto& sum) {
    auto* target = reinterpret_cast<Vec::Unaligned*>(o + row * columns + c + at);
    *target = *target * keep[row] + sum;
  };
  constexpr int64_t wide = kVectorsPerRow * Vec::lanes;
  for (; c + wide <= columns; c += wide)
    column_block<kVectorsPerRow>(p, kTileKeys, v + c, columns, rows, kTileKeys, store);
  for (; c < columns; c += Vec::lanes) column_block<1>(p, kTileKeys, v + c, columns, rows, kTileKeys, store);
}

template struct Products<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
