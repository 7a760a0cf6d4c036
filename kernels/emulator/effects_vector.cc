// VOP1, VOP2, VOPC, VOP3, VOP3P without the matrix instructions.
#include <cstring>

#include "effects_parts.hpp"

namespace zyfa::emulator {
namespace {

bool starts_with(const Instruction& instruction, const char* prefix) {
  return std::strncmp(instruction.info->name, prefix, std::strlen(prefix)) == 0;
}

bool is_transcendental(Op op) {
  switch (op) {
    case Op::v_exp_f32:
    case Op::v_log_f32:
    case Op::v_rcp_f32:
    case Op::v_rcp_iflag_f32:
    case Op::v_rsq_f32:
    case Op::v_sqrt_f32:
    case Op::v_sin_f32:
    case Op::v_cos_f32:
    case Op::v_rcp_f64:
    case Op::v_rsq_f64:
    case Op::v_sqrt_f64:
    case Op::v_exp_f16:
    case Op::v_log_f16:
    case Op::v_rcp_f16:
    case Op::v_rsq_f16:
    case Op::v_sqrt_f16:
    case Op::v_sin_f16:
    case Op::v_cos_f16:
    case Op::v_exp_legacy_f32:
    case Op::v_log_legacy_f32:
      return true;
    default:
      return false;
  }
}

bool swaps(Op op) {
  return op == Op::v_swap_b32 || op == Op::v_permlane16_swap_b32 || op == Op::v_permlane32_swap_b32;
}

bool ignores_exec(Op op) { return op == Op::v_readlane_b32 || op == Op::v_writelane_b32; }

// Its third source is read lane by lane: a select mask or the carry in.
bool third_is_mask(Op op) {
  switch (op) {
    case Op::v_cndmask_b32:
    case Op::v_addc_co_u32:
    case Op::v_subb_co_u32:
    case Op::v_subbrev_co_u32:
      return true;
    default:
      return false;
  }
}

// Writes one or two bytes of its destination at a place that op_sel chooses.
bool converts_into_part(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::v_cvt_pk_fp8_f32:
    case Op::v_cvt_pk_bf8_f32:
    case Op::v_cvt_sr_fp8_f32:
    case Op::v_cvt_sr_bf8_f32:
    case Op::v_cvt_sr_f16_f32:
    case Op::v_cvt_sr_bf16_f32:
      return true;
    default:
      return starts_with(instruction, "v_cvt_scalef32_") && instruction.info->operand(Field::vdst)->bits < 32;
  }
}

bool converts_to_fp4(const Instruction& instruction) {
  const OperandSpec* to = instruction.info->operand(Field::vdst);
  return starts_with(instruction, "v_cvt_scalef32_") && to->element_bits == 4;
}

// A stochastic conversion of one element to 8 bits: op_sel[3:2] is the byte.
bool selects_byte(const Instruction& instruction) {
  return converts_into_part(instruction) && instruction.info->operand(Field::vdst)->bits == 8;
}

// 16-bit results of GFX9 that keep the other half (LLVM, zeroesHigh16BitsOfDest: everything else writes zeros
// there).
bool keeps_other_half(Op op) {
  switch (op) {
    case Op::v_fma_mixlo_f16:
    case Op::v_fma_mixhi_f16:
    case Op::v_mad_f16:
    case Op::v_mad_u16:
    case Op::v_mad_i16:
    case Op::v_fma_f16:
    case Op::v_div_fixup_f16:
    case Op::v_min3_f16:
    case Op::v_min3_i16:
    case Op::v_min3_u16:
    case Op::v_max3_f16:
    case Op::v_max3_i16:
    case Op::v_max3_u16:
    case Op::v_med3_f16:
    case Op::v_med3_i16:
    case Op::v_med3_u16:
    case Op::v_add_i16:
    case Op::v_sub_i16:
    case Op::v_bitop3_b16:
    case Op::v_ashr_pk_i8_i32:
    case Op::v_ashr_pk_u8_i32:
    case Op::v_cvt_pkaccum_u8_f32:
      return true;
    default:
      return false;
  }
}

bool is_vop3_only(const Instruction& instruction) { return instruction.info->format == Format::vop3; }

bool places_by_op_sel(const Instruction& instruction) {
  return is_vop3_only(instruction) && (instruction.op_sel & 8);
}

// Lanes whose DPP source lies outside the row or wave: only shifts and the two row broadcasts have them.
bool dpp_has_invalid_lanes(unsigned control) {
  return (control >= 0x101 && control <= 0x10f) || (control >= 0x111 && control <= 0x11f) ||
         control == 0x130 || control == 0x138 || control == 0x142 || control == 0x143;
}

bool dpp_keeps_lanes(const Instruction& instruction) {
  if (instruction.row_mask != 15 || instruction.bank_mask != 15) return true;
  return !instruction.bound_ctrl && dpp_has_invalid_lanes(instruction.dpp_ctrl);
}

bool keeps_part_of_destination(const Instruction& instruction) {
  if (!instruction.dst.is_vgpr()) return false;
  if (instruction.op == Op::v_writelane_b32) return true;
  if (instruction.encoding == Encoding::dpp) return dpp_keeps_lanes(instruction);
  if (instruction.encoding == Encoding::sdwa) return instruction.dst_sel != 6 && instruction.dst_unused == 2;
  return converts_into_part(instruction) || keeps_other_half(instruction.op) || places_by_op_sel(instruction);
}

uint16_t placement_traits(const Instruction& instruction) {
  if (!instruction.dst.is_vgpr()) return 0;
  if (instruction.encoding == Encoding::sdwa) return instruction.dst_sel != 6 ? kShiftedResult : 0;
  if (!is_vop3_only(instruction)) return 0;
  if (places_by_op_sel(instruction)) return kShiftedResult;
  if ((selects_byte(instruction) || converts_to_fp4(instruction)) && (instruction.op_sel & 4))
    return kShiftedResult;
  // clang 22 leaves no state behind scaled conversions into the low part; AMD's instruction set asks for one.
  if (starts_with(instruction, "v_cvt_scalef32_") && converts_into_part(instruction)) return kScaledPart;
  return 0;
}

uint16_t op_traits(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::v_permlane16_swap_b32:
    case Op::v_permlane32_swap_b32:
      return kPermlaneSwap;
    case Op::v_readlane_b32:
    case Op::v_readfirstlane_b32:
      return kLaneRead | kLaneAccess;
    case Op::v_writelane_b32:
      return kLaneAccess;
    case Op::v_div_fmas_f32:
    case Op::v_div_fmas_f64:
      return kDivFmas;
    default:
      return starts_with(instruction, "v_dot") ? kDot : starts_with(instruction, "v_cmpx") ? kCmpx : 0;
  }
}

