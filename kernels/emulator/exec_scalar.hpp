// Scalar operands and results, shared by the scalar handlers.
#pragma once

#include "errors.hpp"
#include "execute.hpp"

namespace zyfa::emulator {

inline uint64_t special_value(const Wave& wave, uint16_t number) {
  switch (number) {
    case kSharedBase:
      return kSharedAperture;
    case kSharedLimit:
      return kSharedAperture + 0xffffffff;
    case kPrivateBase:
      return kPrivateAperture;
    case kPrivateLimit:
      return kPrivateAperture + 0xffffffff;
    case kVccz:
      return wave.vcc() == 0;
    case kExecz:
      return wave.exec() == 0;
    case kScc:
      return wave.scc;
    default:
      throw LaunchError(format("scalar source %u has no value here", number));
  }
}

// Apertures read as 32 bits give their upper half: their lower one is 0.
inline uint32_t special_value32(const Wave& wave, uint16_t number) {
  const uint64_t value = special_value(wave, number);
  return static_cast<uint32_t>(number >= kSharedBase && number <= kPrivateLimit ? value >> 32 : value);
}

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
