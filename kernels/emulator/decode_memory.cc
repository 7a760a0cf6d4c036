// DS, FLAT (with GLOBAL and SCRATCH), MUBUF and MTBUF.
#include <cstring>

#include "decode_parts.hpp"

namespace zyfa::emulator {
namespace {

constexpr unsigned kNoSgpr = 0x7f;

bool contains(const OpInfo& row, const char* part) { return std::strstr(row.name, part) != nullptr; }

Operand data_register(unsigned number, bool accumulation, unsigned dwords) {
  return accumulation ? agpr(number, dwords) : vgpr(number, dwords);
}

bool two_addresses(const OpInfo& row) {
  return contains(row, "read2") || contains(row, "write2") || contains(row, "wrxchg2");
}

void decode_saddr(Cursor& c, const OpInfo& row, unsigned number) {
  const OperandSpec* spec = row.operand(Field::saddr);
  c.out.saddr_off = number == kNoSgpr;
  if (spec == nullptr) {
    must_be_zero(number, "SADDR of a FLAT instruction");
    c.out.saddr_off = true;
  } else if (!c.out.saddr_off) {
    if (number == kExec) throw DecodeError("SADDR is not EXEC");
    c.out.base = sgpr(number, spec->dwords());
  }
}

bool loads_to_lds(const OpInfo& row) {
  switch (row.op) {
    case Op::buffer_load_format_x:
    case Op::buffer_load_ubyte:
    case Op::buffer_load_sbyte:
    case Op::buffer_load_ushort:
    case Op::buffer_load_sshort:
    case Op::buffer_load_dword:
    case Op::buffer_load_dwordx3:
    case Op::buffer_load_dwordx4:
      return true;
    default:
      return false;
  }
}

// Data, destination and addresses of MUBUF and MTBUF. `returns`: the destination of an atomic is written.
void decode_buffer(Cursor& c, const OpInfo& row, uint32_t high, bool acc) {
  const OperandSpec* data = row.operand(Field::vdata);
  if (data == nullptr) {
    must_be_zero(high, "the second dword of an instruction without operands");
    must_be_zero(static_cast<uint32_t>(c.out.offset), "OFFSET of an instruction without operands");
    must_be_zero(c.out.offen || c.out.idxen || c.out.lds || c.out.nt,
                 "OFFEN, IDXEN, LDS or NT of an instruction without operands");
    return;
  }
  const bool atomic = contains(row, "_atomic_"), store = contains(row, "_store_");
  const unsigned number = bits(high, 15, 8);
  if (c.out.lds) {
    must_be_zero(number, "VDATA of a load to LDS");
    must_be_zero(acc, "ACC of a load to LDS");
    if (!loads_to_lds(row)) throw DecodeError(format("%s has no LDS form", row.name));
  } else {
    const Operand reg = data_register(number, acc, data->dwords());
    if (atomic || store) c.out.data = reg;
    if (!store && !atomic) c.out.dst = reg;
    if (atomic && c.out.sc0)
      c.out.dst = data_register(number, acc, contains(row, "cmpswap") ? data->dwords() / 2u : data->dwords());
  }
  const unsigned addresses = unsigned{c.out.offen} + unsigned{c.out.idxen};
  if (addresses > 0)
    c.out.addr = vgpr(bits(high, 7, 0), addresses);
  else
    must_be_zero(bits(high, 7, 0), "VADDR without OFFEN or IDXEN");
  must_be_zero(bits(high, 22, 21), "SRSRC above 5 bits");
  c.out.base = sgpr(bits(high, 20, 16) * 4, row.operand(Field::srsrc)->dwords());
  c.out.soffset = scalar_source(c, bits(high, 31, 24), *row.operand(Field::soffset));
  if (c.out.soffset.literal) throw DecodeError("SOFFSET takes no literal");
}

}  // namespace

void decode_ds(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::ds, bits(word, 24, 17));
  const uint32_t high = c.dword(1);
  Instruction& out = c.out;
  const bool acc = bit(word, 25);
  out.gds = bit(word, 16);
  if (out.gds != contains(row, "_gws_"))
    throw DecodeError(format("GDS of %s must be %d", row.name, !out.gds));
  if (row.operand(Field::data0) == nullptr && row.operand(Field::vdst) == nullptr)
    must_be_zero(acc, "ACC of an instruction without data");
  if (row.op == Op::ds_nop) must_be_zero(bits(word, 15, 0), "OFFSET of ds_nop");
  out.offset0 = static_cast<uint8_t>(bits(word, 7, 0));
  out.offset1 = static_cast<uint8_t>(bits(word, 15, 8));
  out.two_offsets = two_addresses(row);
  if (!out.two_offsets) out.offset = static_cast<int32_t>(bits(word, 15, 0));
  const struct {
    Field field;
    unsigned number;
    Operand Instruction::* place;
    bool data;
  } kFields[] = {{Field::addr, bits(high, 7, 0), &Instruction::addr, false},
                 {Field::data0, bits(high, 15, 8), &Instruction::data, true},
                 {Field::data1, bits(high, 23, 16), &Instruction::data1, true},
                 {Field::vdst, bits(high, 31, 24), &Instruction::dst, true}};
  for (const auto& [field, number, place, data] : kFields) {
    const OperandSpec* spec = row.operand(field);
    if (spec == nullptr)
      must_be_zero(number, "the number of an absent DS operand");
    else
      out.*place = data ? data_register(number, acc, spec->dwords()) : vgpr(number, spec->dwords());
  }
}

