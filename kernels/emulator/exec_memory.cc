#include "exec_memory.hpp"

namespace zyfa::emulator {

Handler memory_handler(const Instruction& instruction) {
  for (const auto find : {smem_handler, ds_handler, ds_atomic_handler, ds_lane_handler, lds_dma_handler,
                          atomic_handler, vector_memory_handler})
    if (const Handler found = find(instruction)) return found;
  return nullptr;
}

void report_misaligned(Wave& wave, const Instruction& instruction, int lane, uint64_t address,
                       unsigned alignment) {
  if (!checks(wave)) return;
  wave.report(Rule::misaligned, instruction,
              format("address 0x%llx of lane %d is no multiple of %u",
                     static_cast<unsigned long long>(address), lane, alignment));
}

}  // namespace zyfa::emulator
