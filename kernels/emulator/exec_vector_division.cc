// Pieces of exact division (v_div_scale, v_div_fmas, v_div_fixup), exponents (v_ldexp, v_frexp), cube map
// coordinates.
#include "exec_vector_float.hpp"
#include "rounding.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

// ---- one description for the three widths ----------------------------------------------------------------

template <int Bits>
struct Float;
template <>
struct Float<32> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kExponents = 255;
  static constexpr int kFar = 96, kTiny = 23, kScale = 64;
};
template <>
struct Float<64> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kExponents = 2047;
  static constexpr int kFar = 768, kTiny = 53, kScale = 128;
};

template <int N>
struct Number : Float<N> {
  using B = typename Float<N>::Bits;
  using F = Float<N>;
  static constexpr B kOne = 1;
  static constexpr B kSign = kOne << (N - 1), kInfinity = B{F::kExponents} << F::kMantissa;
  static constexpr B kQuiet = kOne << (F::kMantissa - 1), kNan = kInfinity | kQuiet;
  static int exponent(B x) { return static_cast<int>(x >> F::kMantissa & F::kExponents); }
  static B size(B x) { return x & ~kSign; }
  static bool nan(B x) { return size(x) > kInfinity; }
  static bool infinite(B x) { return size(x) == kInfinity; }
  static bool zero(B x) { return size(x) == 0; }
  static bool denormal(B x) { return exponent(x) == 0 && !zero(x); }
};

double value_of(uint32_t bits) { return as_float(bits); }
double value_of(uint64_t bits) { return as_double(bits); }

double power_of_two(int exponent) { return as_double(static_cast<uint64_t>(exponent + 1023) << 52); }

// x * 2^n with one rounding to the width of the result.
uint64_t scaled(uint64_t bits, int n) {
  double value = as_double(bits);
  if (!(value - value == 0) || value == 0) return bits;
  n = n > 4200 ? 4200 : n < -4200 ? -4200 : n;
  // Normalise first, so that only the last step can round.
  int exponent = static_cast<int>(bits >> 52 & 2047);
  if (exponent == 0) {
    value *= 0x1p54;
    exponent = static_cast<int>(as_bits64(value) >> 52 & 2047) - 54;
  }
  const double mantissa = as_double((as_bits64(value) & 0x800fffffffffffff) | 0x3ff0000000000000);
  const int to = exponent - 1023 + n;
  if (to > 1023) return as_bits64(mantissa * 0x1p1023 * 2);
  if (to >= -1022) return as_bits64(mantissa * power_of_two(to));
  return as_bits64(to < -1080 ? mantissa * 0x1p-1022 * 0x1p-100
                              : mantissa * power_of_two(to + 100) * 0x1p-100);
}
uint32_t scaled(uint32_t bits, int n) {
  const double value = as_float(bits);
  if (!(value - value == 0) || value == 0) return bits;
  n = n > 600 ? 600 : n < -600 ? -600 : n;
  return as_bits(static_cast<float>(value * power_of_two(n)));
}

// ---- v_div_scale -----------------------------------------------------------------------------------------

template <int N>
struct Scaled {
  typename Number<N>::B value;
  bool rescale;
};

// Whether 1/b is denormal, and whether n/b is, in this width.
template <int N>
bool quotient_denormal(typename Number<N>::B a, typename Number<N>::B b) {
  if constexpr (N == 32) {
    const double quotient = __builtin_fabs(value_of(a) / value_of(b));
    return quotient != 0 && static_cast<float>(quotient) < 0x1p-126f && static_cast<float>(quotient) != 0;
  } else {
    const double quotient = __builtin_fabs(value_of(a) / value_of(b));
    return quotient != 0 && quotient < 0x1p-1022;
  }
}
template <int N>
bool reciprocal_denormal(typename Number<N>::B b) {
  const double reciprocal = __builtin_fabs(1 / value_of(b));
  return reciprocal != 0 && reciprocal < (N == 32 ? 0x1p-126 : 0x1p-1022);
}

