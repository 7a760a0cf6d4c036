// The wait states that gfx950 does not insert by itself. One history per wave, asked before every instruction.
#pragma once

#include <cstdint>

#include "effects.hpp"

namespace zyfa::emulator {

struct Wave;

class Hazards {
 public:
  void reset();
  // Reports through wave.report(); call before the instruction runs.
  void check(Wave& wave, const Instruction& instruction, const Effects& effects);
  // Enters the instruction into the history; call after check().
  void record(const Wave& wave, const Instruction& instruction, const Effects& effects);

 private:
};

}  // namespace zyfa::emulator
