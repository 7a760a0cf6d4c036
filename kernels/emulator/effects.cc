#include "effects.hpp"
namespace zyfa::emulator {
Effects effects_of(const Instruction&) { return Effects(); }
}
