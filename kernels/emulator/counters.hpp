// The wave's memory counters. A load's destination stays "on its way" until the s_waitcnt that covers it: reading or
// overwriting it earlier is a finding, although the value is already there.
#pragma once

#include <cstdint>
#include <deque>

#include "effects.hpp"

namespace zyfa::emulator {

struct Wave;

class Counters {
 public:
  void reset();
  // s_waitcnt: at most this many vector memory and LDS/scalar operations may still be under way.
  void wait(Wave& wave, const Instruction& instruction, unsigned vmcnt, unsigned lgkmcnt);

 private:
};

}  // namespace zyfa::emulator
