// FP32 products on the tile registers of AMX, as sums of products of bfloat16 terms: six of FP32 numbers, at
// 14 times the rate of multiply-adds. 32 dims or keys are summed before they meet the sum of the others, so
// that results are closer to the exact ones than those of products.cc.
#include "amx_tiles.hpp"
#include "isa.hpp"
#include "terms.hpp"

namespace zyfa::cpu::isa {
namespace {

// Which terms are multiplied, smallest products first; from one to the next one side changes.
struct Order {
  int left, right;
};
constexpr Order kOrders[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}, {0, 2}};
constexpr int kOrderCount = sizeof(kOrders) / sizeof(kOrders[0]);

constexpr bool is_used(int order, int left_terms, int right_terms) {
  return kOrders[order].left < left_terms && kOrders[order].right < right_terms;
}

// The used order from this one on, kOrderCount for none.
constexpr int used_from(int order, int left_terms, int right_terms) {
  while (order < kOrderCount && !is_used(order, left_terms, right_terms)) ++order;
  return order;
}

template <typename Element>
struct Side {
  const Element* first;
  TermStrides strides;
};

// Rows of left times lanes of right, `inner` dims or keys of both.
struct Factors {
  Side<uint16_t> left;
  int64_t rows;
  Side<uint32_t> right;
  int64_t inner;
};

constexpr int kRowBytes = 64;

// Products of the squares with registers 4 and 5, 6 and 7; of half a square, without 7. `upper` and `lower`
// load what takes the place of 4 and 5, `first` and `second` of 6 and 7, as soon as they are free: 5 % less
// time than loading them in pairs, in a loop of nothing else.
template <bool kHalf, typename Upper, typename Lower>
inline void multiply_then_left(const Upper& upper, const Lower& lower) {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (!kHalf) _tile_dpbf16ps(1, 4, 7);
  upper();
  _tile_dpbf16ps(2, 5, 6);
  if constexpr (!kHalf) _tile_dpbf16ps(3, 5, 7);
  lower();
}

template <bool kHalf, typename First, typename Second>
inline void multiply_then_right(const First& first, const Second& second) {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(2, 5, 6);
  first();
  if constexpr (kHalf) return;
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(3, 5, 7);
  second();
}

// 32 rows of left, from `row` on, times 32 lanes of right, or 16, in registers 0 and 2. Calls meanwhile()
// twice in each step of the inner dimension.
template <int kLeft, int kRight, bool kHalf, typename Work>
inline void multiply(const Factors& f, int64_t row, const Work& meanwhile) {
  clear_sums();
  for (int64_t i = 0; i < f.inner; i += kInner) {
    const uint16_t* left = f.left.first + i / kInner * f.left.strides.step + row * kInner;
    const uint32_t* right = f.right.first + i / 2 * kSide;
    const auto upper = [&](int term) { _tile_loadd(4, left + term * f.left.strides.term, kRowBytes); };
    const auto lower = [&](int term) {
      _tile_loadd(5, left + term * f.left.strides.term + kSide * kInner, kRowBytes);
    };
    const auto first = [&](int term) { _tile_loadd(6, right + term * f.right.strides.term, kRowBytes); };
    const auto second = [&](int term) {
      _tile_loadd(7, right + term * f.right.strides.term + f.right.strides.step, kRowBytes);
    };
    constexpr Order start = kOrders[used_from(0, kLeft, kRight)];
    upper(start.left);
    first(start.right);
    if constexpr (!kHalf) second(start.right);
    lower(start.left);
    each<kOrderCount>([&](auto at) {
      if constexpr (is_used(at, kLeft, kRight)) {
        constexpr int next = used_from(at + 1, kLeft, kRight);
        constexpr Order now = kOrders[at], then = next < kOrderCount ? kOrders[next] : now;
        if constexpr (then.left != now.left)
          multiply_then_left<kHalf>([&] { upper(then.left); }, [&] { lower(then.left); });
        else if constexpr (then.right != now.right)
          multiply_then_right<kHalf>([&] { first(then.right); }, [&] { second(then.right); });
        else
          multiply_then_left<kHalf>([] {}, [] {});
      }
      if constexpr (at % 3 == 0) meanwhile();
    });
  }
}

// Hands out pieces of work as evenly as there are calls.
class Pieces {
 public:
  Pieces(const Meanwhile& work, int64_t calls)
      : work_(work), at_once_(calls > 0 ? (work.pieces + calls - 1) / calls : 0) {}

  void next() { run(at_once_); }
  void finish() { run(work_.pieces); }

