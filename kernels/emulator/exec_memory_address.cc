// Addresses of FLAT, GLOBAL, SCRATCH and MUBUF instructions, and the bytes behind them.
#include <algorithm>

#include "exec_memory.hpp"

namespace zyfa::emulator {
namespace {

constexpr uint64_t kApertureMask = ~uint64_t{0xffffffff};

const char* verb(bool write) { return write ? "write" : "read"; }

// Global memory is accessed in dwords; smaller accesses have their own size.
void check_alignment(Wave& wave, const Instruction& instruction, uint64_t lanes, unsigned bytes) {
  const unsigned alignment = std::min(bytes, 4u);
  const uint64_t* address = wave.access.address;
  uint64_t low_bits = 0;
  each_lane(lanes, [&](int lane) { low_bits |= address[lane]; });
  if ((low_bits & (alignment - 1)) == 0) return;
  each_lane(lanes, [&](int lane) {
    if (address[lane] % alignment != 0) report_misaligned(wave, instruction, lane, address[lane], alignment);
  });
}

uint8_t* look_up(const Wave& wave, int lane, unsigned bytes, bool write) {
  try {
    return wave.group->launch->memory->at(wave.access.address[lane], bytes, write, verb(write));
  } catch (const LaunchError& error) {
    throw LaunchError(format("lane %d: %s", lane, error.what()));
  }
}

// Host pointers of device addresses: all lanes in one allocation, as nearly always, or each on its own.
void translate(const Wave& wave, uint64_t lanes, unsigned bytes, bool write, uint8_t** host) {
  if (lanes == 0) return;
  const uint64_t* address = wave.access.address;
  const Span span = wave.group->launch->memory->span(address[__builtin_ctzll(lanes)], bytes);
  bool one = span.begin <= span.end && (span.writable || !write);
  if (one) {
    bool inside = true;
    each_lane(lanes, [&](int lane) { inside &= span.holds(address[lane], bytes); });
    one = inside;
  }
  if (one)
    each_lane(lanes, [&](int lane) { host[lane] = span.host + (address[lane] - span.begin); });
  else
    each_lane(lanes, [&](int lane) { host[lane] = look_up(wave, lane, bytes, write); });
}

void begin_access(Wave& wave, uint64_t lanes, unsigned bytes) {
  wave.access.lanes = lanes;
  wave.access.bytes = static_cast<uint8_t>(bytes);
  wave.access.two = false;
}

uint8_t* private_byte(Wave& wave, int lane, uint32_t offset, unsigned bytes) {
  if (uint64_t{offset} + bytes > wave.scratch_bytes)
    throw LaunchError(
        format("lane %d: access of %u bytes at 0x%x of private memory; a work-item has %u bytes", lane, bytes,
               offset, wave.scratch_bytes));
  return wave.scratch.data() + size_t(lane) * wave.scratch_bytes + offset;
}

// Per lane base + 32-bit register, or the 64-bit register pair.
void global_addresses(Wave& wave, const Instruction& instruction) {
  uint64_t* address = wave.access.address;
  const uint32_t* low = wave.vgpr[instruction.addr.reg];
  const uint64_t offset = static_cast<uint64_t>(int64_t{instruction.offset});
  if (instruction.base) {
    const uint64_t base = wave.sgpr64(instruction.base.reg) + offset;
    for (int lane = 0; lane < kLanes; ++lane) address[lane] = base + low[lane];
  } else {
    const uint32_t* high = wave.vgpr[instruction.addr.reg + 1];
    for (int lane = 0; lane < kLanes; ++lane)
      address[lane] = (low[lane] | uint64_t{high[lane]} << 32) + offset;
  }
}

}  // namespace

template <>
void locate<Space::global>(Wave& wave, const Instruction& instruction, unsigned bytes, bool write,
                           Located& where) {
  where.lanes = wave.exec();
  begin_access(wave, where.lanes, bytes);
  global_addresses(wave, instruction);
  check_alignment(wave, instruction, where.lanes, bytes);
  translate(wave, where.lanes, bytes, write, where.host);
}

template <>
void locate<Space::flat>(Wave& wave, const Instruction& instruction, unsigned bytes, bool write,
                         Located& where) {
  where.lanes = wave.exec();
  begin_access(wave, where.lanes, bytes);
  global_addresses(wave, instruction);
  check_alignment(wave, instruction, where.lanes, bytes);
  uint64_t in_memory = 0;
  each_lane(where.lanes, [&](int lane) {
    const uint64_t address = wave.access.address[lane], aperture = address & kApertureMask;
    const uint32_t offset = static_cast<uint32_t>(address);
    if (aperture == kSharedAperture) {
      uint32_t at[kLanes] = {};
      at[lane] = offset;
      check_lds_range(wave, uint64_t{1} << lane, at, bytes);
      where.in_lds |= uint64_t{1} << lane;
      where.host[lane] = wave.group->lds.data() + offset;
    } else if (aperture == kPrivateAperture) {
      where.host[lane] = private_byte(wave, lane, offset, bytes);
    } else {
      in_memory |= uint64_t{1} << lane;
    }
  });
  translate(wave, in_memory, bytes, write, where.host);
}

template <>
void locate<Space::scratch>(Wave& wave, const Instruction& instruction, unsigned bytes, bool,
                            Located& where) {
  where.lanes = wave.exec();
  begin_access(wave, where.lanes, bytes);
  const uint32_t base =
      (instruction.base ? wave.sgpr[instruction.base.reg] : 0) + static_cast<uint32_t>(instruction.offset);
  each_lane(where.lanes, [&](int lane) {
    const uint32_t offset = base + (instruction.addr ? wave.vgpr[instruction.addr.reg][lane] : 0);
    wave.access.address[lane] = kPrivateAperture + offset;
    where.host[lane] = private_byte(wave, lane, offset, bytes);
  });
  check_alignment(wave, instruction, where.lanes, bytes);
}

// Linear buffers: address = base + soffset + index * stride + offset, in range as long as what is added to
// base + soffset (with the dword's size) does not pass num_records - soffset. Dwords are checked one by one.
template <>
void locate<Space::buffer>(Wave& wave, const Instruction& instruction, unsigned bytes, bool write,
                           Located& where) {
  const uint32_t* words = &wave.sgpr[instruction.base.reg];
  const uint64_t base = words[0] | uint64_t{words[1] & 0xffff} << 32, records = words[2];
  const uint64_t stride = words[1] >> 16 & 0x3fff;
  if (words[1] >> 31 != 0 || (words[3] >> 23 & 1) != 0 || words[3] >> 30 != 0)
    throw LaunchError(format(
        "buffer resource %08x %08x %08x %08x: swizzled, add-thread-id and non-buffer resources are not "
        "implemented",
        words[0], words[1], words[2], words[3]));
  const uint32_t soffset = scalar_value(wave, instruction.soffset);
  const uint64_t limit = records > soffset ? records - soffset : 0;
  const uint32_t* index = instruction.idxen ? wave.vgpr[instruction.addr.reg] : nullptr;
  const uint32_t* voffset =
      instruction.offen ? wave.vgpr[instruction.addr.reg + (instruction.idxen ? 1 : 0)] : nullptr;

  where.lanes = wave.exec();
  begin_access(wave, where.lanes, bytes);
  uint64_t* address = wave.access.address;
  uint64_t furthest = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    uint64_t offset = static_cast<uint64_t>(instruction.offset);
    if (voffset != nullptr) offset += voffset[lane];
    if (index != nullptr) offset += index[lane] * stride;
    furthest = std::max(furthest, offset);
    address[lane] = base + soffset + offset;
  }
  if (furthest + bytes > limit) {
    each_lane(where.lanes, [&](int lane) {
      const uint64_t offset = address[lane] - base - soffset;
      if (offset + bytes <= limit) return;
      where.clipped |= uint64_t{1} << lane;
      where.valid[lane] =
          static_cast<uint8_t>(offset < limit && bytes >= 4 ? (limit - offset) & ~uint64_t{3} : 0);
    });
  }
  check_alignment(wave, instruction, where.lanes, bytes);
  translate(wave, where.lanes & ~where.clipped, bytes, write, where.host);
  each_lane(where.clipped, [&](int lane) {
    where.host[lane] = where.clip[lane];
    std::memset(where.clip[lane], 0, sizeof where.clip[lane]);
    if (where.valid[lane] == 0) {
      wave.access.lanes &= ~(uint64_t{1} << lane);
      return;
    }
    where.behind[lane] = look_up(wave, lane, where.valid[lane], write);
    if (!write) std::memcpy(where.clip[lane], where.behind[lane], where.valid[lane]);
  });
}

void check_flat_lds(Wave& wave, const Instruction& instruction, const Located& where, LdsAccess access,
                    unsigned bytes) {
  uint32_t at[kLanes] = {};
  each_lane(where.in_lds,
            [&](int lane) { at[lane] = static_cast<uint32_t>(where.host[lane] - wave.group->lds.data()); });
  wave.group->lds.check(wave, instruction, access, where.in_lds, at, bytes);
}

}  // namespace zyfa::emulator
