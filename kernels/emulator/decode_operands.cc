// Registers and constants.
//
// Inline constants follow LLVM's AMDGPU backend, which AMD's compilers ship:
// - integers -16..64 are sign-extended to the operand's size, whatever its type;
// - the nine floats have the format of the operand: f16, bf16 or f64 where the type says so, f64 for every
// 64-bit
//   type, else f32 (16-bit integer operands read the low half of the f32 bits);
// - of packed 16-bit operands the low half holds the float and the high half zero.
// Literals are 32 bits: the upper half of an f64, sign-extended for i64, zero-extended for other 64-bit
// types.
#include <array>
#include <cstring>

#include "decode_parts.hpp"

namespace zyfa::emulator {
namespace {

struct Float {
  uint16_t half, brain;
  uint32_t single;
  uint64_t wide;
};
// Codes 240..248: 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi).
constexpr Float kFloats[9] = {
    {0x3800, 0x3f00, 0x3f000000, 0x3fe0000000000000}, {0xb800, 0xbf00, 0xbf000000, 0xbfe0000000000000},
    {0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000}, {0xbc00, 0xbf80, 0xbf800000, 0xbff0000000000000},
    {0x4000, 0x4000, 0x40000000, 0x4000000000000000}, {0xc000, 0xc000, 0xc0000000, 0xc000000000000000},
    {0x4400, 0x4080, 0x40800000, 0x4010000000000000}, {0xc400, 0xc080, 0xc0800000, 0xc010000000000000},
    {0x3118, 0x3e22, 0x3e22f983, 0x3fc45f306dc9c882}};

constexpr unsigned kInverseTwoPi = 248;

bool is_packed_single(const OperandSpec& spec) { return spec.element_bits == 32 && spec.elements == 2; }
bool is_wide(const OperandSpec& spec) { return spec.bits == 64 && spec.element_bits == 64; }

uint64_t truncated(uint64_t value, const OperandSpec& spec) {
  if (spec.bits == 16 && spec.element_bits == 16) return value & 0xffff;
  return is_wide(spec) ? value : value & 0xffffffff;
}

}  // namespace

uint32_t Cursor::dword(unsigned index) const {
  if (size_t{index} * 4 + 4 > size_) throw DecodeError("the code ends inside the instruction");
  uint32_t value;
  std::memcpy(&value, bytes_ + size_t{index} * 4, 4);
  return value;
}

uint32_t Cursor::literal() {
  if (!has_literal_) {
    literal_ = dword(used_++);
    has_literal_ = true;
  }
  return literal_;
}

const OpInfo& set_op(Cursor& c, Format form, unsigned opcode) {
  const OpInfo* found = find_op(form, opcode);
  if (found == nullptr) throw DecodeError(format("%s has no opcode 0x%x", format_name(form), opcode));
  c.out.op = found->op;
  c.out.info = found;
  return *found;
}

void must_be_zero(uint32_t value, const char* what) {
  if (value != 0) throw DecodeError(format("%s must be 0, got 0x%x", what, value));
}

Operand vgpr(unsigned number, unsigned dwords) {
  if (number + dwords > 256)
    throw DecodeError(format("v[%u:%u] ends past v255", number, number + dwords - 1));
  if (dwords > 1 && number % 2 != 0)
    throw DecodeError(format("v[%u:%u] must begin at an even register", number, number + dwords - 1));
  Operand made;
  made.kind = OperandKind::vgpr;
  made.dwords = static_cast<uint8_t>(dwords);
  made.reg = static_cast<uint16_t>(number);
  made.code = static_cast<uint16_t>(kVgprCode + number);
  return made;
}

Operand agpr(unsigned number, unsigned dwords) {
  Operand made = vgpr(number, dwords);
  made.reg = static_cast<uint16_t>(kAgpr + number);
  return made;
}

Operand sgpr(unsigned code, unsigned dwords) {
  // Blocks that no tuple crosses: s0-s101, flat_scratch, xnack_mask, vcc, ttmp0-15, m0, exec.
  constexpr std::array<std::array<unsigned, 2>, 7> kBlocks = {{{0, 102},
                                                               {kFlatScratch, 104},
                                                               {kXnackMask, 106},
                                                               {kVcc, 108},
                                                               {kTtmp, 124},
                                                               {kM0, 125},
                                                               {kExec, 128}}};
  for (const auto [first, end] : kBlocks) {
    if (code < first || code >= end) continue;
    if (code + dwords > end)
      throw DecodeError(format("%u SGPRs from number %u leave their block", dwords, code));
    const unsigned align = dwords > 2 ? 4 : dwords;
    if (code % align != 0)
      throw DecodeError(
          format("%u SGPRs must begin at a multiple of %u, got number %u", dwords, align, code));
    Operand made;
    made.kind = OperandKind::sgpr;
    made.dwords = static_cast<uint8_t>(dwords);
    made.reg = made.code = static_cast<uint16_t>(code);
    return made;
  }
  throw DecodeError(format("%u is no SGPR", code));
}

Operand implicit(Operand operand) {
  operand.implicit = true;
  return operand;
}
Operand vcc() { return implicit(sgpr(kVcc, 2)); }
Operand exec() { return implicit(sgpr(kExec, 2)); }

void check_constant_bus(const Instruction& out) {
  int used = -1;
  const auto add = [&](const Operand& operand) {
    int id = -1;
    if (operand.is_sgpr())
      id = operand.reg * 4 + operand.dwords;
    else if (operand.kind == OperandKind::special || operand.literal)
      id = 1000 + operand.code;
    if (id < 0 || id == used) return;
    if (used >= 0) throw DecodeError(format("%s reads more than one SGPR or literal", out.info->name));
    used = id;
  };
  for (const Operand& operand : out.src) {
    const bool lane_select = out.op == Op::v_writelane_b32 && &operand == &out.src[1];
    if (!(lane_select && operand.is_sgpr() && operand.reg == kM0)) add(operand);
  }
  add(out.mask);
}

uint64_t inline_constant(unsigned code, const OperandSpec& spec) {
  if (code <= 208) {
    const int64_t value = code <= 192 ? static_cast<int64_t>(code) - 128 : 192 - static_cast<int64_t>(code);
    return truncated(static_cast<uint64_t>(value), spec);
  }
  const Float& f = kFloats[code - 240];
  if (is_wide(spec)) return f.wide;
  if (spec.element_bits == 16 && spec.kind == Kind::real) return spec.brain ? f.brain : f.half;
  return truncated(f.single, spec);
}

Operand literal(Cursor& c, const OperandSpec& spec) {
  Operand made;
  made.kind = OperandKind::constant;
  made.dwords = is_wide(spec) ? 2 : 1;
  made.code = kLiteralCode;
  made.literal = true;
  const uint32_t word = c.literal();
  const bool half = spec.element_bits == 16 && spec.elements == 1 && c.out.info->format > Format::smem;
  if (half && word > 0xffff) throw DecodeError(format("literal of a 16-bit operand is 0x%x", word));
  if (!is_wide(spec))
    made.value = word;
  else if (spec.kind == Kind::real)
    made.value = uint64_t{word} << 32;
  else if (spec.kind == Kind::signed_int)
    made.value = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(word)));
  else
    made.value = word;
  return made;
}

