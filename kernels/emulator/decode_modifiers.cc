// Which modifiers an instruction of the VOP formats takes. The chip's behaviour for the others is not
// documented, so they are refused. Tested against LLVM's assembler, which takes a superset.
#include <cstring>

#include "decode_parts.hpp"

namespace zyfa::emulator {
namespace {

bool contains(const OpInfo& row, const char* part) { return std::strstr(row.name, part) != nullptr; }

bool is_float(const OperandSpec& spec) {
  return spec.kind == Kind::real && spec.elements <= 2 &&
         (spec.element_bits == 16 || spec.element_bits == 32 || spec.element_bits == 64);
}

// The conversions of 32 values at once take no modifiers at all.
bool converts_blocks(const OpInfo& row) { return contains(row, "pk32_") || contains(row, "2xpk16_"); }

bool takes_sign(const OpInfo& row, const OperandSpec& spec) {
  if (row.op == Op::v_cndmask_b32) return true;
  return is_float(spec) && !converts_blocks(row);
}

// Clamp of a float result is [0, 1]; of these integer results it is saturation.
bool saturates(const OpInfo& row) {
  constexpr const char* kParts[] = {
      "_add_co_",       "_sub_co_",  "_subrev_co_", "_addc_co_", "_subb_co_",    "_subbrev_co_",
      "_add_u16",       "_sub_u16",  "_subrev_u16", "_add_u32",  "_sub_u32",     "_subrev_u32",
      "_add_i16",       "_sub_i16",  "_add_i32",    "_sub_i32",  "_dot",         "_sad",
      "_qsad",          "_msad",     "_mqsad",      "_mad_u16",  "_mad_i16",     "_mad_legacy_u16",
      "_mad_i32",       "_mad_u32_", "_mad_u64_",   "_mad_i64_", "_mul_i32_i24", "_mul_u32_u24",
      "_mad_legacy_i16"};
  if (row.op == Op::v_xad_u32 || contains(row, "_lshl_")) return false;
  for (const char* part : kParts)
    if (std::strncmp(row.name + 1, part, std::strlen(part)) == 0 ||
        (row.format == Format::vop3p && std::strncmp(row.name + 4, part, std::strlen(part)) == 0))
      return true;
  return false;
}

bool scales_result(const OpInfo& row) {
  const OperandSpec* to = row.operand(Field::vdst);
  return to != nullptr && is_float(*to) && to->elements == 1 && !contains(row, "_cvt_scalef32_") &&
         !contains(row, "_cvt_sr_");
}

bool clamps(const OpInfo& row) {
  const OperandSpec* to = row.operand(Field::vdst);
  if (row.format == Format::vop3p) return (to != nullptr && is_float(*to)) || saturates(row);
  return scales_result(row) || saturates(row);
}

const OperandSpec* source_spec(const OpInfo& row, int index) {
  constexpr Field kSources[3] = {Field::src0, Field::src1, Field::src2};
  const OperandSpec* spec = row.operand(kSources[index]);
  return spec == nullptr && index == 1 ? row.operand(Field::vsrc1) : spec;
}

void check_signs(const Instruction& out) {
  for (int i = 0; i < 3; ++i) {
    const Operand& operand = out.src[i];
    const OperandSpec* spec = source_spec(*out.info, i);
    if (operand.neg || operand.abs) {
      if (spec == nullptr || operand.implicit || !takes_sign(*out.info, *spec))
        throw DecodeError(format("source %d of %s takes no neg or abs", i, out.info->name));
      if (operand.sext) throw DecodeError("SDWA sext with neg or abs");
    }
    if (operand.sext && (spec == nullptr || spec->kind == Kind::real || out.op == Op::v_cndmask_b32))
      throw DecodeError(format("source %d of %s takes no sext", i, out.info->name));
  }
}

// OP_SEL bit i picks the half of 16-bit source i, bit 3 the half of a 16-bit destination; 8-bit sources are
// picked by bits 1:0, 8-bit destinations by bits 3:2.
unsigned op_sel_bits(const OpInfo& row) {
  if (row.format != Format::vop3 || contains(row, "_legacy_")) return 0;
  unsigned allowed = 0;
  for (int i = 0; i < 3; ++i)
    if (const OperandSpec* spec = source_spec(row, i); spec != nullptr && spec->bits == 16)
      allowed |= 1u << i;
  if (const OperandSpec& first = *row.operand(Field::src0); first.bits == 8) allowed |= 3;
  const OperandSpec& to = *row.operand(Field::vdst);
  if (to.bits <= 16) allowed |= 8;
  if (to.bits == 8) allowed |= 4;
  return allowed;
}

void check_op_sel(const Instruction& out) {
  if (out.op == Op::v_permlane16_swap_b32 || out.op == Op::v_permlane32_swap_b32) {
    if (out.op_sel > 3)
      throw DecodeError(format("OP_SEL of %s is FI and BOUND_CTRL, got 0x%x", out.info->name, out.op_sel));
    return;
  }
  const unsigned extra = out.op_sel & ~op_sel_bits(*out.info);
  if (extra != 0) throw DecodeError(format("%s has no OP_SEL bits 0x%x", out.info->name, extra));
}

bool picks_halves(const OpInfo& row) { return std::strncmp(row.name, "v_pk_", 5) == 0; }

void check_constant_halves(const Instruction& out, int i) {
  const Operand& operand = out.src[i];
  if (!operand.is_constant() || operand.value == 0) return;
  const OperandSpec& spec = *source_spec(*out.info, i);
  const bool high = (out.op_sel | out.op_sel_hi) >> i & 1;
  if (spec.element_bits == 32 && spec.elements == 2 && high)
    throw DecodeError(
        format("the upper half of constant source %d of %s is not documented", i, out.info->name));
}

}  // namespace

bool is_mixed(Op op) {
  return op == Op::v_fma_mix_f32 || op == Op::v_fma_mixlo_f16 || op == Op::v_fma_mixhi_f16;
}

void check_vop_modifiers(const Instruction& out) {
  check_signs(out);
  check_op_sel(out);
  if (out.clamp && !clamps(*out.info)) throw DecodeError(format("%s takes no clamp", out.info->name));
  if (out.omod != 0 && !scales_result(*out.info))
    throw DecodeError(format("%s takes no omod", out.info->name));
}

void check_packed_modifiers(const Instruction& out) {
  const OpInfo& row = *out.info;
  const bool mixed = is_mixed(row.op);
  if (out.clamp && !mixed && !clamps(row)) throw DecodeError(format("%s takes no clamp", row.name));
  unsigned sources = 0;
  for (int i = 0; i < 3; ++i) {
    const OperandSpec* spec = source_spec(row, i);
    if (spec == nullptr) continue;
    sources |= 1u << i;
    const bool high = out.op_sel_hi >> i & 1;
    if (mixed) {
      if (high && out.src[i].is_constant() && out.src[i].value != 0)
        throw DecodeError(format("constant source %d of %s as f16 is not documented", i, row.name));
      continue;
    }
    check_constant_halves(out, i);
    const bool negates = is_float(*spec);
    if ((out.src[i].neg && !negates) || (out.src[i].abs && !(negates && spec->elements == 2)))
      throw DecodeError(format("source %d of %s takes no such neg", i, row.name));
  }
  if (mixed) return;
  const unsigned halves = picks_halves(row) ? sources : 0;
  if ((out.op_sel & ~halves) != 0)
    throw DecodeError(format("%s has no such OP_SEL, got 0x%x", row.name, out.op_sel));
  if ((out.op_sel_hi | halves) != 7)
    throw DecodeError(
        format("OP_SEL_HI bits that %s does not use must be 1, got 0x%x", row.name, out.op_sel_hi));
}

}  // namespace zyfa::emulator
