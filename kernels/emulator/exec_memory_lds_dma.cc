// Loads that write to LDS instead of registers: buffer_load ... lds and global_load_lds.
//
// Lane i writes LDS at M0[17:0] + the instruction's offset + i * size; the offset is part of the memory
// address, too. Bytes and halfwords are extended to a dword each. The bytes reach LDS when the s_waitcnt of
// the issuing wave covers them: until then LDS holds what it held before, which is what a reader without that
// wait may get on the chip.
#include <string_view>

#include "exec_memory.hpp"

namespace zyfa::emulator {
namespace {

constexpr uint32_t kM0Mask = 0x3ffff;

template <Space kSpace, unsigned kBytes, Part kPart>
void load_to_lds(Wave& wave, const Instruction& instruction) {
  constexpr unsigned kWidth = kBytes < 4 ? 4 : kBytes;
  Located where;
  locate<kSpace>(wave, instruction, kBytes, false, where);
  const uint32_t base = (wave.sgpr[kM0] & kM0Mask) + static_cast<uint32_t>(instruction.offset);
  if (base % 4 != 0) report_misaligned(wave, instruction, 0, base, 4);
  uint32_t at[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) at[lane] = base + lane * kWidth;
  check_lds_range(wave, where.lanes, at, kWidth);
  Lds& lds = wave.group->lds;
  lds.check(wave, instruction, LdsAccess::dma, where.lanes, at, kWidth);
  // The counter has 63 places: a full one makes the oldest operation return before this one is issued.
  wave.counters.make_room(wave);
  uint8_t* data = wave.counters.land_later(base, where.lanes, kWidth);
  each_lane(where.lanes, [&](int lane) {
    uint8_t* to = data + static_cast<size_t>(lane) * kWidth;
    if constexpr (kBytes >= 4) {
      std::memcpy(to, where.host[lane], kBytes);
    } else {
      const uint32_t value = widen<kBytes, kPart>(where.host[lane], 0);
      std::memcpy(to, &value, 4);
    }
  });
  wave.access.lds = base;
  issue(wave, instruction, Counters::Queue::vector_memory, Operand(), where.lanes);
}

template <Space kSpace>
Handler find(std::string_view suffix) {
  static constexpr struct {
    std::string_view suffix;
    Handler handler;
  } kRows[] = {
      {"dword", load_to_lds<kSpace, 4, Part::dwords>},
      {"dwordx3", load_to_lds<kSpace, 12, Part::dwords>},
      {"dwordx4", load_to_lds<kSpace, 16, Part::dwords>},
      {"ubyte", load_to_lds<kSpace, 1, Part::unsigned_part>},
      {"sbyte", load_to_lds<kSpace, 1, Part::signed_part>},
      {"ushort", load_to_lds<kSpace, 2, Part::unsigned_part>},
      {"sshort", load_to_lds<kSpace, 2, Part::signed_part>},
  };
  for (const auto& row : kRows)
    if (row.suffix == suffix) return row.handler;
  return nullptr;
}

}  // namespace

Handler lds_dma_handler(const Instruction& instruction) {
  if (!instruction.lds) return nullptr;
  constexpr std::string_view kBuffer = "buffer_load_", kGlobal = "global_load_lds_";
  const std::string_view name = instruction.info->name;
  if (name.substr(0, kBuffer.size()) == kBuffer) return find<Space::buffer>(name.substr(kBuffer.size()));
  if (name.substr(0, kGlobal.size()) == kGlobal) return find<Space::global>(name.substr(kGlobal.size()));
  return nullptr;
}

}  // namespace zyfa::emulator
