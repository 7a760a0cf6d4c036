// Carries, and 64-bit integers.
#include "exec_vector.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

// Per lane: value and carry out.
struct Sum {
  uint32_t value, carry;
};
Sum add(uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t sum = uint64_t{a} + b + c;
  return {static_cast<uint32_t>(sum), static_cast<uint32_t>(sum >> 32)};
}
Sum sub(uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t rest = uint64_t{a} - b - c;
  return {static_cast<uint32_t>(rest), static_cast<uint32_t>(rest >> 32) & 1};
}
Sum subrev(uint32_t a, uint32_t b, uint32_t c) { return sub(b, a, c); }

template <auto F, bool CarryIn>
void carried(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result, carries;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint64_t carry = CarryIn ? pair_of(wave, in.src[2].reg) : 0;
  for (int i = 0; i < kLanes; ++i) {
    const Sum sum = F(a[i], b[i], static_cast<uint32_t>(carry >> i & 1));
    // With clamp: all ones on overflow of a sum, zero on borrow.
    result.lane[i] = in.clamp && sum.carry ? (F == &add ? ~0u : 0u) : sum.value;
    carries.lane[i] = sum.carry;
  }
  const uint64_t lanes = written_lanes(wave, in);
  if (lanes != exec_of(wave)) fail("a carry under a DPP mask that switches lanes off is not emulated");
  store(wave, in, result.lane);
  store_mask(wave, in.sdst, mask_of(carries.lane) & lanes);
}

template <auto F>
void shift64(Wave& wave, const Instruction& in) {
  Lanes buffer;
  Lanes64 value;
  const uint32_t* amount = fetch(wave, in, 0, Width::w32, buffer);
  fetch64(wave, in, 1, value);
  for (int i = 0; i < kLanes; ++i) value.lane[i] = F(value.lane[i], amount[i] & 63);
  store64(wave, in, value);
}
uint64_t left(uint64_t a, uint32_t n) { return a << n; }
uint64_t right(uint64_t a, uint32_t n) { return a >> n; }
uint64_t arithmetic(uint64_t a, uint32_t n) { return static_cast<uint64_t>(static_cast<int64_t>(a) >> n); }

void shift_add64(Wave& wave, const Instruction& in) {
  Lanes buffer;
  Lanes64 value, sum;
  fetch64(wave, in, 0, value);
  const uint32_t* amount = fetch(wave, in, 1, Width::w32, buffer);
  fetch64(wave, in, 2, sum);
  for (int i = 0; i < kLanes; ++i) {
    // Amounts above 4 are not defined.
    if ((amount[i] & 7) > 4 && (exec_of(wave) >> i & 1))
      fail("v_lshl_add_u64 shifts by %u in lane %d, at most 4 is defined", amount[i] & 7, i);
    sum.lane[i] += value.lane[i] << (amount[i] & 7);
  }
  store64(wave, in, sum);
}

template <bool Signed>
void multiply_add64(Wave& wave, const Instruction& in) {
  Lanes buffers[2], carries;
  Lanes64 sum;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  fetch64(wave, in, 2, sum);
  for (int i = 0; i < kLanes; ++i) {
    const auto x = static_cast<int64_t>(static_cast<int32_t>(a[i])),
               y = static_cast<int64_t>(static_cast<int32_t>(b[i]));
    const uint64_t product = Signed ? static_cast<uint64_t>(x * y) : uint64_t{a[i]} * b[i];
    const uint64_t old = sum.lane[i], made = old + product;
    // Bit 64 of the 65-bit sum; the signed form extends both terms to it.
    const uint64_t carry = made < old;
    carries.lane[i] = static_cast<uint32_t>(Signed ? carry ^ old >> 63 ^ product >> 63 : carry);
    sum.lane[i] = made;
  }
  store64(wave, in, sum);
  store_mask(wave, in.sdst, mask_of(carries.lane) & exec_of(wave));
}

}  // namespace

Handler wide_integer_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_add_co_u32:
      return carried<&add, false>;
    case Op::v_sub_co_u32:
      return carried<&sub, false>;
    case Op::v_subrev_co_u32:
      return carried<&subrev, false>;
    case Op::v_addc_co_u32:
      return carried<&add, true>;
    case Op::v_subb_co_u32:
      return carried<&sub, true>;
    case Op::v_subbrev_co_u32:
      return carried<&subrev, true>;
    case Op::v_lshlrev_b64:
      return shift64<&left>;
    case Op::v_lshrrev_b64:
      return shift64<&right>;
    case Op::v_ashrrev_i64:
      return shift64<&arithmetic>;
    case Op::v_lshl_add_u64:
      return in.clamp ? nullptr : shift_add64;
    case Op::v_mad_u64_u32:
      return in.clamp ? nullptr : multiply_add64<false>;
    case Op::v_mad_i64_i32:
      return in.clamp ? nullptr : multiply_add64<true>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
