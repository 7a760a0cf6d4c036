// v_cvt_*, without the block-scaled family.
#include "exec_vector_small.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

// ---- shapes ----------------------------------------------------------------------------------------------

bool denormals_in(const Wave& wave) { return wave.mode.bits >> 4 & 1; }

// bits f(bits of an f32)
template <auto F>
void from_f32(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffer);
  const uint32_t keep = keep_mask(denormals_in(wave));
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(flushed(a[i], keep));
  store(wave, in, result.lane);
}
// f32 f(bits), exact
template <auto F>
void to_f32(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffer);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = as_bits(F(a[i]));
  store_float(wave, in, result);
}
template <auto F>
[[gnu::noipa]] void rounded_loop(const uint32_t* a, uint32_t* __restrict r) {
  for (int i = 0; i < kLanes; ++i) r[i] = as_bits(F(a[i]));
}
// f32 f(bits) in MODE's rounding
template <auto F>
void to_f32_rounded(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffer);
  {
    const HostRounding rounding(wave.mode.round32());
    rounded_loop<F>(a, result.lane);
  }
  store_float(wave, in, result);
}

// ---- 32-bit integers -------------------------------------------------------------------------------------

uint32_t to_i32(double value) {
  const double bounded =
      value < 2147483647.0 ? (value > -2147483648.0 ? value : -2147483648.0) : 2147483647.0;
  return value != value ? 0 : static_cast<uint32_t>(static_cast<int32_t>(bounded));
}
uint32_t to_u32(double value) {
  const double bounded = value < 4294967295.0 ? (value > 0 ? value : 0) : 4294967295.0;
  return value != value ? 0 : static_cast<uint32_t>(static_cast<int64_t>(bounded));
}
uint32_t i32_f32(uint32_t a) { return to_i32(as_float(a)); }
uint32_t u32_f32(uint32_t a) { return to_u32(as_float(a)); }
// floor(x + 1/2) of the exact sum.
uint32_t rpi_i32_f32(uint32_t a) { return to_i32(__builtin_floor(static_cast<double>(as_float(a)) + 0.5)); }
uint32_t flr_i32_f32(uint32_t a) { return to_i32(__builtin_floorf(as_float(a))); }
float f32_i32(uint32_t a) { return static_cast<float>(static_cast<int32_t>(a)); }
float f32_u32(uint32_t a) { return static_cast<float>(a); }
template <int Byte>
float f32_ubyte(uint32_t a) {
  return static_cast<float>(static_cast<int32_t>(a >> (8 * Byte) & 255));
}
// Signed sixteenths: -0.5 ... 0.4375.
float off_f32_i4(uint32_t a) { return static_cast<float>((static_cast<int32_t>(a & 15) ^ 8) - 8) * 0.0625f; }

// ---- f16 -------------------------------------------------------------------------------------------------

uint32_t half_in_mode(const Wave& wave, uint32_t bits, unsigned rounding) {
  const uint32_t input = flushed(bits, keep_mask(denormals_in(wave)));
  const uint32_t half = is_nan32(input) ? float_to_half(input) | 0x200
                        : rounding == 0 ? float_to_half(input, half_overflow(wave))
                                        : double_to_half(as_float(input), rounding, half_overflow(wave));
  return flushed16(half, wave.mode.bits >> 7 & 1);
}
void f16_f32(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffer);
  const unsigned rounding = wave.mode.round16_64();
  for (int i = 0; i < kLanes; ++i) result.lane[i] = half_in_mode(wave, a[i], rounding);
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, Rest::zero);
}
template <unsigned Rounding>
void pk_f16_f32(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = half_in_mode(wave, a[i], Rounding) | half_in_mode(wave, b[i], Rounding) << 16;
  store(wave, in, result.lane);
}
void f32_f16(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffer);
  const bool keep = wave.mode.bits >> 6 & 1;
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t value = half_to_float(flushed16(a[i], keep));
    result.lane[i] = is_nan32(value) ? value | 0x400000 : value;
  }
  store_float(wave, in, result);
}
template <typename Int>
void f16_int16(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffer);
  const unsigned rounding = wave.mode.round16_64();
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = double_to_half(static_cast<Int>(a[i]), rounding, half_overflow(wave));
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, Rest::zero);
}
double bounded(double value, double low, double high) {
  return value != value ? 0 : value < low ? low : value > high ? high : value;
}
uint32_t u16_of(double value) {
  return static_cast<uint32_t>(static_cast<int32_t>(bounded(value, 0, 65535)));
}
uint32_t i16_of(double value) {
  return static_cast<uint32_t>(static_cast<int32_t>(bounded(value, -32768, 32767))) & 0xffff;
}
uint32_t snorm_of(double value) {
  return static_cast<uint32_t>(static_cast<int32_t>(__builtin_rint(bounded(value, -1, 1) * 32767))) & 0xffff;
}
uint32_t unorm_of(double value) {
  return static_cast<uint32_t>(static_cast<int32_t>(__builtin_rint(bounded(value, 0, 1) * 65535)));
}
double half_value(const Wave& wave, uint32_t half) {
  return as_float(half_to_float(flushed16(half, wave.mode.bits >> 6 & 1)));
}
template <auto F>
void int16_f16(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffer);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(half_value(wave, a[i]));
  store16(wave, in, result.lane, Rest::zero);
}
template <auto F, bool Halves>
void pair_of_norms(Wave& wave, const Instruction& in) {
  constexpr Width kWidth = Halves ? Width::w16 : Width::w32;
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, kWidth, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, kWidth, buffers[1]);
  for (int i = 0; i < kLanes; ++i) {
    const double x = Halves ? half_value(wave, a[i]) : static_cast<double>(as_float(a[i]));
    const double y = Halves ? half_value(wave, b[i]) : static_cast<double>(as_float(b[i]));
    result.lane[i] = F(x) | F(y) << 16;
  }
  store(wave, in, result.lane);
}

