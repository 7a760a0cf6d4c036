// v_exp, v_log, v_rcp, v_rsq, v_sqrt, v_sin, v_cos for f32 and f16, evaluated in f64 with additions and
// multiplications only (and IEEE division and square root), so that every host gives the same bits. Errors
// against the exact value, in units of the last place of f32: below 0.5001
// (tests/kernels/emulator/test_vector_transcendental.py); the chip is documented with 1.
//
// The f32 forms read and return denormals as 0 whatever MODE says: LLVM scales around them for that reason.
// The f16 forms follow MODE.
#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

// sum of k[n] x^n, Horner
template <int N>
double polynomial(const double (&k)[N], double x) {
  double sum = k[N - 1];
  for (int n = N - 2; n >= 0; --n) sum = sum * x + k[n];
  return sum;
}

constexpr double kRound = 0x1.8p52;  // adding and subtracting it rounds to an integer

// 2^x for x in [-2000, 2000]: 2^n 2^f, |f| <= 1/2; Taylor coefficients ln(2)^n / n!, remainder below 2^-51.
double exp2_of(double x) {
  constexpr double kTerms[13] = {1.0,
                                 0x1.62e42fefa39efp-1,
                                 0x1.ebfbdff82c58fp-3,
                                 0x1.c6b08d704a0cp-5,
                                 0x1.3b2ab6fba4e77p-7,
                                 0x1.5d87fe78a6731p-10,
                                 0x1.430912f86c787p-13,
                                 0x1.ffcbfc588b0c7p-17,
                                 0x1.62c0223a5c824p-20,
                                 0x1.b5253d395e7c4p-24,
                                 0x1.e4cf5158b8ecap-28,
                                 0x1.e8cac7351bb25p-32,
                                 0x1.c3bd650fc2986p-36};
  const double shifted = x + kRound;
  const double f = x - (shifted - kRound);
  // The low bits of `shifted` hold n; the factor 2^n in two steps reaches the denormals of f64.
  const int64_t n = static_cast<int64_t>(as_bits64(shifted) << 32) >> 32;
  const int64_t half = n >> 1;
  const double low = as_double(static_cast<uint64_t>(half + 1023) << 52);
  const double high = as_double(static_cast<uint64_t>(n - half + 1023) << 52);
  return polynomial(kTerms, f) * low * high;
}

struct Exp {
  static double apply(double x) {
    const double bounded = x > -2000 ? (x < 2000 ? x : 2000) : -2000;
    const double value = exp2_of(bounded);
    return x != x ? x : value;
  }
};

// log2 of a positive normal f64: exponent + log2(m), m in [sqrt(1/2), sqrt(2)), by the series of atanh.
struct Log {
  static double apply(double x) {
    constexpr double kTerms[12] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                   1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
    constexpr double kTwoLog2E = 0x1.71547652b82fep1;
    const uint64_t bits = as_bits64(x);
    // Subtracting the bits of sqrt(1/2) before the exponent is taken puts m into the interval.
    const int64_t e = static_cast<int64_t>(bits - 0x3fe6a09e667f3bcd) >> 52;
    const double m = as_double(bits - (static_cast<uint64_t>(e) << 52));
    const double s = (m - 1) / (m + 1);
    // e as a double without an integer conversion: 1.5 * 2^52 + e.
    const double exponent = as_double(static_cast<uint64_t>(e) + 0x4338000000000000) - kRound;
    const double value = exponent + kTwoLog2E * s * polynomial(kTerms, s * s);
    const double infinity = __builtin_inf();
    const double edge = x == 0 ? -infinity : x > 0 ? x : __builtin_nan("");
    return x > 0 && x < infinity ? value : edge;
  }
};

struct Reciprocal {
  static double apply(double x) { return 1 / x; }
};
struct ReciprocalRoot {
  static double apply(double x) { return 1 / __builtin_sqrt(x); }
};
struct Root {
  static double apply(double x) { return __builtin_sqrt(x); }
};

