// v_dot*: sums of products of packed elements, added to a 32-bit accumulator.
#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

bool is_vop3p(const Instruction& in) { return in.info->format == Format::vop3p; }

const uint32_t* raw(const Wave& wave, const Instruction& in, int source, Lanes& into) {
  Instruction plain_form = in;
  plain_form.op_sel = 0;
  plain_form.src[source].neg = plain_form.src[source].abs = false;
  const uint32_t* from = fetch(wave, plain_form, source, Width::w32, into);
  if (from != into.lane) std::memcpy(into.lane, from, sizeof into.lane);
  return into.lane;
}

// ---- integers --------------------------------------------------------------------------------------------

// Elements of Bits bits, signed or not. With clamp the sum saturates.
template <int Bits, bool Signed>
void integers(Wave& wave, const Instruction& in) {
  if (is_vop3p(in) && (in.op_sel != 0 || (Bits == 16 && (in.op_sel_hi & 3) != 3)))
    fail("v_dot with op_sel is not emulated");
  Lanes buffers[3], result;
  const uint32_t* a = raw(wave, in, 0, buffers[0]);
  const uint32_t* b = raw(wave, in, 1, buffers[1]);
  const uint32_t* c = raw(wave, in, 2, buffers[2]);
  constexpr uint32_t kMask = (1u << Bits) - 1, kSign = Signed ? 1u << (Bits - 1) : 0;
  for (int i = 0; i < kLanes; ++i) {
    int64_t sum = Signed ? int64_t{static_cast<int32_t>(c[i])} : int64_t{c[i]};
    for (int shift = 0; shift < 32; shift += Bits) {
      const auto x = static_cast<int64_t>((a[i] >> shift & kMask) ^ kSign) - kSign;
      const auto y = static_cast<int64_t>((b[i] >> shift & kMask) ^ kSign) - kSign;
      sum += x * y;
    }
    if (in.clamp) {
      const int64_t low = Signed ? INT32_MIN : 0, high = Signed ? INT32_MAX : int64_t{UINT32_MAX};
      sum = sum < low ? low : sum > high ? high : sum;
    }
    result.lane[i] = static_cast<uint32_t>(static_cast<uint64_t>(sum));
  }
  store(wave, in, result.lane);
}

// ---- floats ----------------------------------------------------------------------------------------------

// Products are exact in f64. How often the chip rounds on the way is not documented: one rounding of the
// exact sum here.
double exact_sum(double a, double b, double c) {
  const double sum = a + b, part = sum - a;
  const double rest = (a - (sum - part)) + (b - part);
  const double total = sum + c, part2 = total - sum;
  const double rest2 = (sum - (total - part2)) + (c - part2) + rest;
  // Round to odd, so that the rounding to f32 sees what was lost.
  uint64_t bits = as_bits64(total);
  if (total - total != 0 || rest2 == 0 || rest2 != rest2 || (bits & 1)) return total;
  bits = (rest2 > 0) == (total > 0) ? bits + 1 : bits - 1;
  return as_double(bits);
}

template <bool Brain>
void floats(Wave& wave, const Instruction& in) {
  if (wave.mode.round32() != 0) fail("v_dot2 of floats outside round-to-nearest-even is not emulated");
  Lanes buffers[3], result;
  const uint32_t* a = raw(wave, in, 0, buffers[0]);
  const uint32_t* b = raw(wave, in, 1, buffers[1]);
  const uint32_t* c = raw(wave, in, 2, buffers[2]);
  const auto element = [&](const uint32_t* from, int i, int source, bool high) {
    const bool upper = is_vop3p(in) ? (high ? in.op_sel_hi : in.op_sel) >> source & 1 : high;
    const uint32_t half = from[i] >> (upper ? 16 : 0) & 0xffff;
    const double value = as_float(Brain ? half << 16 : half_to_float(half));
    return (high ? in.src[source].abs : in.src[source].neg) ? -value : value;
  };
  for (int i = 0; i < kLanes; ++i) {
    const double low = element(a, i, 0, false) * element(b, i, 1, false);
    const double high = element(a, i, 0, true) * element(b, i, 1, true);
    const double old = as_float(in.src[2].neg ? c[i] ^ 0x80000000 : c[i]);
    const uint32_t bits = as_bits(static_cast<float>(exact_sum(low, high, old)));
    result.lane[i] = is_nan32(bits) ? kNan32 : flushed(bits, keep_mask(wave.mode.denormal32_out()));
  }
  store_float(wave, in, result);
}

}  // namespace

Handler dot_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_dot2_f32_bf16:
    case Op::v_dot2c_f32_bf16:
      return floats<true>;
    case Op::v_dot2_f32_f16:
    case Op::v_dot2c_f32_f16:
      return floats<false>;
    case Op::v_dot2_i32_i16:
    case Op::v_dot2c_i32_i16:
      return integers<16, true>;
    case Op::v_dot2_u32_u16:
      return integers<16, false>;
    case Op::v_dot4_i32_i8:
    case Op::v_dot4c_i32_i8:
      return integers<8, true>;
    case Op::v_dot4_u32_u8:
      return integers<8, false>;
    case Op::v_dot8_i32_i4:
    case Op::v_dot8c_i32_i4:
      return integers<4, true>;
    case Op::v_dot8_u32_u4:
      return integers<4, false>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
