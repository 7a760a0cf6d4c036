// SOPC and the compares of SOPK: SCC = relation holds.
#include "exec_scalar.hpp"

namespace zyfa::emulator {
namespace {

enum class Relation { eq, ne, gt, ge, lt, le };

template <Relation R, typename T>
bool holds(T a, T b) {
  switch (R) {
    case Relation::eq:
      return a == b;
    case Relation::ne:
      return a != b;
    case Relation::gt:
      return a > b;
    case Relation::ge:
      return a >= b;
    case Relation::lt:
      return a < b;
    default:
      return a <= b;
  }
}

template <Relation R, typename T>
void compare(Wave& wave, const Instruction& in) {
  if constexpr (sizeof(T) == 8)
    wave.scc = holds<R, T>(read64(wave, in.src[0]), read64(wave, in.src[1]));
  else
    wave.scc = holds<R, T>(static_cast<T>(read32(wave, in.src[0])), static_cast<T>(read32(wave, in.src[1])));
}

// The register stands in the destination's place of the encoding.
template <Relation R, typename T>
void compare_immediate(Wave& wave, const Instruction& in) {
  const Operand& reg = in.dst ? in.dst : in.src[0];
  const int32_t immediate = std::is_signed_v<T> ? in.imm : in.imm & 0xffff;
  wave.scc = holds<R, T>(static_cast<T>(read32(wave, reg)), static_cast<T>(immediate));
}

template <typename T, bool Value>
void compare_bit(Wave& wave, const Instruction& in) {
  const uint64_t bits = sizeof(T) == 8 ? read64(wave, in.src[0]) : read32(wave, in.src[0]);
  wave.scc = (bits >> (read32(wave, in.src[1]) & (sizeof(T) * 8 - 1)) & 1) == Value;
}

}  // namespace

Handler scalar_compare_handler(Op op) {
  switch (op) {
    case Op::s_cmp_eq_i32:
      return compare<Relation::eq, int32_t>;
    case Op::s_cmp_lg_i32:
      return compare<Relation::ne, int32_t>;
    case Op::s_cmp_gt_i32:
      return compare<Relation::gt, int32_t>;
    case Op::s_cmp_ge_i32:
      return compare<Relation::ge, int32_t>;
    case Op::s_cmp_lt_i32:
      return compare<Relation::lt, int32_t>;
    case Op::s_cmp_le_i32:
      return compare<Relation::le, int32_t>;
    case Op::s_cmp_eq_u32:
      return compare<Relation::eq, uint32_t>;
    case Op::s_cmp_lg_u32:
      return compare<Relation::ne, uint32_t>;
    case Op::s_cmp_gt_u32:
      return compare<Relation::gt, uint32_t>;
    case Op::s_cmp_ge_u32:
      return compare<Relation::ge, uint32_t>;
    case Op::s_cmp_lt_u32:
      return compare<Relation::lt, uint32_t>;
    case Op::s_cmp_le_u32:
      return compare<Relation::le, uint32_t>;
    case Op::s_cmp_eq_u64:
      return compare<Relation::eq, uint64_t>;
    case Op::s_cmp_lg_u64:
      return compare<Relation::ne, uint64_t>;
    case Op::s_bitcmp0_b32:
      return compare_bit<uint32_t, false>;
    case Op::s_bitcmp1_b32:
      return compare_bit<uint32_t, true>;
    case Op::s_bitcmp0_b64:
      return compare_bit<uint64_t, false>;
    case Op::s_bitcmp1_b64:
      return compare_bit<uint64_t, true>;
    case Op::s_cmpk_eq_i32:
      return compare_immediate<Relation::eq, int32_t>;
    case Op::s_cmpk_lg_i32:
      return compare_immediate<Relation::ne, int32_t>;
    case Op::s_cmpk_gt_i32:
      return compare_immediate<Relation::gt, int32_t>;
    case Op::s_cmpk_ge_i32:
      return compare_immediate<Relation::ge, int32_t>;
    case Op::s_cmpk_lt_i32:
      return compare_immediate<Relation::lt, int32_t>;
    case Op::s_cmpk_le_i32:
      return compare_immediate<Relation::le, int32_t>;
    case Op::s_cmpk_eq_u32:
      return compare_immediate<Relation::eq, uint32_t>;
    case Op::s_cmpk_lg_u32:
      return compare_immediate<Relation::ne, uint32_t>;
    case Op::s_cmpk_gt_u32:
      return compare_immediate<Relation::gt, uint32_t>;
    case Op::s_cmpk_ge_u32:
      return compare_immediate<Relation::ge, uint32_t>;
    case Op::s_cmpk_lt_u32:
      return compare_immediate<Relation::lt, uint32_t>;
    case Op::s_cmpk_le_u32:
      return compare_immediate<Relation::le, uint32_t>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator
