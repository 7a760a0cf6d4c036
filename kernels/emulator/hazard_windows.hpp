// Wait states between a matrix instruction and what touches its registers, by group and passes.
#pragma once

#include "effects.hpp"

namespace zyfa::emulator {

struct MatrixWindows {
  uint8_t same_c;   // its result as C of the next one, same registers
  uint8_t other_c;  // its result as C, overlapping registers
  uint8_t ab;       // its result as A, B, index or scale
  uint8_t vector;   // its result read or written by a vector instruction
  uint8_t memory;   // its result read by a memory instruction
  uint8_t c_war;    // its C overwritten by a vector instruction
};

// Sources: AMD's CDNA3 and CDNA4 instruction sets and LLVM's GCNHazardRecognizer for gfx950. The rows for f32
// and f64 are the counts that clang 22 puts between such instructions.
constexpr MatrixWindows windows_of(MatrixGroup group, unsigned passes) {
  switch (group) {
    case MatrixGroup::f64:
      return passes <= 4 ? MatrixWindows{4, 4, 6, 6, 9, 0} : MatrixWindows{0, 17, 19, 19, 18, 0};
    case MatrixGroup::f32:
      if (passes <= 2) return {2, 2, 4, 4, 4, 0};
      return passes <= 8 ? MatrixWindows{0, 8, 10, 10, 10, 0} : MatrixWindows{0, 16, 18, 18, 18, 0};
    case MatrixGroup::xdl:
      if (passes <= 2) return {2, 4, 5, 5, 5, 1};
      if (passes <= 4) return {0, 6, 8, 8, 8, 3};
      return passes <= 8 ? MatrixWindows{0, 10, 12, 12, 12, 7} : MatrixWindows{0, 18, 20, 20, 20, 15};
  }
  return {};
}

// No window is longer.
constexpr int kLongestMatrixWindow = 20, kLongestScalarWindow = 5, kLongestRecentWindow = 3;

}  // namespace zyfa::emulator