// sin(2 pi r), |r| <= 1/4: Taylor in (2 pi r)^2, remainder below 2^-52.
double sine_turns(double r) {
  constexpr double kTerms[11] = {1.0,
                                 -1.0 / 6,
                                 1.0 / 120,
                                 -1.0 / 5040,
                                 1.0 / 362880,
                                 -1.0 / 39916800,
                                 1.0 / 6227020800,
                                 -1.0 / 1307674368000,
                                 1.0 / 355687428096000,
                                 -1.0 / 121645100408832000,
                                 1.0 / 51090942171709440000.0};
  const double t = r * 0x1.921fb54442d18p2;
  return t * polynomial(kTerms, t * t);
}
constexpr double kTurns = 256;  // past +-256 turns the chip returns 0 and 1

struct Sin {
  static double apply(double x) {
    const double size = __builtin_fabs(x);
    const double bounded = size <= kTurns ? x : 0.0;
    const double r = bounded - ((bounded + kRound) - kRound);
    const double folded = r > 0.25 ? 0.5 - r : r < -0.25 ? -0.5 - r : r;
    const double value = sine_turns(folded);
    const double number = bounded == 0 ? bounded : value;
    return size < __builtin_inf() ? number : __builtin_nan("");
  }
};
struct Cos {
  static double apply(double x) {
    const double size = __builtin_fabs(x);
    const double bounded = size <= kTurns ? x : 0.0;
    const double r = bounded - ((bounded + kRound) - kRound);
    const double value = sine_turns(0.25 - __builtin_fabs(r));
    return size < __builtin_inf() ? value : __builtin_nan("");
  }
};

template <class Op>
[[gnu::noipa]] uint32_t loop32(const uint32_t* a, uint32_t* __restrict r) {
  uint32_t nans = 0;
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t x = flushed(a[i], 0x80000000u);
    const auto value = static_cast<float>(Op::apply(static_cast<double>(as_float(x))));
    nans += value != value ? 1u : 0u;
    r[i] = flushed(as_bits(value), 0x80000000u);
  }
  return nans;
}

template <class Op>
void single(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* s[1] = {fetch(wave, in, 0, Width::w32, buffer)};
  if (loop32<Op>(s[0], result.lane) != 0) settle_nans32(s, 1, result.lane);
  store_float(wave, in, result);
}

template <class Op>
void half(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* s[1] = {fetch(wave, in, 0, Width::w16, buffer)};
  const bool denormals_in = wave.mode.denormal16_64_in(), denormals_out = wave.mode.denormal16_64_out();
  for (int i = 0; i < kLanes; ++i) {
    const double value =
        Op::apply(static_cast<double>(as_float(half_to_float(flushed16(s[0][i], denormals_in)))));
    result.lane[i] = flushed16(double_to_half(value), denormals_out);
  }
  settle_nans16(s, 1, result.lane);
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, Rest::zero);
}

}  // namespace

Handler transcendental_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_exp_f32:
      return single<Exp>;
    case Op::v_log_f32:
      return single<Log>;
    case Op::v_rcp_f32:
    case Op::v_rcp_iflag_f32:
      return single<Reciprocal>;
    case Op::v_rsq_f32:
      return single<ReciprocalRoot>;
    case Op::v_sqrt_f32:
      return single<Root>;
    case Op::v_sin_f32:
      return single<Sin>;
    case Op::v_cos_f32:
      return single<Cos>;
    case Op::v_exp_f16:
      return half<Exp>;
    case Op::v_log_f16:
      return half<Log>;
    case Op::v_rcp_f16:
      return half<Reciprocal>;
    case Op::v_rsq_f16:
      return half<ReciprocalRoot>;
    case Op::v_sqrt_f16:
      return half<Root>;
    case Op::v_sin_f16:
      return half<Sin>;
    case Op::v_cos_f16:
      return half<Cos>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
