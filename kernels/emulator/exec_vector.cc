// Chooses among the copies of the vector files: the newest instruction set that this machine has.
#include "execute.hpp"

namespace zyfa::emulator {

#define ZYFA_COPY(level)                              \
  namespace level {                                   \
  Handler find_vector_handler(const Instruction& in); \
  }
ZYFA_COPY(generic)
#ifdef ZYFA_X86_LEVELS
ZYFA_COPY(x86_64_v3)
ZYFA_COPY(x86_64_v4)
#endif
#undef ZYFA_COPY

namespace {

using Finder = Handler (*)(const Instruction&);

Finder best_copy() {
#ifdef ZYFA_X86_LEVELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return x86_64_v4::find_vector_handler;
  if (__builtin_cpu_supports("x86-64-v3")) return x86_64_v3::find_vector_handler;
#endif
  return generic::find_vector_handler;
}

}  // namespace

Handler vector_handler(const Instruction& instruction) {
  static const Finder find = best_copy();
  return find(instruction);
}

}  // namespace zyfa::emulator
