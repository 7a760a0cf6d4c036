#include "execute.hpp"
namespace zyfa::emulator {
Handler matrix_handler(const Instruction&) { return nullptr; }
}
