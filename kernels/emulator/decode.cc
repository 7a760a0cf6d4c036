#include "decode.hpp"
#include "errors.hpp"
namespace zyfa::emulator {
Instruction decode(const uint8_t*, size_t, uint64_t) { throw DecodeError("no decoder yet"); }
}
