// The hazard rules over straight-line code, without running it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "findings.hpp"

namespace zyfa::emulator {

// Decodes `size` bytes in linear order and applies the wait-state rules. Both sides of a conditional branch
// follow it here: a finding there may be on a path that does not exist. What follows an unconditional branch
// or the end of the program starts with an empty history. Throws DecodeError with the offset.
std::vector<Finding> lint(const uint8_t* code, size_t size);

}  // namespace zyfa::emulator
