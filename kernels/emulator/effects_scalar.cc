// SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.
#include <cstring>

#include "effects_parts.hpp"

namespace zyfa::emulator {
namespace {

bool reads_scc(Op op) {
  switch (op) {
    case Op::s_addc_u32:
    case Op::s_subb_u32:
    case Op::s_cselect_b32:
    case Op::s_cselect_b64:
    case Op::s_cmov_b32:
    case Op::s_cmov_b64:
    case Op::s_cmovk_i32:
    case Op::s_cbranch_scc0:
    case Op::s_cbranch_scc1:
      return true;
    default:
      return false;
  }
}

// The exceptions of formats whose instructions write SCC otherwise.
bool keeps_scc(Op op) {
  switch (op) {
    case Op::s_cselect_b32:
    case Op::s_cselect_b64:
    case Op::s_bfm_b32:
    case Op::s_bfm_b64:
    case Op::s_mul_i32:
    case Op::s_mul_hi_u32:
    case Op::s_mul_hi_i32:
    case Op::s_cbranch_g_fork:
    case Op::s_rfe_restore_b64:
    case Op::s_pack_ll_b32_b16:
    case Op::s_pack_lh_b32_b16:
    case Op::s_pack_hh_b32_b16:
    case Op::s_setvskip:
    case Op::s_set_gpr_idx_on:
      return true;
    default:
      return false;
  }
}

bool sop1_writes_scc(Op op) {
  switch (op) {
    case Op::s_not_b32:
    case Op::s_not_b64:
    case Op::s_wqm_b32:
    case Op::s_wqm_b64:
    case Op::s_bcnt0_i32_b32:
    case Op::s_bcnt0_i32_b64:
    case Op::s_bcnt1_i32_b32:
    case Op::s_bcnt1_i32_b64:
    case Op::s_and_saveexec_b64:
    case Op::s_or_saveexec_b64:
    case Op::s_xor_saveexec_b64:
    case Op::s_andn2_saveexec_b64:
    case Op::s_orn2_saveexec_b64:
    case Op::s_nand_saveexec_b64:
    case Op::s_nor_saveexec_b64:
    case Op::s_xnor_saveexec_b64:
    case Op::s_quadmask_b32:
    case Op::s_quadmask_b64:
    case Op::s_abs_i32:
    case Op::s_andn1_saveexec_b64:
    case Op::s_orn1_saveexec_b64:
    case Op::s_andn1_wrexec_b64:
    case Op::s_andn2_wrexec_b64:
      return true;
    default:
      return false;
  }
}

bool writes_scc(const OpInfo& row) {
  switch (row.format) {
    case Format::sop1:
      return sop1_writes_scc(row.op);
    case Format::sop2:
    case Format::sopc:
      return !keeps_scc(row.op);
    case Format::sopk:
      return (row.op >= Op::s_cmpk_eq_i32 && row.op <= Op::s_cmpk_le_u32) || row.op == Op::s_addk_i32;
    default:
      return false;
  }
}

bool reads_m0(Op op) {
  switch (op) {
    case Op::s_movrels_b32:
    case Op::s_movrels_b64:
    case Op::s_movreld_b32:
    case Op::s_movreld_b64:
    case Op::s_set_gpr_idx_on:
    case Op::s_set_gpr_idx_idx:
    case Op::s_sendmsg:
    case Op::s_sendmsghalt:
    case Op::s_ttracedata:
      return true;
    default:
      return false;
  }
}

Unit unit_of(Op op, Format format) {
  switch (op) {
    case Op::s_getpc_b64:
      return Unit::salu;
    case Op::s_setpc_b64:
    case Op::s_swappc_b64:
    case Op::s_rfe_b64:
    case Op::s_rfe_restore_b64:
    case Op::s_call_b64:
    case Op::s_cbranch_join:
    case Op::s_cbranch_g_fork:
    case Op::s_cbranch_i_fork:
    case Op::s_branch:
    case Op::s_cbranch_scc0:
    case Op::s_cbranch_scc1:
    case Op::s_cbranch_vccz:
    case Op::s_cbranch_vccnz:
    case Op::s_cbranch_execz:
    case Op::s_cbranch_execnz:
    case Op::s_cbranch_cdbgsys:
    case Op::s_cbranch_cdbguser:
    case Op::s_cbranch_cdbgsys_or_user:
    case Op::s_cbranch_cdbgsys_and_user:
      return Unit::branch;
    default:
      return format == Format::sopp ? Unit::control : Unit::salu;
  }
}

}  // namespace

void scalar_effects(const Instruction& instruction, Effects& effects) {
  const Op op = instruction.op;
  effects.unit = unit_of(op, instruction.info->format);
  for (const Operand& source : instruction.src) read(effects, source, Role::source);
  write(effects, instruction.dst, Role::result);
  if (instruction.sdst) write(effects, instruction.sdst, Role::result);
  effects.reads_scc |= reads_scc(op);
  effects.writes_scc = writes_scc(*instruction.info);
  if (op == Op::s_cbranch_execz || op == Op::s_cbranch_execnz) effects.reads_exec = true;
  if (reads_m0(op)) effects.sgpr_reads.add(kM0, 1, Role::m0);
  // s_sendmsg and s_movrel read M0 without an interlock.
  if (reads_m0(op) && op != Op::s_set_gpr_idx_on && op != Op::s_set_gpr_idx_idx) effects.traits |= kUsesM0;
  if (op == Op::s_setreg_b32 || op == Op::s_setreg_imm32_b32) effects.traits |= kSetreg;
  if (op == Op::s_getreg_b32) effects.traits |= kGetreg;
}

void smem_effects(const Instruction& instruction, Effects& effects) {
  effects.unit = Unit::smem;
  const bool store = std::strstr(instruction.info->name, "_store_") != nullptr;
  const bool atomic = std::strstr(instruction.info->name, "_atomic_") != nullptr;
  effects.is_store = store;
  effects.is_atomic = atomic;
  effects.is_load = !store && !atomic && instruction.dst.is_sgpr();
  read(effects, instruction.base, Role::resource);
  read(effects, instruction.soffset, Role::resource);
  read(effects, instruction.data, Role::store_data);
  write(effects, instruction.dst, Role::result);
}

}  // namespace zyfa::emulator
