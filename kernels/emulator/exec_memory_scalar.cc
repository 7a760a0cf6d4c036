// SMEM: scalar loads and stores, clocks, cache control.
#include <string_view>

#include "exec_memory.hpp"

namespace zyfa::emulator {
namespace {

// Cycles per issued instruction, and cycles per tick of the 100 MHz clock at 2.4 GHz.
constexpr uint64_t kCyclesPerInstruction = 4, kCyclesPerTick = 24;

void record(Wave& wave, uint64_t address, unsigned bytes) {
  wave.access.lanes = 1;
  wave.access.bytes = static_cast<uint8_t>(bytes);
  wave.access.two = false;
  wave.access.address[0] = address;
}

uint64_t offset_of(Wave& wave, const Instruction& instruction) {
  return static_cast<uint64_t>(int64_t{instruction.offset}) + scalar_value(wave, instruction.soffset);
}

// The hardware drops the two low bits.
uint64_t aligned(Wave& wave, const Instruction& instruction, uint64_t address) {
  if (address % 4 != 0) report_misaligned(wave, instruction, 0, address, 4);
  return address & ~uint64_t{3};
}

void issue_result(Wave& wave, const Instruction& instruction) {
  if (checks(wave))
    wave.counters.issue_scalar(wave, instruction, instruction.dst.reg, instruction.dst.dwords);
}

void load(Wave& wave, const Instruction& instruction) {
  const uint64_t base = wave.sgpr64(instruction.base.reg);
  const uint64_t address = aligned(wave, instruction, base + offset_of(wave, instruction));
  const unsigned bytes = 4u * instruction.dst.dwords;
  const Memory& memory = *wave.group->launch->memory;
  std::memcpy(&wave.sgpr[instruction.dst.reg], memory.at(address, bytes, false, "scalar load"), bytes);
  record(wave, address, bytes);
  issue_result(wave, instruction);
}

void store(Wave& wave, const Instruction& instruction) {
  const uint64_t base = wave.sgpr64(instruction.base.reg);
  const uint64_t address = aligned(wave, instruction, base + offset_of(wave, instruction));
  const unsigned bytes = 4u * instruction.data.dwords;
  const Memory& memory = *wave.group->launch->memory;
  std::memcpy(memory.at(address, bytes, true, "scalar store"), &wave.sgpr[instruction.data.reg], bytes);
  record(wave, address, bytes);
}

// Dwords past the end of the buffer read as zero.
void buffer_load(Wave& wave, const Instruction& instruction) {
  const uint32_t* words = &wave.sgpr[instruction.base.reg];
  const uint64_t base = words[0] | uint64_t{words[1] & 0xffff} << 32;
  const uint64_t stride = words[1] >> 16 & 0x3fff;
  const uint64_t size = stride == 0 ? words[2] : words[2] * stride;
  const uint64_t offset = aligned(wave, instruction, offset_of(wave, instruction));
  const unsigned bytes = 4u * instruction.dst.dwords;
  const uint64_t inside = offset < size ? std::min<uint64_t>(bytes, (size - offset) & ~uint64_t{3}) : 0;
  uint32_t values[16] = {};
  if (inside != 0)
    std::memcpy(values, wave.group->launch->memory->at(base + offset, inside, false, "scalar buffer load"),
                inside);
  std::memcpy(&wave.sgpr[instruction.dst.reg], values, bytes);
  record(wave, base + offset, bytes);
  issue_result(wave, instruction);
}

void memory_time(Wave& wave, const Instruction& instruction) {
  wave.set_sgpr64(instruction.dst.reg, (wave.started + wave.executed) * kCyclesPerInstruction);
  issue_result(wave, instruction);
}

void real_time(Wave& wave, const Instruction& instruction) {
  wave.set_sgpr64(instruction.dst.reg,
                  (wave.started + wave.executed) * kCyclesPerInstruction / kCyclesPerTick);
  issue_result(wave, instruction);
}

void no_effect(Wave& wave, const Instruction&) { wave.access.lanes = 0; }

}  // namespace

Handler smem_handler(const Instruction& instruction) {
  if (instruction.info->format != Format::smem) return nullptr;
  const std::string_view name = instruction.info->name;
  const auto begins = [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; };
  if (begins("s_load_")) return load;
  if (begins("s_store_")) return store;
  if (begins("s_buffer_load_")) return buffer_load;
  if (begins("s_dcache_inv") || begins("s_dcache_wb")) return no_effect;
  if (name == "s_memtime") return memory_time;
  if (name == "s_memrealtime") return real_time;
  return nullptr;
}

}  // namespace zyfa::emulator
