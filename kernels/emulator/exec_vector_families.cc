// The handlers of one copy of the vector files.
#include "exec_vector.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

bool has_sign_modifiers(const Instruction& in) {
  for (const Operand& operand : in.src)
    if (operand.neg || operand.abs) return true;
  return false;
}

}  // namespace

Handler find_vector_handler(const Instruction& in) {
  for (const auto find :
       {float_handler, lane_handler, convert_handler, packed_handler, transcendental_handler, compare_handler,
        half_handler, double_handler, division_handler, dot_handler, scaled_convert_handler})
    if (const Handler found = find(in)) return found;
  // Signs of integers: what neg and abs do there is not documented.
  if (has_sign_modifiers(in)) return nullptr;
  if (const Handler found = integer_handler(in)) return found;
  return wide_integer_handler(in);
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
