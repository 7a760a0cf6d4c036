// Which lanes of a DS instruction the LDS serves together, and how long it takes for the addresses at hand.
#pragma once

#include "timing/costs.hpp"

namespace zyfa::emulator::timing {

struct LdsWork {
  uint32_t cycles = 0;     // of the LDS
  uint32_t conflicts = 0;  // of them lost to bank conflicts
  uint32_t bytes = 0;
};

// The addresses that an instruction had last, relative to the first, and what they cost. Adding the same
// multiple of 4 to all addresses turns the banks but changes no conflict, so a loop that walks through LDS is
// worked out once.
struct LdsPattern {
  uint64_t lanes = 0;
  uint32_t bytes = 0, phase = 0;
  bool two = false;
  uint32_t first[kLanes] = {}, second[kLanes] = {};
  LdsWork work;
};

// `access` holds the LDS byte addresses of the instruction just executed; `last` is the instruction's own.
const LdsWork& lds_work(const Cost& cost, const Access& access, const Constants& constants, LdsPattern& last);

}  // namespace zyfa::emulator::timing
