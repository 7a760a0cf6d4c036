// Loops over stored elements. Compiled without contraction.
#include "elements.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <type_traits>
#include <utility>

#include "codes.hpp"
#include "rotation.hpp"

namespace zyfa::cpu::isa {
namespace {

// The bits of the largest finite magnitude.
template <typename Stored>
uint32_t largest_bits_of(const void* x, int64_t count) {
  using Signed = typename Stored::Signed;
  constexpr int64_t lanes = sizeof(Signed) / Stored::kBytes;
  Signed largest{};
  const auto take = [&](Signed bits) {
    const Signed magnitude =
        bits & static_cast<decltype(Stored::kInfinite)>(~(1u << (8 * Stored::kBytes - 1)));
    const Signed finite = magnitude < Stored::kInfinite ? magnitude : Signed{};
    largest = largest < finite ? finite : largest;
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    __builtin_prefetch(at(x, i * Stored::kBytes + kAhead));
    take(load<Signed>(at(x, i * Stored::kBytes)));
  }
  Signed rest{};
  std::memcpy(&rest, at(x, i * Stored::kBytes), (count - i) * Stored::kBytes);
  take(rest);
  int32_t result = 0;
  for (int64_t lane = 0; lane < lanes; ++lane) result = largest[lane] > result ? largest[lane] : result;
  return static_cast<uint32_t>(result);
}

float largest_finite_of(Float32, const void* x, int64_t count) {
  return float_of(largest_bits_of<Float32>(x, count));
}
float largest_finite_of(BFloat16, const void* x, int64_t count) {
  return from_bfloat16(static_cast<uint16_t>(largest_bits_of<BFloat16>(x, count)));
}
float largest_finite_of(Float16, const void* x, int64_t count) {
  return from_float16(static_cast<uint16_t>(largest_bits_of<Float16>(x, count)));
}

// A vector at a time.
template <typename Stored>
void codes_by_vector(const void* x, int64_t count, float scale, uint8_t* codes) {
  const Quotient scaled{scale};
  for_each_vector<Stored>(x, count, [&](Floats value, int64_t i) {
    __builtin_prefetch(codes + i + kAhead, 1);
    const Words found = e4m3_codes(scaled(value));
    if (i + kLanes <= count) return store_bytes(codes + i, found);
    uint8_t padded[kLanes];
    store_bytes(padded, found);
    std::memcpy(codes + i, padded, count - i);
  });
}

template <typename Stored>
void codes_of(const void* x, int64_t count, const CodeScale& scale, uint8_t* codes) {
  constexpr int64_t kElements = Codes::kGroup * kLanes;
  using Order = OrderOf<Stored, Codes::kGroup>;
  const int64_t whole = count - count % kElements;
  Codes written;
  written.begin(scale);
  for (int64_t i = 0; i < whole; i += kElements) {
    Floats group[Codes::kGroup];
    Order::template load<Codes::kGroup>(at(x, i * Stored::kBytes), group);
    written.template store<Order, Codes::kGroup>(group, codes + i);
  }
  const int64_t done = written.complete() ? whole : 0;
  if (done < count)
    codes_by_vector<Stored>(at(x, done * Stored::kBytes), count - done, scale.scale, codes + done);
}

float factor_of(int64_t block) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(block))); }

// N / V blocks of V vectors, `stride` bytes apart, as they are.
template <typename Order, int V, int N>
__attribute__((always_inline)) inline void load_blocks(const void* x, int64_t stride, Floats (&blocks)[N]) {
  each<N / V>([&](auto r) { Order::template load<V>(at(x, r * stride), blocks + r * V); });
}

// Rotated.
template <typename Order, int V, int N>
__attribute__((always_inline)) inline void rotate_blocks(const void* x, int64_t stride, float factor,
                                                         Floats (&blocks)[N]) {
  load_blocks<Order, V>(x, stride, blocks);
  stages_below<Order, V>(blocks);
  each<N>([&](auto v) { blocks[v] *= factor; });
}

// Blocks shorter than a vector: several of them lie in one.
template <typename From, typename To>
void rotate_short_blocks(const void* x, int64_t count, int64_t block, float factor, void* y) {
  map_vectors<From, To>(x, count, y, [&](Floats value) {
    Floats lanes[1] = {value};
    stages_within_vectors<1>(lanes, block);
    return lanes[0] * factor;
  });
}