// S0 is the denominator S1 or the numerator S2, whichever shall be scaled. AMD's text differs in two places
// that would make LLVM's division wrong: it asks for a denormal reciprocal of an f32 in f64, and scales a
// denominator up that is so large that its reciprocal and the quotient are denormal.
template <int N>
Scaled<N> scale_for_division(typename Number<N>::B s0, typename Number<N>::B denominator,
                             typename Number<N>::B numerator) {
  using X = Number<N>;
  using F = Float<N>;
  if (X::zero(denominator) || X::zero(numerator)) return {X::kNan, false};
  const bool of_denominator = s0 == denominator, of_numerator = s0 == numerator;
  if (X::exponent(numerator) - X::exponent(denominator) >= F::kFar)
    return {of_denominator ? scaled(s0, F::kScale) : s0, true};
  if (X::denormal(denominator)) return {scaled(s0, F::kScale), false};
  const bool small_reciprocal = reciprocal_denormal<N>(denominator),
             small_quotient = quotient_denormal<N>(numerator, denominator);
  if (small_reciprocal && small_quotient) return {of_denominator ? scaled(s0, -F::kScale) : s0, true};
  if (small_reciprocal) return {scaled(s0, -F::kScale), false};
  if (small_quotient) return {of_numerator ? scaled(s0, F::kScale) : s0, true};
  if (X::exponent(numerator) <= F::kTiny) return {scaled(s0, F::kScale), false};
  return {s0, false};
}

void div_scale32(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result, flags;
  const uint32_t* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  for (int i = 0; i < kLanes; ++i) {
    const Scaled<32> made = scale_for_division<32>(s[0][i], s[1][i], s[2][i]);
    result.lane[i] = made.value;
    flags.lane[i] = made.rescale;
  }
  store(wave, in, result.lane);
  store_mask(wave, in.sdst, mask_of(flags.lane) & exec_of(wave));
}
void div_scale64(Wave& wave, const Instruction& in) {
  Lanes64 s[3], result;
  Lanes flags;
  for (int i = 0; i < 3; ++i) fetch64(wave, in, i, s[i]);
  for (int i = 0; i < kLanes; ++i) {
    const Scaled<64> made = scale_for_division<64>(s[0].lane[i], s[1].lane[i], s[2].lane[i]);
    result.lane[i] = made.value;
    flags.lane[i] = made.rescale;
  }
  store64(wave, in, result);
  store_mask(wave, in.sdst, mask_of(flags.lane) & exec_of(wave));
}

// ---- v_div_fmas ------------------------------------------------------------------------------------------

void require_nearest(unsigned rounding, const char* what) {
  if (rounding != 0) fail("%s outside round-to-nearest-even is not emulated", what);
}

// fma, where VCC is set times 2^64 or 2^-64 (2^128, 2^-128): back to where v_div_scale came from. Up when the
// quotient S2 is 2 or more, as AMD prints for RDNA; CDNA's text has one constant 2^32, which fits no scaling
// of v_div_scale. Rounds once.
float scaled_fma(float a, float b, float c, bool rescale) {
  if (!rescale) return __builtin_fmaf(a, b, c);
  const double factor = Number<32>::exponent(as_bits(c)) > 127 ? 0x1p64 : 0x1p-64;
  return static_cast<float>(add_to_odd(static_cast<double>(a) * b, c) * factor);
}
[[gnu::noipa]] double plain_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
double directed_fma(double a, double b, double c, unsigned mode) {
  const HostRounding rounding(mode);
  return plain_fma(a, b, c);
}
double scaled_fma(double a, double b, double c, bool rescale) {
  const double value = plain_fma(a, b, c);
  if (!rescale) return value;
  if (Number<64>::exponent(as_bits64(c)) > 1023) return value * 0x1p128;
  const double small = value * 0x1p-128;
  // Among denormals this has rounded twice; that shows where `value` fell onto a tie.
  const double lost = value - small * 0x1p128;
  if (__builtin_fabs(lost) != 0x1p-947) return small;
  const bool above = directed_fma(a, b, c, 1) > value, below = directed_fma(a, b, c, 2) < value;
  if (lost > 0 ? above : below) return small + (lost > 0 ? 0x1p-1074 : -0x1p-1074);
  return small;
}
void div_fmas32(Wave& wave, const Instruction& in) {
  require_nearest(wave.mode.round32(), "v_div_fmas_f32");
  Lanes buffers[3], result;
  const uint32_t* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  const uint64_t vcc = pair_of(wave, kVcc);
  const uint32_t keep_in = keep_mask(wave.mode.denormal32_in()),
                 keep_out = keep_mask(wave.mode.denormal32_out());
  for (int i = 0; i < kLanes; ++i) {
    const float value = scaled_fma(as_float(flushed(s[0][i], keep_in)), as_float(flushed(s[1][i], keep_in)),
                                   as_float(flushed(s[2][i], keep_in)), vcc >> i & 1);
    result.lane[i] = flushed(as_bits(value), keep_out);
  }
  settle_nans32(s, 3, result.lane);
  store_float(wave, in, result);
}
void div_fmas64(Wave& wave, const Instruction& in) {
  require_nearest(wave.mode.round16_64(), "v_div_fmas_f64");
  Lanes64 s[3], result;
  for (int i = 0; i < 3; ++i) fetch64(wave, in, i, s[i]);
  const uint64_t vcc = pair_of(wave, kVcc);
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t bits = as_bits64(
        scaled_fma(as_double(s[0].lane[i]), as_double(s[1].lane[i]), as_double(s[2].lane[i]), vcc >> i & 1));
    result.lane[i] = Number<64>::nan(bits) ? Number<64>::kNan : bits;
  }
  store64(wave, in, result);
}

// ---- v_div_fixup -----------------------------------------------------------------------------------------

// The quotient S0 of S2 / S1 with the special cases put right. The documented NaN of 0/0 and inf/inf is
// negative.
template <int N>
typename Number<N>::B fix_quotient(typename Number<N>::B quotient, typename Number<N>::B denominator,
                                   typename Number<N>::B numerator) {
  using X = Number<N>;
  using B = typename X::B;
  const B sign = (denominator ^ numerator) & X::kSign;
  if (X::nan(numerator)) return numerator | X::kQuiet;
  if (X::nan(denominator)) return denominator | X::kQuiet;
  if (X::zero(denominator) && X::zero(numerator)) return X::kSign | X::kNan;
  if (X::infinite(denominator) && X::infinite(numerator)) return X::kSign | X::kNan;
  if (X::zero(denominator) || X::infinite(numerator)) return sign | X::kInfinity;
  if (X::infinite(denominator) || X::zero(numerator)) return sign;
  // Far below the range the quotient is what underflow gives under nearest-even: zero.
  constexpr int kUnderflow = N == 32 ? -150 : -1075;
  if (X::exponent(numerator) - X::exponent(denominator) < kUnderflow) return sign;
  // Of finite operands only overflow on the way makes a NaN.
  if (X::nan(quotient)) return sign | X::kInfinity;
  return sign | X::size(quotient);
}

void div_fixup32(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const uint32_t* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = fix_quotient<32>(s[0][i], s[1][i], s[2][i]);
  store_float(wave, in, result);
}
void div_fixup64(Wave& wave, const Instruction& in) {
  if (in.clamp || in.omod) fail("output modifiers of v_div_fixup_f64 are not emulated");
  Lanes64 s[3], result;
  for (int i = 0; i < 3; ++i) fetch64(wave, in, i, s[i]);
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = fix_quotient<64>(s[0].lane[i], s[1].lane[i], s[2].lane[i]);
  store64(wave, in, result);
}
template <Rest R>
void div_fixup16(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const uint32_t* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w16, buffers[i]);
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t q = s[0][i] & 0xffff, d = s[1][i] & 0xffff, n = s[2][i] & 0xffff;
    const uint32_t sign = (d ^ n) & 0x8000, ds = d & 0x7fff, ns = n & 0x7fff;
    uint32_t made = sign | (q & 0x7fff);
    if (ds == 0x7c00 || ns == 0) made = sign;
    if (ds == 0 || ns == 0x7c00) made = sign | 0x7c00;
    if ((ds == 0 && ns == 0) || (ds == 0x7c00 && ns == 0x7c00)) made = 0xfe00;
    if (is_nan16(d)) made = d | 0x200;
    if (is_nan16(n)) made = n | 0x200;
    result.lane[i] = made;
  }
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, R);
}

