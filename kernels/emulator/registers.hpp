// Register discipline: nothing is read that was never written or is still on its way.
#pragma once

#include "state.hpp"

namespace zyfa::emulator {

// The lanes of its VGPRs that an instruction reads and writes.
uint64_t touched_lanes(const Wave& wave, const Instruction& instruction, const Effects& effects);
// Reports reads of undefined registers, and reads or writes of registers whose load is not covered by an
// s_waitcnt yet.
void check_registers(Wave& wave, const Instruction& instruction, const Effects& effects, uint64_t lanes);
// After the instruction ran: `lanes` of its VGPR results and all SGPR results are defined, those of a copy
// where its source is.
void mark_written(Wave& wave, const Instruction& instruction, const Effects& effects, uint64_t lanes);

}  // namespace zyfa::emulator
