#include "execute.hpp"
namespace zyfa::emulator {
Handler scalar_handler(const Instruction&) { return nullptr; }
}
