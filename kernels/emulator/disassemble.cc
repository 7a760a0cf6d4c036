#include "decode.hpp"
namespace zyfa::emulator {
std::string disassemble(const Instruction& instruction) { return instruction.info->name; }
}