// Blocks longer than the registers: what fits first, the other stages in memory.
template <typename From, typename To>
void rotate_long_blocks(const void* x, int64_t count, int64_t block, float factor, void* y, float* scratch) {
  for (int64_t base = 0; base < count; base += block) {
    float* row = std::is_same_v<To, Float32> ? static_cast<float*>(y) + base : scratch;
    for (int64_t i = 0; i < block; i += kMaxVectors * kLanes) {
      Floats part[kMaxVectors];
      InOrder<From>::template load<kMaxVectors>(at(x, (base + i) * From::kBytes), part);
      stages_below<InOrder<From>, kMaxVectors>(part);
      InOrder<Float32>::store<kMaxVectors>(row + i, part);
    }
    for (int64_t span = kMaxVectors * kLanes; span < block; span *= 2) stage_in_memory(row, block, span);
    map_vectors<Float32, To>(row, block, at(y, base * To::kBytes),
                             [&](Floats value) { return value * factor; });
  }
}

// Both sides in the order of the one that is stored in pairs, if both are.
template <typename From, typename To, int V>
struct Orders {
  using Read = std::conditional_t<std::is_same_v<From, To>, OrderOf<From, V>, InOrder<From>>;
  using Written = std::conditional_t<std::is_same_v<From, To>, OrderOf<To, V>, InOrder<To>>;
};

template <typename From, typename To>
void rotate_as(const void* x, int64_t count, int64_t block, void* y, float* scratch) {
  const float factor = factor_of(block);
  if (block < kLanes) return rotate_short_blocks<From, To>(x, count, block, factor, y);
  const bool done = with_registers<1>(block, [&](auto vectors) {
    using Order = Orders<From, To, vectors>;
    for (int64_t base = 0; base < count; base += block) {
      Floats values[vectors];
      rotate_blocks<typename Order::Read, vectors>(at(x, base * From::kBytes), 0, factor, values);
      Order::Written::template store<vectors>(at(y, base * To::kBytes), values);
    }
  });
  if (!done) rotate_long_blocks<From, To>(x, count, block, factor, y, scratch);
}

template <typename From>
void rotate_from(const void* x, int64_t count, int64_t block, DType y_type, void* y, float* scratch) {
  if (y_type == DType::float32) return rotate_as<From, Float32>(x, count, block, y, scratch);
  rotate_as<From, From>(x, count, block, y, scratch);
}

template <typename From>
__attribute__((noinline)) float largest_through_memory(const RotatedRows& rows, const void* x) {
  rotate_as<From, Float32>(x, rows.dim, rows.block, rows.scratch, nullptr);
  return largest_finite_of(Float32(), rows.scratch, rows.dim);
}

// Of R rows together: every stage has that many more independent steps. Magnitudes before the last stage and
// the factor do as well, unless one is infinite or NaN on the way.
template <typename From, int V, int R>
__attribute__((always_inline)) inline void largest_together(const RotatedRows& rows, const char* x,
                                                            float factor, float* largest) {
  using Order = OrderOf<From, V>;
  const int64_t stride = rows.dim * From::kBytes;
  Floats magnitudes[R] = {};
  for (int64_t base = 0; base < rows.dim; base += V * kLanes) {
    Floats blocks[R * V];
    load_blocks<Order, V>(at(x, base * From::kBytes), stride, blocks);
    largest_magnitudes<Order, V>(blocks, magnitudes);
  }
  each<R>([&](auto r) {
    const float found = largest_lane<1>(magnitudes[r], std::make_integer_sequence<int, kLanes>());
    largest[r] = found <= FLT_MAX ? found * factor : largest_through_memory<From>(rows, at(x, r * stride));
  });
}

// Calls body(Count<R>, first) for `count` rows, as many at once as go into the registers; of float32 half as
// many, which took 0.8 of the time: more than 16 lines of the cache at once wait.
template <typename From, int V, typename Body>
__attribute__((always_inline)) inline void rows_together(int64_t count, const Body& body) {
  constexpr int kRows = std::max<int>(1, kMaxVectors / V * 2 / From::kBytes);
  int64_t r = 0;
  for (; r + kRows <= count; r += kRows) body(Count<kRows>(), r);
  if (kRows > 1)
    for (; r < count; ++r) body(Count<1>(), r);
}

template <typename From>
void largest_of_rows(const RotatedRows& rows, float* largest) {
  const auto row = [&](int64_t r) { return at(rows.x, r * rows.dim * From::kBytes); };
  const float factor = factor_of(rows.block);
  const bool done = with_registers<1>(rows.block, [&](auto vectors) {
    rows_together<From, vectors>(rows.count, [&](auto together, int64_t r) {
      largest_together<From, vectors, together>(rows, row(r), factor, largest + r);
    });
  });
  if (done) return;
  for (int64_t r = 0; r < rows.count; ++r) largest[r] = largest_through_memory<From>(rows, row(r));
}

