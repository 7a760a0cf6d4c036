#include "lds.hpp"
namespace zyfa::emulator {
void Lds::reset(uint32_t bytes) { data_.assign(bytes, 0xCD); }
}
