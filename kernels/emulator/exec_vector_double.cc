// f64 arithmetic.
#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

constexpr uint64_t kNan64 = 0x7ff8000000000000, kQuiet64 = 0x0008000000000000,
                   kExponent64 = 0x7ff0000000000000;

bool is_nan64(uint64_t bits) { return (bits & ~(uint64_t{1} << 63)) > kExponent64; }
uint64_t flushed64(uint64_t bits, bool denormals) {
  return denormals || (bits & kExponent64) ? bits : bits & uint64_t{1} << 63;
}

void settle_nans(const Lanes64* sources, int count, Lanes64& result) {
  for (int i = 0; i < kLanes; ++i) {
    if (!is_nan64(result.lane[i])) continue;
    result.lane[i] = kNan64;
    for (int s = count - 1; s >= 0; --s)
      if (is_nan64(sources[s].lane[i])) result.lane[i] = sources[s].lane[i] | kQuiet64;
  }
}

void modify_output(const Wave& wave, const Instruction& in, Lanes64& result) {
  static constexpr double kFactors[4] = {1, 2, 4, 0.5};
  const bool scaled = in.omod != 0 && !wave.mode.denormal16_64_out() && !wave.mode.ieee();
  for (uint64_t& lane : result.lane) {
    if (is_nan64(lane)) {
      if (in.clamp && wave.mode.dx10_clamp()) lane = 0;
      continue;
    }
    double value = as_double(lane);
    if (scaled) value = as_double(flushed64(as_bits64(value * kFactors[in.omod & 3]), false)) + 0.0;
    if (in.clamp) value = value > 1 ? 1 : value > 0 ? value : 0;
    lane = as_bits64(value);
  }
}

template <class Op>
[[gnu::noipa]] void arithmetic_loop(const Lanes64* s, Lanes64& r, bool denormals_in, bool denormals_out) {
  for (int i = 0; i < kLanes; ++i) {
    const double a = as_double(flushed64(s[0].lane[i], denormals_in));
    const double b = Op::kSources > 1 ? as_double(flushed64(s[1].lane[i], denormals_in)) : 0;
    const double c = Op::kSources > 2 ? as_double(flushed64(s[2].lane[i], denormals_in)) : 0;
    r.lane[i] = flushed64(as_bits64(Op::apply(a, b, c)), denormals_out);
  }
}

template <class Op>
void arithmetic(Wave& wave, const Instruction& in) {
  Lanes64 s[3], result;
  for (int i = 0; i < Op::kSources; ++i) fetch64(wave, in, i, s[i]);
  {
    const HostRounding rounding(Op::kExactRounding ? 0 : wave.mode.round16_64());
    arithmetic_loop<Op>(s, result, wave.mode.denormal16_64_in(), wave.mode.denormal16_64_out());
  }
  settle_nans(s, Op::kSources, result);
  if (in.clamp || in.omod) modify_output(wave, in, result);
  store64(wave, in, result);
}

bool is_signalling(uint64_t bits) { return is_nan64(bits) && !(bits & kQuiet64); }

template <bool Maximum>
uint64_t chosen(uint64_t a, uint64_t b, bool ieee) {
  if (ieee && is_signalling(a)) return a | kQuiet64;
  if (ieee && is_signalling(b)) return b | kQuiet64;
  if (is_nan64(a)) return b;
  if (is_nan64(b)) return a;
  const double x = as_double(a), y = as_double(b);
  if (x == y) return Maximum ? a & b : a | b;
  return (Maximum ? x > y : x < y) ? a : b;
}

template <bool Maximum>
void selection(Wave& wave, const Instruction& in) {
  Lanes64 a, b, result;
  fetch64(wave, in, 0, a);
  fetch64(wave, in, 1, b);
  const bool ieee = wave.mode.ieee(), keep = wave.mode.denormal16_64_in() && wave.mode.denormal16_64_out();
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = chosen<Maximum>(flushed64(a.lane[i], keep), flushed64(b.lane[i], keep), ieee);
  if (in.clamp || in.omod) modify_output(wave, in, result);
  store64(wave, in, result);
}

template <int N>
struct Rounded : Sources<N> {
  static constexpr bool kExactRounding = false;
};
struct Add : Rounded<2> {
  static double apply(double a, double b, double) { return a + b; }
};
struct Mul : Rounded<2> {
  static double apply(double a, double b, double) { return a * b; }
};
struct Fma : Rounded<3> {
  static double apply(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Fract : Rounded<1> {
  static double apply(double a, double, double) { return a - __builtin_floor(a); }
};
struct Nearest : Sources<1> {
  static constexpr bool kExactRounding = true;
};
struct Trunc : Nearest {
  static double apply(double a, double, double) { return __builtin_trunc(a); }
};
struct Ceil : Nearest {
  static double apply(double a, double, double) { return __builtin_ceil(a); }
};
struct Floor : Nearest {
  static double apply(double a, double, double) { return __builtin_floor(a); }
};
struct RoundEven : Nearest {
  static double apply(double a, double, double) { return __builtin_rint(a); }
};
// The chip gives about 2^-26 relative here; the nearest value is inside that.
struct Reciprocal : Nearest {
  static double apply(double a, double, double) { return 1 / a; }
};
struct ReciprocalRoot : Nearest {
  static double apply(double a, double, double) { return 1 / __builtin_sqrt(a); }
};
struct Root : Nearest {
  static double apply(double a, double, double) { return __builtin_sqrt(a); }
};

}  // namespace

Handler double_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_add_f64:
      return arithmetic<Add>;
    case Op::v_mul_f64:
      return arithmetic<Mul>;
    case Op::v_fma_f64:
    case Op::v_fmac_f64:
      return arithmetic<Fma>;
    case Op::v_max_f64:
      return selection<true>;
    case Op::v_min_f64:
      return selection<false>;
    case Op::v_trunc_f64:
      return arithmetic<Trunc>;
    case Op::v_ceil_f64:
      return arithmetic<Ceil>;
    case Op::v_floor_f64:
      return arithmetic<Floor>;
    case Op::v_rndne_f64:
      return arithmetic<RoundEven>;
    case Op::v_fract_f64:
      return arithmetic<Fract>;
    case Op::v_rcp_f64:
      return arithmetic<Reciprocal>;
    case Op::v_rsq_f64:
      return arithmetic<ReciprocalRoot>;
    case Op::v_sqrt_f64:
      return arithmetic<Root>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
