// Which lanes of a DS instruction the LDS serves together, and how long it takes for the addresses at hand.
#pragma once

#include "timing/costs.hpp"

namespace zyfa::emulator::timing {

struct LdsWork {
  uint32_t cycles = 0;     // of the LDS
  uint32_t conflicts = 0;  // of them lost to bank conflicts
  uint32_t bytes = 0;
};

// `access` holds the LDS byte addresses of the instruction just executed.
LdsWork lds_work(const Cost& cost, const Access& access, const Constants& constants);

}  // namespace zyfa::emulator::timing
