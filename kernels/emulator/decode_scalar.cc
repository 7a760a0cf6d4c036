// SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.
#include <cstring>

#include "decode_parts.hpp"

namespace zyfa::emulator {
namespace {

bool in(Op op, Op first, Op last) { return op >= first && op <= last; }

bool reads_destination(Op op) {
  return in(op, Op::s_bitset0_b32, Op::s_bitset1_b64) || op == Op::s_addk_i32 || op == Op::s_mulk_i32;
}

bool writes_exec(const OpInfo& row) {
  return std::strstr(row.name, "saveexec") != nullptr || std::strstr(row.name, "wrexec") != nullptr;
}

void decode_sop1(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::sop1, bits(word, 15, 8));
  if (const OperandSpec* spec = row.operand(Field::sdst))
    c.out.dst = sgpr(bits(word, 22, 16), spec->dwords());
  else
    must_be_zero(bits(word, 22, 16), "SDST of an instruction without destination");
  if (const OperandSpec* spec = row.operand(Field::ssrc0)) {
    const unsigned code = bits(word, 7, 0);
    c.out.src[0] =
        spec->accepts == Accepts::sgpr ? sgpr(code, spec->dwords()) : scalar_source(c, code, *spec);
  } else {
    must_be_zero(bits(word, 7, 0), "SSRC0 of an instruction without source");
  }
  if (reads_destination(row.op)) c.out.src[1] = implicit(c.out.dst);
  if (writes_exec(row)) {
    c.out.src[1] = exec();
    c.out.sdst = exec();
  }
}

void decode_sop2(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::sop2, bits(word, 29, 23));
  if (const OperandSpec* spec = row.operand(Field::sdst))
    c.out.dst = sgpr(bits(word, 22, 16), spec->dwords());
  else
    must_be_zero(bits(word, 22, 16), "SDST of an instruction without destination");
  c.out.src[0] = scalar_source(c, bits(word, 7, 0), *row.operand(Field::ssrc0));
  c.out.src[1] = scalar_source(c, bits(word, 15, 8), *row.operand(Field::ssrc1));
  if (row.op == Op::s_cbranch_g_fork && c.has_literal())
    throw DecodeError("s_cbranch_g_fork takes no literal");
}

void decode_sopc(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::sopc, bits(word, 22, 16));
  c.out.src[0] = scalar_source(c, bits(word, 7, 0), *row.operand(Field::ssrc0));
  const OperandSpec& second = *row.operand(Field::ssrc1);
  if (second.accepts == Accepts::immediate) {
    c.out.imm = static_cast<int32_t>(bits(word, 15, 8));
    if (c.out.imm > 15) throw DecodeError(format("the mode of s_set_gpr_idx_on is 0..15, got %d", c.out.imm));
  } else {
    c.out.src[1] = scalar_source(c, bits(word, 15, 8), second);
  }
}

int32_t immediate(uint32_t word, const OperandSpec& spec) {
  const auto value = static_cast<uint16_t>(bits(word, 15, 0));
  return spec.kind == Kind::signed_int ? static_cast<int16_t>(value) : value;
}

void decode_sopk(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::sopk, bits(word, 27, 23));
  c.out.imm = immediate(word, *row.operand(Field::simm16));
  if (row.op == Op::s_setreg_imm32_b32) {
    must_be_zero(bits(word, 22, 16), "SDST of s_setreg_imm32_b32");
    constexpr OperandSpec kDword{Field::ssrc0, Accepts::immediate, Kind::bits, false, 32, 1, 32};
    c.out.src[0] = literal(c, kDword);
    return;
  }
  const Operand reg = sgpr(bits(word, 22, 16), row.operand(Field::sdst)->dwords());
  const bool compares = in(row.op, Op::s_cmpk_eq_i32, Op::s_cmpk_le_u32);
  if (compares || row.op == Op::s_setreg_b32 || row.op == Op::s_cbranch_i_fork)
    c.out.src[0] = reg;
  else
    c.out.dst = reg;
  if (reads_destination(row.op)) c.out.src[0] = implicit(reg);
}

