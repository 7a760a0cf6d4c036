// LDS reads and writes.
#include <string_view>

#include "exec_memory.hpp"

namespace zyfa::emulator {

void check_lds_range(const Wave& wave, uint64_t lanes, const uint32_t* at, unsigned bytes) {
  const uint64_t size = wave.group->lds.bytes();
  uint32_t highest = 0;
  each_lane(lanes, [&](int lane) { highest = std::max(highest, at[lane]); });
  if (lanes == 0 || highest + uint64_t{bytes} <= size) return;
  each_lane(lanes, [&](int lane) {
    if (at[lane] + uint64_t{bytes} > size)
      throw LaunchError(
          format("LDS access of %u bytes at 0x%x in lane %d; the workgroup has %llu bytes of LDS (declared "
                 "and dynamic_lds)",
                 bytes, at[lane], lane, static_cast<unsigned long long>(size)));
  });
}

void lds_addresses(Wave& wave, const Instruction& instruction, uint64_t lanes, uint32_t offset,
                   unsigned bytes, unsigned alignment, uint32_t* at) {
  const uint32_t* base = wave.vgpr[instruction.addr.reg];
  uint32_t low_bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    at[lane] = lanes >> lane & 1 ? base[lane] + offset : 0;
    low_bits |= at[lane];
  }
  if ((low_bits & (alignment - 1)) != 0)
    each_lane(lanes, [&](int lane) {
      if (at[lane] % alignment != 0) report_misaligned(wave, instruction, lane, at[lane], alignment);
    });
  check_lds_range(wave, lanes, at, bytes);
}

void record_lds_access(Wave& wave, uint64_t lanes, const uint32_t* at, unsigned bytes) {
  wave.access.lanes = lanes;
  wave.access.bytes = static_cast<uint8_t>(bytes);
  wave.access.two = false;
  for (int lane = 0; lane < kLanes; ++lane) wave.access.address[lane] = at[lane];
}

namespace {

// b96 and b128 want 16 bytes, everything else its own size.
constexpr unsigned alignment_of(unsigned bytes) { return bytes == 12 ? 16 : bytes; }

template <unsigned kBytes, Part kPart>
void read(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  uint32_t at[kLanes];
  lds_addresses(wave, instruction, lanes, static_cast<uint32_t>(instruction.offset), kBytes,
                alignment_of(kBytes), at);
  wave.group->lds.check(wave, instruction, LdsAccess::read, lanes, at, kBytes);
  const uint8_t* data = wave.group->lds.data();
  each_lane(lanes,
            [&](int lane) { load_lane<kBytes, kPart>(wave, instruction.dst.reg, lane, data + at[lane]); });
  record_lds_access(wave, lanes, at, kBytes);
  issue(wave, instruction, Counters::Queue::lds, instruction.dst, lanes);
}

template <unsigned kBytes, bool kHigh>
void write(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  uint32_t at[kLanes];
  lds_addresses(wave, instruction, lanes, static_cast<uint32_t>(instruction.offset), kBytes,
                alignment_of(kBytes), at);
  Lds& lds = wave.group->lds;
  lds.check(wave, instruction, LdsAccess::write, lanes, at, kBytes);
  uint8_t* data = lds.data();
  each_lane(lanes,
            [&](int lane) { store_lane<kBytes, kHigh>(wave, instruction.data.reg, lane, data + at[lane]); });
  lds.written(wave, instruction);
  record_lds_access(wave, lanes, at, kBytes);
  issue(wave, instruction, Counters::Queue::lds, Operand(), lanes);
}

// Two accesses of kBytes, their offsets counted in kStep bytes.
template <unsigned kBytes, unsigned kStep>
void read2(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  uint32_t at[2][kLanes];
  lds_addresses(wave, instruction, lanes, instruction.offset0 * kStep, kBytes, kBytes, at[0]);
  lds_addresses(wave, instruction, lanes, instruction.offset1 * kStep, kBytes, kBytes, at[1]);
  const uint8_t* data = wave.group->lds.data();
  for (unsigned i = 0; i < 2; ++i) {
    wave.group->lds.check(wave, instruction, LdsAccess::read, lanes, at[i], kBytes);
    each_lane(lanes, [&](int lane) {
      load_lane<kBytes, Part::dwords>(wave, instruction.dst.reg + i * kBytes / 4, lane, data + at[i][lane]);
    });
  }
  record_lds_access(wave, lanes, at[0], kBytes);
  wave.access.two = true;
  std::memcpy(wave.access.second, at[1], sizeof at[1]);
  issue(wave, instruction, Counters::Queue::lds, instruction.dst, lanes);
}

template <unsigned kBytes, unsigned kStep>
void write2(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  uint32_t at[2][kLanes];
  lds_addresses(wave, instruction, lanes, instruction.offset0 * kStep, kBytes, kBytes, at[0]);
  lds_addresses(wave, instruction, lanes, instruction.offset1 * kStep, kBytes, kBytes, at[1]);
  Lds& lds = wave.group->lds;
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned reg = i == 0 ? instruction.data.reg : instruction.data1.reg;
    lds.check(wave, instruction, LdsAccess::write, lanes, at[i], kBytes);
    each_lane(lanes, [&](int lane) { store_lane<kBytes>(wave, reg, lane, lds.data() + at[i][lane]); });
    lds.written(wave, instruction);
  }
  record_lds_access(wave, lanes, at[0], kBytes);
  wave.access.two = true;
  std::memcpy(wave.access.second, at[1], sizeof at[1]);
  issue(wave, instruction, Counters::Queue::lds, Operand(), lanes);
}

