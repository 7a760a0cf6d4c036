// DS instructions that move data between lanes: permutes, swizzle, transposed reads.
#include <array>

#include "exec_memory.hpp"

namespace zyfa::emulator {
namespace {

// Results of the lanes that take part; they return through the LDS queue although LDS memory is not touched.
void finish(Wave& wave, const Instruction& instruction, uint64_t lanes,
            const std::array<uint32_t, kLanes>& values) {
  each_lane(lanes,
            [&](int lane) { wave.vgpr[instruction.dst.reg][lane] = values[static_cast<size_t>(lane)]; });
  wave.access.lanes = 0;
  issue(wave, instruction, Counters::Queue::lds, instruction.dst, lanes);
}

// Lane i sends its data to the lane it addresses; the highest sender wins, a lane without sender gets 0.
void permute(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  std::array<uint32_t, kLanes> values{};
  each_lane(lanes, [&](int lane) {
    const uint32_t to =
        (wave.vgpr[instruction.addr.reg][lane] + static_cast<uint32_t>(instruction.offset)) / 4 % kLanes;
    values[to] = wave.vgpr[instruction.data.reg][lane];
  });
  finish(wave, instruction, lanes, values);
}

// Lane i gets the data of the lane it addresses, 0 when that one is inactive.
void bpermute(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  std::array<uint32_t, kLanes> values{};
  each_lane(lanes, [&](int lane) {
    const uint32_t from =
        (wave.vgpr[instruction.addr.reg][lane] + static_cast<uint32_t>(instruction.offset)) / 4 % kLanes;
    values[static_cast<size_t>(lane)] = lanes >> from & 1 ? wave.vgpr[instruction.data.reg][from] : 0;
  });
  finish(wave, instruction, lanes, values);
}

// Offset bit 15: a permutation within four lanes, two bits each. Else within 32 lanes: and, or and xor masks.
void swizzle(Wave& wave, const Instruction& instruction) {
  const uint64_t lanes = wave.exec();
  const unsigned pattern = static_cast<unsigned>(instruction.offset);
  std::array<uint32_t, kLanes> values{};
  each_lane(lanes, [&](int lane) {
    const unsigned self = static_cast<unsigned>(lane);
    const unsigned from = pattern >> 15
                              ? (self & ~3u) | (pattern >> 2 * (self & 3) & 3)
                              : (self & 32) | ((((self & 31) & pattern) | pattern >> 5) ^ pattern >> 10) % 32;
    values[self] = lanes >> from & 1 ? wave.vgpr[instruction.addr.reg][from] : 0;
  });
  finish(wave, instruction, lanes, values);
}

// Each group of 16 lanes fetches a matrix of 16 columns, row by row: kBits per element, 16 * kBits / (8 *
// kBytes) lanes per row. Lane i of the group receives column i.
template <unsigned kBytes, unsigned kBits>
void transposed_read(Wave& wave, const Instruction& instruction) {
  constexpr unsigned kElements = kBytes * 8 / kBits, kLanesPerRow = 16 / kElements;
  const uint64_t lanes = wave.exec();
  if (lanes != ~uint64_t{0}) throw LaunchError("transposed LDS reads need all 64 lanes in EXEC");
  uint32_t at[kLanes];
  lds_addresses(wave, instruction, lanes, static_cast<uint32_t>(instruction.offset), kBytes,
                kBytes == 12 ? 16 : kBytes, at);
  wave.group->lds.check(wave, instruction, LdsAccess::read, lanes, at, kBytes);
  const uint8_t* data = wave.group->lds.data();

  // One element per byte or halfword.
  uint16_t element[kLanes][kElements];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const uint8_t* from = data + at[lane];
    for (unsigned e = 0; e < kElements; ++e) {
      const unsigned bit = e * kBits, byte = bit / 8;
      const uint32_t both = from[byte] | (byte + 1 < kBytes ? from[byte + 1] : 0u) << 8;
      element[lane][e] = static_cast<uint16_t>(both >> bit % 8 & ((1u << kBits) - 1));
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned group = lane & ~15u, column = lane & 15u;
    uint32_t words[kBytes / 4 + 1] = {};
    for (unsigned row = 0; row < kElements; ++row) {
      const uint32_t value = element[group + row * kLanesPerRow + column / kElements][column % kElements];
      const unsigned bit = row * kBits, word = bit / 32;
      words[word] |= value << bit % 32;
      if (bit % 32 + kBits > 32) words[word + 1] |= value >> (32 - bit % 32);
    }
    for (unsigned i = 0; i < kBytes / 4; ++i) wave.vgpr[instruction.dst.reg + i][lane] = words[i];
  }
  record_lds_access(wave, lanes, at, kBytes);
  issue(wave, instruction, Counters::Queue::lds, instruction.dst, lanes);
}

// From here on the offset selects FFT and rotation patterns.
constexpr int32_t kOtherSwizzles = 0xc000;

}  // namespace

Handler ds_lane_handler(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::ds_permute_b32:
      return permute;
    case Op::ds_bpermute_b32:
      return bpermute;
    case Op::ds_swizzle_b32:
      return instruction.offset < kOtherSwizzles ? swizzle : nullptr;
    case Op::ds_read_b64_tr_b4:
      return transposed_read<8, 4>;
    case Op::ds_read_b96_tr_b6:
      return transposed_read<12, 6>;
    case Op::ds_read_b64_tr_b8:
      return transposed_read<8, 8>;
    case Op::ds_read_b64_tr_b16:
      return transposed_read<8, 16>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator
