// Machine code to Instruction, and Instruction to the assembler's text.
#pragma once

#include <cstddef>
#include <string>

#include "instruction.hpp"

namespace zyfa::emulator {

// Decodes one instruction from `size` readable bytes. Throws DecodeError when the bytes are no instruction of
// gfx950.
Instruction decode(const uint8_t* bytes, size_t size, uint64_t address);

// The text LLVM's assembler turns back into the same bytes. Branch targets are written as numbers.
std::string disassemble(const Instruction& instruction);

// "v[4:7]", "a3", "s[8:9]", "vcc", "exec_lo": `count` registers from `reg` on, as the assembler writes them.
std::string vgpr_text(unsigned reg, unsigned count);
std::string sgpr_text(unsigned reg, unsigned count);

}  // namespace zyfa::emulator