// ---- f64 -------------------------------------------------------------------------------------------------

template <auto F>
void int_f64(Wave& wave, const Instruction& in) {
  Lanes64 value;
  Lanes result;
  fetch64(wave, in, 0, value);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = F(as_double(value.lane[i]));
  store(wave, in, result.lane);
}
double f64_of_f32(uint32_t a) { return as_float(a); }
double f64_of_i32(uint32_t a) { return static_cast<int32_t>(a); }
double f64_of_u32(uint32_t a) { return a; }
template <auto F>
void to_f64(Wave& wave, const Instruction& in) {
  if (in.clamp || in.omod) fail("output modifiers of a conversion to f64 are not emulated");
  Lanes buffer;
  Lanes64 result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffer);
  const bool single = in.op == Op::v_cvt_f64_f32;
  const uint32_t keep = keep_mask(denormals_in(wave));
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t bits = single ? flushed(a[i], keep) : a[i];
    result.lane[i] = as_bits64(F(bits));
    if (single && is_nan32(bits))
      result.lane[i] =
          uint64_t{bits & 0x80000000} << 32 | 0x7ff8000000000000 | uint64_t{bits & 0x7fffff} << 29;
  }
  store64(wave, in, result);
}
[[gnu::noipa]] void narrow_loop(const Lanes64& a, uint32_t* __restrict r, uint32_t keep_out) {
  for (int i = 0; i < kLanes; ++i)
    r[i] = flushed(as_bits(static_cast<float>(as_double(a.lane[i]))), keep_out);
}
void f32_f64(Wave& wave, const Instruction& in) {
  // Which of the two rounding fields counts is not documented; they agree in all kernels seen.
  if (wave.mode.round32() != wave.mode.round16_64())
    fail("v_cvt_f32_f64 with different rounding modes for 32 and 64 bits is not emulated");
  Lanes64 value;
  Lanes result;
  fetch64(wave, in, 0, value);
  const bool keep = wave.mode.bits >> 6 & 1;
  for (uint64_t& lane : value.lane)
    if (!keep && !(lane & 0x7ff0000000000000)) lane &= uint64_t{1} << 63;
  {
    const HostRounding rounding(wave.mode.round32());
    narrow_loop(value, result.lane, keep_mask(wave.mode.bits >> 5 & 1));
  }
  for (int i = 0; i < kLanes; ++i)
    if (const double x = as_double(value.lane[i]); x != x)
      result.lane[i] = static_cast<uint32_t>(value.lane[i] >> 32 & 0x80000000) | kNan32 |
                       static_cast<uint32_t>(value.lane[i] >> 29 & 0x3fffff);
  store_float(wave, in, result);
}

// ---- bf16, fp8, bf8 --------------------------------------------------------------------------------------

uint32_t bf16_of(uint32_t bits) {
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return is_nan32(bits) ? bits >> 16 | 0x40 : rounded;
}
void pk_bf16_f32(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint32_t keep = keep_mask(denormals_in(wave));
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = bf16_of(flushed(a[i], keep)) | bf16_of(flushed(b[i], keep)) << 16;
  store(wave, in, result.lane);
}
void f32_bf16(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffer);
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t value = a[i] << 16;
    result.lane[i] = is_nan32(value) ? value | 0x400000 : value;
  }
  store_float(wave, in, result);
}

