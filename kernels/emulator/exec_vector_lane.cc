// Moves, selects, and everything that reads another lane or register file.
#include "exec_vector.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

void move32(Wave& wave, const Instruction& in) {
  Lanes buffer;
  store(wave, in, fetch(wave, in, 0, Width::w32, buffer));
}
void move64(Wave& wave, const Instruction& in) {
  Lanes64 value;
  fetch64(wave, in, 0, value);
  store64(wave, in, value);
}
void pack_f16(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w16, buffers[1]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = (a[i] & 0xffff) | b[i] << 16;
  store(wave, in, result.lane);
}
void select_lanes(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  const Operand& mask = in.src[2];
  const auto low = wave.sgpr[mask.reg], high = wave.sgpr[mask.reg + 1];
  for (int i = 0; i < 32; ++i) result.lane[i] = low >> i & 1 ? b[i] : a[i];
  for (int i = 32; i < 64; ++i) result.lane[i] = high >> (i - 32) & 1 ? b[i] : a[i];
  store(wave, in, result.lane);
}

void read_first_lane(Wave& wave, const Instruction& in) {
  const uint64_t exec = exec_of(wave);
  wave.sgpr[in.dst.reg] = wave.vgpr[in.src[0].reg][exec == 0 ? 0 : __builtin_ctzll(exec)];
}
void read_lane(Wave& wave, const Instruction& in) {
  wave.sgpr[in.dst.reg] = wave.vgpr[in.src[0].reg][uniform_value(wave, in.src[1], 0) & 63];
}
void write_lane(Wave& wave, const Instruction& in) {
  wave.vgpr[in.dst.reg][uniform_value(wave, in.src[1], 0) & 63] = uniform_value(wave, in.src[0], 0);
}

void swap_registers(Wave& wave, const Instruction& in) {
  const uint64_t exec = exec_of(wave);
  Lanes first, second;
  std::memcpy(first.lane, wave.vgpr[in.dst.reg], sizeof first.lane);
  std::memcpy(second.lane, wave.vgpr[in.src[0].reg], sizeof second.lane);
  blend(wave.vgpr[in.dst.reg], second.lane, exec);
  blend(wave.vgpr[in.src[0].reg], first.lane, exec);
}

// The upper half of each group of 2 * Half lanes of one register changes places with the lower half of the
// other's.
template <int Half>
void swap_lanes(Wave& wave, const Instruction& in) {
  if (exec_of(wave) != kAllLanes)
    fail("v_permlane*_swap with lanes off in EXEC is not documented: set EXEC to -1 around it");
  uint32_t* d = wave.vgpr[in.dst.reg];
  uint32_t* s = wave.vgpr[in.src[0].reg];
  for (int group = 0; group < kLanes; group += 2 * Half)
    for (int i = group; i < group + Half; ++i) {
      const uint32_t kept = s[i];
      s[i] = d[i + Half];
      d[i + Half] = kept;
    }
}

void nothing(Wave&, const Instruction&) {}

}  // namespace

Handler lane_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_nop:
    case Op::v_clrexcp:
      return nothing;
    case Op::v_mov_b32:
    case Op::v_accvgpr_read:
    case Op::v_accvgpr_write:
    case Op::v_accvgpr_mov_b32:
      return move32;
    case Op::v_mov_b64:
      return move64;
    case Op::v_pack_b32_f16:
      return pack_f16;
    case Op::v_cndmask_b32:
      return select_lanes;
    case Op::v_readfirstlane_b32:
      return read_first_lane;
    case Op::v_readlane_b32:
      return read_lane;
    case Op::v_writelane_b32:
      return write_lane;
    case Op::v_swap_b32:
      return swap_registers;
    case Op::v_permlane16_swap_b32:
      return swap_lanes<16>;
    case Op::v_permlane32_swap_b32:
      return swap_lanes<32>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
