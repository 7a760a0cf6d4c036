// Behaviour of instructions: a handler per instruction, found once when the instruction is decoded.
#pragma once

#include "state.hpp"

namespace zyfa::emulator {

// Handlers read and write wave registers under EXEC. wave.pc already points behind the instruction; branches
// set it.
using Handler = void (*)(Wave& wave, const Instruction& instruction);

// nullptr when the instruction is not of this kind or not implemented.
Handler scalar_handler(const Instruction& instruction);  // exec_scalar*.cc: SOP*, branches, barriers, waits
Handler vector_handler(const Instruction& instruction);  // exec_vector*.cc: VOP*, v_pk_*, v_dot*
Handler matrix_handler(const Instruction& instruction);  // exec_matrix*.cc: v_mfma*, v_smfmac*
Handler memory_handler(
    const Instruction& instruction);  // exec_memory*.cc: SMEM, DS, FLAT, GLOBAL, SCRATCH, MUBUF

}  // namespace zyfa::emulator
