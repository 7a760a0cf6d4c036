// Scalar operands and results, shared by the scalar handlers.
#pragma once

#include "errors.hpp"
#include "execute.hpp"

namespace zyfa::emulator {

// The value of an aperture, VCCZ, EXECZ or SCC. Apertures read as 32 bits give their upper half: their lower
// one is 0.
uint64_t special_value(const Wave& wave, uint16_t number);
uint32_t special_value32(const Wave& wave, uint16_t number);

inline uint32_t read32(const Wave& wave, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::sgpr:
      return wave.sgpr[operand.reg];
    case OperandKind::constant:
      return static_cast<uint32_t>(operand.value);
    case OperandKind::special:
      return special_value32(wave, operand.reg);
    default:
      throw LaunchError("scalar source is no SGPR and no constant");
  }
}

inline uint64_t read64(const Wave& wave, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::sgpr:
      return wave.sgpr64(operand.reg);
    case OperandKind::constant:
      return operand.value;
    case OperandKind::special:
      return special_value(wave, operand.reg);
    default:
      throw LaunchError("scalar source is no SGPR pair and no constant");
  }
}

Handler scalar_control_handler(Op op);  // exec_scalar_control.cc: SOPP, jumps, hardware registers
Handler scalar_compare_handler(Op op);  // exec_scalar_compare.cc: SOPC and the compares of SOPK

}  // namespace zyfa::emulator
