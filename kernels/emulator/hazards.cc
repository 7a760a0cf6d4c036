#include "hazards.hpp"

#include <algorithm>

#include "decode.hpp"
#include "errors.hpp"
#include "hazard_windows.hpp"
#include "state.hpp"

namespace zyfa::emulator {
namespace {

constexpr uint16_t kShortLived = kShiftedResult | kScaledPart | kDot | kWideStore;

std::string name_of(const Breach& breach) {
  const unsigned first = breach.registers.first, count = breach.registers.count;
  if (breach.bank == Breach::hardware) return format("hardware register %u", first);
  return breach.bank == Breach::vgpr ? vgpr_text(first, count) : sgpr_text(first, count);
}

}  // namespace

std::string describe(const Breach& breach, uint64_t base) {
  return format("%s %s by '%s' at +0x%llx", name_of(breach).c_str(), breach.verb,
                disassemble(*breach.producer).c_str(),
                static_cast<unsigned long long>(breach.producer->address - base));
}

void Breaches::add(const Breach& breach) {
  for (Breach* item = items_; item != items_ + size_; ++item) {
    if (item->rule != breach.rule) continue;
    const bool worse = breach.severity > item->severity ||
                       (breach.severity == item->severity && breach.missing > item->missing);
    if (worse) *item = breach;
    return;
  }
  items_[size_++] = breach;
}

void Hazards::check(Wave& wave, const Instruction& instruction, const Effects& effects) {
  if (!may_break(effects)) return;
  Breaches found;
  find(instruction, effects, found);
  for (const Breach& breach : found) {
    if (!wave.first_time(breach.rule, breach.severity, instruction)) continue;
    const uint64_t entry = wave.group->launch->entry;
    wave.add_finding(breach.rule, breach.severity, instruction, describe(breach, entry), breach.missing);
  }
}

void Hazards::record(const Instruction& instruction, const Effects& effects) {
  const Past past{clock_, &instruction, &effects};
  recent_.push(past);
  const auto keep = [&](uint64_t& until, int window) {
    until = std::max(until, clock_ + static_cast<uint64_t>(window) + 1);
    pending_until_ = std::max(pending_until_, until);
  };
  if (effects.unit == Unit::matrix) {
    record_matrix(past, effects);
    keep(matrix_until_, kLongestMatrixWindow);
  } else if (effects.traits & kVectorSgpr) {
    scalar_.push(past);
    keep(scalar_until_, kLongestScalarWindow);
  }
  if (effects.unit == Unit::trans || (effects.traits & kShortLived) != 0)
    keep(recent_until_, kLongestRecentWindow);
  clock_ += instruction.op == Op::s_nop ? static_cast<uint64_t>(instruction.imm & 15) + 1 : 1;
}

void Hazards::record_matrix(const Past& past, const Effects& effects) {
  matrix_.push(past);
  const auto mark = [&](const Use& use, int window) {
    for (unsigned reg = use.first; reg < use.first + use.count; ++reg)
      running_[reg] = std::max(running_[reg], clock_ + static_cast<uint64_t>(window) + 1);
  };
  for (const Use& use : effects.vgpr_writes) mark(use, kLongestMatrixWindow);
  for (const Use& use : effects.vgpr_reads)
    if (use.role == Role::matrix_c) mark(use, windows_of(effects.group, effects.passes).c_war);
}

bool Hazards::touches_running(const Effects& effects) const {
  uint64_t latest = 0;
  for (const Use& use : effects.vgpr_reads)
    for (unsigned reg = use.first; reg < use.first + use.count; ++reg)
      latest = std::max(latest, running_[reg]);
  for (const Use& use : effects.vgpr_writes)
    for (unsigned reg = use.first; reg < use.first + use.count; ++reg)
      latest = std::max(latest, running_[reg]);
  return latest > clock_;
}

void Hazards::find(const Instruction& instruction, const Effects& effects, Breaches& found) const {
  if (clock_ < matrix_until_) {
    if (touches_running(effects)) find_matrix(effects, found);
    if (effects.is_load && effects.is_memory()) find_overwritten_operands(effects, found);
  }
  if (clock_ < scalar_until_) find_scalar(effects, found);
  if (asks_recent(effects) || clock_ < recent_until_) find_recent(instruction, effects, found);
}

}  // namespace zyfa::emulator
