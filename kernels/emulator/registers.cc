#include "registers.hpp"

#include "decode.hpp"
#include "errors.hpp"

namespace zyfa::emulator {
namespace {

// Bits first .. first + count - 1, at most 64 of them.
inline uint64_t range(const uint64_t* bits, unsigned first, unsigned count) {
  const unsigned word = first >> 6, shift = first & 63;
  uint64_t found = bits[word] >> shift;
  if (shift + count > 64) found |= bits[word + 1] << (64 - shift);
  return count >= 64 ? found : found & ((uint64_t{1} << count) - 1);
}

bool in_use(const Wave& wave, unsigned reg) {
  return wave.vgpr_defined[reg] != 0 || wave.counters.vgpr_pending(reg) != 0;
}

// One file holds both kinds, accumulation registers from accum_offset on. v[accum_offset] and higher are the
// same registers by another name (AMD's BF16 attention kernels use them so, with no accumulation register in
// sight); a kernel that uses both names of one register would need them to share a value, which the emulator
// does not do.
void check_allocated(const Wave& wave, unsigned reg) {
  const Launch& launch = *wave.group->launch;
  const bool accumulation = reg >= kAgpr;
  const unsigned number = accumulation ? reg - kAgpr + launch.accum_offset : reg;
  if (number >= launch.vgprs)
    throw LaunchError(format("%s is beyond the kernel's allocation of %u vector registers (accum_offset %u)",
                             vgpr_text(reg, 1).c_str(), launch.vgprs, launch.accum_offset));
  if (number < launch.accum_offset || number >= kAgpr) return;
  const unsigned other = accumulation ? number : kAgpr + reg - launch.accum_offset;
  if (in_use(wave, other))
    throw LaunchError(format("%s and %s are one register (accum_offset %u): the kernel uses both names",
                             vgpr_text(reg, 1).c_str(), vgpr_text(other, 1).c_str(), launch.accum_offset));
}

// In the order in which loads return, a later load of the same queue may replace what an earlier one brings.
bool follows_in_order(Counters::Queue queue, const Effects& effects) {
  if (!effects.is_load && !effects.is_atomic) return false;
  return queue == (effects.unit == Unit::lds ? Counters::Queue::lds : Counters::Queue::vector_memory);
}

void report_late(Wave& wave, const Instruction& instruction, unsigned reg, Counters::Queue queue,
                 const char* verb) {
  const char* counter = queue == Counters::Queue::lds    ? "lgkmcnt"
                        : queue == Counters::Queue::flat ? "vmcnt(0) and lgkmcnt(0)"
                                                         : "vmcnt";
  wave.report(Rule::G17, instruction,
              format("%s is %s while the load at %s is on its way: no s_waitcnt %s covers it",
                     vgpr_text(reg, 1).c_str(), verb,
                     wave.group->launch->offset_text(wave.counters.vgpr_load(reg, queue)).c_str(), counter));
}

// clang copies pairs of which one half means nothing, and spills such SGPRs to lanes of a VGPR and back: no
// use of the value, and the copy is as undefined as what it copies.
bool only_copies(Op op) {
  return op == Op::v_mov_b64 || op == Op::v_writelane_b32 || op == Op::v_readlane_b32;
}

bool settled(const Wave& wave, unsigned reg) {
  return wave.vgpr_defined[reg] == ~uint64_t{0} && wave.counters.vgpr_pending(reg) == 0;
}

bool may_be_undefined(const Use& use) { return use.role == Role::unselected || use.role == Role::passed_on; }

// The lanes of a passed_on source that hold something.
uint64_t lanes_passed_on(const Wave& wave, const Effects& effects) {
  for (const Use& use : effects.vgpr_reads)
    if (use.role == Role::passed_on) return wave.vgpr_defined[use.first];
  for (const Use& use : effects.sgpr_reads)
    if (use.role == Role::passed_on) return wave.sgpr_defined[use.first] ? ~uint64_t{0} : 0;
  return ~uint64_t{0};
}

// v_readlane, v_writelane, v_readfirstlane touch one lane.
uint64_t accessed_lane(const Wave& wave, const Instruction& instruction) {
  if (instruction.op == Op::v_readfirstlane_b32) {
    const uint64_t exec = wave.exec();
    return exec == 0 ? 1 : exec & (0 - exec);
  }
  const Operand& select = instruction.src[1];
  const uint64_t lane = select.is_sgpr() ? wave.sgpr[select.reg] : select.value;
  return uint64_t{1} << (lane & 63);
}

__attribute__((noinline)) void look_at_vgprs(Wave& wave, const Instruction& instruction,
                                             const Effects& effects, const Use& use, uint64_t suspects,
                                             uint64_t lanes, bool write) {
  for (; suspects != 0; suspects &= suspects - 1) {
    const unsigned reg = use.first + static_cast<unsigned>(__builtin_ctzll(suspects));
    if (settled(wave, reg)) {
      wave.vgpr_look[reg >> 6] &= ~(uint64_t{1} << (reg & 63));
      continue;
    }
    check_allocated(wave, reg);
    const bool kept = use.role == Role::merge;  // the kept part of a partial write may be garbage
    for (const auto queue : {Counters::Queue::vector_memory, Counters::Queue::lds, Counters::Queue::flat})
      if ((wave.counters.vgpr_pending(reg, queue) & lanes) != 0 &&
          !((write || kept) && follows_in_order(queue, effects)))
        report_late(wave, instruction, reg, queue, write ? "overwritten" : "read");
    if (write || kept || may_be_undefined(use) || only_copies(instruction.op)) continue;
    if (const uint64_t missing = lanes & ~wave.vgpr_defined[reg])
      wave.report(
          Rule::undefined_register, instruction,
          format("%s was never written in lane %d", vgpr_text(reg, 1).c_str(), __builtin_ctzll(missing)));
  }
}

__attribute__((noinline)) void look_at_sgprs(Wave& wave, const Instruction& instruction, const Use& use,
                                             uint64_t suspects, bool write) {
  for (; suspects != 0; suspects &= suspects - 1) {
    const unsigned reg = use.first + static_cast<unsigned>(__builtin_ctzll(suspects));
    if (wave.counters.sgpr_pending(reg)) {
      const bool half = wave.counters.sgpr_half_waited(reg);
      wave.report(half ? Rule::G16 : Rule::G17, instruction,
                  format("%s is %s while the scalar load at %s is on its way: %s", sgpr_text(reg, 1).c_str(),
                         write ? "overwritten" : "read",
                         wave.group->launch->offset_text(wave.counters.sgpr_load(reg)).c_str(),
                         half ? "only lgkmcnt(0) covers it" : "no s_waitcnt lgkmcnt(0) covers it"));
    } else if (wave.sgpr_defined[reg]) {
      wave.sgpr_look[reg >> 6] &= ~(uint64_t{1} << (reg & 63));
    }
    if (!write && !wave.sgpr_defined[reg] && !may_be_undefined(use) && !only_copies(instruction.op))
      wave.report(Rule::undefined_register, instruction,
                  format("%s was never written", sgpr_text(reg, 1).c_str()));
  }
}

// In which of `lanes` a copy's dword `i` is worth something.
uint64_t copied_lanes(const Wave& wave, const Operand& source, unsigned i, uint64_t lanes) {
  if (source.is_vgpr()) return lanes & wave.vgpr_defined[source.reg + i];
  return source.is_sgpr() && !wave.sgpr_defined[source.reg + i] ? 0 : lanes;
}

void mark_copied(Wave& wave, const Instruction& instruction, uint64_t lanes) {
  const Operand& to = instruction.dst;
  if (instruction.op == Op::v_readlane_b32) {
    wave.sgpr_defined[to.reg] = (wave.vgpr_defined[instruction.src[0].reg] & lanes) != 0;
    if (!wave.sgpr_defined[to.reg]) wave.sgpr_look[to.reg >> 6] |= uint64_t{1} << (to.reg & 63);
    return;
  }
  for (unsigned i = 0; i < to.dwords; ++i) {
    const unsigned reg = to.reg + i;
    const uint64_t copied = copied_lanes(wave, instruction.src[0], i, lanes);
    wave.vgpr_defined[reg] = (wave.vgpr_defined[reg] & ~lanes) | copied;
    if (copied != lanes) wave.vgpr_look[reg >> 6] |= uint64_t{1} << (reg & 63);
  }
}

void mark_passed_on(Wave& wave, const Effects& effects, uint64_t lanes) {
  const Use& result = effects.vgpr_writes.items[0];
  const unsigned last = result.first + result.count - 1u;
  const uint64_t holes = lanes & ~lanes_passed_on(wave, effects);
  for (unsigned reg = result.first; reg < last; ++reg) wave.vgpr_defined[reg] |= lanes;
  wave.vgpr_defined[last] = (wave.vgpr_defined[last] | lanes) & ~holes;
  if (holes != 0) wave.vgpr_look[last >> 6] |= uint64_t{1} << (last & 63);
}

void mark_sgprs(Wave& wave, const Effects& effects) {
  for (const Use& use : effects.sgpr_writes)
    for (unsigned reg = use.first; reg < unsigned{use.first} + use.count; ++reg) wave.sgpr_defined[reg] = 1;
}

}  // namespace

uint64_t touched_lanes(const Wave& wave, const Instruction& instruction, const Effects& effects) {
  if (effects.traits & kLaneAccess) return accessed_lane(wave, instruction);
  return effects.all_lanes ? ~uint64_t{0} : wave.exec();
}

void check_registers(Wave& wave, const Instruction& instruction, const Effects& effects, uint64_t lanes) {
  if (effects.reads_scc && !wave.scc_defined)
    wave.report(Rule::undefined_register, instruction, "scc was never written");
  for (const Use& use : effects.vgpr_reads)
    if (const uint64_t suspects = range(wave.vgpr_look, use.first, use.count))
      look_at_vgprs(wave, instruction, effects, use, suspects, lanes, false);
  for (const Use& use : effects.vgpr_writes)
    if (const uint64_t suspects = range(wave.vgpr_look, use.first, use.count))
      look_at_vgprs(wave, instruction, effects, use, suspects, lanes, true);
  for (const Use& use : effects.sgpr_reads)
    if (const uint64_t suspects = range(wave.sgpr_look, use.first, use.count))
      look_at_sgprs(wave, instruction, use, suspects, false);
  for (const Use& use : effects.sgpr_writes)
    if (const uint64_t suspects = range(wave.sgpr_look, use.first, use.count))
      look_at_sgprs(wave, instruction, use, suspects, true);
}

void mark_written(Wave& wave, const Instruction& instruction, const Effects& effects, uint64_t lanes) {
  if (only_copies(instruction.op)) return mark_copied(wave, instruction, lanes);
  if (effects.traits & kPassesOn) {
    mark_passed_on(wave, effects, lanes);
  } else {
    for (const Use& use : effects.vgpr_writes)
      for (unsigned reg = use.first; reg < unsigned{use.first} + use.count; ++reg)
        wave.vgpr_defined[reg] |= lanes;
  }
  wave.scc_defined |= effects.writes_scc;
  mark_sgprs(wave, effects);
}

}  // namespace zyfa::emulator
