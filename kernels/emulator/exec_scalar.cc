// SOP1, SOP2 and the arithmetic of SOPK.
#include "exec_scalar.hpp"

#include "exec_scalar_operations.hpp"

namespace zyfa::emulator {

uint64_t special_value(const Wave& wave, uint16_t number) {
  switch (number) {
    case kSharedBase:
      return kSharedAperture;
    case kSharedLimit:
      return kSharedAperture + 0xffffffff;
    case kPrivateBase:
      return kPrivateAperture;
    case kPrivateLimit:
      return kPrivateAperture + 0xffffffff;
    case kVccz:
      return wave.vcc() == 0;
    case kExecz:
      return wave.exec() == 0;
    case kScc:
      return wave.scc;
    default:
      throw LaunchError(format("scalar source %u has no value here", number));
  }
}

uint32_t special_value32(const Wave& wave, uint16_t number) {
  const uint64_t value = special_value(wave, number);
  return static_cast<uint32_t>(number >= kSharedBase && number <= kPrivateLimit ? value >> 32 : value);
}

namespace {

using namespace scalar;

// ---- shapes: how operands are read and results written ---------------------------------------------------

template <typename T>
T read(const Wave& wave, const Operand& operand) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>(read64(wave, operand));
  else
    return static_cast<T>(read32(wave, operand));
}

void write(Wave& wave, const Operand& dst, uint32_t value) { wave.sgpr[dst.reg] = value; }
void write(Wave& wave, const Operand& dst, uint64_t value) { wave.set_sgpr64(dst.reg, value); }
void write(Wave& wave, const Operand& dst, int32_t value) { write(wave, dst, static_cast<uint32_t>(value)); }

// R f(A): SCC untouched.
template <auto F, typename A>
void one(Wave& wave, const Instruction& in) {
  write(wave, in.dst, F(read<A>(wave, in.src[0])));
}
// R f(A): SCC = result is not zero.
template <auto F, typename A>
void one_scc(Wave& wave, const Instruction& in) {
  const auto value = F(read<A>(wave, in.src[0]));
  write(wave, in.dst, value);
  wave.scc = value != 0;
}
template <auto F, typename A, typename B>
void two(Wave& wave, const Instruction& in) {
  write(wave, in.dst, F(read<A>(wave, in.src[0]), read<B>(wave, in.src[1])));
}
template <auto F, typename A, typename B>
void two_scc(Wave& wave, const Instruction& in) {
  const auto value = F(read<A>(wave, in.src[0]), read<B>(wave, in.src[1]));
  write(wave, in.dst, value);
  wave.scc = value != 0;
}
// Out f(A, A, SCC): the operation says what SCC becomes.
template <auto F>
void carry(Wave& wave, const Instruction& in) {
  const Out<uint32_t> out = F(read32(wave, in.src[0]), read32(wave, in.src[1]), wave.scc);
  write(wave, in.dst, out.value);
  wave.scc = out.scc;
}
// EXEC = f(S0, EXEC), SCC = EXEC is not zero; the destination gets the old EXEC.
template <auto F>
void save_exec(Wave& wave, const Instruction& in) {
  const uint64_t source = read64(wave, in.src[0]), old = wave.exec(), made = F(source, old);
  wave.set_sgpr64(in.dst.reg, old);
  wave.set_sgpr64(kExec, made);
  wave.scc = made != 0;
}
// The same; the destination gets the new EXEC.
template <auto F>
void write_exec(Wave& wave, const Instruction& in) {
  const uint64_t made = F(read64(wave, in.src[0]), wave.exec());
  wave.set_sgpr64(in.dst.reg, made);
  wave.set_sgpr64(kExec, made);
  wave.scc = made != 0;
}

// ---- operations ------------------------------------------------------------------------------------------

// ---- operations that need more than their operands -------------------------------------------------------

template <typename T>
void conditional_move(Wave& wave, const Instruction& in) {
  if (wave.scc) write(wave, in.dst, read<T>(wave, in.src[0]));
}
template <typename T>
void select(Wave& wave, const Instruction& in) {
  write(wave, in.dst, read<T>(wave, in.src[wave.scc ? 0 : 1]));
}
template <typename T, bool Value>
void set_bit(Wave& wave, const Instruction& in) {
  const T bit = T{1} << (read32(wave, in.src[0]) & (sizeof(T) * 8 - 1));
  const T old =
      sizeof(T) == 8 ? static_cast<T>(wave.sgpr64(in.dst.reg)) : static_cast<T>(wave.sgpr[in.dst.reg]);
  write(wave, in.dst, static_cast<T>(Value ? old | bit : old & ~bit));
}
// Register number plus M0; only what a kernel may name.
unsigned relative(const Wave& wave, unsigned reg, unsigned dwords) {
  const uint64_t at = uint64_t{reg} + wave.sgpr[kM0];
  if (at + dwords > kFlatScratch || at % dwords != 0)
    throw LaunchError(
        format("relative SGPR: s%u + m0 (%u) is no register of the kernel", reg, wave.sgpr[kM0]));
  return static_cast<unsigned>(at);
}
template <typename T>
void move_relative_source(Wave& wave, const Instruction& in) {
  Operand from = in.src[0];
  from.reg = static_cast<uint16_t>(relative(wave, from.reg, sizeof(T) / 4));
  write(wave, in.dst, read<T>(wave, from));
}
template <typename T>
void move_relative_destination(Wave& wave, const Instruction& in) {
  Operand to = in.dst;
  to.reg = static_cast<uint16_t>(relative(wave, to.reg, sizeof(T) / 4));
  write(wave, to, read<T>(wave, in.src[0]));
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) wave.sgpr_defined[to.reg + i] = 1;
}

