// The template behind ../elements.hpp, instantiated in elements.cc for one tag.
#pragma once

#include "../elements.hpp"
#include "isa.hpp"

namespace zyfa::cpu::isa {

template <typename Tag>
struct ElementLoops {
  static float largest_finite(DType type, const void* x, int64_t count);
  static CodeScale code_scale(float scale);
  static void to_fp8(DType type, const void* x, int64_t count, const CodeScale& scale, uint8_t* codes);
  static void rotate(DType type, const void* x, int64_t count, int64_t block, DType y_type, void* y,
                     float* scratch);
  static void rotated_largest(const RotatedRows& rows, float* largest);
  static void rotated_to_fp8(const RotatedRows& rows, const RowCodes& to);
};

}  // namespace zyfa::cpu::isa
