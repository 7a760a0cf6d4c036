// Atomics on LDS and on memory. Lanes take their turn in ascending order.
#include <mutex>

#include "atomic_ops.hpp"
#include "exec_memory.hpp"

namespace zyfa::emulator {
namespace {

uint64_t register_value(const Wave& wave, unsigned reg, int lane, unsigned bytes) {
  return wave.vgpr[reg][lane] | (bytes == 8 ? uint64_t{wave.vgpr[reg + 1][lane]} << 32 : 0);
}

void set_register(Wave& wave, unsigned reg, int lane, unsigned bytes, uint64_t value) {
  wave.vgpr[reg][lane] = static_cast<uint32_t>(value);
  if (bytes == 8) wave.vgpr[reg + 1][lane] = static_cast<uint32_t>(value >> 32);
}

// Other workgroups may run on other threads: compare-and-swap on the host, too.
template <class Word, class F>
uint64_t update_word(uint8_t* at, F change) {
  using Aliased __attribute__((may_alias)) = Word;
  auto* word = reinterpret_cast<Aliased*>(at);
  Word before = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(word, &before, static_cast<Word>(change(before)), true,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return before;
}

// Device memory may lie over host memory of any alignment; there a lock makes the update whole.
template <class F>
uint64_t update(uint8_t* at, unsigned bytes, F change) {
  if (reinterpret_cast<uintptr_t>(at) % bytes == 0)
    return bytes == 8 ? update_word<uint64_t>(at, change) : update_word<uint32_t>(at, change);
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  uint64_t before = 0;
  std::memcpy(&before, at, bytes);
  const uint64_t after = change(before);
  std::memcpy(at, &after, bytes);
  return before;
}

void lds_atomic(Wave& wave, const Instruction& instruction) {
  const AtomicRow row = atomic_row(instruction.op);
  const uint64_t lanes = wave.exec();
  uint32_t at[kLanes];
  lds_addresses(wave, instruction, lanes, static_cast<uint32_t>(instruction.offset), row.bytes, row.bytes,
                at);
  Lds& lds = wave.group->lds;
  lds.check(wave, instruction, LdsAccess::atomic, lanes, at, row.bytes);
  const bool flush = !wave.mode.denormal32_in() || !wave.mode.denormal32_out();
  each_lane(lanes, [&](int lane) {
    uint8_t* where = lds.data() + at[lane];
    uint64_t before = 0;
    std::memcpy(&before, where, row.bytes);
    const uint64_t data = register_value(wave, instruction.data.reg, lane, row.bytes);
    const uint64_t data1 =
        instruction.data1 ? register_value(wave, instruction.data1.reg, lane, row.bytes) : 0;
    const uint64_t after = apply(row, before, data, data1, flush);
    std::memcpy(where, &after, row.bytes);
    if (instruction.dst) set_register(wave, instruction.dst.reg, lane, row.bytes, before);
  });
  record_lds_access(wave, lanes, at, row.bytes);
  issue(wave, instruction, Counters::Queue::lds, instruction.dst, lanes);
}

// cmpswap brings what to write first, then the comparand. A lane that is not wholly inside its buffer does
// nothing and returns 0.
template <Space kSpace>
void memory_atomic(Wave& wave, const Instruction& instruction) {
  const AtomicRow row = atomic_row(instruction.op);
  Located where;
  locate<kSpace>(wave, instruction, row.bytes, true, where);
  if (where.in_lds != 0) check_flat_lds(wave, instruction, where, LdsAccess::atomic, row.bytes);
  const unsigned reg = instruction.data.reg;
  const bool compares = row.op == AtomicOp::compare_swap;
  each_lane(where.lanes, [&](int lane) {
    uint64_t before = 0;
    if ((where.clipped >> lane & 1) == 0) {
      if (wave.access.address[lane] % row.bytes != 0)
        throw LaunchError(format("lane %d: atomic of %u bytes at 0x%llx, which is not a multiple of its size",
                                 lane, row.bytes,
                                 static_cast<unsigned long long>(wave.access.address[lane])));
      const uint64_t first = register_value(wave, reg, lane, row.bytes);
      const uint64_t second = compares ? register_value(wave, reg + row.bytes / 4, lane, row.bytes) : 0;
      before = update(where.host[lane], row.bytes, [&](uint64_t memory) {
        return compares ? apply(row, memory, second, first, false) : apply(row, memory, first, 0, false);
      });
    }
    if (instruction.dst) set_register(wave, instruction.dst.reg, lane, row.bytes, before);
  });
  issue(wave, instruction, queue_of(where), instruction.dst, where.lanes);
}

}  // namespace

Handler ds_atomic_handler(const Instruction& instruction) {
  if (instruction.info->format != Format::ds || instruction.gds) return nullptr;
  return atomic_row(instruction.op).op == AtomicOp::none ? nullptr : lds_atomic;
}

Handler atomic_handler(const Instruction& instruction) {
  if (atomic_row(instruction.op).op == AtomicOp::none) return nullptr;
  switch (instruction.info->format) {
    case Format::flat:
      return memory_atomic<Space::flat>;
    case Format::global:
      return memory_atomic<Space::global>;
    case Format::mubuf:
      return memory_atomic<Space::buffer>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator
