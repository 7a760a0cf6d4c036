#include "counters.hpp"
namespace zyfa::emulator {
void Counters::reset() {}
}