void decode_flat(Cursor& c, uint32_t word) {
  constexpr Format kSegments[4] = {Format::flat, Format::scratch, Format::global, Format::flat};
  const unsigned segment = bits(word, 15, 14);
  if (segment == 3) throw DecodeError("FLAT SEG 3 is reserved");
  const OpInfo& row = set_op(c, kSegments[segment], bits(word, 24, 18));
  const uint32_t high = c.dword(1);
  Instruction& out = c.out;
  const bool acc = bit(high, 23), scratch = row.format == Format::scratch;
  out.offset = static_cast<int32_t>(bits(word, 12, 0) << 19) >> 19;
  out.sc0 = bit(word, 16);
  out.nt = bit(word, 17);
  out.sc1 = bit(word, 25);
  out.lds = contains(row, "_lds_");
  if (out.lds) must_be_zero(acc, "ACC of a load to LDS");
  if (row.format == Format::flat && out.offset < 0)
    throw DecodeError("offset of a FLAT instruction is negative");
  decode_saddr(c, row, bits(high, 22, 16));

  const bool sve = bit(word, 13);
  if (!scratch) must_be_zero(sve, "SVE of a FLAT or GLOBAL instruction");
  const unsigned address = bits(high, 7, 0);
  if (scratch && !sve)
    must_be_zero(address, "ADDR of a SCRATCH instruction without SVE");
  else
    out.addr = vgpr(address,
                    row.format == Format::global && !out.saddr_off ? 1 : row.operand(Field::addr)->dwords());

  const OperandSpec* data = row.operand(Field::data);
  const OperandSpec* to = row.operand(Field::vdst);
  const bool atomic = contains(row, "_atomic_");
  if (data != nullptr)
    out.data = data_register(bits(high, 15, 8), acc, data->dwords());
  else
    must_be_zero(bits(high, 15, 8), "DATA of a load");
  if (to != nullptr && !out.lds && (!atomic || out.sc0))
    out.dst = data_register(bits(high, 31, 24), acc, to->dwords());
  else
    must_be_zero(bits(high, 31, 24), "VDST of an instruction that returns nothing");
}

void decode_mubuf(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::mubuf, bits(word, 24, 18));
  const uint32_t high = c.dword(1);
  must_be_zero(bit(word, 25), "MUBUF bit 25");
  c.out.offset = static_cast<int32_t>(bits(word, 11, 0));
  c.out.offen = bit(word, 12);
  c.out.idxen = bit(word, 13);
  c.out.sc0 = bit(word, 14);
  c.out.sc1 = bit(word, 15);
  c.out.lds = bit(word, 16);
  c.out.nt = bit(word, 17);
  decode_buffer(c, row, high, bit(high, 23));
}

void decode_mtbuf(Cursor& c, uint32_t word) {
  const OpInfo& row = set_op(c, Format::mtbuf, bits(word, 18, 15));
  const uint32_t high = c.dword(1);
  c.out.offset = static_cast<int32_t>(bits(word, 11, 0));
  c.out.offen = bit(word, 12);
  c.out.idxen = bit(word, 13);
  c.out.sc0 = bit(word, 14);
  c.out.imm = static_cast<int32_t>(bits(word, 25, 19));  // NFMT above DFMT
  c.out.sc1 = bit(high, 21);
  c.out.nt = bit(high, 22);
  decode_buffer(c, row, high & ~(3u << 21), bit(high, 23));
}

}  // namespace zyfa::emulator
