// VOP3P: packed arithmetic, and the matrix instructions that share its opcodes.
#include "decode_parts.hpp"

namespace zyfa::emulator {
namespace {

constexpr unsigned kLoadScale = 0x2c;

bool takes_formats(Op op) {
  return op == Op::v_mfma_f32_16x16x128_f8f6f4 || op == Op::v_mfma_f32_32x32x64_f8f6f4;
}

// Dwords of a 32-element operand in the formats E4M3, E5M2, E2M3, E3M2, E2M1.
unsigned format_dwords(unsigned code, const char* field) {
  constexpr unsigned kDwords[5] = {8, 8, 6, 6, 4};
  if (code >= 5) throw DecodeError(format("%s %u is no matrix format (0..4)", field, code));
  return kDwords[code];
}

Operand matrix_register(unsigned code, bool accumulation, unsigned dwords) {
  if (code < kVgprCode)
    throw DecodeError(format("a matrix operand must be a VGPR, got source number %u", code));
  return accumulation ? agpr(code - kVgprCode, dwords) : vgpr(code - kVgprCode, dwords);
}

// Of destinations above 128 bits, C is the destination or does not touch it.
void check_matrix(const Instruction& out) {
  const OpInfo& row = *out.info;
  const Operand& c = out.src[2];
  const bool overlaps = c.is_vgpr() && c.reg < out.dst.reg + out.dst.dwords && out.dst.reg < c.reg + c.dwords;
  if (overlaps && c.dwords > 4 && c.reg != out.dst.reg)
    throw DecodeError(format("SRC2 of %s overlaps the destination in part", row.name));
  const bool sparse = row.operand(Field::src2)->accepts == Accepts::vgpr;
  const bool wide = row.operand(Field::vdst)->element_bits == 64;
  if (sparse) must_be_zero(out.blgp, "BLGP of a sparse matrix instruction");
  if (wide) must_be_zero(out.cbsz, "CBSZ of an f64 matrix instruction");
  if (wide) must_be_zero(out.abid, "ABID of an f64 matrix instruction");
}

void decode_mfma(Cursor& c, const OpInfo& row, uint32_t word, uint32_t high) {
  Instruction& out = c.out;
  const bool acc_cd = bit(word, 15);
  out.cbsz = static_cast<uint8_t>(bits(word, 10, 8));
  out.abid = static_cast<uint8_t>(bits(word, 14, 11));
  out.blgp = static_cast<uint8_t>(bits(high, 31, 29));
  unsigned a = row.operand(Field::src0)->dwords(), b = row.operand(Field::src1)->dwords();
  if (takes_formats(row.op)) {
    a = format_dwords(out.cbsz, "CBSZ");
    b = format_dwords(out.blgp, "BLGP");
  }
  const unsigned d = row.operand(Field::vdst)->dwords();
  out.dst = acc_cd ? agpr(bits(word, 7, 0), d) : vgpr(bits(word, 7, 0), d);
  out.src[0] = matrix_register(bits(high, 8, 0), bit(high, 27), a);
  out.src[1] = matrix_register(bits(high, 17, 9), bit(high, 28), b);
  const unsigned code = bits(high, 26, 18);
  const OperandSpec& third = *row.operand(Field::src2);
  if (third.accepts == Accepts::vgpr) {  // the index of a sparse instruction
    out.src[2] = matrix_register(code, false, 1);
  } else if (code >= kVgprCode) {
    out.src[2] = matrix_register(code, acc_cd, d);
  } else {
    OperandSpec element = third;
    element.elements = 1;
    element.bits = element.element_bits;
    if (code < 128 || code > 248)
      throw DecodeError(format("SRC2 must be a VGPR or an inline constant, got %u", code));
    out.src[2] = source(c, code, element);
    if (!out.src[2].is_constant())
      throw DecodeError(format("SRC2 must be a VGPR or an inline constant, got %u", code));
  }
  check_matrix(out);
}

void decode_scaled(Cursor& c, uint32_t word, uint32_t high) {
  const uint32_t second = c.dword(2), second_high = c.dword(3);
  c.fixed(4);
  const unsigned opcode = bits(second, 22, 16);
  if (bits(second, 31, 23) != 0x1a7 || (opcode != 0x2d && opcode != 0x2e))
    throw DecodeError(
        "v_mfma_ld_scale_b32 must be followed by v_mfma_f32_16x16x128_f8f6f4 or 32x32x64_f8f6f4");
  must_be_zero(bits(word, 7, 0), "VDST of v_mfma_ld_scale_b32");
  must_be_zero(bits(word, 10, 8), "NEG_HI of v_mfma_ld_scale_b32");
  must_be_zero(bit(word, 15), "CLAMP of v_mfma_ld_scale_b32");
  must_be_zero(bits(high, 26, 18), "SRC2 of v_mfma_ld_scale_b32");
  must_be_zero(bits(high, 31, 29), "NEG of v_mfma_ld_scale_b32");
  decode_mfma(c, set_op(c, Format::vop3p, opcode), second, second_high);
  if (c.out.abid != 1)
    throw DecodeError(format("the second half of a scaled pair has ABID 1, got %u", c.out.abid));
  for (int i = 0; i < 2; ++i) {
    const unsigned code = i == 0 ? bits(high, 8, 0) : bits(high, 17, 9);
    c.out.scale[i] = matrix_register(code, false, 1);
  }
  // Bit 2 has no operand; AMD's kernels set it at will.
  c.out.op_sel = static_cast<uint8_t>(bits(word, 13, 11));
  c.out.op_sel_hi = static_cast<uint8_t>(bits(high, 28, 27) | bits(word, 14, 14) << 2);
}

void decode_accvgpr(Cursor& c, const OpInfo& row, uint32_t word, uint32_t high) {
  const OperandSpec& to = *row.operand(Field::vdst);
  const OperandSpec& from = *row.operand(Field::src0);
  const unsigned code = bits(high, 8, 0);
  c.out.dst = to.accepts == Accepts::agpr ? agpr(bits(word, 7, 0), 1) : vgpr(bits(word, 7, 0), 1);
  c.out.src[0] = from.accepts == Accepts::agpr ? matrix_register(code, true, 1) : source(c, code, from);
  if (bits(word, 15, 8) != 0x40 || bits(high, 31, 27) != 3 || bits(high, 26, 9) != 0)
    throw DecodeError(format("%s takes no modifiers and one source", row.name));
}

void decode_packed(Cursor& c, const OpInfo& row, uint32_t word, uint32_t high) {
  Instruction& out = c.out;
  out.dst = vgpr(bits(word, 7, 0), row.operand(Field::vdst)->dwords());
  out.clamp = bit(word, 15);
  out.op_sel = static_cast<uint8_t>(bits(word, 13, 11));
  out.op_sel_hi = static_cast<uint8_t>(bits(high, 28, 27) | bits(word, 14, 14) << 2);
  constexpr Field kSources[3] = {Field::src0, Field::src1, Field::src2};
  const unsigned codes[3] = {bits(high, 8, 0), bits(high, 17, 9), bits(high, 26, 18)};
  for (unsigned i = 0; i < 3; ++i) {
    const bool neg_low = bit(high, 29 + i), neg_high = bit(word, 8 + i);
    const OperandSpec* spec = row.operand(kSources[i]);
    if (spec == nullptr) {
      must_be_zero(codes[i], "the number of an absent VOP3P source");
      must_be_zero(neg_low || neg_high, "the modifier of an absent VOP3P source");
      continue;
    }
    out.src[i] = source(c, codes[i], *spec);
    out.src[i].neg = neg_low;
    out.src[i].abs = neg_high;
  }
  check_constant_bus(out);
  check_packed_modifiers(out);
}

}  // namespace

void decode_vop3p(Cursor& c, uint32_t word) {
  const unsigned opcode = bits(word, 22, 16);
  const uint32_t high = c.dword(1);
  c.out.encoding = Encoding::vop3;
  if (opcode == kLoadScale) return decode_scaled(c, word, high);
  const OpInfo& row = set_op(c, Format::vop3p, opcode);
  for (const unsigned code : {bits(high, 8, 0), bits(high, 17, 9), bits(high, 26, 18)})
    if (code == kLiteralCode) throw DecodeError("VOP3P takes no literal");
  if (is_matrix(row)) {
    decode_mfma(c, row, word, high);
    if (takes_formats(row.op)) must_be_zero(c.out.abid, "ABID of an unscaled f8f6f4 instruction");
  } else if (row.op == Op::v_accvgpr_read || row.op == Op::v_accvgpr_write)
    decode_accvgpr(c, row, word, high);
  else
    decode_packed(c, row, word, high);
}

}  // namespace zyfa::emulator
