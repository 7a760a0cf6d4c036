// Registers and constants as text.
#include "decode.hpp"
#include "decode_parts.hpp"
#include "disassemble_parts.hpp"

namespace zyfa::emulator {
namespace {

std::string range(const char* file, unsigned first, unsigned count) {
  return count == 1 ? format("%s%u", file, first) : format("%s[%u:%u]", file, first, first + count - 1);
}

std::string named(const char* name, unsigned at, unsigned count) {
  return count == 2 ? name : format("%s_%s", name, at == 0 ? "lo" : "hi");
}

const char* special_text(unsigned reg) {
  switch (reg) {
    case kSharedBase:
      return "src_shared_base";
    case kSharedLimit:
      return "src_shared_limit";
    case kPrivateBase:
      return "src_private_base";
    case kPrivateLimit:
      return "src_private_limit";
    case kVccz:
      return "src_vccz";
    case kExecz:
      return "src_execz";
    default:
      return "src_scc";
  }
}

std::string literal_text(const Operand& operand, const OperandSpec& spec) {
  const bool high = operand.dwords == 2 && spec.kind == Kind::real;
  const auto word = static_cast<uint32_t>(high ? operand.value >> 32 : operand.value);
  // The assembler prefers an inline constant of the same value unless told otherwise.
  constexpr OperandSpec kDword{Field::src0, Accepts::source, Kind::bits, false, 32, 1, 32};
  OperandSpec as_integer = spec;
  as_integer.kind = Kind::bits;
  for (unsigned code = 128; code <= 248; ++code) {
    if (code > 208 && code < 240) continue;
    for (const OperandSpec& type : {spec, as_integer, kDword}) {
      const uint64_t value = inline_constant(code, type);
      if (value == operand.value || static_cast<uint32_t>(value) == word) return format("lit(0x%x)", word);
    }
  }
  return format("0x%x", word);
}

std::string constant_text(const Operand& operand, const OperandSpec& spec) {
  constexpr const char* kFloats[8] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"};
  if (operand.literal) return literal_text(operand, spec);
  if (operand.code <= 192) return format("%d", operand.code - 128);
  if (operand.code <= 208) return format("%d", 192 - operand.code);
  if (operand.code < 248) return kFloats[operand.code - 240];
  return spec.bits == 64 && spec.element_bits == 64 ? "0.15915494309189532" : "0.15915494";
}

}  // namespace

std::string vgpr_text(unsigned reg, unsigned count) {
  return reg < kAgpr ? range("v", reg, count) : range("a", reg - kAgpr, count);
}

std::string sgpr_text(unsigned reg, unsigned count) {
  if (reg < kFlatScratch) return range("s", reg, count);
  if (reg < kXnackMask) return named("flat_scratch", reg - kFlatScratch, count);
  if (reg < kVcc) return named("xnack_mask", reg - kXnackMask, count);
  if (reg < kTtmp) return named("vcc", reg - kVcc, count);
  if (reg < kM0) return range("ttmp", reg - kTtmp, count);
  if (reg == kM0) return "m0";
  return named("exec", reg - kExec, count);
}

std::string register_text(const Operand& operand) {
  if (operand.is_sgpr()) return sgpr_text(operand.reg, operand.dwords);
  return vgpr_text(operand.reg, operand.dwords);
}

std::string operand_text(const Operand& operand, const OperandSpec& spec) {
  switch (operand.kind) {
    case OperandKind::constant:
      return constant_text(operand, spec);
    case OperandKind::special:
      return special_text(operand.reg);
    case OperandKind::none:
      return "off";
    default:
      return register_text(operand);
  }
}

std::string source_text(const Operand& operand, const OperandSpec& spec) {
  std::string text = operand_text(operand, spec);
  if (operand.sext) text = "sext(" + text + ")";
  if (operand.abs) text = "|" + text + "|";
  if (!operand.neg) return text;
  return operand.is_constant() && !operand.abs ? "neg(" + text + ")" : "-" + text;
}

std::string bit_list(unsigned bits, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::string(bits >> i & 1 ? "1" : "0");
  return text + "]";
}

}  // namespace zyfa::emulator