template <int Mantissa, int Bias>
constexpr Format eight_bits() {
  return Mantissa == 3 ? kFp8 : kBf8;
}
template <int Mantissa, int Bias>
uint32_t small_of(uint32_t bits, uint32_t overflow) {
  const uint32_t rest = bits & 0x7fffffff;
  return finish_code(nearest_code<Mantissa, Bias>(rest), bits >> 31, rest > 0x7f800000, overflow,
                     eight_bits<Mantissa, Bias>());
}
// Two bytes into the half that op_sel[3] names, the other kept. Rounds to nearest whatever MODE says.
template <int Mantissa, int Bias>
void pk_small_f32(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint32_t overflow = overflow_code(wave.mode.bits >> 23 & 1, eight_bits<Mantissa, Bias>());
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = small_of<Mantissa, Bias>(a[i], overflow) | small_of<Mantissa, Bias>(b[i], overflow) << 8;
  store16(wave, in, result.lane, Rest::keep);
}
// One byte, op_sel[3:2] of the destination.
template <int Mantissa, int Bias>
void sr_small_f32(Wave& wave, const Instruction& in) {
  constexpr Format kFormat = eight_bits<Mantissa, Bias>();
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* random = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint32_t* old = wave.vgpr[in.dst.reg];
  const uint32_t overflow = overflow_code(wave.mode.bits >> 23 & 1, kFormat);
  const unsigned shift = 8 * (in.op_sel >> 2 & 3);
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t rest = a[i] & 0x7fffffff;
    const bool special = rest >= 0x7f800000;
    const uint32_t code = special ? 0xffff : stochastic_code(as_float(rest), random[i], kFormat);
    const uint32_t byte = finish_code(code, a[i] >> 31, rest > 0x7f800000, overflow, kFormat);
    result.lane[i] = (old[i] & ~(255u << shift)) | byte << shift;
  }
  store(wave, in, result.lane);
}
// One half, op_sel[3] of the destination.
template <bool Brain>
void sr_half_f32(Wave& wave, const Instruction& in) {
  constexpr Format kFormat = Brain ? kBf16 : kF16;
  Lanes buffers[2], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* random = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint32_t overflow = overflow_code(!Brain && (wave.mode.bits >> 23 & 1), kFormat);
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t rest = a[i] & 0x7fffffff;
    const bool nan = rest > 0x7f800000, infinite = rest == 0x7f800000;
    const uint32_t code = infinite ? kFormat.infinity
                          : nan    ? 0
                                   : stochastic_code(as_float(rest), random[i], kFormat);
    result.lane[i] =
        infinite ? (a[i] >> 31) << 15 | code : finish_code(code, a[i] >> 31, nan, overflow, kFormat);
  }
  store16(wave, in, result.lane, Rest::keep);
}

template <bool Bf8>
uint32_t f32_of_small(uint32_t code) {
  return as_bits(static_cast<float>(decode_small(code & 255, Bf8 ? kBf8 : kFp8)));
}
// Byte 0 of the source, or the one an SDWA selection has put there.
template <bool Bf8>
void f32_small(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffer);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = f32_of_small<Bf8>(a[i]);
  store_float(wave, in, result);
}
template <bool Bf8>
void pk_f32_small(Wave& wave, const Instruction& in) {
  Lanes buffer, low, high;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffer);
  for (int i = 0; i < kLanes; ++i)
    low.lane[i] = f32_of_small<Bf8>(a[i]), high.lane[i] = f32_of_small<Bf8>(a[i] >> 8);
  if (in.clamp || in.omod) modify_output32(wave, in, low.lane), modify_output32(wave, in, high.lane);
  const uint64_t lanes = written_lanes(wave, in);
  blend(wave.vgpr[in.dst.reg], low.lane, lanes);
  blend(wave.vgpr[in.dst.reg + 1], high.lane, lanes);
}

// ---- one byte --------------------------------------------------------------------------------------------

// How the chip rounds here is not documented; Options::byte_rounding chooses.
template <bool Accumulate>
void pk_u8_f32(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* where = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint32_t* old = Accumulate ? wave.vgpr[in.dst.reg] : fetch(wave, in, 2, Width::w32, buffers[2]);
  const bool nearest = wave.group->launch->options.byte_rounding == ByteRounding::nearest_even;
  for (int i = 0; i < kLanes; ++i) {
    const float x = as_float(a[i]);
    const float value = x > 0 ? (x < 255 ? x : 255.0f) : 0.0f;  // NaN becomes 0
    const float whole = nearest ? (value + 0x1p23f) - 0x1p23f : value;
    const auto byte = static_cast<uint32_t>(static_cast<int32_t>(whole));
    const uint32_t shift = 8 * (where[i] & 3);
    result.lane[i] = (old[i] & ~(255u << shift)) | byte << shift;
  }
  store(wave, in, result.lane);
}

}  // namespace