Operand source(Cursor& c, unsigned code, const OperandSpec& spec) {
  if (code >= kVgprCode) return vgpr(code - kVgprCode, spec.dwords());
  if (code < 128) return sgpr(code, spec.dwords());
  Operand made;
  made.code = static_cast<uint16_t>(code);
  made.dwords = spec.dwords();
  if (code <= 208 || (code >= 240 && code <= 248)) {
    if (code == kInverseTwoPi && spec.element_bits == 16 && spec.kind != Kind::real)
      throw DecodeError("1/(2 pi) as a 16-bit integer is not documented");
    made.kind = OperandKind::constant;
    made.value = inline_constant(code, spec);
    return made;
  }
  switch (code) {
    case kSharedBase:
    case kSharedLimit:
    case kPrivateBase:
    case kPrivateLimit:
    case kVccz:
    case kExecz:
    case kScc:
      made.kind = OperandKind::special;
      made.reg = static_cast<uint16_t>(code);
      return made;
    case kLiteralCode:
      if (is_packed_single(spec)) throw DecodeError("packed 32-bit operands take no literal");
      return literal(c, spec);
    default:
      throw DecodeError(format("source number %u is reserved", code));
  }
}

Operand scalar_source(Cursor& c, unsigned code, const OperandSpec& spec) {
  return source(c, code & 255, spec);
}

}  // namespace zyfa::emulator
