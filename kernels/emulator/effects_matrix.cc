// V_MFMA and V_SMFMAC.
#include <cstring>

#include "effects_parts.hpp"

namespace zyfa::emulator {
namespace {

struct Passes {
  Op op;
  MatrixGroup group;
  uint8_t passes;
};

constexpr Passes kPasses[] = {
#define ZYFA_PASSES(op, group, passes) {Op::op, MatrixGroup::group, passes},
#include "isa/matrix_passes.def"
#undef ZYFA_PASSES
};

const Passes* find(Op op) {
  for (const Passes& row : kPasses)
    if (row.op == op) return &row;
  return nullptr;
}

bool is_f8f6f4(Op op) {
  return op == Op::v_mfma_f32_16x16x128_f8f6f4 || op == Op::v_mfma_f32_32x32x64_f8f6f4;
}

// Format codes 0 and 1 are FP8 and BF8.
bool has_8bit_operand(const Instruction& instruction) { return instruction.cbsz < 2 || instruction.blgp < 2; }

}  // namespace

bool is_matrix_op(Op op) { return find(op) != nullptr; }

void matrix_effects(const Instruction& instruction, Effects& effects) {
  const Passes& row = *find(instruction.op);
  effects.unit = Unit::matrix;
  effects.group = row.group;
  effects.passes = row.passes;
  if (is_f8f6f4(instruction.op) && !has_8bit_operand(instruction)) effects.passes /= 2;
  effects.all_lanes = true;
  const bool sparse = std::strncmp(instruction.info->name, "v_smfmac", 8) == 0;
  read(effects, instruction.src[0], Role::matrix_a);
  read(effects, instruction.src[1], Role::matrix_b);
  read(effects, sparse ? instruction.dst : instruction.src[2], Role::matrix_c);
  if (sparse) read(effects, instruction.src[2], Role::matrix_index);
  for (const Operand& scale : instruction.scale) read(effects, scale, Role::matrix_scale);
  write(effects, instruction.dst, Role::result);
}

}  // namespace zyfa::emulator
