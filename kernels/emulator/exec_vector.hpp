// Vector instructions work on whole registers: 64 lanes of 32 bits. Sources are fetched (modifiers, DPP and
// SDWA applied) into plain arrays, a loop over the lanes computes, the result is stored under EXEC. These
// files are compiled once per instruction set of the host (CMakeLists.txt); each copy has its own
// namespace, and no inline function that the linker could take from another copy.
#pragma once

#include <cstring>

#include "errors.hpp"
#include "exec_scalar.hpp"
#include "execute.hpp"

#ifndef ZYFA_LEVEL
#define ZYFA_LEVEL generic
#endif

namespace zyfa::emulator::ZYFA_LEVEL {

struct alignas(64) Lanes {
  uint32_t lane[kLanes];
};

struct alignas(64) Lanes64 {
  uint64_t lane[kLanes];
};

constexpr uint64_t kAllLanes = ~uint64_t{0};

// What a source modifier acts on: the sign bit of a 16, 32 or 64-bit float.
enum class Width : uint8_t { w16, w32, w64 };

inline float as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline uint32_t as_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline double as_double(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}
inline uint64_t as_bits64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}

// Member functions of Wave could be compiled for another instruction set than the caller's; these are this
// copy's own.
inline uint64_t exec_of(const Wave& wave) { return wave.sgpr[kExec] | uint64_t{wave.sgpr[kExec + 1]} << 32; }
inline uint64_t pair_of(const Wave& wave, unsigned reg) {
  return wave.sgpr[reg] | uint64_t{wave.sgpr[reg + 1]} << 32;
}
inline void set_pair(Wave& wave, unsigned reg, uint64_t value) {
  wave.sgpr[reg] = static_cast<uint32_t>(value);
  wave.sgpr[reg + 1] = static_cast<uint32_t>(value >> 32);
}

// ---- sources ---------------------------------------------------------------------------------------------

// A source with modifiers, SDWA or DPP, or the upper half of a 16-bit operand, written to `into`. Rare.
const uint32_t* fetch_modified(const Wave& wave, const Instruction& in, int source, Width width,
                               unsigned dword, Lanes& into);
uint32_t uniform_value(const Wave& wave, const Operand& operand, unsigned dword);

inline bool half_selected(const Instruction& in, int source) { return in.op_sel >> source & 1; }

// Register `dword` of source `source`. Of 16-bit operands the low half of each lane counts.
inline const uint32_t* fetch(const Wave& wave, const Instruction& in, int source, Width width, Lanes& into,
                             unsigned dword = 0) {
  const Operand& operand = in.src[source];
  const bool plain = (in.encoding == Encoding::plain || in.encoding == Encoding::vop3) && !operand.neg &&
                     !operand.abs && !(width == Width::w16 && half_selected(in, source));
  if (!plain) return fetch_modified(wave, in, source, width, dword, into);
  if (operand.is_vgpr()) return wave.vgpr[operand.reg + dword];
  const uint32_t value = uniform_value(wave, operand, dword);
  for (uint32_t& lane : into.lane) lane = value;
  return into.lane;
}

// A 64-bit source.
inline void fetch64(const Wave& wave, const Instruction& in, int source, Lanes64& into) {
  Lanes low_buffer, high_buffer;
  const uint32_t* low = fetch(wave, in, source, Width::w64, low_buffer, 0);
  const uint32_t* high = fetch(wave, in, source, Width::w64, high_buffer, 1);
  for (int i = 0; i < kLanes; ++i) into.lane[i] = low[i] | uint64_t{high[i]} << 32;
}

// ---- results ---------------------------------------------------------------------------------------------

// Lanes that DPP lets an instruction write: row and bank masks, and valid sources unless bound_ctrl makes
// them 0.
uint64_t dpp_write_mask(const Wave& wave, const Instruction& in);

inline uint64_t written_lanes(const Wave& wave, const Instruction& in) {
  const uint64_t exec = exec_of(wave);
  return in.encoding == Encoding::dpp ? exec & dpp_write_mask(wave, in) : exec;
}

inline void blend(uint32_t* to, const uint32_t* from, uint64_t lanes) {
  if (lanes == kAllLanes) {
    std::memcpy(to, from, sizeof(Lanes));
    return;
  }
  const auto low = static_cast<uint32_t>(lanes), high = static_cast<uint32_t>(lanes >> 32);
  for (int i = 0; i < 32; ++i) to[i] = low >> i & 1 ? from[i] : to[i];
  for (int i = 0; i < 32; ++i) to[32 + i] = high >> i & 1 ? from[32 + i] : to[32 + i];
}

// SDWA: the result goes to a byte or half of the destination.
void store_sdwa(Wave& wave, const Instruction& in, const uint32_t* result, uint64_t lanes);

inline void store(Wave& wave, const Instruction& in, const uint32_t* result, unsigned dword = 0) {
  const uint64_t lanes = written_lanes(wave, in);
  if (in.encoding == Encoding::sdwa) return store_sdwa(wave, in, result, lanes);
  blend(wave.vgpr[in.dst.reg + dword], result, lanes);
}

inline void store64(Wave& wave, const Instruction& in, const Lanes64& result) {
  Lanes low, high;
  for (int i = 0; i < kLanes; ++i) {
    low.lane[i] = static_cast<uint32_t>(result.lane[i]);
    high.lane[i] = static_cast<uint32_t>(result.lane[i] >> 32);
  }
  store(wave, in, low.lane, 0);
  store(wave, in, high.lane, 1);
}

// What happens to the half of the register that a 16-bit result does not fill.
enum class Rest : uint8_t { zero, keep };

// A 16-bit result (upper halves of `result` are 0). op_sel[3]: upper half, the lower one kept.
void store16(Wave& wave, const Instruction& in, const uint32_t* result, Rest rest);

// A mask with one bit per lane, 0 where EXEC is 0.
inline void store_mask(Wave& wave, const Operand& to, uint64_t mask) { set_pair(wave, to.reg, mask); }

inline uint64_t mask_of(const uint32_t* flags) {
  uint64_t made = 0;
  for (int i = 0; i < kLanes; ++i) made |= uint64_t{flags[i] & 1} << i;
  return made;
}

// ---- the families ----------------------------------------------------------------------------------------

Handler float_handler(const Instruction& in);   // f32 arithmetic
Handler half_handler(const Instruction& in);    // f16 arithmetic
Handler double_handler(const Instruction& in);  // f64 arithmetic
Handler transcendental_handler(const Instruction& in);
Handler integer_handler(const Instruction& in);
Handler wide_integer_handler(const Instruction& in);  // 64-bit and carries
Handler compare_handler(const Instruction& in);
Handler convert_handler(const Instruction& in);
Handler scaled_convert_handler(const Instruction& in);  // v_cvt_scalef32_*
Handler packed_handler(const Instruction& in);          // v_pk_*, v_mad_mix*
Handler dot_handler(const Instruction& in);
Handler lane_handler(const Instruction& in);      // moves, lanes, permutations
Handler division_handler(const Instruction& in);  // v_div_*, v_ldexp, v_frexp, v_cube*

}  // namespace zyfa::emulator::ZYFA_LEVEL
