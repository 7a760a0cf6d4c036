// VOP1, VOP2, VOPC with their SDWA and DPP forms, and VOP3 with the promoted forms.
#include <cstring>

#include "decode_parts.hpp"

namespace zyfa::emulator {
namespace {

constexpr OperandSpec kMask{Field::src2, Accepts::sgpr, Kind::bits, false, 64, 1, 64};

bool accumulates(Op op) {
  switch (op) {
    case Op::v_fmac_f64:
    case Op::v_fmac_f32:
    case Op::v_mac_f16:
    case Op::v_dot2c_f32_bf16:
    case Op::v_dot2c_f32_f16:
    case Op::v_dot2c_i32_i16:
    case Op::v_dot4c_i32_i8:
    case Op::v_dot8c_i32_i4:
    case Op::v_pk_fmac_f16:
      return true;
    default:
      return false;
  }
}
// D = S0 * K + S1 and D = S0 * S1 + K.
bool multiplies_literal(Op op) { return op == Op::v_fmamk_f32 || op == Op::v_madmk_f16; }
bool adds_literal(Op op) { return op == Op::v_fmaak_f32 || op == Op::v_madak_f16; }
bool carries_out(Op op) { return op >= Op::v_add_co_u32 && op <= Op::v_subbrev_co_u32; }
bool carries_in(Op op) { return op >= Op::v_addc_co_u32 && op <= Op::v_subbrev_co_u32; }
bool writes_exec(const OpInfo& row) { return std::strncmp(row.name, "v_cmpx", 6) == 0; }

// The forms an instruction does not have.
bool only_plain(Op op) {
  return op == Op::v_swap_b32 || op == Op::v_accvgpr_mov_b32 || op == Op::v_readfirstlane_b32 ||
         multiplies_literal(op) || adds_literal(op);
}
bool swaps_lanes(Op op) { return op == Op::v_permlane16_swap_b32 || op == Op::v_permlane32_swap_b32; }

void need_form(const OpInfo& row, bool has, const char* form) {
  if (!has) throw DecodeError(format("%s has no %s form", row.name, form));
}

// Conversions whose SDWA form selects a source byte or word only.
bool selects_source_only(Op op) {
  return op == Op::v_cvt_f32_fp8 || op == Op::v_cvt_f32_bf8 || op == Op::v_cvt_pk_f32_fp8 ||
         op == Op::v_cvt_pk_f32_bf8;
}

// The operands an encoding does not spell out.
void add_implicit_vop2(Instruction& out) {
  if (accumulates(out.op)) out.src[2] = implicit(out.dst);
  if (out.op == Op::v_cndmask_b32 || carries_in(out.op)) out.src[2] = vcc();
  if (carries_out(out.op)) out.sdst = vcc();
}

void read_sdwa_source(Cursor& c, Operand& operand, const OperandSpec& spec, unsigned number, bool scalar,
                      uint32_t selects) {
  if (bits(selects, 2, 0) == 7) throw DecodeError("SDWA select 7 is reserved");
  if (spec.bits > 32) throw DecodeError("SDWA takes no 64-bit operands");
  if (!scalar) {
    operand = vgpr(number, 1);
  } else {
    if (number >= kSdwaCode) throw DecodeError(format("source number %u is reserved in SDWA", number));
    operand = source(c, number, spec);
  }
  operand.sel = static_cast<uint8_t>(bits(selects, 2, 0));
  operand.sext = bit(selects, 3);
  operand.neg = bit(selects, 4);
  operand.abs = bit(selects, 5);
  must_be_zero(bits(selects, 6, 6), "an SDWA bit between the modifiers and S");
}

// The second dword of an SDWA form. src1 may be absent.
void decode_sdwa(Cursor& c, const OperandSpec* src0, const OperandSpec* src1) {
  const Op op = c.out.op;
  need_form(*c.out.info, !only_plain(op) && !swaps_lanes(op) && !accumulates(op), "SDWA");
  c.out.encoding = Encoding::sdwa;
  c.fixed(2);
  const uint32_t word = c.dword(1);
  if (src0 == nullptr) throw DecodeError("SDWA needs a source");
  read_sdwa_source(c, c.out.src[0], *src0, bits(word, 7, 0), bit(word, 23), bits(word, 23, 16));
  if (src1 != nullptr)
    read_sdwa_source(c, c.out.src[1], *src1, c.out.src[1].code, bit(word, 31), bits(word, 31, 24));
  else
    must_be_zero(bits(word, 31, 24), "SDWA SRC1 of an instruction with one source");
}

void decode_sdwa_destination(Cursor& c) {
  const uint32_t word = c.dword(1);
  if (bits(word, 10, 8) == 7) throw DecodeError("SDWA DST_SEL 7 is reserved");
  if (bits(word, 12, 11) == 3) throw DecodeError("SDWA DST_UNUSED 3 is reserved");
  if (c.out.dst.dwords > 1 && !selects_source_only(c.out.op))
    throw DecodeError("SDWA takes no 64-bit operands");
  if (selects_source_only(c.out.op) && bits(word, 15, 8) != 6)
    throw DecodeError(
        format("the SDWA form of %s has no destination select, clamp or omod", c.out.info->name));
  c.out.dst_sel = static_cast<uint8_t>(bits(word, 10, 8));
  c.out.dst_unused = static_cast<uint8_t>(bits(word, 12, 11));
  c.out.clamp = bit(word, 13);
  c.out.omod = static_cast<uint8_t>(bits(word, 15, 14));
}

bool is_dpp_control(unsigned control) {
  if (control <= 0xff) return true;                                                       // quad_perm
  if (control >= 0x101 && control <= 0x12f) return control != 0x110 && control != 0x120;  // row_shl, shr, ror
  if (control >= 0x150 && control <= 0x15f) return true;                                  // row_newbcast
  switch (control) {
    case 0x130:  // wave_shl, wave_rol, wave_shr, wave_ror
    case 0x134:
    case 0x138:
    case 0x13c:
    case 0x140:  // row_mirror, row_half_mirror, row_bcast:15, row_bcast:31
    case 0x141:
    case 0x142:
    case 0x143:
      return true;
    default:
      return false;
  }
}

void decode_dpp(Cursor& c, const OperandSpec* src0, bool has_src1) {
  need_form(*c.out.info, !only_plain(c.out.op) && !swaps_lanes(c.out.op), "DPP");
  c.out.encoding = Encoding::dpp;
  c.fixed(2);
  const uint32_t word = c.dword(1);
  if (src0 == nullptr) throw DecodeError("DPP needs a source");
  c.out.dpp_ctrl = static_cast<uint16_t>(bits(word, 16, 8));
  if (!is_dpp_control(c.out.dpp_ctrl)) throw DecodeError(format("DPP_CTRL 0x%x is reserved", c.out.dpp_ctrl));
  if ((src0->bits > 32 || c.out.dst.dwords > 1) && (c.out.dpp_ctrl < 0x150 || c.out.dpp_ctrl > 0x15f))
    throw DecodeError(
        format("DPP of 64-bit operands is row_newbcast only, got control 0x%x", c.out.dpp_ctrl));
  must_be_zero(bits(word, 18, 17), "DPP bits 18:17");
  c.out.src[0] = vgpr(bits(word, 7, 0), src0->dwords());
  c.out.bound_ctrl = bit(word, 19);
  c.out.src[0].neg = bit(word, 20);
  c.out.src[0].abs = bit(word, 21);
  if (has_src1) {
    c.out.src[1].neg = bit(word, 22);
    c.out.src[1].abs = bit(word, 23);
  } else {
    must_be_zero(bits(word, 23, 22), "DPP modifiers of SRC1 of an instruction with one source");
  }
  c.out.bank_mask = static_cast<uint8_t>(bits(word, 27, 24));
  c.out.row_mask = static_cast<uint8_t>(bits(word, 31, 28));
}

Operand destination(const OperandSpec& spec, unsigned number) {
  switch (spec.accepts) {
    case Accepts::sgpr:
      if (number == kM0) throw DecodeError("a VALU instruction does not write M0");
      return sgpr(number, spec.dwords());
    case Accepts::agpr:
      return agpr(number, spec.dwords());
    default:
      return vgpr(number, spec.dwords());
  }
}

Operand vector_source(Cursor& c, unsigned code, const OperandSpec& spec) {
  switch (spec.accepts) {
    case Accepts::vgpr:
    case Accepts::agpr:
      if (code < kVgprCode)
        throw DecodeError(format("%s takes a VGPR, got source number %u", c.out.info->name, code));
      return spec.accepts == Accepts::agpr ? agpr(code - kVgprCode, spec.dwords())
                                           : vgpr(code - kVgprCode, spec.dwords());
    case Accepts::scalar_source:
    case Accepts::sgpr:
      if (code >= kVgprCode)
        throw DecodeError(format("%s takes no VGPR here, got v%u", c.out.info->name, code - 256));
      return spec.accepts == Accepts::sgpr ? sgpr(code, spec.dwords()) : scalar_source(c, code, spec);
    default:
      return source(c, code, spec);
  }
}

struct Vop3Fields {
  unsigned vdst, src[3];
};

Vop3Fields read_vop3(Cursor& c, uint32_t word, bool scalar_destination) {
  const uint32_t high = c.dword(1);
  c.out.encoding = Encoding::vop3;
  c.out.clamp = bit(word, 15);
  c.out.omod = static_cast<uint8_t>(bits(high, 28, 27));
  for (unsigned i = 0; i < 3; ++i) c.out.src[i].neg = bit(high, 29 + i);
  if (!scalar_destination) {
    c.out.op_sel = static_cast<uint8_t>(bits(word, 14, 11));
    for (unsigned i = 0; i < 3; ++i) c.out.src[i].abs = bit(word, 8 + i);
  }
  const Vop3Fields fields{bits(word, 7, 0), {bits(high, 8, 0), bits(high, 17, 9), bits(high, 26, 18)}};
  for (const unsigned code : fields.src)
    if (code == kLiteralCode) throw DecodeError("VOP3 takes no literal");
  return fields;
}

// Keeps the modifiers read before the operand itself.
void set_source(Cursor& c, int i, Operand operand) {
  operand.neg = c.out.src[i].neg;
  operand.abs = c.out.src[i].abs;
  c.out.src[i] = operand;
}

void no_source(Cursor& c, int i, unsigned code) {
  must_be_zero(code, "the number of an absent VOP3 source");
  if (c.out.src[i].neg || c.out.src[i].abs) throw DecodeError("modifier of an absent VOP3 source");
}

void decode_promoted_vopc(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::vopc, bits(word, 23, 16));
  const Vop3Fields f = read_vop3(c, word, false);
  c.out.dst = sgpr(f.vdst, 2);
  set_source(c, 0, source(c, f.src[0], *row.operand(Field::src0)));
  set_source(c, 1, source(c, f.src[1], *row.operand(Field::vsrc1)));
  no_source(c, 2, f.src[2]);
  if (writes_exec(row)) c.out.sdst = exec();
}

void decode_promoted_vop2(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::vop2, bits(word, 21, 16));
  if (multiplies_literal(row.op) || adds_literal(row.op))
    throw DecodeError(format("%s has no VOP3 form", row.name));
  const bool carry = carries_out(row.op);
  const Vop3Fields f = read_vop3(c, word, carry);
  c.out.dst = vgpr(f.vdst, row.operand(Field::vdst)->dwords());
  set_source(c, 0, source(c, f.src[0], *row.operand(Field::src0)));
  set_source(c, 1, source(c, f.src[1], *row.operand(Field::vsrc1)));
  if (row.op == Op::v_cndmask_b32 || carries_in(row.op))
    set_source(c, 2, sgpr(f.src[2], kMask.dwords()));
  else
    no_source(c, 2, f.src[2]);
  if (carry) c.out.sdst = sgpr(bits(word, 14, 8), 2);
  if (accumulates(row.op)) c.out.src[2] = implicit(c.out.dst);
}

