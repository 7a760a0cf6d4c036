// Transposition of words and of 16-bit values.
#include "transpose.hpp"

#include "isa.hpp"

namespace zyfa::cpu::isa {
namespace {

typedef uint16_t Halves __attribute__((vector_size(32)));

inline Words widen(const Halves& v) {
#if defined(__AVX512F__)
  return (Words)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)v);
#else
  return __builtin_convertvector(v, Words);
#endif
}

}  // namespace

template <typename Tag>
void Transpose<Tag>::words(const uint32_t* from, int64_t from_stride, int64_t rows, int64_t columns,
                           uint32_t* to, int64_t to_stride) {
  for (int64_t column = 0; column < columns; column += kLaneBlock)
    for (int64_t row = 0; row < rows; row += kLaneBlock)
      transpose_block(from + row * from_stride + column, from_stride, to + column * to_stride + row,
                      to_stride);
}

template <typename Tag>
void Transpose<Tag>::values(const uint16_t* from, int64_t columns, uint16_t* to) {
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

template struct Transpose<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