void move_immediate(Wave& wave, const Instruction& in) { write(wave, in.dst, in.imm); }
void conditional_move_immediate(Wave& wave, const Instruction& in) {
  if (wave.scc) write(wave, in.dst, in.imm);
}
void add_immediate(Wave& wave, const Instruction& in) {
  const Out32 out = add_i32(wave.sgpr[in.dst.reg], static_cast<uint32_t>(in.imm), false);
  write(wave, in.dst, out.value);
  wave.scc = out.scc;
}
void multiply_immediate(Wave& wave, const Instruction& in) {
  write(wave, in.dst, wave.sgpr[in.dst.reg] * static_cast<uint32_t>(in.imm));
}

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

Handler arithmetic_handler(Op op) {
  switch (op) {
    case Op::s_mov_b32:
      return one<same<u32>, u32>;
    case Op::s_mov_b64:
      return one<same<u64>, u64>;
    case Op::s_cmov_b32:
      return conditional_move<u32>;
    case Op::s_cmov_b64:
      return conditional_move<u64>;
    case Op::s_not_b32:
      return one_scc<negated<u32>, u32>;
    case Op::s_not_b64:
      return one_scc<negated<u64>, u64>;
    case Op::s_wqm_b32:
      return one_scc<whole_quads<u32>, u32>;
    case Op::s_wqm_b64:
      return one_scc<whole_quads<u64>, u64>;
    case Op::s_brev_b32:
      return one<reversed<u32>, u32>;
    case Op::s_brev_b64:
      return one<reversed<u64>, u64>;
    case Op::s_bcnt0_i32_b32:
      return one_scc<zeros32, u32>;
    case Op::s_bcnt0_i32_b64:
      return one_scc<zeros64, u64>;
    case Op::s_bcnt1_i32_b32:
      return one_scc<ones, u32>;
    case Op::s_bcnt1_i32_b64:
      return one_scc<ones, u64>;
    case Op::s_ff0_i32_b32:
      return one<first_zero32, u32>;
    case Op::s_ff0_i32_b64:
      return one<first_zero64, u64>;
    case Op::s_ff1_i32_b32:
      return one<first_one, u32>;
    case Op::s_ff1_i32_b64:
      return one<first_one, u64>;
    case Op::s_flbit_i32_b32:
      return one<leading_zeros32, u32>;
    case Op::s_flbit_i32_b64:
      return one<leading_zeros64, u64>;
    case Op::s_flbit_i32:
      return one<sign_bits32, u32>;
    case Op::s_flbit_i32_i64:
      return one<sign_bits64, u64>;
    case Op::s_sext_i32_i8:
      return one<extend8, u32>;
    case Op::s_sext_i32_i16:
      return one<extend16, u32>;
    case Op::s_bitset0_b32:
      return set_bit<u32, false>;
    case Op::s_bitset0_b64:
      return set_bit<u64, false>;
    case Op::s_bitset1_b32:
      return set_bit<u32, true>;
    case Op::s_bitset1_b64:
      return set_bit<u64, true>;
    case Op::s_and_saveexec_b64:
      return save_exec<and_<u64>>;
    case Op::s_or_saveexec_b64:
      return save_exec<or_<u64>>;
    case Op::s_xor_saveexec_b64:
      return save_exec<xor_<u64>>;
    case Op::s_andn2_saveexec_b64:
      return save_exec<andn2<u64>>;
    case Op::s_orn2_saveexec_b64:
      return save_exec<orn2<u64>>;
    case Op::s_nand_saveexec_b64:
      return save_exec<nand<u64>>;
    case Op::s_nor_saveexec_b64:
      return save_exec<nor<u64>>;
    case Op::s_xnor_saveexec_b64:
      return save_exec<xnor<u64>>;
    case Op::s_andn1_saveexec_b64:
      return save_exec<andn1>;
    case Op::s_orn1_saveexec_b64:
      return save_exec<orn1>;
    case Op::s_andn1_wrexec_b64:
      return write_exec<andn1>;
    case Op::s_andn2_wrexec_b64:
      return write_exec<andn2<u64>>;
    case Op::s_quadmask_b32:
      return one_scc<quad_mask<u32>, u32>;
    case Op::s_quadmask_b64:
      return one_scc<quad_mask<u64>, u64>;
    case Op::s_movrels_b32:
      return move_relative_source<u32>;
    case Op::s_movrels_b64:
      return move_relative_source<u64>;
    case Op::s_movreld_b32:
      return move_relative_destination<u32>;
    case Op::s_movreld_b64:
      return move_relative_destination<u64>;
    case Op::s_abs_i32:
      return one_scc<absolute, u32>;
    case Op::s_bitreplicate_b64_b32:
      return one<doubled_bits, u32>;

    case Op::s_add_u32:
      return carry<add_u32>;
    case Op::s_sub_u32:
      return carry<sub_u32>;
    case Op::s_add_i32:
      return carry<add_i32>;
    case Op::s_sub_i32:
      return carry<sub_i32>;
    case Op::s_addc_u32:
      return carry<addc_u32>;
    case Op::s_subb_u32:
      return carry<subb_u32>;
    case Op::s_min_i32:
      return carry<smaller<i32>>;
    case Op::s_min_u32:
      return carry<smaller<u32>>;
    case Op::s_max_i32:
      return carry<larger<i32>>;
    case Op::s_max_u32:
      return carry<larger<u32>>;
    case Op::s_lshl1_add_u32:
      return carry<shift_add<1>>;
    case Op::s_lshl2_add_u32:
      return carry<shift_add<2>>;
    case Op::s_lshl3_add_u32:
      return carry<shift_add<3>>;
    case Op::s_lshl4_add_u32:
      return carry<shift_add<4>>;
    case Op::s_cselect_b32:
      return select<u32>;
    case Op::s_cselect_b64:
      return select<u64>;
    case Op::s_and_b32:
      return two_scc<and_<u32>, u32, u32>;
    case Op::s_and_b64:
      return two_scc<and_<u64>, u64, u64>;
    case Op::s_or_b32:
      return two_scc<or_<u32>, u32, u32>;
    case Op::s_or_b64:
      return two_scc<or_<u64>, u64, u64>;
    case Op::s_xor_b32:
      return two_scc<xor_<u32>, u32, u32>;
    case Op::s_xor_b64:
      return two_scc<xor_<u64>, u64, u64>;
    case Op::s_andn2_b32:
      return two_scc<andn2<u32>, u32, u32>;
    case Op::s_andn2_b64:
      return two_scc<andn2<u64>, u64, u64>;
    case Op::s_orn2_b32:
      return two_scc<orn2<u32>, u32, u32>;
    case Op::s_orn2_b64:
      return two_scc<orn2<u64>, u64, u64>;
    case Op::s_nand_b32:
      return two_scc<nand<u32>, u32, u32>;
    case Op::s_nand_b64:
      return two_scc<nand<u64>, u64, u64>;
    case Op::s_nor_b32:
      return two_scc<nor<u32>, u32, u32>;
    case Op::s_nor_b64:
      return two_scc<nor<u64>, u64, u64>;
    case Op::s_xnor_b32:
      return two_scc<xnor<u32>, u32, u32>;
    case Op::s_xnor_b64:
      return two_scc<xnor<u64>, u64, u64>;
    case Op::s_lshl_b32:
      return two_scc<shifted_left<u32>, u32, u32>;
    case Op::s_lshl_b64:
      return two_scc<shifted_left<u64>, u64, u32>;
    case Op::s_lshr_b32:
      return two_scc<shifted_right<u32>, u32, u32>;
    case Op::s_lshr_b64:
      return two_scc<shifted_right<u64>, u64, u32>;
    case Op::s_ashr_i32:
      return two_scc<arithmetic32, i32, u32>;
    case Op::s_ashr_i64:
      return two_scc<arithmetic64, i64, u32>;
    case Op::s_bfm_b32:
      return two<field_mask<u32>, u32, u32>;
    case Op::s_bfm_b64:
      return two<field_mask<u64>, u32, u32>;
    case Op::s_mul_i32:
      return two<product, u32, u32>;
    case Op::s_bfe_u32:
      return two_scc<field<u32>, u32, u32>;
    case Op::s_bfe_u64:
      return two_scc<field<u64>, u64, u32>;
    case Op::s_bfe_i32:
      return two_scc<signed_field<u32>, u32, u32>;
    case Op::s_bfe_i64:
      return two_scc<signed_field<u64>, u64, u32>;
    case Op::s_absdiff_i32:
      return two_scc<distance, u32, u32>;
    case Op::s_mul_hi_u32:
      return two<product_high, u32, u32>;
    case Op::s_mul_hi_i32:
      return two<product_high_signed, i32, i32>;
    case Op::s_pack_ll_b32_b16:
      return two<pack_ll, u32, u32>;
    case Op::s_pack_lh_b32_b16:
      return two<pack_lh, u32, u32>;
    case Op::s_pack_hh_b32_b16:
      return two<pack_hh, u32, u32>;

    case Op::s_movk_i32:
      return move_immediate;
    case Op::s_cmovk_i32:
      return conditional_move_immediate;
    case Op::s_addk_i32:
      return add_immediate;
    case Op::s_mulk_i32:
      return multiply_immediate;
    default:
      return nullptr;
  }
}

}  // namespace

Handler scalar_handler(const Instruction& instruction) {
  if (const Handler found = arithmetic_handler(instruction.op)) return found;
  if (const Handler found = scalar_compare_handler(instruction.op)) return found;
  return scalar_control_handler(instruction.op);
}

}  // namespace zyfa::emulator