void decode_promoted_vop1(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::vop1, bits(word, 25, 16) - 0x140);
  need_form(row, !only_plain(row.op), "VOP3");
  const Vop3Fields f = read_vop3(c, word, false);
  if (const OperandSpec* spec = row.operand(Field::vdst))
    c.out.dst = destination(*spec, f.vdst);
  else
    must_be_zero(f.vdst, "VDST of an instruction without destination");
  if (const OperandSpec* spec = row.operand(Field::src0))
    set_source(c, 0, vector_source(c, f.src[0], *spec));
  else
    no_source(c, 0, f.src[0]);
  no_source(c, 1, f.src[1]);
  no_source(c, 2, f.src[2]);
}

void decode_native_vop3(Cursor& c, uint32_t word, const OpInfo& row) {
  const bool scalar_destination = row.format == Format::vop3sd;
  const Vop3Fields f = read_vop3(c, word, scalar_destination);
  c.out.dst = destination(*row.operand(Field::vdst), f.vdst);
  if (scalar_destination) c.out.sdst = sgpr(bits(word, 14, 8), 2);
  constexpr Field kSources[3] = {Field::src0, Field::src1, Field::src2};
  for (int i = 0; i < 3; ++i) {
    const OperandSpec* spec = row.operand(kSources[i]);
    if (spec != nullptr)
      set_source(c, i, vector_source(c, f.src[i], *spec));
    else if (row.op != Op::v_bitop3_b32 && row.op != Op::v_bitop3_b16)
      no_source(c, i, f.src[i]);
  }
  if (row.op == Op::v_writelane_b32) c.out.src[2] = implicit(c.out.dst);
  if (row.op == Op::v_div_fmas_f32 || row.op == Op::v_div_fmas_f64) c.out.mask = vcc();
}

// The truth table of v_bitop3: OMOD, ABS and NEG hold its bits.
void read_truth_table(Cursor& c, uint32_t word) {
  const uint32_t high = c.dword(1);
  c.out.imm = static_cast<int32_t>(bits(high, 28, 27) << 6 | bits(word, 10, 8) << 3 | bits(high, 31, 29));
  c.out.omod = 0;
  for (Operand& operand : c.out.src) operand.neg = operand.abs = false;
}

}  // namespace

void decode_vop1(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::vop1, bits(word, 16, 9));
  const OperandSpec* to = row.operand(Field::vdst);
  const OperandSpec* from = row.operand(Field::src0);
  if (to != nullptr)
    c.out.dst = destination(*to, bits(word, 24, 17));
  else
    must_be_zero(bits(word, 24, 17), "VDST of an instruction without destination");
  const unsigned code = bits(word, 8, 0);
  if (from == nullptr) {
    must_be_zero(code, "SRC0 of an instruction without source");
  } else if (code == kSdwaCode) {
    decode_sdwa(c, from, nullptr);
    decode_sdwa_destination(c);
  } else if (code == kDppCode) {
    decode_dpp(c, from, false);
  } else {
    c.out.src[0] = vector_source(c, code, *from);
  }
  check_vop_modifiers(c.out);
}

