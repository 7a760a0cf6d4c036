#include "effects.hpp"

#include "effects_parts.hpp"

namespace zyfa::emulator {

void read(Effects& effects, const Operand& operand, Role role) {
  switch (operand.kind) {
    case OperandKind::vgpr:
      effects.vgpr_reads.add(operand.reg, operand.dwords, role);
      return;
    case OperandKind::sgpr:
      effects.sgpr_reads.add(operand.reg, operand.dwords, role);
      if (operand.reg >= kExec) effects.reads_exec = true;
      return;
    case OperandKind::special:
      if (operand.reg == kVccz) effects.sgpr_reads.add(kVcc, 2, role);
      if (operand.reg == kExecz) effects.reads_exec = true;
      if (operand.reg == kScc) effects.reads_scc = true;
      return;
    case OperandKind::none:
    case OperandKind::constant:
      return;
  }
}

void write(Effects& effects, const Operand& operand, Role role) {
  if (operand.is_vgpr()) effects.vgpr_writes.add(operand.reg, operand.dwords, role);
  if (!operand.is_sgpr()) return;
  effects.sgpr_writes.add(operand.reg, operand.dwords, role);
  if (operand.reg >= kExec) effects.writes_exec = true;
}

Effects effects_of(const Instruction& instruction) {
  Effects effects;
  switch (instruction.info->format) {
    case Format::sop1:
    case Format::sop2:
    case Format::sopc:
    case Format::sopk:
    case Format::sopp:
      scalar_effects(instruction, effects);
      break;
    case Format::smem:
      smem_effects(instruction, effects);
      break;
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3sd:
      vector_effects(instruction, effects);
      break;
    case Format::vop3p:
      if (is_matrix_op(instruction.op))
        matrix_effects(instruction, effects);
      else
        vector_effects(instruction, effects);
      break;
    case Format::ds:
    case Format::flat:
    case Format::global:
    case Format::scratch:
    case Format::mubuf:
    case Format::mtbuf:
      memory_effects(instruction, effects);
      break;
  }
  return effects;
}

}  // namespace zyfa::emulator
