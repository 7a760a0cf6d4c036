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

 private:
};

}  // namespace zyfa::emulator
