// One decoded machine instruction. Everything implicit in an encoding (VCC as carry or mask, the accumulator
// of a v_fmac, the literal of a v_fmamk) stands here as an explicit operand, marked so that it is not
// printed.
#pragma once

#include <cstdint>
#include <string>

#include "isa.hpp"

namespace zyfa::emulator {

enum class OperandKind : uint8_t { none, sgpr, vgpr, constant, special };

// Numbers in the SGPR file.
constexpr uint16_t kFlatScratch = 102, kXnackMask = 104, kVcc = 106, kTtmp = 108, kM0 = 124, kExec = 126;
// Accumulation registers follow the architectural ones: a[n] is register kAgpr + n.
constexpr uint16_t kAgpr = 256;
constexpr uint16_t kVgprs = 512, kSgprs = 128;
// OperandKind::special: the numbers of the encoding.
constexpr uint16_t kSharedBase = 235, kSharedLimit = 236, kPrivateBase = 237, kPrivateLimit = 238,
                   kVccz = 251, kExecz = 252, kScc = 253;

struct Operand {
  OperandKind kind = OperandKind::none;
  uint8_t dwords = 0;
  uint16_t reg = 0;  // SGPR 0..127, VGPR 0..511, or the number of a special source
  bool implicit = false;
  bool neg = false, abs = false,
       sext = false;     // source modifiers; of packed operations neg is neg_lo, abs is neg_hi
  uint8_t sel = 6;       // SDWA: 0..3 byte, 4..5 word, 6 dword
  bool literal = false;  // a 32-bit literal follows the instruction (else an inline constant)
  uint16_t code = 0;     // the source number of the encoding
  uint64_t value = 0;    // of a constant: its bits as the operand's type reads them (64-bit types: extended)

  bool is_vgpr() const { return kind == OperandKind::vgpr; }
  bool is_sgpr() const { return kind == OperandKind::sgpr; }
  bool is_constant() const { return kind == OperandKind::constant; }
  explicit operator bool() const { return kind != OperandKind::none; }
};

enum class Encoding : uint8_t { plain, vop3, sdwa, dpp };

struct Instruction {
  Op op{};
  const OpInfo* info = nullptr;
  Encoding encoding = Encoding::plain;  // vop3 also for VOP1/2/C instructions in their 64-bit form
  uint8_t bytes = 0;                    // 4, 8, 12 or 16
  uint64_t address = 0;                 // device address of the first byte

  Operand dst;       // vdst, sdst of scalar instructions, SGPR pair of compares, destination of loads
  Operand sdst;      // carry out and the like
  Operand src[3];    // of SMFMAC: src[2] is the index, the accumulator is dst
  Operand scale[2];  // block scales of the scaled matrix instructions: A, B
  Operand mask;      // VCC of v_div_fmas, whose three sources are taken

  // Memory: address register(s), data to store, second data register, base (V#, SGPR pair), SGPR offset.
  Operand addr, data, data1, base, soffset;
  int32_t offset = 0;  // byte offset; of two-address DS instructions see offset0/offset1
  uint8_t offset0 = 0, offset1 = 0;
  bool two_offsets = false;  // DS: offset0 and offset1 count, offset does not
  bool has_offset = false;   // SMEM: an immediate offset is encoded, maybe beside an SGPR
  bool sc0 = false, sc1 = false, nt = false, offen = false, idxen = false, lds = false, gds = false;
  bool saddr_off = false;  // global/scratch without SGPR base

  int32_t imm = 0;  // simm16, sign-extended where the instruction reads it so
  bool clamp = false;
  uint8_t omod = 0, op_sel = 0, op_sel_hi = 0;  // bit i: source i; bit 3 of op_sel: destination
  uint8_t cbsz = 0, abid = 0, blgp = 0;
  uint16_t dpp_ctrl = 0;
  uint8_t row_mask = 15, bank_mask = 15;
  bool bound_ctrl = false;
  uint8_t dst_sel = 6, dst_unused = 0;  // SDWA

  uint64_t next() const { return address + bytes; }
};

}  // namespace zyfa::emulator