void decode_vop2(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::vop2, bits(word, 30, 25));
  const OperandSpec& src0 = *row.operand(Field::src0);
  const OperandSpec& src1 = *row.operand(Field::vsrc1);
  c.out.dst = vgpr(bits(word, 24, 17), row.operand(Field::vdst)->dwords());
  const unsigned code = bits(word, 8, 0), number = bits(word, 16, 9);
  if (code == kSdwaCode) {
    c.out.src[1].code = static_cast<uint16_t>(number);
    decode_sdwa(c, &src0, &src1);
    decode_sdwa_destination(c);
  } else if (code == kDppCode) {
    c.out.src[1] = vgpr(number, src1.dwords());
    decode_dpp(c, &src0, true);
  } else {
    c.out.src[0] = source(c, code, src0);
    c.out.src[1] = vgpr(number, src1.dwords());
  }
  if (multiplies_literal(row.op) || adds_literal(row.op)) {
    if (c.out.encoding != Encoding::plain || c.out.src[0].literal)
      throw DecodeError(format("%s has its literal already", row.name));
    if (adds_literal(row.op)) {
      c.out.src[2] = literal(c, src0);
    } else {
      c.out.src[2] = c.out.src[1];
      c.out.src[1] = literal(c, src0);
    }
  }
  add_implicit_vop2(c.out);
  check_constant_bus(c.out);
  check_vop_modifiers(c.out);
}

void decode_vopc(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::vopc, bits(word, 24, 17));
  const OperandSpec& src0 = *row.operand(Field::src0);
  const OperandSpec& src1 = *row.operand(Field::vsrc1);
  const unsigned code = bits(word, 8, 0), number = bits(word, 16, 9);
  c.out.dst = vcc();
  if (code == kSdwaCode) {
    c.out.src[1].code = static_cast<uint16_t>(number);
    decode_sdwa(c, &src0, &src1);
    const uint32_t second = c.dword(1);
    if (bit(second, 15))
      c.out.dst = sgpr(bits(second, 14, 8), 2);
    else
      must_be_zero(bits(second, 14, 8), "SDST of an SDWA compare that writes VCC");
  } else if (code == kDppCode) {
    throw DecodeError("compares have no DPP form");
  } else {
    c.out.src[0] = source(c, code, src0);
    c.out.src[1] = vgpr(number, src1.dwords());
  }
  if (writes_exec(row)) c.out.sdst = exec();
  check_constant_bus(c.out);
  check_vop_modifiers(c.out);
}

void decode_vop3(Cursor& c, uint32_t word) {
  const unsigned opcode = bits(word, 25, 16);
  if (opcode < 0x100) {
    decode_promoted_vopc(c, word);
  } else if (opcode < 0x140) {
    decode_promoted_vop2(c, word);
  } else if (opcode < 0x1c0) {
    decode_promoted_vop1(c, word);
  } else {
    const bool scalar_destination = find_op(Format::vop3sd, opcode) != nullptr;
    const OpInfo& row = set_op(c, scalar_destination ? Format::vop3sd : Format::vop3, opcode);
    decode_native_vop3(c, word, row);
    if (row.op == Op::v_bitop3_b32 || row.op == Op::v_bitop3_b16) read_truth_table(c, word);
  }
  check_constant_bus(c.out);
  check_vop_modifiers(c.out);
}

}  // namespace zyfa::emulator
