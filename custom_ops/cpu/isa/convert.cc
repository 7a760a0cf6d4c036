// Elements and their order: types to and from FP32 and bfloat16, transposition, search for NaN and infinity.
#include "../../error.hpp"
#include "../float_formats.hpp"
#include "isa.hpp"
#include "vector.hpp"

namespace zyfa::cpu::isa {
namespace {

// Converts whole blocks of 16 with `vector`, the rest with `scalar`.
template <typename From, typename To, typename VectorStep, typename ScalarStep>
inline void convert(const void* data, int64_t count, To* to, VectorStep vector, ScalarStep scalar) {
  const From* from = static_cast<const From*>(data);
  int64_t i = 0;
  for (; i + kLaneBlock <= count; i += kLaneBlock) vector(from + i, to + i);
  for (; i < count; ++i) to[i] = scalar(from[i]);
}

typedef uint16_t Halves __attribute__((vector_size(32)));
typedef uint8_t Bytes __attribute__((vector_size(16)));

#if defined(__AVX512BW__)
inline Words widen(const Halves& v) { return (Words)_mm512_cvtepu16_epi32((__m256i)v); }
inline Words widen(const Bytes& v) { return (Words)_mm512_cvtepu8_epi32((__m128i)v); }
inline Halves narrow(const Words& v) { return (Halves)_mm512_cvtepi32_epi16((__m512i)v); }
#else
inline Words widen(const Halves& v) { return __builtin_convertvector(v, Words); }
inline Words widen(const Bytes& v) { return __builtin_convertvector(v, Words); }
inline Halves narrow(const Words& v) { return __builtin_convertvector(v, Halves); }
#endif

inline Floats from_bfloat16_lanes(const uint16_t* from) {
  return floats_of(widen(load_as<Halves>(from)) << 16);
}

inline Floats from_float16_lanes(const uint16_t* from) {
#if defined(__AVX512F__)
  return (Floats)_mm512_cvtph_ps(load_as<__m256i>(from));
#else
  const Words bits = widen(load_as<Halves>(from)), magnitude = bits & 0x7fffu, sign = (bits & 0x8000u) << 16;
  const Words normal = (magnitude << 13) + (112u << 23);
  const Words special = 0x7f800000u | (magnitude & 0x3ffu) << 13;
  const Words subnormal = bits_of(__builtin_convertvector((Ints)magnitude, Floats) * 0x1p-24f);
  return floats_of(sign | (magnitude >= 0x7c00u ? special : magnitude < 0x400u ? subnormal : normal));
#endif
}

inline Words fp8_as_fp32_bits(const uint8_t* from) {
  const Words code = widen(load_as<Bytes>(from)), magnitude = code & 0x7fu, sign = (code & 0x80u) << 24;
  const Words normal = (magnitude << 20) + (120u << 23);
  const Words subnormal = bits_of(floats_of((magnitude << 20) + (121u << 23)) - 0x1p-6f);
  const Words value = magnitude < 8u ? subnormal : normal;
  return sign | (magnitude == 0x7fu ? Words{} + 0x7fc00000u : value);
}

// As float_formats.hpp, any NaN stays one.
inline Words to_bfloat16_bits(const Floats& x) {
  const Words bits = bits_of(x);
  return x == x ? (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16 : (bits >> 16) | 0x40u;
}

#if defined(__AVX512BW__)
// 32 codes at a time, in 16-bit lanes.
inline __m512i fp8_as_bfloat16(__m256i codes) {
  const __m512i code = _mm512_cvtepu8_epi16(codes),
                magnitude = _mm512_and_si512(code, _mm512_set1_epi16(0x7f));
  const __m512i sign = _mm512_slli_epi16(_mm512_and_si512(code, _mm512_set1_epi16(0x80)), 8);
  const __m512i normal = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
  // Multiples of 2^-9, by code.
  const __m512i subnormal =
      _mm512_broadcast_i32x4(_mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60));
  const __mmask32 is_subnormal = _mm512_cmplt_epi16_mask(magnitude, _mm512_set1_epi16(8));
  const __mmask32 is_nan = _mm512_cmpeq_epi16_mask(magnitude, _mm512_set1_epi16(0x7f));
  __m512i value = _mm512_mask_permutexvar_epi16(normal, is_subnormal, magnitude, subnormal);
  value = _mm512_mask_mov_epi16(value, is_nan, _mm512_set1_epi16(0x7fc0));
  return _mm512_or_si512(value, sign);
}
#endif

inline Words to_float16_bits(const Floats& x) {
  const Words bits = bits_of(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const Words rebased = magnitude - (112u << 23);
  const Words normal = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  const Words subnormal = bits_of(floats_of(magnitude) + 0.5f) - 0x3f000000u;
  Words result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? Words{} + 0x7c00u : result;
  result = magnitude > 0x7f800000u ? Words{} + 0x7e00u : result;
  return sign | result;
}

// Rows whose number lacks the bit take lanes Low of themselves and the row that has it, which takes those
// Step further.
template <int Step, int... Low>
inline void swap_lanes(Words (&row)[kLaneBlock]) {
  for (int r = 0; r < kLaneBlock; ++r) {
    if (r & Step) continue;
    const Words a = row[r], b = row[r + Step];
    row[r] = __builtin_shufflevector(a, b, Low...);
    row[r + Step] = __builtin_shufflevector(a, b, (Low + Step)...);
  }
}

inline void transpose_block(const uint32_t* from, int64_t from_stride, uint32_t* to, int64_t to_stride) {
  Words row[kLaneBlock];
  for (int r = 0; r < kLaneBlock; ++r) row[r] = load_as<Words>(from + r * from_stride);
  // Swaps a bit of the row number with the same bit of the column number, four times.
  swap_lanes<1, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30>(row);
  swap_lanes<2, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29>(row);
  swap_lanes<4, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27>(row);
  swap_lanes<8, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23>(row);
  for (int r = 0; r < kLaneBlock; ++r) store(to + r * to_stride, row[r]);
}

}  // namespace

template <typename Tag>
void Convert<Tag>::to_fp32(DType type, const void* from, int64_t count, float* to) {
  switch (type) {
    case DType::float32:
      std::memcpy(to, from, count * sizeof(float));
      return;
    case DType::float16:
      return convert<uint16_t>(
          from, count, to, [](const uint16_t* x, float* y) { store(y, from_float16_lanes(x)); },
          from_float16);
    case DType::bfloat16:
      return convert<uint16_t>(
          from, count, to, [](const uint16_t* x, float* y) { store(y, from_bfloat16_lanes(x)); },
          from_bfloat16);
    case DType::float8e4m3fn:
      return convert<uint8_t>(
          from, count, to, [](const uint8_t* x, float* y) { store(y, fp8_as_fp32_bits(x)); }, from_fp8);
    default:
      fail("cannot read ", name(type), " as floating point");
  }
}

template <typename Tag>
void Convert<Tag>::to_bfloat16(DType type, const void* from, int64_t count, uint16_t* to) {
  const auto rounded = [to](auto read) {
    return [read](const auto* x, uint16_t* y) { store(y, narrow(to_bfloat16_bits(read(x)))); };
  };
  switch (type) {
    case DType::float32:
      return convert<float>(from, count, to, rounded(load), cpu::to_bfloat16);
    case DType::float16:
      return convert<uint16_t>(from, count, to, rounded(from_float16_lanes),
                               [](uint16_t x) { return cpu::to_bfloat16(from_float16(x)); });
    case DType::bfloat16:
      std::memcpy(to, from, count * sizeof(uint16_t));
      return;
    case DType::float8e4m3fn: {
      int64_t done = 0;
#if defined(__AVX512BW__)
      for (; done + 32 <= count; done += 32)
        store(to + done, fp8_as_bfloat16(load_as<__m256i>(static_cast<const uint8_t*>(from) + done)));
#endif
      return convert<uint8_t>(
          static_cast<const uint8_t*>(from) + done, count - done, to + done,
          [](const uint8_t* x, uint16_t* y) { store(y, narrow(fp8_as_fp32_bits(x) >> 16)); },
          [](uint8_t x) { return cpu::to_bfloat16(from_fp8(x)); });
    }
    default:
      fail("cannot read ", name(type), " as floating point");
  }
}

template <typename Tag>
void Convert<Tag>::write_row(DType type, const float* from, int64_t count, float factor, float divisor,
                             void* to) {
  const auto scaled = [=](const float* x) { return load(x) * factor / divisor; };
  const auto halves = [&](auto round_lanes, auto round) {
    convert<float>(
        from, count, static_cast<uint16_t*>(to),
        [&](const float* x, uint16_t* y) { store(y, narrow(round_lanes(scaled(x)))); },
        [&](float x) { return round(x * factor / divisor); });
  };
  switch (type) {
    case DType::float32:
      return convert<float>(
          from, count, static_cast<float*>(to), [&](const float* x, float* y) { store(y, scaled(x)); },
          [&](float x) { return x * factor / divisor; });
    case DType::float16:
      return halves(to_float16_bits, to_float16);
    case DType::bfloat16:
      return halves(to_bfloat16_bits, cpu::to_bfloat16);
    default:
      fail("cannot write floating point as ", name(type));
  }
}

template <typename Tag>
void Convert<Tag>::transpose(const uint32_t* from, int64_t from_stride, int64_t rows, int64_t columns,
                             uint32_t* to, int64_t to_stride) {
  for (int64_t column = 0; column < columns; column += kLaneBlock)
    for (int64_t row = 0; row < rows; row += kLaneBlock)
      transpose_block(from + row * from_stride + column, from_stride, to + column * to_stride + row,
                      to_stride);
}

template <typename Tag>
void Convert<Tag>::transpose_values(const uint16_t* from, int64_t columns, uint16_t* to) {
  // Pairs of keys become words, whose transposition is what is wanted.
  for (int64_t column = 0; column < columns; column += kLaneBlock)
    for (int64_t key = 0; key < kTileKeys; key += 2 * kLaneBlock) {
      uint32_t words[kLaneBlock * kLaneBlock];
      for (int64_t pair = 0; pair < kLaneBlock; ++pair) {
        const uint16_t* row = from + (key + 2 * pair) * columns + column;
        store(words + pair * kLaneBlock, widen(load_as<Halves>(row)) | widen(load_as<Halves>(row + columns))
                                                                           << 16);
      }
      uint32_t turned[kLaneBlock * kLaneBlock];
      transpose_block(words, kLaneBlock, turned, kLaneBlock);
      for (int64_t c = 0; c < kLaneBlock; ++c)
        std::memcpy(to + (column + c) * kTileKeys + key, turned + c * kLaneBlock, 2 * kLaneBlock * 2);
    }
}

template <typename Tag>
uint64_t Convert<Tag>::not_finite_fp32(const float* from, int64_t stride, int64_t count) {
  uint64_t found = 0;
  for (int64_t key = 0; key < kTileKeys; ++key) {
    const float* row = from + key * stride;
    Ints bad{};
    int64_t i = 0;
    for (; i + kLaneBlock <= count; i += kLaneBlock)
      bad |= (bits_of(load(row + i)) & 0x7f800000u) == 0x7f800000u;
    bool rest = false;
    for (; i < count; ++i) rest |= (cpu::bits_of(row[i]) & 0x7f800000u) == 0x7f800000u;
    if (rest || any(bad)) found |= uint64_t{1} << key;
  }
  return found;
}

template <typename Tag>
uint64_t Convert<Tag>::not_finite_bfloat16(const uint16_t* from, int64_t stride, int64_t count) {
  uint64_t found = 0;
  for (int64_t key = 0; key < kTileKeys; ++key) {
    bool bad = false;
    for (int64_t i = 0; i < count; ++i) bad |= (from[key * stride + i] & 0x7f80) == 0x7f80;
    if (bad) found |= uint64_t{1} << key;
  }
  return found;
}

template struct Convert<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