// ---- exponents -------------------------------------------------------------------------------------------

void ldexp32(Wave& wave, const Instruction& in) {
  require_nearest(wave.mode.round32(), "v_ldexp_f32");
  Lanes buffers[2], result;
  const uint32_t* s[1] = {fetch(wave, in, 0, Width::w32, buffers[0])};
  const uint32_t* n = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint32_t keep_in = keep_mask(wave.mode.denormal32_in()),
                 keep_out = keep_mask(wave.mode.denormal32_out());
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = flushed(scaled(flushed(s[0][i], keep_in), static_cast<int32_t>(n[i])), keep_out);
  settle_nans32(s, 1, result.lane);
  store_float(wave, in, result);
}
void ldexp64(Wave& wave, const Instruction& in) {
  require_nearest(wave.mode.round16_64(), "v_ldexp_f64");
  if (in.clamp || in.omod) fail("output modifiers of v_ldexp_f64 are not emulated");
  Lanes64 value;
  Lanes buffer;
  fetch64(wave, in, 0, value);
  const uint32_t* n = fetch(wave, in, 1, Width::w32, buffer);
  for (int i = 0; i < kLanes; ++i) {
    value.lane[i] = scaled(value.lane[i], static_cast<int32_t>(n[i]));
    if (Number<64>::nan(value.lane[i])) value.lane[i] |= Number<64>::kQuiet;
  }
  store64(wave, in, value);
}
void ldexp16(Wave& wave, const Instruction& in) {
  Lanes buffers[2], result;
  const uint32_t* s[1] = {fetch(wave, in, 0, Width::w16, buffers[0])};
  const uint32_t* n = fetch(wave, in, 1, Width::w16, buffers[1]);
  for (int i = 0; i < kLanes; ++i) {
    const int by = static_cast<int16_t>(n[i]), bounded = by > 100 ? 100 : by < -100 ? -100 : by;
    const double value = as_float(half_to_float(flushed16(s[0][i], wave.mode.denormal16_64_in())));
    const uint32_t half =
        double_to_half(value * power_of_two(bounded), wave.mode.round16_64(), half_overflow(wave));
    result.lane[i] = flushed16(half, wave.mode.denormal16_64_out());
  }
  settle_nans16(s, 1, result.lane);
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, Rest::zero);
}

// x = m * 2^e with 1/2 <= |m| < 1; of infinity and NaN e is 0 and m is x.
int exponent_of(double x) {
  if (!(x - x == 0) || x == 0) return 0;
  const int field = static_cast<int>(as_bits64(x) >> 52 & 2047);
  return field != 0 ? field - 1022 : static_cast<int>(as_bits64(x * 0x1p54) >> 52 & 2047) - 1022 - 54;
}
uint32_t exponent32(const Wave& wave, uint32_t bits) {
  return static_cast<uint32_t>(exponent_of(as_float(flushed(bits, keep_mask(wave.mode.bits >> 4 & 1)))));
}
void frexp_exp32(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffer);
  for (int i = 0; i < kLanes; ++i) result.lane[i] = exponent32(wave, a[i]);
  store(wave, in, result.lane);
}
void frexp_mant32(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* s[1] = {fetch(wave, in, 0, Width::w32, buffer)};
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t x = flushed(s[0][i], keep_mask(wave.mode.denormal32_in()));
    result.lane[i] = scaled(x, -exponent_of(as_float(x)));
  }
  settle_nans32(s, 1, result.lane);
  store_float(wave, in, result);
}
void frexp_exp64(Wave& wave, const Instruction& in) {
  Lanes64 value;
  Lanes result;
  fetch64(wave, in, 0, value);
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = static_cast<uint32_t>(exponent_of(as_double(value.lane[i])));
  store(wave, in, result.lane);
}
void frexp_mant64(Wave& wave, const Instruction& in) {
  if (in.clamp || in.omod) fail("output modifiers of v_frexp_mant_f64 are not emulated");
  Lanes64 value;
  fetch64(wave, in, 0, value);
  for (uint64_t& lane : value.lane) {
    lane = scaled(lane, -exponent_of(as_double(lane)));
    if (Number<64>::nan(lane)) lane |= Number<64>::kQuiet;
  }
  store64(wave, in, value);
}
void frexp_exp16(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffer);
  for (int i = 0; i < kLanes; ++i) {
    const double value = as_float(half_to_float(flushed16(a[i], wave.mode.denormal16_64_in())));
    result.lane[i] = static_cast<uint32_t>(exponent_of(value)) & 0xffff;
  }
  store16(wave, in, result.lane, Rest::zero);
}
void frexp_mant16(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* s[1] = {fetch(wave, in, 0, Width::w16, buffer)};
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t x = half_to_float(flushed16(s[0][i], wave.mode.denormal16_64_in()));
    result.lane[i] = float_to_half(scaled(x, -exponent_of(as_float(x))));
  }
  settle_nans16(s, 1, result.lane);
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, Rest::zero);
}

// ---- cube maps -------------------------------------------------------------------------------------------

enum class Cube { id, s, t, major };

template <Cube What>
float cube(float x, float y, float z) {
  const float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  if (az >= ax && az >= ay) {
    if (What == Cube::id) return z < 0 ? 5.0f : 4.0f;
    if (What == Cube::s) return z < 0 ? -x : x;
    return What == Cube::t ? -y : z * 2;
  }
  if (ay >= ax) {
    if (What == Cube::id) return y < 0 ? 3.0f : 2.0f;
    if (What == Cube::s) return x;
    return What == Cube::t ? (y < 0 ? -z : z) : y * 2;
  }
  if (What == Cube::id) return x < 0 ? 1.0f : 0.0f;
  if (What == Cube::s) return x < 0 ? z : -z;
  return What == Cube::t ? -y : x * 2;
}
template <Cube What>
void cube_map(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const uint32_t* s[3];
  for (int i = 0; i < 3; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = as_bits(cube<What>(as_float(s[0][i]), as_float(s[1][i]), as_float(s[2][i])));
  store_float(wave, in, result);
}

}  // namespace

Handler division_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_div_scale_f32:
      return div_scale32;
    case Op::v_div_scale_f64:
      return div_scale64;
    case Op::v_div_fmas_f32:
      return div_fmas32;
    case Op::v_div_fmas_f64:
      return in.clamp || in.omod ? nullptr : div_fmas64;
    case Op::v_div_fixup_f32:
      return div_fixup32;
    case Op::v_div_fixup_f64:
      return div_fixup64;
    case Op::v_div_fixup_f16:
      return div_fixup16<Rest::keep>;
    case Op::v_div_fixup_legacy_f16:
      return div_fixup16<Rest::zero>;
    case Op::v_ldexp_f32:
      return ldexp32;
    case Op::v_ldexp_f64:
      return ldexp64;
    case Op::v_ldexp_f16:
      return ldexp16;
    case Op::v_frexp_exp_i32_f32:
      return frexp_exp32;
    case Op::v_frexp_mant_f32:
      return frexp_mant32;
    case Op::v_frexp_exp_i32_f64:
      return frexp_exp64;
    case Op::v_frexp_mant_f64:
      return frexp_mant64;
    case Op::v_frexp_exp_i16_f16:
      return frexp_exp16;
    case Op::v_frexp_mant_f16:
      return frexp_mant16;
    case Op::v_cubeid_f32:
      return cube_map<Cube::id>;
    case Op::v_cubesc_f32:
      return cube_map<Cube::s>;
    case Op::v_cubetc_f32:
      return cube_map<Cube::t>;
    case Op::v_cubema_f32:
      return cube_map<Cube::major>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
