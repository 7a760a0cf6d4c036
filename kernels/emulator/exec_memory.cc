#include "execute.hpp"
namespace zyfa::emulator {
Handler memory_handler(const Instruction&) { return nullptr; }
}
