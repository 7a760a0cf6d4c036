// Loops over stored elements. Compiled without contraction.
#include "elements.hpp"

#include <cmath>
#include <type_traits>
#include <utility>

#include "loops.hpp"

namespace zyfa::cpu::isa {
namespace {

constexpr int kMaxVectors = 8;  // of a rotated block that stay in registers

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

#if defined(__FMA__)
// x / divisor, correctly rounded, by multiply-adds: a vector of divisions takes 16 cycles. The first
// remainder leaves the quotient within one unit of the last place, and from there the second leads to the
// nearest number (Markstein, IBM J. Res. Dev. 34, 1990), while the reciprocal is a normal number and
// remainders are exact. Those of quotients from 2^-11 on, below which the code is 0, are multiples of 2^-57
// of the divisor's power of two, so 2^-92 would do. NaN, zeros and infinities are the product.
class Quotient {
 public:
  explicit Quotient(float divisor)
      : divisor_(divisor - Floats{}), reciprocal_(1.0f / divisor - Floats{}), divides_(!is_usual(divisor)) {}

  Floats operator()(Floats x) const {
    if (divides_) return x / divisor_;
    const Floats first = x * reciprocal_, second = corrected(first, x);
#if defined(__AVX512DQ__)
    constexpr int kNanZeroInfinity = 0x9f;
    const __mmask16 special = _mm512_fpclass_ps_mask((__m512)first, kNanZeroInfinity);
    return (Floats)_mm512_mask_mov_ps((__m512)corrected(second, x), special, (__m512)first);
#else
    const Ints special = (((Words)first & kInfinity) == kInfinity) | (first == 0.0f);
    return special ? first : corrected(second, x);
#endif
  }

 private:
  static bool is_usual(float divisor) { return divisor > 0x1p-90f && divisor < 0x1p100f; }
  Floats corrected(Floats quotient, Floats x) const {
    return fused(fused(-quotient, divisor_, x), reciprocal_, quotient);
  }

  Floats divisor_, reciprocal_;
  bool divides_;
};
#else
struct Quotient {
  float divisor;
  Floats operator()(Floats x) const { return x / divisor; }
};
#endif

template <typename Stored>
void codes_of(const void* x, int64_t count, float scale, uint8_t* codes) {
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

// Own lane and the one whose index differs by Span: their sum where Span is not in the lane's index, else the
// other's value minus the own one.
template <int Span, int... Lane>
inline Floats butterfly(Floats own, std::integer_sequence<int, Lane...>) {
  const Floats other = __builtin_shufflevector(own, own, (Lane ^ Span)...);
#if defined(__FMA__)
  const Floats sign = {((Lane & Span) != 0 ? -1.0f : 1.0f)...};
  return fused(own, sign, other);
#else
  const Ints upper = {((Lane & Span) != 0 ? -1 : 0)...};
  return upper ? other - own : own + other;
#endif
}

template <int Span, int V>
inline void stages_within_vectors(Floats (&x)[V], int64_t block) {
  if constexpr (Span < kLanes) {
    if (Span >= block) return;
    for (Floats& own : x) own = butterfly<Span>(own, std::make_integer_sequence<int, kLanes>());
    stages_within_vectors<2 * Span>(x, block);
  }
}

// All stages of spans below V * kLanes on blocks of that many elements, then the factor.
template <int V, typename From, typename To>
void rotate_blocks(const void* x, int64_t count, float factor, void* y) {
  for (int64_t base = 0; base < count; base += V * kLanes) {
    Floats block[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      __builtin_prefetch(at(x, (base + v * kLanes) * From::kBytes + kAhead));
      block[v] = From::widen(at(x, (base + v * kLanes) * From::kBytes));
    }
    stages_within_vectors<1>(block, V * kLanes);
#pragma GCC unroll 4
    for (int span = 1; span < V; span *= 2) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        if ((v & span) != 0) continue;
        const Floats u = block[v], w = block[v + span];
        block[v] = u + w;
        block[v + span] = u - w;
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) To::narrow(at(y, (base + v * kLanes) * To::kBytes), block[v] * factor);
  }
}

// One stage; span is a multiple of kLanes.
void stage_in_memory(float* row, int64_t block, int64_t span) {
  for (int64_t base = 0; base < block; base += 2 * span) {
    for (float* own = row + base; own < row + base + span; own += kLanes) {
      const Floats u = load<Floats>(own), w = load<Floats>(own + span);
      store(own, u + w);
      store(own + span, u - w);
    }
  }
}

template <typename From, typename To>
void rotate_in_registers(const void* x, int64_t count, int64_t block, float factor, void* y) {
  switch (block / kLanes) {
    case 1:
      return rotate_blocks<1, From, To>(x, count, factor, y);
    case 2:
      return rotate_blocks<2, From, To>(x, count, factor, y);
    case 4:
      return rotate_blocks<4, From, To>(x, count, factor, y);
    default:
      return rotate_blocks<kMaxVectors, From, To>(x, count, factor, y);
  }
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
    rotate_blocks<kMaxVectors, From, Float32>(at(x, base * From::kBytes), block, 1.0f, row);
    for (int64_t span = kMaxVectors * kLanes; span < block; span *= 2) stage_in_memory(row, block, span);
    map_vectors<Float32, To>(row, block, at(y, base * To::kBytes),
                             [&](Floats value) { return value * factor; });
  }
}

template <typename From, typename To>
void rotate_as(const void* x, int64_t count, int64_t block, void* y, float* scratch) {
  const float factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)));
  if (block < kLanes) return rotate_short_blocks<From, To>(x, count, block, factor, y);
  if (block > kMaxVectors * kLanes) return rotate_long_blocks<From, To>(x, count, block, factor, y, scratch);
  rotate_in_registers<From, To>(x, count, block, factor, y);
}

template <typename From>
void rotate_from(const void* x, int64_t count, int64_t block, DType y_type, void* y, float* scratch) {
  if (y_type == DType::float32) return rotate_as<From, Float32>(x, count, block, y, scratch);
  rotate_as<From, From>(x, count, block, y, scratch);
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
void ElementLoops<Tag>::to_fp8(DType type, const void* x, int64_t count, float scale, uint8_t* codes) {
  with_type(type, [&](auto stored) { codes_of<decltype(stored)>(x, count, scale, codes); });
}

template <typename Tag>
void ElementLoops<Tag>::rotate(DType type, const void* x, int64_t count, int64_t block, DType y_type, void* y,
                               float* scratch) {
  with_type(type, [&](auto stored) { rotate_from<decltype(stored)>(x, count, block, y_type, y, scratch); });
}

template struct ElementLoops<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
