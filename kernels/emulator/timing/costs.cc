#include "timing/costs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace zyfa::emulator::timing {
namespace {

constexpr std::pair<Op, Class> kClassTable[] = {
#define ZYFA_CLASS(op, kind) {Op::op, Class::kind},
#include "timing/classes.def"
#undef ZYFA_CLASS
};

Class vector_class(const Step& step) {
  if (step.effects.unit == Unit::trans) return Class::trans;
  for (const auto& [op, kind] : kClassTable)
    if (op == step.instruction.op) return kind;
  return std::strncmp(step.instruction.info->name, "v_dot", 5) == 0 ? Class::dot : Class::plain;
}

double vector_cycles(Class kind, const Constants& c) {
  switch (kind) {
    case Class::packed_f32:
      return c.packed_f32_cycles;
    case Class::trans:
      return c.trans_cycles;
    case Class::convert:
      return c.convert_cycles;
    case Class::convert_fp8:
    case Class::convert_packed:
      return c.convert_packed_cycles;
    case Class::permlane:
      return c.permlane_cycles;
    case Class::quarter_rate:
      return c.quarter_rate_cycles;
    case Class::wide_integer:
      return c.wide_integer_cycles;
    case Class::dot:
      return c.dot_cycles;
    case Class::lane_read:
      return c.lane_read_cycles;
    default:
      return c.valu_cycles;
  }
}

template <typename T>
T cycles(double value) {
  return static_cast<T>(std::lround(std::min(value, 60000.0)));
}

void price_vector(const Step& step, const Constants& c, Cost& cost) {
  cost.kind = vector_class(step);
  cost.port = Port::valu;
  cost.valu = cycles<uint16_t>(vector_cycles(cost.kind, c));
  switch (cost.kind) {
    case Class::packed_f32:
      cost.coexec = c.coexec_packed_f32 != 0;
      break;
    case Class::trans:
      cost.coexec = c.coexec_trans != 0;
      break;
    case Class::convert_fp8:
      cost.coexec = c.coexec_convert_fp8 != 0;
      break;
    case Class::dot:
      cost.coexec = c.coexec_dot != 0;
      break;
    default:
      return;
  }
  cost.doubtful = true;
}

void price_lds(const Step& step, Cost& cost) {
  const char* name = step.instruction.info->name;
  cost.kind = Class::lds;
  cost.port = Port::lds;
  cost.counts_ds = true;
  cost.write = step.effects.is_store && !step.effects.is_load;
  cost.transpose = std::strstr(name, "_tr_") != nullptr;
  cost.exchange = std::strstr(name, "permute") != nullptr || std::strstr(name, "swizzle") != nullptr;
}

void price_control(const Instruction& in, const Constants& c, Cost& cost) {
  const unsigned imm = static_cast<unsigned>(in.imm) & 0xffff;
  cost.port = Port::none;
  cost.kind = Class::control;
  switch (in.op) {
    case Op::s_nop:
      cost.kind = Class::nop;
      cost.hold = cycles<uint32_t>(c.nop_cycles * ((imm & 15) + 1));
      cost.held = Cause::wait_states;
      break;
    case Op::s_sleep:
      cost.hold = 4 + cycles<uint32_t>(c.sleep_cycles * (imm & 127));
      cost.held = Cause::sleep;
      break;
    case Op::s_waitcnt:
      cost.kind = Class::waitcnt;
      cost.vm_limit = static_cast<uint8_t>((imm & 15) | (imm >> 14 & 3) << 4);
      cost.lgkm_limit = imm >> 8 & 15;
      break;
    case Op::s_barrier:
      cost.kind = Class::barrier;
      cost.port = Port::branch;
      break;
    case Op::s_setprio:
      break;
    default:
      cost.port = Port::branch;
  }
}

}  // namespace

const char* class_name(Class c) {
  static const char* const names[] = {
#define X(name) #name,
      ZYFA_CLASSES(X)
#undef X
  };
  return names[static_cast<int>(c)];
}

const char* cause_name(Cause c) {
  static const char* const names[] = {
#define X(name) #name,
      ZYFA_CAUSES(X)
#undef X
  };
  return names[static_cast<int>(c)];
}

Cost cost_of(const Step& step, const Constants& c) {
  Cost cost;
  switch (step.effects.unit) {
    case Unit::valu:
    case Unit::trans:
      price_vector(step, c, cost);
      break;
    case Unit::matrix:
      cost.kind = Class::matrix;
      cost.valu = cycles<uint16_t>(c.matrix_head_cycles);
      cost.port = cost.valu == 0 ? Port::matrix : Port::valu;
      cost.matrix = cycles<uint16_t>(c.pass_cycles * step.effects.passes);
      break;
    case Unit::salu:
      cost.kind = Class::salu;
      cost.port = Port::salu;
      break;
    case Unit::smem:
      cost.kind = Class::smem;
      cost.port = Port::salu;
      cost.counts_smem = true;
      break;
    case Unit::vmem:
    case Unit::flat:
      cost.kind = Class::vmem;
      cost.port = Port::vmem;
      cost.counts_vm = true;
      cost.write = step.effects.is_store && !step.effects.is_load;
      break;
    case Unit::lds:
      price_lds(step, cost);
      break;
    case Unit::branch:
      cost.kind = Class::branch;
      cost.port = Port::branch;
      cost.hold = cycles<uint32_t>(std::max(c.branch_cycles, 4.0));
      cost.held = Cause::branch;
      break;
    case Unit::control:
      price_control(step.instruction, c, cost);
      break;
  }
  // s_barrier and s_endpgm may be filed under branch or control.
  if (step.instruction.info->format == Format::sopp &&
      (step.instruction.op == Op::s_barrier || step.instruction.op == Op::s_endpgm)) {
    cost = Cost();
    price_control(step.instruction, c, cost);
  }
  return cost;
}

}  // namespace zyfa::emulator::timing
