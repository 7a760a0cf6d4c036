#include "execute.hpp"
namespace zyfa::emulator {
Handler vector_handler(const Instruction&) { return nullptr; }
}
