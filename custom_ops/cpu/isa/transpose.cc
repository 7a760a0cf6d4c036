// Transposition of words and of 16-bit values.
#include "isa.hpp"
#include "vector.hpp"

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
