// Whether this process may use the tile registers of AMX.
#pragma once

namespace zyfa::cpu {

// True when the processor multiplies bfloat16 tiles and the operating system grants their state. Asks once.
bool amx_bf16_is_usable();

}  // namespace zyfa::cpu
