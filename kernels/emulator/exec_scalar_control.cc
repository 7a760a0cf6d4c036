// Jumps, barriers, waits, hardware registers.
#include "exec_scalar.hpp"

namespace zyfa::emulator {
namespace {

// ---- program flow ----------------------------------------------------------------------------------------

uint64_t target(const Instruction& in) { return in.address + 4 + static_cast<uint64_t>(int64_t{in.imm} * 4); }

enum class When { always, scc0, scc1, vccz, vccnz, execz, execnz };

template <When W>
void branch(Wave& wave, const Instruction& in) {
  const bool taken = W == When::always  ? true
                     : W == When::scc0  ? !wave.scc
                     : W == When::scc1  ? wave.scc
                     : W == When::vccz  ? wave.vcc() == 0
                     : W == When::vccnz ? wave.vcc() != 0
                     : W == When::execz ? wave.exec() == 0
                                        : wave.exec() != 0;
  if (taken) wave.pc = target(in);
}

void get_pc(Wave& wave, const Instruction& in) { wave.set_sgpr64(in.dst.reg, in.next()); }
void set_pc(Wave& wave, const Instruction& in) { wave.pc = read64(wave, in.src[0]); }
void swap_pc(Wave& wave, const Instruction& in) {
  const uint64_t to = read64(wave, in.src[0]);
  wave.set_sgpr64(in.dst.reg, in.next());
  wave.pc = to;
}
void call(Wave& wave, const Instruction& in) {
  wave.set_sgpr64(in.dst.reg, in.next());
  wave.pc = target(in);
}

void end_program(Wave& wave, const Instruction&) {
  wave.counters.finish(wave);
  wave.status = WaveStatus::ended;
}
void barrier(Wave& wave, const Instruction&) {
  wave.status = WaveStatus::at_barrier;
  ++wave.barriers;
}
void wait_count(Wave& wave, const Instruction& in) {
  const auto bits = static_cast<uint32_t>(in.imm);
  const unsigned vmcnt = (bits & 15) | (bits >> 14 & 3) << 4, lgkmcnt = bits >> 8 & 15;
  wave.counters.wait(wave, in, vmcnt, lgkmcnt);
}
void set_priority(Wave& wave, const Instruction& in) { wave.priority = static_cast<uint8_t>(in.imm & 3); }
void nothing(Wave&, const Instruction&) {}
void halt(Wave&, const Instruction& in) {
  if (in.imm & 1) throw LaunchError("s_sethalt 1: the wave would wait for a debugger");
}
void trap(Wave&, const Instruction& in) {
  throw LaunchError(
      format("s_trap %d: there is no trap handler (2 is what the compiler emits for a failed assertion)",
             in.imm & 0xff));
}

// ---- hardware registers ----------------------------------------------------------------------------------

enum HwReg : unsigned {
  kMode = 1,
  kStatus = 2,
  kTrapStatus = 3,
  kHwId = 4,
  kGprAlloc = 5,
  kLdsAlloc = 6,
  kXccId = 20
};
// What s_setreg may change in MODE: rounding, denormals, DX10_CLAMP, IEEE, FP16_OVFL. The exception enables
// (18:12) and the rest have no effect that could be shown here.
constexpr uint32_t kModeBits = 0x8003ff;

uint32_t hardware_register(const Wave& wave, unsigned id) {
  const Launch& launch = *wave.group->launch;
  const auto granules = [](uint32_t n, uint32_t size) { return n == 0 ? 0 : (n + size - 1) / size - 1; };
  switch (id) {
    case kMode:
      return wave.mode.bits;
    case kStatus:  // SCC, SPI_PRIO and PRIV 0, EXECZ, VCCZ, VALID
      return uint32_t{wave.scc} | uint32_t{wave.exec() == 0} << 9 | uint32_t{wave.vcc() == 0} << 10 |
             1u << 16;
    case kTrapStatus:
      return 0;
    case kHwId:  // wave slot 3:0, SIMD 5:4: waves go round the four SIMDs
      return static_cast<uint32_t>(wave.index / 4 & 15) | static_cast<uint32_t>(wave.index % 4) << 4;
    case kGprAlloc:
      return granules(launch.vgprs, 8) << 8;
    case kLdsAlloc:
      return (wave.group->lds.bytes() + 255) / 256 << 12;
    case kXccId:  // workgroups go round the eight dies
      return wave.group->id[0] % 8;
    default:
      throw LaunchError(format("hardware register %u is not emulated", id));
  }
}

struct Slice {
  unsigned id, offset;
  uint32_t mask;
};

Slice slice_of(const Instruction& in) {
  const auto bits = static_cast<uint32_t>(in.imm);
  const unsigned width = (bits >> 11 & 31) + 1;
  return {bits & 63, bits >> 6 & 31, width == 32 ? ~0u : (1u << width) - 1};
}

void get_register(Wave& wave, const Instruction& in) {
  const Slice slice = slice_of(in);
  wave.sgpr[in.dst.reg] = hardware_register(wave, slice.id) >> slice.offset & slice.mask;
}

// MODE.VSKIP = bit S1 of S0. The scheduler passes over vector instructions while it is set (machine.cc).
void set_vector_skip(Wave& wave, const Instruction& in) {
  constexpr uint32_t kSkip = 1u << 28;
  const bool on = read32(wave, in.src[0]) >> (read32(wave, in.src[1]) & 31) & 1;
  wave.mode.bits = on ? wave.mode.bits | kSkip : wave.mode.bits & ~kSkip;
}

void set_register(Wave& wave, const Slice& slice, uint32_t value) {
  if (slice.id != kMode)
    throw LaunchError(format("s_setreg: hardware register %u is read-only here (only MODE, 1)", slice.id));
  const uint32_t mask = slice.mask << slice.offset & kModeBits;
  wave.mode.bits = (wave.mode.bits & ~mask) | (value << slice.offset & mask);
}
void set_register_from_sgpr(Wave& wave, const Instruction& in) {
  set_register(wave, slice_of(in), read32(wave, in.dst ? in.dst : in.src[0]));
}
void set_register_from_literal(Wave& wave, const Instruction& in) {
  set_register(wave, slice_of(in), read32(wave, in.src[0]));
}

}  // namespace

Handler scalar_control_handler(Op op) {
  switch (op) {
    case Op::s_branch:
      return branch<When::always>;
    case Op::s_cbranch_scc0:
      return branch<When::scc0>;
    case Op::s_cbranch_scc1:
      return branch<When::scc1>;
    case Op::s_cbranch_vccz:
      return branch<When::vccz>;
    case Op::s_cbranch_vccnz:
      return branch<When::vccnz>;
    case Op::s_cbranch_execz:
      return branch<When::execz>;
    case Op::s_cbranch_execnz:
      return branch<When::execnz>;
    case Op::s_getpc_b64:
      return get_pc;
    case Op::s_setpc_b64:
      return set_pc;
    case Op::s_swappc_b64:
      return swap_pc;
    case Op::s_call_b64:
      return call;
    case Op::s_endpgm:
      return end_program;
    case Op::s_barrier:
      return barrier;
    case Op::s_waitcnt:
      return wait_count;
    case Op::s_setprio:
      return set_priority;
    case Op::s_nop:
    case Op::s_sleep:
    case Op::s_wakeup:
    case Op::s_icache_inv:
    case Op::s_incperflevel:
    case Op::s_decperflevel:
    case Op::s_ttracedata:
      return nothing;
    // No debugger is attached.
    case Op::s_cbranch_cdbgsys:
    case Op::s_cbranch_cdbguser:
    case Op::s_cbranch_cdbgsys_or_user:
    case Op::s_cbranch_cdbgsys_and_user:
      return nothing;
    case Op::s_sethalt:
      return halt;
    case Op::s_trap:
      return trap;
    case Op::s_setvskip:
      return set_vector_skip;
    case Op::s_getreg_b32:
      return get_register;
    case Op::s_setreg_b32:
      return set_register_from_sgpr;
    case Op::s_setreg_imm32_b32:
      return set_register_from_literal;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator
