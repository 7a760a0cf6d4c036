// Source modifiers, SDWA selections and DPP lane patterns.
#include "exec_vector.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

// ---- DPP -------------------------------------------------------------------------------------------------

constexpr int kNoLane = -1;

// The lane that lane `lane` reads; kNoLane past the edge of its row or wave.
int dpp_source(unsigned ctrl, int lane) {
  const int row = lane & ~15, at = lane & 15, n = static_cast<int>(ctrl & 15);
  if (ctrl <= 0xff) return (lane & ~3) | static_cast<int>(ctrl >> (2 * (lane & 3)) & 3);
  if (ctrl >= 0x101 && ctrl <= 0x10f) return at + n < 16 ? lane + n : kNoLane;  // row_shl
  if (ctrl >= 0x111 && ctrl <= 0x11f) return at >= n ? lane - n : kNoLane;      // row_shr
  if (ctrl >= 0x121 && ctrl <= 0x12f) return row | ((at - n) & 15);             // row_ror
  if (ctrl >= 0x150 && ctrl <= 0x15f) return row | n;                           // row_newbcast
  switch (ctrl) {
    case 0x130:
      return lane < 63 ? lane + 1 : kNoLane;  // wave_shl
    case 0x134:
      return (lane + 1) & 63;  // wave_rol
    case 0x138:
      return lane > 0 ? lane - 1 : kNoLane;  // wave_shr
    case 0x13c:
      return (lane - 1) & 63;  // wave_ror
    case 0x140:
      return row | (15 - at);  // row_mirror
    case 0x141:
      return (lane & ~7) | (7 - (lane & 7));  // row_half_mirror
    case 0x142:
      return row > 0 ? row - 1 : kNoLane;  // row_bcast15: last lane of the row before
    case 0x143:
      return lane >= 32 ? 31 : kNoLane;  // row_bcast31
    default:
      fail("DPP control 0x%x is not defined", ctrl);
  }
}

// A source lane with EXEC off counts as one past the edge.
bool dpp_valid(uint64_t exec, int source) { return source != kNoLane && (exec >> source & 1) != 0; }

void permute(const Wave& wave, const Instruction& in, Lanes& lanes) {
  const uint64_t exec = exec_of(wave);
  Lanes made;
  for (int i = 0; i < kLanes; ++i) {
    const int source = dpp_source(in.dpp_ctrl, i);
    made.lane[i] = dpp_valid(exec, source) ? lanes.lane[source] : 0;
  }
  lanes = made;
}

// ---- SDWA ------------------------------------------------------------------------------------------------

struct Selection {
  unsigned shift, bits;
};

Selection selection_of(unsigned sel) {
  if (sel <= 3) return {8 * sel, 8};
  if (sel <= 5) return {16 * (sel - 4), 16};
  return {0, 32};
}

void select(const Operand& operand, Lanes& lanes) {
  const Selection part = selection_of(operand.sel);
  if (part.bits == 32) return;
  const uint32_t mask = (1u << part.bits) - 1, sign = operand.sext ? 1u << (part.bits - 1) : 0;
  for (uint32_t& lane : lanes.lane) lane = ((lane >> part.shift & mask) ^ sign) - sign;
}

}  // namespace

uint32_t uniform_value(const Wave& wave, const Operand& operand, unsigned dword) {
  switch (operand.kind) {
    case OperandKind::sgpr:
      return wave.sgpr[operand.reg + dword];
    case OperandKind::constant:
      return static_cast<uint32_t>(operand.value >> (32 * dword));
    case OperandKind::special:
      if (operand.dwords >= 2) return static_cast<uint32_t>(special_value(wave, operand.reg) >> (32 * dword));
      return special_value32(wave, operand.reg);
    default:
      fail("vector source is missing");
  }
}

const uint32_t* fetch_modified(const Wave& wave, const Instruction& in, int source, Width width,
                               unsigned dword, Lanes& into) {
  const Operand& operand = in.src[source];
  if (operand.is_vgpr()) {
    std::memcpy(into.lane, wave.vgpr[operand.reg + dword], sizeof into.lane);
  } else {
    const uint32_t value = uniform_value(wave, operand, dword);
    for (uint32_t& lane : into.lane) lane = value;
  }
  if (in.encoding == Encoding::dpp && source == 0) permute(wave, in, into);
  if (in.encoding == Encoding::sdwa && !operand.implicit) select(operand, into);
  if (width == Width::w16 && in.encoding == Encoding::vop3 && half_selected(in, source))
    for (uint32_t& lane : into.lane) lane >>= 16;
  // The sign sits in the upper dword of a 64-bit float.
  if (width == Width::w64 && dword == 0) return into.lane;
  const uint32_t sign = width == Width::w16 ? 0x8000u : 0x80000000u;
  if (operand.abs)
    for (uint32_t& lane : into.lane) lane &= ~sign;
  if (operand.neg)
    for (uint32_t& lane : into.lane) lane ^= sign;
  return into.lane;
}

uint64_t dpp_write_mask(const Wave& wave, const Instruction& in) {
  const uint64_t exec = exec_of(wave);
  uint64_t made = 0;
  for (int i = 0; i < kLanes; ++i) {
    const bool enabled = (in.row_mask >> (i / 16) & 1) && (in.bank_mask >> (i / 4 % 4) & 1);
    const bool valid = in.bound_ctrl || dpp_valid(exec, dpp_source(in.dpp_ctrl, i));
    made |= uint64_t{enabled && valid} << i;
  }
  return made;
}

void store_sdwa(Wave& wave, const Instruction& in, const uint32_t* result, uint64_t lanes) {
  enum { pad, extend, preserve };
  const Selection part = selection_of(in.dst_sel);
  uint32_t* to = wave.vgpr[in.dst.reg];
  if (part.bits == 32) return blend(to, result, lanes);
  const uint32_t mask = (1u << part.bits) - 1, sign = 1u << (part.bits - 1);
  Lanes made;
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t value = result[i] & mask;
    uint32_t rest = 0;  // below a selected part are zeros
    if (in.dst_unused == preserve) rest = to[i] & ~(mask << part.shift);
    const uint32_t bits = in.dst_unused == extend ? (value ^ sign) - sign : value;
    made.lane[i] = rest | bits << part.shift;
  }
  blend(to, made.lane, lanes);
}

void store16(Wave& wave, const Instruction& in, const uint32_t* result, Rest rest) {
  if (in.encoding == Encoding::sdwa) return store_sdwa(wave, in, result, written_lanes(wave, in));
  const bool upper = in.encoding == Encoding::vop3 && (in.op_sel >> 3 & 1);
  if (!upper && rest == Rest::zero) return store(wave, in, result);
  const uint32_t* old = wave.vgpr[in.dst.reg];
  Lanes made;
  for (int i = 0; i < kLanes; ++i)
    made.lane[i] = upper ? (old[i] & 0xffff) | result[i] << 16 : (old[i] & 0xffff0000) | (result[i] & 0xffff);
  store(wave, in, made.lane);
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
