// Loads and stores: FLAT, GLOBAL, SCRATCH, MUBUF.
#include <string_view>

#include "exec_memory.hpp"

namespace zyfa::emulator {
namespace {

template <Space kSpace, unsigned kBytes, Part kPart>
void load(Wave& wave, const Instruction& instruction) {
  Located where;
  locate<kSpace>(wave, instruction, kBytes, false, where);
  if (where.in_lds != 0) check_flat_lds(wave, instruction, where, LdsAccess::read, kBytes);
  each_lane(where.lanes,
            [&](int lane) { load_lane<kBytes, kPart>(wave, instruction.dst.reg, lane, where.host[lane]); });
  issue(wave, instruction, queue_of(where), instruction.dst, where.lanes);
}

template <Space kSpace, unsigned kBytes, bool kHigh>
void store(Wave& wave, const Instruction& instruction) {
  Located where;
  locate<kSpace>(wave, instruction, kBytes, true, where);
  if (where.in_lds != 0) check_flat_lds(wave, instruction, where, LdsAccess::write, kBytes);
  each_lane(where.lanes,
            [&](int lane) { store_lane<kBytes, kHigh>(wave, instruction.data.reg, lane, where.host[lane]); });
  store_clipped(where);
  if (where.in_lds != 0) wave.group->lds.written(wave, instruction);
  issue(wave, instruction, queue_of(where), Operand(), where.lanes);
}

// Write-backs and invalidations of caches that the emulator does not have.
void no_effect(Wave& wave, const Instruction&) { wave.access.lanes = 0; }

struct Row {
  std::string_view suffix;
  Handler handler;
};

template <Space kSpace>
Handler find(std::string_view suffix, bool is_load) {
  static constexpr Row kLoads[] = {
      {"dword", load<kSpace, 4, Part::dwords>},
      {"dwordx2", load<kSpace, 8, Part::dwords>},
      {"dwordx3", load<kSpace, 12, Part::dwords>},
      {"dwordx4", load<kSpace, 16, Part::dwords>},
      {"ubyte", load<kSpace, 1, Part::unsigned_part>},
      {"sbyte", load<kSpace, 1, Part::signed_part>},
      {"ushort", load<kSpace, 2, Part::unsigned_part>},
      {"sshort", load<kSpace, 2, Part::signed_part>},
      {"ubyte_d16", load<kSpace, 1, Part::low_half_unsigned>},
      {"ubyte_d16_hi", load<kSpace, 1, Part::high_half_unsigned>},
      {"sbyte_d16", load<kSpace, 1, Part::low_half_signed>},
      {"sbyte_d16_hi", load<kSpace, 1, Part::high_half_signed>},
      {"short_d16", load<kSpace, 2, Part::low_half_unsigned>},
      {"short_d16_hi", load<kSpace, 2, Part::high_half_unsigned>},
  };
  static constexpr Row kStores[] = {
      {"dword", store<kSpace, 4, false>},    {"dwordx2", store<kSpace, 8, false>},
      {"dwordx3", store<kSpace, 12, false>}, {"dwordx4", store<kSpace, 16, false>},
      {"byte", store<kSpace, 1, false>},     {"byte_d16_hi", store<kSpace, 1, true>},
      {"short", store<kSpace, 2, false>},    {"short_d16_hi", store<kSpace, 2, true>},
  };
  if (is_load) {
    for (const Row& row : kLoads)
      if (row.suffix == suffix) return row.handler;
  } else {
    for (const Row& row : kStores)
      if (row.suffix == suffix) return row.handler;
  }
  return nullptr;
}

}  // namespace

Handler vector_memory_handler(const Instruction& instruction) {
  if (instruction.op == Op::buffer_wbl2 || instruction.op == Op::buffer_inv) return no_effect;
  if (instruction.lds) return nullptr;
  const std::string_view name = instruction.info->name;
  const size_t verb = name.find('_') + 1;
  const bool is_load = name.compare(verb, 5, "load_") == 0;
  if (!is_load && name.compare(verb, 6, "store_") != 0) return nullptr;
  const std::string_view suffix = name.substr(verb + (is_load ? 5 : 6));
  switch (instruction.info->format) {
    case Format::flat:
      return find<Space::flat>(suffix, is_load);
    case Format::global:
      return find<Space::global>(suffix, is_load);
    case Format::scratch:
      return find<Space::scratch>(suffix, is_load);
    case Format::mubuf:
      return find<Space::buffer>(suffix, is_load);
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator
