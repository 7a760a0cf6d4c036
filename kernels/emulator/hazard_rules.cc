// The rules. H and G numbers: docs/gfx950.md.
#include "hazard_windows.hpp"
#include "hazards.hpp"

namespace zyfa::emulator {
namespace {

bool overlap(const Use& a, const Use& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

bool same(const Use& a, const Use& b) { return a.first == b.first && a.count == b.count; }

template <int N, int M>
const Use* first_overlap(const Uses<N>& produced, const Uses<M>& consumed) {
  for (const Use& made : produced)
    for (const Use& use : consumed)
      if (overlap(made, use)) return &made;
  return nullptr;
}

const Use kExecUse{kExec, 2, Role::exec};

const Use* source_c(const Effects& effects) {
  for (const Use& use : effects.vgpr_reads)
    if (use.role == Role::matrix_c) return &use;
  return nullptr;
}

// Wait states are counted as LLVM counts them, one per instruction. That a matrix instruction also waits for
// its pipe is not counted: code that needs it (some of AMD's fmoe and backward kernels do) is an error here.
struct Reporter {
  Breaches& found;
  const Instruction* producer;
  int between;

  void need(Rule rule, int states, const Use& registers, const char* verb, Breach::Bank bank = Breach::vgpr,
            Severity severity = Severity::error) const {
    if (between >= states) return;
    found.add({rule, severity, states - between, producer, verb, registers, bank});
  }
  void warn(Rule rule, int states, const Use& registers, const char* verb,
            Breach::Bank bank = Breach::vgpr) const {
    need(rule, states, registers, verb, bank, Severity::warning);
  }
};

constexpr const char* kWritten = "written";

// H1, H2: the result is C of the next one. Equal registers but another pass count: the instruction set
// promises forwarding for equal counts only, clang 22 relies on it for all; a warning.
void check_c(const Reporter& report, const Effects& before, const Use& result, const Effects& effects,
             const Use& c) {
  const MatrixWindows windows = windows_of(before.group, before.passes);
  if (!same(result, c)) return report.need(Rule::H2, windows.other_c, result, kWritten);
  if (before.passes == effects.passes || windows.same_c > 0)
    return report.need(Rule::H1, windows.same_c, result, kWritten);
  report.warn(Rule::H2, windows.other_c, result, kWritten);
}

}  // namespace

void Hazards::find_after_matrix(const Past& past, const Effects& effects, bool c_replaced,
                                Breaches& found) const {
  const Reporter report{found, past.instruction, between(past)};
  const Effects& before = *past.effects;
  const MatrixWindows windows = windows_of(before.group, before.passes);
  const Use& result = before.vgpr_writes.items[0];
  for (const Use& use : effects.vgpr_reads) {
    if (!overlap(result, use)) continue;
    if (use.role == Role::matrix_c) {
      if (!c_replaced) check_c(report, before, result, effects, use);
    } else if (effects.is_matrix()) {
      report.need(Rule::H3, windows.ab, result, kWritten);
    } else {
      report.need(Rule::H4, effects.is_vector() ? windows.vector : windows.memory, result, kWritten);
    }
  }
  if (!effects.is_vector()) return;
  if (first_overlap(before.vgpr_writes, effects.vgpr_writes))
    report.need(Rule::H4, windows.vector, result, kWritten);
  if (const Use* c = source_c(before))
    for (const Use& use : effects.vgpr_writes)
      if (overlap(*c, use)) report.need(Rule::H5, windows.c_war, *c, "read as C");
}

void Hazards::find_matrix(const Effects& effects, Breaches& found) const {
  // Results leave the pipe in order: once all of C was written again, what wrote parts of it before is gone.
  const Use* c = source_c(effects);
  bool c_replaced = false;
  for (unsigned age = 0; age < matrix_.size; ++age) {
    const Past& past = matrix_[age];
    if (between(past) >= kLongestMatrixWindow) break;
    find_after_matrix(past, effects, c_replaced, found);
    if (c != nullptr && same(past.effects->vgpr_writes.items[0], *c)) c_replaced = true;
  }
}

// G21: no rule is published; AMD's kernels leave another matrix instruction in between, clang does not. A
// warning while the instruction runs.
void Hazards::find_overwritten_operands(const Effects& effects, Breaches& found) const {
  if (matrix_.size == 0) return;
  const Past& past = matrix_[0];
  if (between(past) >= past.effects->passes) return;
  const auto look = [&](const Use& touched, const char* verb) {
    for (const Use& use : effects.vgpr_writes)
      if (overlap(touched, use))
        found.add({Rule::G21, Severity::warning, 0, past.instruction, verb, touched, Breach::vgpr});
  };
  for (const Use& operand : past.effects->vgpr_reads) look(operand, "read");
  for (const Use& result : past.effects->vgpr_writes) look(result, kWritten);
}

namespace {

// A vector instruction wrote the SGPRs `written` (EXEC among them or not); how are they used now?
void check_sgpr(const Reporter& report, const Use& written, const Effects& effects) {
  for (const Use& use : effects.sgpr_reads) {
    if (!overlap(written, use)) continue;
    if (use.role == Role::lane_select) {
      report.need(Rule::G8, 4, written, kWritten, Breach::sgpr);
    } else if (effects.traits & kDivFmas && use.role == Role::mask) {
      report.need(Rule::G11, 4, written, kWritten, Breach::sgpr);
    } else if (effects.is_vector()) {
      // LLVM keeps 2; AMD's kernels keep 1.
      report.need(Rule::G6, 2, written, kWritten, Breach::sgpr,
                  report.between == 0 ? Severity::error : Severity::warning);
    } else if (effects.is_memory() && effects.unit != Unit::lds) {
      report.need(Rule::G7, 5, written, kWritten, Breach::sgpr);
    }
  }
}

void check_exec(const Reporter& report, const Effects& before, const Effects& effects) {
  if (effects.is_matrix()) report.need(Rule::H7, 4, kExecUse, kWritten, Breach::sgpr);
  if (effects.traits & kDpp) report.need(Rule::G3, 5, kExecUse, kWritten, Breach::sgpr);
  if (effects.traits & kLaneAccess) report.need(Rule::G10, 4, kExecUse, kWritten, Breach::sgpr);
  if (before.traits & kCmpx && effects.traits & kPermlaneSwap)
    report.need(Rule::G5, 4, kExecUse, kWritten, Breach::sgpr);
}

}  // namespace

void Hazards::find_scalar(const Effects& effects, Breaches& found) const {
  for (unsigned age = 0; age < scalar_.size; ++age) {
    const Past& past = scalar_[age];
    const int passed = between(past);
    if (passed >= kLongestScalarWindow) break;
    const Reporter report{found, past.instruction, passed};
    if (effects.sgpr_reads.size > 0)
      for (const Use& written : past.effects->sgpr_writes) check_sgpr(report, written, effects);
    if (past.effects->traits & kWritesExec) check_exec(report, *past.effects, effects);
  }
}

namespace {

// Producers of VGPRs whose result is late for some readers.
void check_vector_result(const Reporter& report, const Effects& before, const Effects& effects) {
  const Use* read = first_overlap(before.vgpr_writes, effects.vgpr_reads);
  if (read == nullptr) return;
  if (effects.is_matrix()) report.need(Rule::H6, 2, *read, kWritten);
  if (effects.traits & kPermlaneSwap) {
    // LLVM keeps 2 always; between two swaps AMD's kernels keep 1.
    const bool shipped = report.between == 1 && before.traits & kPermlaneSwap;
    report.need(Rule::G4, 2, *read, kWritten, Breach::vgpr, shipped ? Severity::warning : Severity::error);
  }
  if (effects.traits & kLaneRead) report.need(Rule::G9, 1, *read, kWritten);
  if (effects.unit == Unit::valu) {
    if (before.unit == Unit::trans) report.need(Rule::G1, 1, *read, kWritten);
  }
  if (!effects.is_vector()) return;
  if (before.traits & kShiftedResult) report.need(Rule::G15, 1, *read, "written in part");
  if (before.traits & kScaledPart) report.warn(Rule::G15, 1, *read, "written in part");
}

void check_dpp(const Reporter& report, const Effects& before, const Effects& effects) {
  for (const Use& use : effects.vgpr_reads)
    if (use.role == Role::dpp_source)
      for (const Use& made : before.vgpr_writes)
        if (overlap(made, use)) report.need(Rule::G2, 2, made, kWritten);
}

// G22: only the accumulator of the same instruction gets the sum early.
void check_dot(const Reporter& report, const Instruction& instruction, const Effects& before,
               const Effects& effects) {
  const Use& sum = before.vgpr_writes.items[0];
  const bool chained = instruction.op == report.producer->op && instruction.src[2].is_vgpr();
  int reads = effects.vgpr_reads.size;
  while (reads > 0 && effects.vgpr_reads.items[reads - 1].role == Role::merge) --reads;
  for (int i = 0; i < (chained ? reads - 1 : reads); ++i)
    if (overlap(sum, effects.vgpr_reads.items[i])) report.need(Rule::G22, 3, sum, kWritten);
  if (effects.is_vector() && !chained && first_overlap(before.vgpr_writes, effects.vgpr_writes))
    report.need(Rule::G22, 3, sum, kWritten);
}

// G14: the data of a wide store is fetched after the instruction was issued.
void check_store_data(const Reporter& report, const Effects& before, const Effects& effects) {
  for (const Use& data : before.vgpr_reads)
    if (data.role == Role::store_data && data.count > 2)
      for (const Use& use : effects.vgpr_writes)
        if (overlap(data, use)) report.need(Rule::G14, 2, data, "stored");
}

void check_m0(const Reporter& report, const Effects& before) {
  if (before.unit != Unit::salu) return;
  for (const Use& written : before.sgpr_writes)
    if (written.first == kM0) report.warn(Rule::G12, 1, written, kWritten, Breach::sgpr);
}

void check_hardware_register(const Reporter& report, const Instruction& instruction) {
  const auto id = static_cast<uint16_t>(instruction.imm & 63);
  if (id == (report.producer->imm & 63))
    report.need(Rule::G13, 2, {id, 1, Role::result}, kWritten, Breach::hardware);
}

}  // namespace

void Hazards::find_recent(const Instruction& instruction, const Effects& effects, Breaches& found) const {
  for (unsigned age = 0; age < recent_.size; ++age) {
    const Past& past = recent_[age];
    const int passed = between(past);
    if (passed >= kLongestRecentWindow) break;
    const Reporter report{found, past.instruction, passed};
    const Effects& before = *past.effects;
    if (before.is_vector()) check_vector_result(report, before, effects);
    if (effects.traits & kDpp) check_dpp(report, before, effects);
    if (before.traits & kDot) check_dot(report, instruction, before, effects);
    if (before.traits & kWideStore && effects.is_vector()) check_store_data(report, before, effects);
    if (effects.traits & kUsesM0) check_m0(report, before);
    if (before.traits & kSetreg && effects.traits & (kSetreg | kGetreg))
      check_hardware_register(report, instruction);
  }
}

}  // namespace zyfa::emulator