 private:
  void run(int64_t count) {
    for (; count > 0 && done_ < work_.pieces; --count) work_.piece(*work_.of, done_++);
  }

  const Meanwhile work_;
  const int64_t at_once_;
  int64_t done_ = 0;
};

template <int kTerms>
void store_product(const Factors& f, int64_t count, int64_t lanes, Pieces& pieces, float* sums) {
  const auto next = [&] { pieces.next(); };
  for (int64_t row = 0; row < f.rows; row += 2 * kSide, sums += 2 * kSide * lanes) {
    if (count < 2 * kSide) {
      multiply<kTerms, kTerms, true>(f, row, next);
      store_half_sums(sums, lanes);
    } else {
      multiply<kTerms, kTerms, false>(f, row, next);
      store_sums(sums, lanes);
    }
  }
}

// o = o * keep + sums.
template <int kVectors>
inline void add_sums(const float* sums, int64_t rows, const float* keep, int64_t lanes, float* o) {
  __m512 factor[kVectors];
  each<kVectors>([&](auto v) { factor[v] = _mm512_loadu_ps(keep + v * kSide); });
  for (int64_t row = 0; row < rows; ++row)
    each<kVectors>([&](auto v) {
      float* at = o + row * lanes + v * kSide;
      _mm512_storeu_ps(at, _mm512_fmadd_ps(_mm512_loadu_ps(at), factor[v],
                                           _mm512_load_ps(sums + row * 2 * kSide + v * kSide)));
    });
}

// The sums of 32 rows are added while the next ones are multiplied: 4 % of the whole. Rows are a multiple of
// kSide.
template <int kTerms, bool kHalf>
void add_product(const Factors& f, int64_t lanes, const float* keep, float* o) {
  constexpr int64_t kRows = 2 * kSide;
  alignas(64) float sums[2][kRows * kRows];
  const auto add = [&](int64_t row) {
    const int64_t rows = f.rows - row < kRows ? f.rows - row : kRows;
    add_sums<kHalf ? 1 : 2>(sums[row / kRows % 2], rows, keep, lanes, o + row * lanes);
  };
  int64_t row = 0;
  for (; row < f.rows; row += kRows) {
    multiply<kTerms, kMostTerms, kHalf>(f, row, [] {});
    if (row > 0) add(row - kRows);
    (kHalf ? store_half_sums : store_sums)(sums[row / kRows % 2], kRows);
  }
  if (row > 0) add(row - kRows);
}

}  // namespace

template <typename Tag>
void TermProducts<Tag>::scores(const uint16_t* k, const uint32_t* q, int64_t terms, int64_t dim,
                               int64_t lanes, const KeySpans& spans, const Meanwhile& meanwhile, float* s) {
  const TermStrides strides = strides_of_lanes(dim, lanes);
  int64_t steps = 0;
  for (int64_t lane = 0; lane < lanes; lane += kHalfLanes)
    steps += outward(spans.of(lane)).count / (2 * kSide) * padded(dim, kInner) / kInner;
  Pieces pieces(meanwhile, 2 * steps);
  for (int64_t lane = 0; lane < lanes; lane += kHalfLanes) {
    const KeySpan keys = outward(spans.of(lane));
    const Factors factors = {{k + keys.first * kStep, strides_of_keys(dim)},
                             keys.count,
                             {q + lane / kSide * strides.step, strides},
                             dim};
    with_terms(terms, [&](auto count) {
      store_product<count()>(factors, lanes - lane, lanes, pieces, s + keys.first * lanes + lane);
    });
  }
  pieces.finish();
}

template <typename Tag>
void TermProducts<Tag>::accumulate(const uint16_t* v, int64_t terms, const uint32_t* p, int64_t columns,
                                   int64_t lanes, const KeySpans& spans, const float* keep, float* o) {
  const TermStrides of_v = strides_of_values(columns), of_p = strides_of_lanes(kTileKeys, lanes);
  for (int64_t lane = 0; lane < lanes; lane += kHalfLanes) {
    const KeySpan keys = outward(spans.of(lane));
    const Factors factors = {{v + keys.first / kStep * of_v.step, of_v},
                             columns,
                             {p + lane / kSide * of_p.step + keys.first / 2 * kSide, of_p},
                             keys.count};
    with_terms(terms, [&](auto count) {
      if (lanes - lane < 2 * kSide)
        add_product<count(), true>(factors, lanes, keep + lane, o + lane);
      else
        add_product<count(), false>(factors, lanes, keep + lane, o + lane);
    });
  }
}

template struct TermProducts<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
