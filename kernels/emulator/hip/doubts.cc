#include "doubts.hpp"

#include <cstdio>
#include <cstdlib>

namespace zyfa::emulator::hip {
namespace {

Doubts read() {
  Doubts found;
  const char* given = std::getenv("ZYFA_EMULATED_BYTE_ROUNDING");
  const std::string word = given != nullptr ? given : "";
  if (word == "truncate")
    found.byte_rounding = ByteRounding::truncate;
  else if (!word.empty() && word != "nearest_even")
    found.mistake = "ZYFA_EMULATED_BYTE_ROUNDING: expected nearest_even or truncate, got '" + word + "'";
  if (!found.mistake.empty()) std::fprintf(stderr, "emulated gfx950: %s\n", found.mistake.c_str());
  return found;
}

}  // namespace

const Doubts& doubts() {
  // Never destroyed: streams may still run while the process ends.
  static const auto* const made = new Doubts(read());
  return *made;
}

}  // namespace zyfa::emulator::hip
