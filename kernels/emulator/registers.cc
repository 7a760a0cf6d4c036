#include "registers.hpp"

#include "errors.hpp"

namespace zyfa::emulator {
namespace {

std::string vgpr_name(unsigned reg) {
  return reg < kAgpr ? format("v%u", reg) : format("a%u", reg - kAgpr);
}

std::string sgpr_name(unsigned reg) {
  switch (reg) {
    case kVcc: return "vcc_lo";
    case kVcc + 1: return "vcc_hi";
    case kM0: return "m0";
    case kExec: return "exec_lo";
    case kExec + 1: return "exec_hi";
    default: return format("s%u", reg);
  }
}

}  // namespace

void check_registers(Wave& wave, const Instruction& instruction, const Effects& effects) {
  const uint64_t lanes = effects.all_lanes ? ~uint64_t{0} : wave.exec();
  for (const Use& use : effects.vgpr_reads) {
    if (use.role == Role::merge) continue;  // the kept part of a partial write may be garbage
    for (unsigned reg = use.first; reg < use.first + use.count; ++reg)
      if (const uint64_t missing = lanes & ~wave.vgpr_defined[reg])
        wave.report(Rule::undefined_register, instruction,
                    format("%s was never written in lane %d", vgpr_name(reg).c_str(), __builtin_ctzll(missing)));
  }
  for (const Use& use : effects.sgpr_reads)
    for (unsigned reg = use.first; reg < use.first + use.count; ++reg)
      if (!wave.sgpr_defined[reg])
        wave.report(Rule::undefined_register, instruction, format("%s was never written", sgpr_name(reg).c_str()));
}

void mark_written(Wave& wave, const Effects& effects, uint64_t lanes) {
  for (const Use& use : effects.vgpr_writes)
    for (unsigned reg = use.first; reg < use.first + use.count; ++reg) wave.vgpr_defined[reg] |= lanes;
  for (const Use& use : effects.sgpr_writes)
    for (unsigned reg = use.first; reg < use.first + use.count; ++reg) wave.sgpr_defined[reg] = 1;
}

}  // namespace zyfa::emulator
