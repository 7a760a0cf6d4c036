// What the memory handlers share: lanes, address translation, moving data between registers and bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "errors.hpp"
#include "execute.hpp"

namespace zyfa::emulator {

// By the part of the name behind the family's prefix; nullptr when there is none.
Handler smem_handler(const Instruction& instruction);
Handler ds_handler(const Instruction& instruction);
Handler ds_atomic_handler(const Instruction& instruction);
Handler ds_lane_handler(const Instruction& instruction);        // permute, swizzle, transposed reads
Handler vector_memory_handler(const Instruction& instruction);  // FLAT, GLOBAL, SCRATCH, MUBUF
Handler lds_dma_handler(const Instruction& instruction);
Handler atomic_handler(const Instruction& instruction);

inline bool checks(const Wave& wave) { return wave.group->launch->options.check; }

// The VGPRs of `operand` in `lanes` are on their way; an empty operand: an operation without destination.
inline void issue(Wave& wave, const Instruction& instruction, Counters::Queue queue, const Operand& operand,
                  uint64_t lanes) {
  if (checks(wave)) wave.counters.issue(wave, instruction, queue, operand.reg, operand.dwords, lanes);
}

inline uint32_t scalar_value(const Wave& wave, const Operand& operand) {
  return operand.is_sgpr()       ? wave.sgpr[operand.reg]
         : operand.is_constant() ? static_cast<uint32_t>(operand.value)
                                 : 0;
}

void report_misaligned(Wave& wave, const Instruction& instruction, int lane, uint64_t address,
                       unsigned alignment);

// ---- what a lane moves -----------------------------------------------------------------------------------

// How less than a dword sits in its register.
enum class Part : uint8_t {
  dwords,
  unsigned_part,
  signed_part,
  low_half_unsigned,
  low_half_signed,
  high_half_unsigned,
  high_half_signed
};

// kBytes from `from` as the register values that a load leaves; `old` is what a half load keeps a part of.
template <unsigned kBytes, Part kPart>
inline uint32_t widen(const uint8_t* from, uint32_t old) {
  static_assert(kBytes <= 2);
  uint32_t value = from[0];
  if (kBytes == 2) value |= uint32_t{from[1]} << 8;
  constexpr bool kSigned =
      kPart == Part::signed_part || kPart == Part::low_half_signed || kPart == Part::high_half_signed;
  if (kSigned && (value >> (8 * kBytes - 1) & 1)) value |= ~uint32_t{0} << (8 * kBytes);
  switch (kPart) {
    case Part::low_half_unsigned:
    case Part::low_half_signed:
      return (old & 0xffff0000) | (value & 0xffff);
    case Part::high_half_unsigned:
    case Part::high_half_signed:
      return (old & 0xffff) | value << 16;
    default:
      return value;
  }
}

template <unsigned kBytes, Part kPart>
inline void load_lane(Wave& wave, unsigned reg, int lane, const uint8_t* from) {
  if constexpr (kPart == Part::dwords) {
    uint32_t values[kBytes / 4];
    std::memcpy(values, from, kBytes);
    for (unsigned i = 0; i < kBytes / 4; ++i) wave.vgpr[reg + i][lane] = values[i];
  } else {
    wave.vgpr[reg][lane] = widen<kBytes, kPart>(from, wave.vgpr[reg][lane]);
  }
}

// kHigh: the upper half of the register is stored.
template <unsigned kBytes, bool kHigh = false>
inline void store_lane(const Wave& wave, unsigned reg, int lane, uint8_t* to) {
  if constexpr (kBytes >= 4) {
    uint32_t values[kBytes / 4];
    for (unsigned i = 0; i < kBytes / 4; ++i) values[i] = wave.vgpr[reg + i][lane];
    std::memcpy(to, values, kBytes);
  } else {
    const uint32_t value = wave.vgpr[reg][lane] >> (kHigh ? 16 : 0);
    to[0] = static_cast<uint8_t>(value);
    if (kBytes == 2) to[1] = static_cast<uint8_t>(value >> 8);
  }
}

// ---- LDS -------------------------------------------------------------------------------------------------

// LDS byte addresses of the active lanes (0 in the others): VGPR + offset, 32 bits. Throws LaunchError when
// one is outside the workgroup's LDS; reports misaligned ones.
void lds_addresses(Wave& wave, const Instruction& instruction, uint64_t lanes, uint32_t offset,
                   unsigned bytes, unsigned alignment, uint32_t* at);
void check_lds_range(const Wave& wave, uint64_t lanes, const uint32_t* at, unsigned bytes);
// Fills wave.access.
void record_lds_access(Wave& wave, uint64_t lanes, const uint32_t* at, unsigned bytes);

// ---- vector memory ---------------------------------------------------------------------------------------

enum class Space : uint8_t { flat, global, scratch, buffer };

// The lanes of a vector memory instruction and where their bytes are.
struct Located {
  uint64_t lanes = 0;    // active
  uint64_t clipped = 0;  // wholly or partly outside the buffer: host points to bytes of `clip`
  uint64_t in_lds = 0;   // FLAT only
  uint8_t* host[kLanes];
  uint8_t* behind[kLanes];   // of clipped lanes: where their bytes in range are
  uint8_t valid[kLanes];     // of clipped lanes: bytes in range
  uint8_t clip[kLanes][16];  // of loads: the bytes in range, zeros behind them
};

// Translates the addresses of an access of `bytes` per lane and fills wave.access. Throws LaunchError for
// lanes outside every allocation.
template <Space kSpace>
void locate(Wave& wave, const Instruction& instruction, unsigned bytes, bool write, Located& where);

// After the lanes were stored: puts the clipped lanes' bytes in range where they belong.
inline void store_clipped(const Located& where) {
  each_lane(where.clipped, [&](int lane) {
    if (where.valid[lane] != 0) std::memcpy(where.behind[lane], where.clip[lane], where.valid[lane]);
  });
}

// Loads and stores that reach LDS through a flat address are LDS accesses, too.
void check_flat_lds(Wave& wave, const Instruction& instruction, const Located& where, LdsAccess access,
                    unsigned bytes);

inline Counters::Queue queue_of(const Located& where) {
  return where.in_lds != 0 ? Counters::Queue::flat : Counters::Queue::vector_memory;
}

}  // namespace zyfa::emulator
