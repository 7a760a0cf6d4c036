// Text of DS, FLAT, GLOBAL, SCRATCH, MUBUF and MTBUF.
#include "decode_parts.hpp"
#include "disassemble_parts.hpp"

namespace zyfa::emulator {
namespace {

void add_cache_bits(Text& text, const Instruction& i) {
  text.flag(i.sc0, "sc0");
  text.flag(i.nt, "nt");
  text.flag(i.sc1, "sc1");
}

}  // namespace

std::string ds_text(const Instruction& i) {
  Text text(i.info->name);
  for (const Operand* operand : {&i.dst, &i.addr, &i.data, &i.data1})
    if (*operand) text.operand(register_text(*operand));
  if (i.offset == 0) {
    if (i.two_offsets && i.offset0 != 0) text.modifier(format("offset0:%u", i.offset0));
    if (i.two_offsets && i.offset1 != 0) text.modifier(format("offset1:%u", i.offset1));
  } else {
    text.modifier(format("offset:%d", i.offset));
  }
  text.flag(i.gds, "gds");
  return text.str();
}

std::string flat_text(const Instruction& i) {
  Text text(i.info->name);
  const bool scratch = i.info->format == Format::scratch;
  if (i.dst) text.operand(register_text(i.dst));
  if (i.addr || scratch) text.operand(i.addr ? register_text(i.addr) : "off");
  if (i.data) text.operand(register_text(i.data));
  if (i.info->format != Format::flat) text.operand(i.base ? register_text(i.base) : "off");
  if (i.offset != 0) text.modifier(format("offset:%d", i.offset));
  add_cache_bits(text, i);
  return text.str();
}

std::string buffer_text(const Instruction& i) {
  Text text(i.info->name);
  const OperandSpec* soffset = i.info->operand(Field::soffset);
  if (soffset != nullptr) {
    if (i.data || i.dst) text.operand(register_text(i.data ? i.data : i.dst));
    text.operand(i.addr ? register_text(i.addr) : "off");
    text.operand(register_text(i.base));
    if (i.info->format == Format::mtbuf) {
      text.operand(format("dfmt:%d", i.imm & 15));
      text.operand(format("nfmt:%d", i.imm >> 4));
    }
    text.operand(operand_text(i.soffset, *soffset));
    text.flag(i.idxen, "idxen");
    text.flag(i.offen, "offen");
    if (i.offset != 0) text.modifier(format("offset:%d", i.offset));
  }
  add_cache_bits(text, i);
  text.flag(i.lds, "lds");
  return text.str();
}

}  // namespace zyfa::emulator
