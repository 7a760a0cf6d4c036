// Elements of one type as elements of another, and the search for NaN and infinity.
#include "isa.hpp"
#include "loops.hpp"

namespace zyfa::cpu::isa {
namespace {

template <typename From, typename To>
inline void converted(const void* from, int64_t count, void* to) {
  map_vectors<From, To>(from, count, to, [](Floats x) { return x; });
}

#if defined(__AVX512BW__)
// 32 codes at a time, in 16-bit lanes.
inline __m512i fp8_as_bfloat16(__m256i codes) {
  constexpr int kSignOf = 0xf8;  // a | (b & c)
  const __m512i code = _mm512_cvtepi8_epi16(codes);
  const __m512i normal = _mm512_add_epi16(
      _mm512_and_si512(_mm512_slli_epi16(code, 4), _mm512_set1_epi16(0x7f0)), _mm512_set1_epi16(120 << 7));
  // Multiples of 2^-9, by the last four bits of a code.
  const __m512i subnormal =
      _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60));
  const __mmask32 is_subnormal = _mm512_testn_epi16_mask(code, _mm512_set1_epi16(0x78));
  const __mmask32 is_nan = _mm512_cmpeq_epi16_mask(normal, _mm512_set1_epi16(0x43f0));
  __m512i value = _mm512_mask_permutexvar_epi16(normal, is_subnormal, code, subnormal);
  value = _mm512_mask_mov_epi16(value, is_nan, _mm512_set1_epi16(0x7fc0));
  return _mm512_ternarylogic_epi32(value, code, _mm512_set1_epi16(-0x8000), kSignOf);
}
#endif

void fp8_to_bfloat16(const void* from, int64_t count, uint16_t* to) {
  int64_t done = 0;
#if defined(__AVX512BW__)
  for (; done + 32 <= count; done += 32) store(to + done, fp8_as_bfloat16(load<__m256i>(at(from, done))));
#endif
  converted<Float8, BFloat16>(at(from, done), count - done, to + done);
}

#if defined(__AVX512BW__)
// Whether elements of whole vectors are finite, for all keys at once: exponent bits that are not set.
bool are_finite(const uint16_t* rows, int64_t stride, int64_t count) {
  const __m512i exponent = _mm512_set1_epi16(0x7f80);
  __m512i unset = exponent;
  for (int64_t key = 0; key < kTileKeys; ++key)
    for (int64_t i = 0; i < count; i += 32)
      unset = _mm512_min_epu16(unset, _mm512_andnot_si512(load<__m512i>(rows + key * stride + i), exponent));
  return _mm512_testn_epi16_mask(unset, exponent) == 0;
}
#endif

}  // namespace

template <typename Tag>
void Convert<Tag>::to_fp32(DType type, const void* from, int64_t count, float* to) {
  switch (type) {
    case DType::float32:
      std::memcpy(to, from, count * sizeof(float));
      return;
    case DType::float16:
      return converted<Float16, Float32>(from, count, to);
    case DType::bfloat16:
      return converted<BFloat16, Float32>(from, count, to);
    case DType::float8e4m3fn:
      return converted<Float8, Float32>(from, count, to);
    default:
      refuse_type("read", type);
  }
}

template <typename Tag>
void Convert<Tag>::to_bfloat16(DType type, const void* from, int64_t count, uint16_t* to) {
  switch (type) {
    case DType::float32:
      return converted<Float32, BFloat16>(from, count, to);
    case DType::float16:
      return converted<Float16, BFloat16>(from, count, to);
    case DType::bfloat16:
      std::memcpy(to, from, count * sizeof(uint16_t));
      return;
    case DType::float8e4m3fn:
      return fp8_to_bfloat16(from, count, to);
    default:
      refuse_type("read", type);
  }
}

template <typename Tag>
void Convert<Tag>::write_row(DType type, const float* from, int64_t count, float factor, float divisor,
                             void* to) {
  const auto scaled = [=](Floats x) { return x / divisor * factor; };
  switch (type) {
    case DType::float32:
      return map_vectors<Float32, Float32>(from, count, to, scaled);
    case DType::float16:
      return map_vectors<Float32, Float16>(from, count, to, scaled);
    case DType::bfloat16:
      return map_vectors<Float32, BFloat16>(from, count, to, scaled);
    default:
      refuse_type("write", type);
  }
}

template <typename Tag>
uint64_t Convert<Tag>::not_finite(DType type, const void* rows, int64_t stride, int64_t count) {
#if defined(__AVX512BW__)
  if (type == DType::bfloat16 && count % 32 == 0 &&
      are_finite(static_cast<const uint16_t*>(rows), stride, count))
    return 0;
#endif
  uint64_t found = 0;
  for (int64_t key = 0; key < kTileKeys; ++key) {
    Ints bad{};
    const auto look = [&](Floats x, int64_t) { bad |= ((Words)x & kInfinity) == kInfinity; };
    switch (type) {
      case DType::float32:
        for_each_vector<Float32>(at(rows, key * stride * Float32::kBytes), count, look);
        break;
      case DType::float16:
        for_each_vector<Float16>(at(rows, key * stride * Float16::kBytes), count, look);
        break;
      case DType::bfloat16:
        for_each_vector<BFloat16>(at(rows, key * stride * BFloat16::kBytes), count, look);
        break;
      default:
        for_each_vector<Float8>(at(rows, key * stride * Float8::kBytes), count, look);
    }
    int32_t any = 0;
    for (int lane = 0; lane < kLanes; ++lane) any |= bad[lane];
    if (any != 0) found |= uint64_t{1} << key;
  }
  return found;
}

template struct Convert<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
