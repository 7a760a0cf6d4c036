// Text of SOP* and SMEM.
#include "decode_parts.hpp"
#include "disassemble_parts.hpp"

namespace zyfa::emulator {
namespace {

std::string wait_text(uint32_t imm) {
  const unsigned vm = bits(imm, 15, 14) << 4 | bits(imm, 3, 0), exp = bits(imm, 6, 4),
                 lgkm = bits(imm, 11, 8);
  const bool known = (imm & 0x3080) == 0 && !(vm == 63 && exp == 7 && lgkm == 15);
  if (!known) return format("0x%x", imm);
  std::string text;
  const auto add = [&](const char* name, unsigned value, unsigned idle) {
    if (value != idle) text += format("%s%s(%u)", text.empty() ? "" : " ", name, value);
  };
  add("vmcnt", vm, 63);
  add("expcnt", exp, 7);
  add("lgkmcnt", lgkm, 15);
  return text;
}

std::string hwreg_text(uint32_t imm) {
  const unsigned id = bits(imm, 5, 0), offset = bits(imm, 10, 6), size = bits(imm, 15, 11) + 1;
  const char* name = nullptr;
  switch (id) {
    case 1:
      name = "HW_REG_MODE";
      break;
    case 2:
      name = "HW_REG_STATUS";
      break;
    case 3:
      name = "HW_REG_TRAPSTS";
      break;
    case 4:
      name = "HW_REG_HW_ID";
      break;
    case 5:
      name = "HW_REG_GPR_ALLOC";
      break;
    case 6:
      name = "HW_REG_LDS_ALLOC";
      break;
    case 7:
      name = "HW_REG_IB_STS";
      break;
    case 20:
      name = "HW_REG_XCC_ID";
      break;
    default:
      break;
  }
  const std::string text = name != nullptr ? name : format("%u", id);
  return offset == 0 && size == 32 ? format("hwreg(%s)", text.c_str())
                                   : format("hwreg(%s, %u, %u)", text.c_str(), offset, size);
}

std::string immediate_text(int32_t imm, const OperandSpec& spec) {
  switch (spec.accepts) {
    case Accepts::wait:
      return wait_text(static_cast<uint32_t>(imm));
    case Accepts::hwreg:
      return hwreg_text(static_cast<uint32_t>(imm));
    case Accepts::label:
      return format("%d", imm);
    default:
      return spec.kind == Kind::bits ? format("%d", imm) : format("0x%x", static_cast<uint16_t>(imm));
  }
}

}  // namespace

std::string scalar_text(const Instruction& i) {
  Text text(i.info->name);
  if (i.op == Op::s_setreg_b32) {
    text.operand(hwreg_text(static_cast<uint32_t>(i.imm)));
    text.operand(register_text(i.src[0]));
    return text.str();
  }
  for (int n = 0; n < i.info->operand_count; ++n) {
    const OperandSpec& spec = i.info->operands[n];
    switch (spec.field) {
      case Field::sdst:
        text.operand(register_text(i.dst ? i.dst : i.src[0]));
        break;
      case Field::ssrc0:
        text.operand(operand_text(i.src[0], spec));
        break;
      case Field::ssrc1:
        text.operand(spec.accepts == Accepts::immediate ? format("%d", i.imm) : operand_text(i.src[1], spec));
        break;
      default:
        text.operand(immediate_text(i.imm, spec));
        break;
    }
  }
  if (i.op == Op::s_setreg_imm32_b32) text.operand(format("0x%x", static_cast<uint32_t>(i.src[0].value)));
  return text.str();
}

std::string smem_text(const Instruction& i) {
  Text text(i.info->name);
  if (const OperandSpec* data = i.info->operand(Field::sdata)) {
    if (data->accepts == Accepts::immediate)
      text.operand(format("%d", i.imm));
    else
      text.operand(register_text(i.data ? i.data : i.dst));
  }
  if (!i.base) return text.str();
  text.operand(register_text(i.base));
  if (i.soffset) {
    text.operand(register_text(i.soffset));
    if (i.has_offset) text.modifier(format("offset:%d", i.offset));
  } else {
    text.operand(format("%d", i.offset));
  }
  text.flag(i.sc0, "glc");
  return text.str();
}

}  // namespace zyfa::emulator
