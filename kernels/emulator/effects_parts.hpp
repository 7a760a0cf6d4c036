// What the parts of effects_of share.
#pragma once

#include "effects.hpp"

namespace zyfa::emulator {

void read(Effects& effects, const Operand& operand, Role role);
void write(Effects& effects, const Operand& operand, Role role);

void scalar_effects(const Instruction& instruction, Effects& effects);
void smem_effects(const Instruction& instruction, Effects& effects);
void vector_effects(const Instruction& instruction, Effects& effects);
void matrix_effects(const Instruction& instruction, Effects& effects);
void memory_effects(const Instruction& instruction, Effects& effects);

bool is_matrix_op(Op op);

}  // namespace zyfa::emulator
