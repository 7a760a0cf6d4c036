#include "hazards.hpp"
namespace zyfa::emulator {
void Hazards::reset() {}
void Hazards::check(Wave&, const Instruction&, const Effects&) {}
void Hazards::record(const Wave&, const Instruction&, const Effects&) {}
}
