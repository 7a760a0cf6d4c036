// What the decoders of the formats share: reading dwords, registers and constants.
#pragma once

#include <cstdint>

#include "errors.hpp"
#include "instruction.hpp"

namespace zyfa::emulator {

constexpr uint32_t bits(uint32_t word, unsigned high, unsigned low) {
  return word >> low & (0xffffffffu >> (31 - (high - low)));
}
constexpr bool bit(uint32_t word, unsigned at) { return word >> at & 1; }

// Source numbers of the encoding that are no register or constant.
constexpr unsigned kSdwaCode = 249, kDppCode = 250, kLdsDirectCode = 254, kLiteralCode = 255, kVgprCode = 256;

// The bytes of one instruction and the Instruction they become.
class Cursor {
 public:
  Cursor(const uint8_t* bytes, size_t size, uint64_t address) : bytes_(bytes), size_(size) {
    out.address = address;
  }

  // Dword `index` counted from the instruction; DecodeError past the end.
  uint32_t dword(unsigned index) const;
  // The fixed part is `dwords` long; a literal may follow it.
  void fixed(unsigned dwords) { used_ = dwords; }
  // The one literal of the instruction, read when first asked for.
  uint32_t literal();
  bool has_literal() const { return has_literal_; }
  unsigned used() const { return used_; }

  Instruction out;

 private:
  const uint8_t* bytes_;
  size_t size_;
  unsigned used_ = 0;
  bool has_literal_ = false;
  uint32_t literal_ = 0;
};

// Sets out.op and out.info; DecodeError when the opcode is not defined.
const OpInfo& set_op(Cursor& c, Format format, unsigned opcode);
void must_be_zero(uint32_t value, const char* what);

Operand vgpr(unsigned number, unsigned dwords);
Operand agpr(unsigned number, unsigned dwords);
Operand sgpr(unsigned code, unsigned dwords);
Operand vcc();
Operand exec();
Operand implicit(Operand operand);
Operand literal(Cursor& c, const OperandSpec& spec);
// A 9-bit source number: VGPR, SGPR, inline constant, literal.
Operand source(Cursor& c, unsigned code, const OperandSpec& spec);
// An 8-bit source number of scalar instructions.
Operand scalar_source(Cursor& c, unsigned code, const OperandSpec& spec);
// The bits of inline constant `code` as the type reads them.
uint64_t inline_constant(unsigned code, const OperandSpec& spec);

// Refuse modifiers the instruction does not have.
void check_vop_modifiers(const Instruction& out);
void check_packed_modifiers(const Instruction& out);
// A VALU instruction reads one SGPR (or pair) or one literal.
void check_constant_bus(const Instruction& out);
// v_fma_mix*: OP_SEL_HI makes a source f16.
bool is_mixed(Op op);

void decode_scalar(Cursor& c, uint32_t word);  // SOP1, SOP2, SOPC, SOPK, SOPP
void decode_smem(Cursor& c, uint32_t word);
void decode_vop1(Cursor& c, uint32_t word);
void decode_vop2(Cursor& c, uint32_t word);
void decode_vopc(Cursor& c, uint32_t word);
void decode_vop3(Cursor& c, uint32_t word);
void decode_vop3p(Cursor& c, uint32_t word);
void decode_ds(Cursor& c, uint32_t word);
void decode_flat(Cursor& c, uint32_t word);
void decode_mubuf(Cursor& c, uint32_t word);
void decode_mtbuf(Cursor& c, uint32_t word);

}  // namespace zyfa::emulator
