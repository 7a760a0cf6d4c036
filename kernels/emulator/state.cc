#include "state.hpp"

#include <algorithm>

#include "decode.hpp"
#include "errors.hpp"

namespace zyfa::emulator {

std::string Launch::offset_text(uint64_t address) const {
  return format("+0x%llx", static_cast<unsigned long long>(address - entry));
}

void Wave::reset() {
  // Registers hold a recognisable pattern: as float a NaN, as address far outside every allocation.
  std::fill(&vgpr[0][0], &vgpr[0][0] + kVgprs * kLanes, 0xffbadbadu);
  std::fill(std::begin(sgpr), std::end(sgpr), 0xffbadbadu);
  std::fill(std::begin(vgpr_defined), std::end(vgpr_defined), 0);
  std::fill(std::begin(sgpr_defined), std::end(sgpr_defined), 0);
  std::fill(std::begin(vgpr_look), std::end(vgpr_look), ~uint64_t{0});
  std::fill(std::begin(sgpr_look), std::end(sgpr_look), ~uint64_t{0});
  scc = scc_defined = false;
  mode = Mode();
  status = WaveStatus::running;
  priority = 0;
  executed = barriers = started = 0;
  counters.reset();
  hazards.reset();
  access = Access();
}

void Wave::report(Rule rule, const Instruction& instruction, const std::string& message, int missing) {
  report(rule, rule_severity(rule), instruction, message, missing);
}

void Wave::report(Rule rule, Severity severity, const Instruction& instruction, const std::string& message,
                  int missing) {
  if (first_time(rule, severity, instruction)) add_finding(rule, severity, instruction, message, missing);
}

bool Wave::first_time(Rule rule, Severity severity, const Instruction& instruction) {
  return group->launch->findings->count(rule, severity, instruction.address);
}

void Wave::add_finding(Rule rule, Severity severity, const Instruction& instruction,
                       const std::string& message, int missing) {
  Launch& launch = *group->launch;
  launch.findings->add({rule,
                        severity,
                        launch.kernel,
                        {group->id[0], group->id[1], group->id[2]},
                        index,
                        instruction.address - launch.entry,
                        disassemble(instruction),
                        message,
                        missing,
                        1},
                       instruction.address);
}

}  // namespace zyfa::emulator
