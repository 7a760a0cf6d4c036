// FP32 products for a few query rows, as in decoding: vectors run along dims and columns, K and V are read
// once, as they lie in memory and in their own type. What bounds them is memory, so each asks for the rows
// that the other will want.
#include "isa.hpp"
#include "loops.hpp"
#include "unroll.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr int64_t kCacheLine = 64;

inline void prefetch_row(const Ahead& ahead, int64_t key) {
  const char* row = at(ahead.rows, key * ahead.stride);
  for (int64_t line = 0; line < ahead.bytes; line += kCacheLine)
    __builtin_prefetch(row + line, 0, 2);  // a tile of K and one of V do not fit the first cache
}

template <int Span, int... Lane>
inline Floats plus_neighbour(Floats x, std::integer_sequence<int, Lane...>) {
  return x + __builtin_shufflevector(x, x, (Lane ^ Span)...);
}

template <int Span = kLanes / 2>
inline float sum_of(Floats x) {
  x = plus_neighbour<Span>(x, std::make_integer_sequence<int, kLanes>());
  if constexpr (Span > 1)
    return sum_of<Span / 2>(x);
  else
    return x[0];
}

// Lane i of x and y: of x where bit Span of i is 0; of the other of each pair of lanes when Other.
template <int Span, bool Other, int... Lane>
inline Floats merged(Floats x, Floats y, std::integer_sequence<int, Lane...>) {
  return __builtin_shufflevector(
      x, y, ((Lane & Span) != 0 ? kLanes + (Lane ^ (Other ? 0 : Span)) : Lane ^ (Other ? Span : 0))...);
}

// Sums of pairs of lanes: those of x in lanes whose bit Span is 0, those of y in the others.
template <int Span>
inline Floats folded(Floats x, Floats y) {
  constexpr auto lanes = std::make_integer_sequence<int, kLanes>();
  return merged<Span, false>(x, y, lanes) + merged<Span, true>(x, y, lanes);
}

template <int Span>
inline Floats folded_from(Floats x) {
  if constexpr (Span < kLanes)
    return folded_from<2 * Span>(plus_neighbour<Span>(x, std::make_integer_sequence<int, kLanes>()));
  return x;
}

// The sum of every vector. Three or four at once take half as many steps as one by one.
template <int R>
inline void put_sums(const Floats (&sum)[R], float* to) {
  if constexpr (R < 3) {
    each<R>([&](auto r) { to[r] = sum_of(sum[r]); });
  } else {
    const Floats last = R == 4 ? sum[R - 1] : Floats{};
    const Floats sums = folded_from<4>(folded<2>(folded<1>(sum[0], sum[1]), folded<1>(sum[2], last)));
    each<R>([&](auto r) { to[r] = sums[r()]; });
  }
}

template <typename Stored, int R>
void scores(const void* k, int64_t k_stride, const float* q, int64_t q_stride, int64_t dim, int64_t lanes,
            const Ahead& ahead, float* s) {
  for (int64_t key = 0; key < kTileKeys; ++key) {
    prefetch_row(ahead, key);
    Floats sum[R];
    each<R>([&](auto r) { sum[r] = Floats{}; });
    // Queries are padded with zeros.
    for_each_vector<Stored>(at(k, key * k_stride * Stored::kBytes), dim, [&](Floats x, int64_t i) {
      each<R>([&](auto r) { sum[r] += x * load<Floats>(q + r * q_stride + i); });
    });
    put_sums(sum, s + key * lanes);
  }
}

// V vectors of columns.
template <typename Stored, int R, int V>
void columns(const char* v, int64_t v_stride, const float* p, int64_t lanes, const float* keep, float* o) {
  Floats sum[R][V];
  each<R>([&](auto r) { each<V>([&](auto c) { sum[r][c] = Floats{}; }); });
  for (int64_t key = 0; key < kTileKeys; ++key)
    each<V>([&](auto c) {
      const Floats x = Stored::widen(v + (key * v_stride + c * kLanes) * Stored::kBytes);
      each<R>([&](auto r) { sum[r][c] += x * p[key * lanes + r]; });
    });
  each<R>([&](auto r) {
    each<V>([&](auto c) {
      for (int lane = 0; lane < kLanes; ++lane) {
        float& to = o[(c * kLanes + lane) * lanes + r];
        to = to * keep[r] + sum[r][c][lane];
      }
    });
  });
}

template <typename Stored, int R>
void accumulate(const void* v, int64_t v_stride, const float* p, int64_t count, int64_t lanes,
                const float* keep, const Ahead& ahead, float* o) {
  constexpr int kVectors = 4;
  for (int64_t key = 0; key < kTileKeys; ++key) prefetch_row(ahead, key);
  int64_t c = 0;
  for (; c + kVectors * kLanes <= count; c += kVectors * kLanes)
    columns<Stored, R, kVectors>(at(v, c * Stored::kBytes), v_stride, p, lanes, keep, o + c * lanes);
  for (; c < count; c += kLanes)
    columns<Stored, R, 1>(at(v, c * Stored::kBytes), v_stride, p, lanes, keep, o + c * lanes);
}

template <typename Body>
inline void by_type(DType type, const Body& body) {
  switch (type) {
    case DType::float32:
      return body(Float32());
    case DType::float16:
      return body(Float16());
    case DType::bfloat16:
      return body(BFloat16());
    case DType::float8e4m3fn:
      return body(Float8());
    default:
      refuse_type("read", type);
  }
}

template <typename Body>
inline void by_type_and_rows(DType type, int64_t rows, const Body& body) {
  by_type(type, [&](auto stored) {
    switch (rows) {
      case 1:
        return body(stored, Count<1>());
      case 2:
        return body(stored, Count<2>());
      case 3:
        return body(stored, Count<3>());
      default:
        return body(stored, Count<4>());
    }
  });
}

}  // namespace

template <typename Tag>
void Few<Tag>::scores(DType type, const void* k, int64_t k_stride, const float* q, int64_t q_stride,
                      int64_t dim, int64_t rows, int64_t lanes, const Ahead& ahead, float* s) {
  by_type_and_rows(type, rows, [&](auto stored, auto r) {
    isa::scores<decltype(stored), r()>(k, k_stride, q, q_stride, dim, lanes, ahead, s);
  });
}

template <typename Tag>
void Few<Tag>::accumulate(DType type, const void* v, int64_t v_stride, const float* p, int64_t columns,
                          int64_t rows, int64_t lanes, const float* keep, const Ahead& ahead, float* o) {
  by_type_and_rows(type, rows, [&](auto stored, auto r) {
    isa::accumulate<decltype(stored), r()>(v, v_stride, p, columns, lanes, keep, ahead, o);
  });
}

template struct Few<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