Role role_of_source(const Instruction& instruction, int index) {
  const Op op = instruction.op;
  if (index == 0 && instruction.encoding == Encoding::dpp) return Role::dpp_source;
  if (index == 1 && ignores_exec(op)) return Role::lane_select;
  if (index == 2 && third_is_mask(op)) return Role::mask;
  return Role::source;
}

// The registers of a pair of f32 that op_sel and op_sel_hi choose: bit 0 the low one, bit 1 the high one.
unsigned selected_singles(const Instruction& instruction, int index) {
  const unsigned low = instruction.op_sel >> index & 1, high = instruction.op_sel_hi >> index & 1;
  switch (instruction.op) {
    case Op::v_pk_fma_f32:
    case Op::v_pk_mul_f32:
    case Op::v_pk_add_f32:
      return 1u << low | 1u << high;
    case Op::v_pk_mov_b32:
      return 1u << low;
    default:
      return 3;
  }
}

void read_source(const Instruction& instruction, int index, Effects& effects) {
  const Operand& source = instruction.src[index];
  const Role role = role_of_source(instruction, index);
  // clang leaves the upper half of the addend undefined where it needs 32 bits of the sum only.
  const bool wide_addend =
      index == 2 && (instruction.op == Op::v_mad_u64_u32 || instruction.op == Op::v_mad_i64_i32);
  const unsigned selected = selected_singles(instruction, index);
  if (source.dwords != 2 || !(source.is_vgpr() || source.is_sgpr()) || (selected == 3 && !wide_addend)) {
    read(effects, source, role);
    return;
  }
  for (unsigned at = 0; at < 2; ++at) {
    Operand single = source;
    single.reg = static_cast<uint16_t>(source.reg + at);
    single.dwords = 1;
    if (wide_addend)
      read(effects, single, at == 1 ? Role::passed_on : role);
    else
      read(effects, single, selected >> at & 1 ? role : Role::unselected);
  }
  if (wide_addend) effects.traits |= kPassesOn;
}

}  // namespace

void vector_effects(const Instruction& instruction, Effects& effects) {
  const Op op = instruction.op;
  effects.unit = is_transcendental(op) ? Unit::trans : Unit::valu;
  effects.reads_exec = !ignores_exec(op);
  const bool merges = keeps_part_of_destination(instruction);
  for (int i = 0; i < 3; ++i) {
    const bool old_value = op == Op::v_writelane_b32 && i == 2;
    if (!old_value) read_source(instruction, i, effects);
  }
  if (merges) read(effects, instruction.dst, Role::merge);
  read(effects, instruction.mask, Role::mask);
  if (swaps(op)) {
    read(effects, instruction.dst, Role::source);
    write(effects, instruction.src[0], Role::result);
  }
  write(effects, instruction.dst, merges ? Role::partial_result : Role::result);
  if (instruction.sdst) write(effects, instruction.sdst, Role::result);
  effects.traits |= static_cast<uint16_t>(op_traits(instruction) | placement_traits(instruction));
  if (instruction.encoding == Encoding::dpp) effects.traits |= kDpp;
  if ((effects.traits & kCmpx) && !effects.writes_exec) {
    effects.sgpr_writes.add(kExec, 2, Role::result);
    effects.writes_exec = true;
  }
  if (effects.writes_exec) effects.traits |= kWritesExec;
  if (effects.sgpr_writes.size > 0) effects.traits |= kVectorSgpr;
}

}  // namespace zyfa::emulator