Handler convert_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_cvt_i32_f32:
      return from_f32<i32_f32>;
    case Op::v_cvt_u32_f32:
      return from_f32<u32_f32>;
    case Op::v_cvt_rpi_i32_f32:
      return from_f32<rpi_i32_f32>;
    case Op::v_cvt_flr_i32_f32:
      return from_f32<flr_i32_f32>;
    case Op::v_cvt_f32_i32:
      return to_f32_rounded<f32_i32>;
    case Op::v_cvt_f32_u32:
      return to_f32_rounded<f32_u32>;
    case Op::v_cvt_f32_ubyte0:
      return to_f32<f32_ubyte<0>>;
    case Op::v_cvt_f32_ubyte1:
      return to_f32<f32_ubyte<1>>;
    case Op::v_cvt_f32_ubyte2:
      return to_f32<f32_ubyte<2>>;
    case Op::v_cvt_f32_ubyte3:
      return to_f32<f32_ubyte<3>>;
    case Op::v_cvt_off_f32_i4:
      return to_f32<off_f32_i4>;
    case Op::v_cvt_f16_f32:
      return f16_f32;
    case Op::v_cvt_f32_f16:
      return f32_f16;
    case Op::v_cvt_pk_f16_f32:
      return pk_f16_f32<0>;
    case Op::v_cvt_pkrtz_f16_f32:
      return pk_f16_f32<3>;
    case Op::v_cvt_f16_u16:
      return f16_int16<uint16_t>;
    case Op::v_cvt_f16_i16:
      return f16_int16<int16_t>;
    case Op::v_cvt_u16_f16:
      return int16_f16<u16_of>;
    case Op::v_cvt_i16_f16:
      return int16_f16<i16_of>;
    case Op::v_cvt_norm_i16_f16:
      return int16_f16<snorm_of>;
    case Op::v_cvt_norm_u16_f16:
      return int16_f16<unorm_of>;
    case Op::v_cvt_pknorm_i16_f32:
      return pair_of_norms<snorm_of, false>;
    case Op::v_cvt_pknorm_u16_f32:
      return pair_of_norms<unorm_of, false>;
    case Op::v_cvt_pknorm_i16_f16:
      return pair_of_norms<snorm_of, true>;
    case Op::v_cvt_pknorm_u16_f16:
      return pair_of_norms<unorm_of, true>;
    case Op::v_cvt_i32_f64:
      return int_f64<to_i32>;
    case Op::v_cvt_u32_f64:
      return int_f64<to_u32>;
    case Op::v_cvt_f64_i32:
      return to_f64<f64_of_i32>;
    case Op::v_cvt_f64_u32:
      return to_f64<f64_of_u32>;
    case Op::v_cvt_f64_f32:
      return to_f64<f64_of_f32>;
    case Op::v_cvt_f32_f64:
      return f32_f64;
    case Op::v_cvt_f32_bf16:
      return f32_bf16;
    case Op::v_cvt_pk_bf16_f32:
      return pk_bf16_f32;
    case Op::v_cvt_pk_fp8_f32:
      return pk_small_f32<3, 7>;
    case Op::v_cvt_pk_bf8_f32:
      return pk_small_f32<2, 15>;
    case Op::v_cvt_sr_fp8_f32:
      return sr_small_f32<3, 7>;
    case Op::v_cvt_sr_bf8_f32:
      return sr_small_f32<2, 15>;
    case Op::v_cvt_sr_f16_f32:
      return sr_half_f32<false>;
    case Op::v_cvt_sr_bf16_f32:
      return sr_half_f32<true>;
    case Op::v_cvt_f32_fp8:
      return f32_small<false>;
    case Op::v_cvt_f32_bf8:
      return f32_small<true>;
    case Op::v_cvt_pk_f32_fp8:
      return pk_f32_small<false>;
    case Op::v_cvt_pk_f32_bf8:
      return pk_f32_small<true>;
    case Op::v_cvt_pk_u8_f32:
      return pk_u8_f32<false>;
    case Op::v_cvt_pkaccum_u8_f32:
      return pk_u8_f32<true>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