template <typename From>
__attribute__((noinline)) void codes_through_memory(const RotatedRows& rows, const RowCodes& to, int64_t r) {
  const char* x = at(rows.x, r * rows.dim * From::kBytes);
  rotate_as<From, Float32>(x, rows.dim, rows.block, rows.scratch, nullptr);
  codes_of<Float32>(rows.scratch, rows.dim, to.scale(r), to.row(r));
}

template <typename From, int V, int R>
__attribute__((always_inline)) inline void codes_together(const RotatedRows& rows, const RowCodes& to,
                                                          int64_t first, float factor, Codes& written) {
  using Order = OrderOf<From, V>;
  const int64_t stride = rows.dim * From::kBytes;
  Floats blocks[R * V];
  rotate_blocks<Order, V>(at(rows.x, first * stride), stride, factor, blocks);
  each<R>([&](auto r) {
    written.begin(to.scale(first + r));
    written.store<Order, V>(blocks + r * V, to.row(first + r));
    if (!written.complete()) codes_through_memory<From>(rows, to, first + r);
  });
}

template <typename From, int V>
__attribute__((always_inline)) inline void codes_of_row(const RotatedRows& rows, const RowCodes& to,
                                                        int64_t r, float factor, Codes& written) {
  using Order = OrderOf<From, V>;
  const char* x = at(rows.x, r * rows.dim * From::kBytes);
  written.begin(to.scale(r));
  for (int64_t base = 0; base < rows.dim; base += V * kLanes) {
    Floats block[V];
    rotate_blocks<Order, V>(at(x, base * From::kBytes), 0, factor, block);
    written.store<Order, V>(block, to.row(r) + base);
  }
  if (!written.complete()) codes_through_memory<From>(rows, to, r);
}

template <typename From>
void codes_of_rows(const RotatedRows& rows, const RowCodes& to) {
  const float factor = factor_of(rows.block);
  const bool done = with_registers<Codes::kGroup>(rows.block, [&](auto vectors) {
    Codes written;
    if (rows.dim == rows.block)
      return rows_together<From, vectors>(rows.count, [&](auto together, int64_t r) {
        codes_together<From, vectors, together>(rows, to, r, factor, written);
      });
    for (int64_t r = 0; r < rows.count; ++r) codes_of_row<From, vectors>(rows, to, r, factor, written);
  });
  if (done) return;
  for (int64_t r = 0; r < rows.count; ++r) codes_through_memory<From>(rows, to, r);
}

// body(Stored{}) for one of the three types.
template <typename Body>
auto with_type(DType type, Body body) {
  switch (type) {
    case DType::float32:
      return body(Float32{});
    case DType::float16:
      return body(Float16{});
    default:
      return body(BFloat16{});
  }
}

}  // namespace

template <typename Tag>
float ElementLoops<Tag>::largest_finite(DType type, const void* x, int64_t count) {
  return with_type(type, [&](auto stored) { return largest_finite_of(stored, x, count); });
}

template <typename Tag>
CodeScale ElementLoops<Tag>::code_scale(float scale) {
  return Codes::prepared(scale);
}

template <typename Tag>
void ElementLoops<Tag>::to_fp8(DType type, const void* x, int64_t count, const CodeScale& scale,
                               uint8_t* codes) {
  with_type(type, [&](auto stored) { codes_of<decltype(stored)>(x, count, scale, codes); });
}

template <typename Tag>
void ElementLoops<Tag>::rotate(DType type, const void* x, int64_t count, int64_t block, DType y_type, void* y,
                               float* scratch) {
  with_type(type, [&](auto stored) { rotate_from<decltype(stored)>(x, count, block, y_type, y, scratch); });
}

template <typename Tag>
void ElementLoops<Tag>::rotated_largest(const RotatedRows& rows, float* largest) {
  with_type(rows.type, [&](auto stored) { largest_of_rows<decltype(stored)>(rows, largest); });
}

template <typename Tag>
void ElementLoops<Tag>::rotated_to_fp8(const RotatedRows& rows, const RowCodes& to) {
  with_type(rows.type, [&](auto stored) { codes_of_rows<decltype(stored)>(rows, to); });
}

template struct ElementLoops<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
