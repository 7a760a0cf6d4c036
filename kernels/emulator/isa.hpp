// The instruction set as tables: one row per instruction in isa/*.def (opcode numbers and operand types of
// AMD's CDNA4 instruction set), read here into OpInfo. The decoder is their only interpreter of bits; nothing
// here is shared with the assembly generator.
#pragma once

#include <cstdint>

namespace zyfa::emulator {

enum class Format : uint8_t {
  sop1,
  sop2,
  sopc,
  sopk,
  sopp,
  smem,
  vop1,
  vop2,
  vopc,
  vop3,
  vop3sd,
  vop3p,
  ds,
  flat,
  global,
  scratch,
  mubuf,
  mtbuf
};

// Names are the assembler's, without the suffixes of the encoding (_e32, _e64, _dpp, _sdwa).
enum class Op : uint16_t {
#define ZYFA_OP(format, opcode, name, operands) name,
#include "isa/all.def"
#undef ZYFA_OP
  count
};

// Where an operand sits in the encoding.
enum class Field : uint8_t {
  vdst,
  sdst,
  sdata,
  vdata,
  addr,
  vaddr,
  data,
  data0,
  data1,
  sbase,
  srsrc,
  soffset,
  saddr,
  ssrc0,
  ssrc1,
  src0,
  src1,
  vsrc1,
  src2,
  simm16
};

// What may stand there.
enum class Accepts : uint8_t {
  vgpr,                  // v
  any_vgpr,              // va: architectural or accumulation register
  any_vgpr_or_constant,  // vac
  agpr,                  // a
  source,                // src: VGPR, SGPR or constant
  sgpr,                  // s
  scalar_source,         // ssrc: SGPR or constant
  smem_offset,           // soff
  immediate,             // imm
  label,
  hwreg,
  wait,
  message,  // msg
};

enum class Kind : uint8_t { bits, unsigned_int, signed_int, real };  // b, u, i, f and the small floats

struct OperandSpec {
  Field field;
  Accepts accepts;
  Kind kind;
  bool brain;            // bf16: inline constants are bf16 values
  uint8_t element_bits;  // of one element
  uint8_t elements;      // packed elements
  uint16_t bits;         // of the whole operand
  uint8_t dwords() const { return static_cast<uint8_t>((bits + 31) / 32); }
};

struct OpInfo {
  Op op;
  Format format;
  uint16_t opcode;
  const char* name;
  uint8_t operand_count;
  OperandSpec operands[6];

  const OperandSpec* operand(Field field) const {
    for (int i = 0; i < operand_count; ++i)
      if (operands[i].field == field) return &operands[i];
    return nullptr;
  }
};

const OpInfo& info(Op op);
// The instruction with this opcode in this format, or nullptr.
const OpInfo* find_op(Format format, unsigned opcode);
// As the ISA document writes it: "SOP1".
const char* format_name(Format format);
// MFMA and SMFMAC.
bool is_matrix(const OpInfo& row);
const char* field_name(Field field);
const char* accepts_name(Accepts accepts);
// By name, for tests and reports; nullptr when there is none.
const OpInfo* find_op(const char* name);

}  // namespace zyfa::emulator
