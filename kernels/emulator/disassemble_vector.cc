// Text of VOP1, VOP2, VOPC, VOP3 and VOP3P.
#include "decode_parts.hpp"
#include "disassemble_parts.hpp"

namespace zyfa::emulator {
namespace {

const char* suffix(const Instruction& i) {
  const bool native = i.info->format == Format::vop3 || i.info->format == Format::vop3sd;
  if (native || i.info->operand_count == 0) return i.encoding == Encoding::vop3 && !native ? "_e64" : "";
  switch (i.encoding) {
    case Encoding::vop3:
      return "_e64";
    case Encoding::sdwa:
      return "_sdwa";
    case Encoding::dpp:
      return "_dpp";
    case Encoding::plain:
      break;
  }
  switch (i.op) {
    case Op::v_fmamk_f32:
    case Op::v_fmaak_f32:
    case Op::v_madmk_f16:
    case Op::v_madak_f16:
    case Op::v_swap_b32:
    case Op::v_accvgpr_mov_b32:
    case Op::v_readfirstlane_b32:
      return "";
    default:
      return "_e32";
  }
}

std::string dpp_control(unsigned control) {
  if (control <= 0xff)
    return format("quad_perm:[%u,%u,%u,%u]", control & 3, control >> 2 & 3, control >> 4 & 3,
                  control >> 6 & 3);
  const unsigned amount = control & 15;
  switch (control & 0x1f0) {
    case 0x100:
      return format("row_shl:%u", amount);
    case 0x110:
      return format("row_shr:%u", amount);
    case 0x120:
      return format("row_ror:%u", amount);
    case 0x150:
      return format("row_newbcast:%u", amount);
    default:
      break;
  }
  switch (control) {
    case 0x130:
      return "wave_shl:1";
    case 0x134:
      return "wave_rol:1";
    case 0x138:
      return "wave_shr:1";
    case 0x13c:
      return "wave_ror:1";
    case 0x140:
      return "row_mirror";
    case 0x141:
      return "row_half_mirror";
    case 0x142:
      return "row_bcast:15";
    default:
      return "row_bcast:31";
  }
}

const char* select_text(unsigned select) {
  constexpr const char* kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
  return kNames[select];
}

int source_count(const Instruction& i) {
  int count = 0;
  for (int n = 0; n < i.info->operand_count; ++n) {
    const Field field = i.info->operands[n].field;
    count += field == Field::src0 || field == Field::src1 || field == Field::vsrc1 || field == Field::src2;
  }
  return count;
}

void add_output_modifiers(Text& text, const Instruction& i) {
  constexpr const char* kOutput[] = {"", "mul:2", "mul:4", "div:2"};
  text.flag(i.clamp, "clamp");
  text.flag(i.omod != 0, kOutput[i.omod]);
}

void add_sdwa(Text& text, const Instruction& i) {
  constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
  const bool source_only = i.op == Op::v_cvt_f32_fp8 || i.op == Op::v_cvt_f32_bf8 ||
                           i.op == Op::v_cvt_pk_f32_fp8 || i.op == Op::v_cvt_pk_f32_bf8;
  if (i.info->format != Format::vopc && !source_only) {
    add_output_modifiers(text, i);
    text.modifier(format("dst_sel:%s", select_text(i.dst_sel)));
    text.modifier(format("dst_unused:%s", kUnused[i.dst_unused]));
  }
  text.modifier(format("src0_sel:%s", select_text(i.src[0].sel)));
  if (i.info->operand(Field::vsrc1) != nullptr)
    text.modifier(format("src1_sel:%s", select_text(i.src[1].sel)));
}

void add_dpp(Text& text, const Instruction& i) {
  text.modifier(dpp_control(i.dpp_ctrl));
  text.modifier(format("row_mask:0x%x bank_mask:0x%x", i.row_mask, i.bank_mask));
  text.flag(i.bound_ctrl, "bound_ctrl:0");
}

void add_vop3(Text& text, const Instruction& i) {
  if (i.op == Op::v_permlane16_swap_b32 || i.op == Op::v_permlane32_swap_b32) {
    text.flag(i.op_sel & 2, "bound_ctrl:1");
    text.flag(i.op_sel & 1, "fi:1");
    return;
  }
  if (i.op == Op::v_bitop3_b32 || i.op == Op::v_bitop3_b16) text.modifier(format("bitop3:0x%x", i.imm));
  if (i.op_sel != 0) {
    const int sources = source_count(i);
    // Bit 3 belongs to the destination, which stands behind the sources; byte selects use bits 2 and 3.
    const bool bytes = sources == 2 && i.info->operand(Field::vdst)->bits == 8;
    const unsigned packed =
        bytes ? i.op_sel : (i.op_sel & ((1u << sources) - 1)) | (i.op_sel >> 3 & 1u) << sources;
    text.modifier("op_sel:" + bit_list(packed, bytes ? 4 : sources + 1));
  }
  add_output_modifiers(text, i);
}

}  // namespace

std::string vector_text(const Instruction& i) {
  constexpr OperandSpec kDword{Field::src0, Accepts::source, Kind::bits, false, 32, 1, 32};
  Text text(std::string(i.info->name) + suffix(i));
  if (i.dst) text.operand(register_text(i.dst));
  const bool compare = i.info->format == Format::vopc;
  if (i.sdst && !compare) text.operand(register_text(i.sdst));
  constexpr Field kSources[3] = {Field::src0, Field::src1, Field::src2};
  for (int n = 0; n < 3; ++n) {
    if (!i.src[n]) continue;
    const OperandSpec* spec = i.info->operand(kSources[n]);
    if (spec == nullptr) spec = i.info->operand(n == 1 ? Field::vsrc1 : Field::src0);
    const bool mask = n == 2 && i.src[2].is_sgpr() && i.src[2].dwords == 2 && i.info->format == Format::vop2;
    if (i.src[n].implicit && !mask) continue;
    text.operand(source_text(i.src[n], spec == nullptr ? kDword : *spec));
  }
  switch (i.encoding) {
    case Encoding::sdwa:
      add_sdwa(text, i);
      break;
    case Encoding::dpp:
      add_dpp(text, i);
      break;
    case Encoding::vop3:
      add_vop3(text, i);
      break;
    case Encoding::plain:
      break;
  }
  return text.str();
}

std::string packed_text(const Instruction& i) {
  Text text(i.info->name);
  text.operand(register_text(i.dst));
  constexpr Field kSources[3] = {Field::src0, Field::src1, Field::src2};
  unsigned neg_low = 0, neg_high = 0;
  for (int n = 0; n < 3; ++n) {
    if (!i.src[n]) continue;
    const OperandSpec& spec = *i.info->operand(kSources[n]);
    text.operand(is_mixed(i.op) ? source_text(i.src[n], spec) : operand_text(i.src[n], spec));
    if (is_mixed(i.op)) continue;
    neg_low |= unsigned{i.src[n].neg} << n;
    neg_high |= unsigned{i.src[n].abs} << n;
  }
  if (i.op == Op::v_accvgpr_read || i.op == Op::v_accvgpr_write) return text.str();
  const int count = source_count(i);
  const unsigned all = (1u << count) - 1;
  const bool mixed = is_mixed(i.op);
  if (i.op_sel != 0) text.modifier("op_sel:" + bit_list(i.op_sel, count));
  if ((i.op_sel_hi & all) != (mixed ? 0 : all)) text.modifier("op_sel_hi:" + bit_list(i.op_sel_hi, count));
  if (neg_low != 0) text.modifier("neg_lo:" + bit_list(neg_low, count));
  if (neg_high != 0) text.modifier("neg_hi:" + bit_list(neg_high, count));
  text.flag(i.clamp, "clamp");
  return text.str();
}

std::string matrix_text(const Instruction& i) {
  std::string name = i.info->name;
  if (i.scale[0]) name.insert(6, "_scale");
  Text text(name);
  text.operand(register_text(i.dst));
  const OperandSpec& third = *i.info->operand(Field::src2);
  for (const Operand& source : i.src) text.operand(operand_text(source, third));
  if (i.scale[0]) {
    for (const Operand& scale : i.scale) text.operand(operand_text(scale, third));
    text.modifier("op_sel:" + bit_list(i.op_sel, 3));
    text.modifier("op_sel_hi:" + bit_list(i.op_sel_hi, 3));
  }
  if (third.element_bits == 64) {
    if (i.blgp != 0) text.modifier("neg:" + bit_list(i.blgp, 3));
    return text.str();
  }
  if (i.cbsz != 0) text.modifier(format("cbsz:%u", i.cbsz));
  if (i.abid != 0 && !i.scale[0]) text.modifier(format("abid:%u", i.abid));
  if (i.blgp != 0) text.modifier(format("blgp:%u", i.blgp));
  return text.str();
}

}  // namespace zyfa::emulator
