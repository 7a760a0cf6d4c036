// What nobody has published about the chip, decided by environment variables: a program can be run on either
// device.
#pragma once

#include <string>

#include "state.hpp"

namespace zyfa::emulator::hip {

struct Doubts {
  ByteRounding byte_rounding = ByteRounding::nearest_even;  // ZYFA_EMULATED_BYTE_ROUNDING
  std::string mistake;  // not empty when a variable was not understood: one line
};

// As the variables were at the first call.
const Doubts& doubts();

}  // namespace zyfa::emulator::hip