// One counter for the wave at M0 + offset: every active lane takes (append) or gives back (consume) one; all
// get the count before.
template <bool kAppend>
void count_lanes(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  uint32_t at[kLanes] = {};
  at[0] = (wave.sgpr[kM0] & 0xffff) + static_cast<uint32_t>(instruction.offset);
  if (at[0] % 4 != 0) report_misaligned(wave, instruction, 0, at[0], 4);
  check_lds_range(wave, 1, at, 4);
  Lds& lds = wave.group->lds;
  if (lanes != 0) lds.check(wave, instruction, LdsAccess::atomic, 1, at, 4);
  uint32_t before;
  std::memcpy(&before, lds.data() + at[0], 4);
  const uint32_t count = static_cast<uint32_t>(__builtin_popcountll(lanes));
  const uint32_t after = kAppend ? before + count : before - count;
  std::memcpy(lds.data() + at[0], &after, 4);
  each_lane(lanes, [&](int lane) { wave.vgpr[instruction.dst.reg][lane] = before; });
  record_lds_access(wave, 1, at, 4);
  issue(wave, instruction, Counters::Queue::lds, instruction.dst, lanes);
}

// Lane i at M0 + offset + 4 i.
template <bool kWrite>
void by_lane_number(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  const uint32_t base = (wave.sgpr[kM0] & 0xffff) + static_cast<uint32_t>(instruction.offset);
  uint32_t at[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) at[lane] = base + 4 * static_cast<uint32_t>(lane);
  if (base % 4 != 0) report_misaligned(wave, instruction, 0, base, 4);
  check_lds_range(wave, lanes, at, 4);
  Lds& lds = wave.group->lds;
  lds.check(wave, instruction, kWrite ? LdsAccess::write : LdsAccess::read, lanes, at, 4);
  each_lane(lanes, [&](int lane) {
    if constexpr (kWrite)
      store_lane<4>(wave, instruction.data.reg, lane, lds.data() + at[lane]);
    else
      load_lane<4, Part::dwords>(wave, instruction.dst.reg, lane, lds.data() + at[lane]);
  });
  if (kWrite) lds.written(wave, instruction);
  record_lds_access(wave, lanes, at, 4);
  issue(wave, instruction, Counters::Queue::lds, kWrite ? Operand() : instruction.dst, lanes);
}

void nothing(Wave& wave, const Instruction& instruction) {
  wave.access.lanes = 0;
  issue(wave, instruction, Counters::Queue::lds, Operand(), 0);
}

constexpr struct {
  Op op;
  Handler handler;
} kHandlers[] = {
    {Op::ds_read_b32, read<4, Part::dwords>},
    {Op::ds_read_b64, read<8, Part::dwords>},
    {Op::ds_read_b96, read<12, Part::dwords>},
    {Op::ds_read_b128, read<16, Part::dwords>},
    {Op::ds_read_u8, read<1, Part::unsigned_part>},
    {Op::ds_read_i8, read<1, Part::signed_part>},
    {Op::ds_read_u16, read<2, Part::unsigned_part>},
    {Op::ds_read_i16, read<2, Part::signed_part>},
    {Op::ds_read_u8_d16, read<1, Part::low_half_unsigned>},
    {Op::ds_read_u8_d16_hi, read<1, Part::high_half_unsigned>},
    {Op::ds_read_i8_d16, read<1, Part::low_half_signed>},
    {Op::ds_read_i8_d16_hi, read<1, Part::high_half_signed>},
    {Op::ds_read_u16_d16, read<2, Part::low_half_unsigned>},
    {Op::ds_read_u16_d16_hi, read<2, Part::high_half_unsigned>},
    {Op::ds_read2_b32, read2<4, 4>},
    {Op::ds_read2st64_b32, read2<4, 256>},
    {Op::ds_read2_b64, read2<8, 8>},
    {Op::ds_read2st64_b64, read2<8, 512>},
    {Op::ds_write_b8, write<1, false>},
    {Op::ds_write_b8_d16_hi, write<1, true>},
    {Op::ds_write_b16, write<2, false>},
    {Op::ds_write_b16_d16_hi, write<2, true>},
    {Op::ds_write_b32, write<4, false>},
    {Op::ds_write_b64, write<8, false>},
    {Op::ds_write_b96, write<12, false>},
    {Op::ds_write_b128, write<16, false>},
    {Op::ds_write2_b32, write2<4, 4>},
    {Op::ds_write2st64_b32, write2<4, 256>},
    {Op::ds_write2_b64, write2<8, 8>},
    {Op::ds_write2st64_b64, write2<8, 512>},
    {Op::ds_append, count_lanes<true>},
    {Op::ds_consume, count_lanes<false>},
    {Op::ds_read_addtid_b32, by_lane_number<false>},
    {Op::ds_write_addtid_b32, by_lane_number<true>},
    {Op::ds_nop, nothing},
};

}  // namespace

Handler ds_handler(const Instruction& instruction) {
  if (instruction.gds) return nullptr;  // no global data share on gfx950
  for (const auto& row : kHandlers)
    if (row.op == instruction.op) return row.handler;
  return nullptr;
}

}  // namespace zyfa::emulator