void decode_sopp(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::sopp, bits(word, 22, 16));
  const OperandSpec* spec = row.operand(Field::simm16);
  if (spec == nullptr)
    must_be_zero(bits(word, 15, 0), "SIMM16 of an instruction without immediate");
  else
    c.out.imm = immediate(word, *spec);
  if (row.op == Op::s_set_gpr_idx_mode && c.out.imm > 15)
    throw DecodeError(format("the mode of s_set_gpr_idx_mode is 0..15, got %d", c.out.imm));
  if (row.op == Op::s_cbranch_vccz || row.op == Op::s_cbranch_vccnz) c.out.src[0] = vcc();
  if (row.op == Op::s_cbranch_execz || row.op == Op::s_cbranch_execnz) c.out.src[0] = exec();
}

}  // namespace

void decode_scalar(Cursor& c, uint32_t word) {
  switch (bits(word, 31, 23)) {
    case 0x17d:
      return decode_sop1(c, word);
    case 0x17e:
      return decode_sopc(c, word);
    case 0x17f:
      return decode_sopp(c, word);
    default:
      return bits(word, 31, 28) == 0xb ? decode_sopk(c, word) : decode_sop2(c, word);
  }
}

void decode_smem(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::smem, bits(word, 25, 18));
  const uint32_t high = c.dword(1);
  const bool soffset_enable = bit(word, 14), immediate_enable = bit(word, 17);
  must_be_zero(bits(word, 13, 13), "SMEM bit 13");
  must_be_zero(bits(word, 15, 15), "SMEM NV");
  c.out.sc0 = bit(word, 16);

  const OperandSpec* data = row.operand(Field::sdata);
  if (data == nullptr) {
    must_be_zero(bits(word, 12, 6), "SDATA of an instruction without data");
  } else if (data->accepts == Accepts::immediate) {
    c.out.imm = static_cast<int32_t>(bits(word, 12, 6));
  } else {
    const Operand reg = sgpr(bits(word, 12, 6), data->dwords());
    if (reg.reg >= kM0) throw DecodeError("SDATA is neither M0 nor EXEC");
    const bool atomic = std::strstr(row.name, "_atomic_") != nullptr;
    const bool store = std::strstr(row.name, "_store_") != nullptr;
    if (atomic || store) c.out.data = reg;
    if (!store && (!atomic || c.out.sc0)) c.out.dst = reg;
    if (atomic && c.out.sc0 && std::strstr(row.name, "cmpswap") != nullptr) c.out.dst.dwords /= 2;
  }

  const OperandSpec* base = row.operand(Field::sbase);
  if (base == nullptr) {
    must_be_zero(c.out.sc0, "GLC of an instruction without address");
    must_be_zero(bits(word, 5, 0), "SBASE of an instruction without address");
    must_be_zero(high, "the second dword of an instruction without address");
    must_be_zero(soffset_enable, "SOFFSET_EN of an instruction without address");
    must_be_zero(immediate_enable, "IMM of an instruction without address");
    return;
  }
  if (data == nullptr || data->accepts == Accepts::immediate)
    must_be_zero(c.out.sc0, "GLC of an instruction without data");
  c.out.base = sgpr(bits(word, 5, 0) * 2, base->dwords());
  must_be_zero(bits(high, 24, 21), "SMEM bits 56:53");
  c.out.has_offset = immediate_enable;
  if (immediate_enable) {
    c.out.offset = static_cast<int32_t>(bits(high, 20, 0) << 11) >> 11;
    if (base->dwords() == 4 && c.out.offset < 0)
      throw DecodeError("offset of a buffer instruction is negative");
    if (soffset_enable)
      c.out.soffset = sgpr(bits(high, 31, 25), 1);
    else
      must_be_zero(bits(high, 31, 25), "SOFFSET without SOFFSET_EN");
  } else if (soffset_enable) {
    must_be_zero(bits(high, 20, 0), "OFFSET without IMM");
    c.out.soffset = sgpr(bits(high, 31, 25), 1);
  } else {
    must_be_zero(bits(high, 31, 7), "OFFSET above an SGPR number");
    c.out.soffset = sgpr(bits(high, 6, 0), 1);
  }
}

}  // namespace zyfa::emulator
