// The template behind ../elements.hpp, instantiated in elements.cc for one tag.
#pragma once

#include "../elements.hpp"
#include "isa.hpp"

namespace zyfa::cpu::isa {

template <typename Tag>
struct ElementLoops {
  static float largest_finite(DType type, const void* x, int64_t count);
  static void to_fp8(DType type, const void* x, int64_t count, float scale, uint8_t* codes);
  static void rotate(DType type, const void* x, int64_t count, int64_t block, DType y_type, void* y,
                     float* scratch);
};

}  // namespace zyfa::cpu::isa
