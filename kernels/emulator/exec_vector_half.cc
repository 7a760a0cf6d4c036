// f16 arithmetic. Values are widened to f64, where sums and products of two halves are exact and a fused
// multiply-add loses bits only far below the last one of the result, so that one more rounding gives the
// right half in every mode.
#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {

uint32_t double_to_half(double value, unsigned rounding, uint32_t largest) {
  if (rounding == 0) return double_to_half(value, largest);
  const uint64_t bits = as_bits64(value), rest = bits & 0x7fffffffffffffff;
  const uint32_t sign = static_cast<uint32_t>(bits >> 48 & 0x8000);
  if (rest >= 0x7ff0000000000000 || rest == 0) return double_to_half(value, largest);
  const bool away = sign ? rounding == 2 : rounding == 1;
  if (rest >= 0x40f0000000000000) return sign | (away ? largest : 0x7bff);  // 65536 and more
  const int exponent = static_cast<int>(rest >> 52) - 1023;
  const int lost =
      exponent >= -14 ? 42 : 42 + (-14 - exponent);  // bits of the significand below the last one kept
  const uint64_t significand = (rest & 0xfffffffffffff) | uint64_t{exponent > -1023} << 52;
  const uint64_t kept = lost >= 63 ? 0 : significand >> lost;
  const bool inexact = lost >= 63 || (significand & ((uint64_t{1} << lost) - 1)) != 0;
  uint32_t half =
      static_cast<uint32_t>(kept) + (exponent >= -14 ? static_cast<uint32_t>(exponent + 14) << 10 : 0);
  half += inexact && away;
  return sign | (half >= 0x7c00 ? largest : half);
}

void settle_nans16(const uint32_t* const* sources, int count, uint32_t* result) {
  for (int i = 0; i < kLanes; ++i) {
    if (!is_nan16(result[i])) continue;
    result[i] = kNan16;
    for (int s = count - 1; s >= 0; --s)
      if (is_nan16(sources[s][i])) result[i] = (sources[s][i] & 0xffff) | 0x200;
  }
}

void modify_output16(const Wave& wave, const Instruction& in, uint32_t* result) {
  static constexpr double kFactors[4] = {1, 2, 4, 0.5};
  const auto value_of = [](uint32_t half) { return static_cast<double>(as_float(half_to_float(half))); };
  if (in.omod != 0 && !wave.mode.denormal16_64_out() && !wave.mode.ieee())
    for (int i = 0; i < kLanes; ++i) {
      if (is_nan16(result[i])) continue;
      result[i] =
          flushed16(double_to_half(value_of(result[i]) * kFactors[in.omod & 3], half_overflow(wave)), false);
      if (result[i] == 0x8000) result[i] = 0;
    }
  if (!in.clamp) return;
  for (int i = 0; i < kLanes; ++i) {
    if (is_nan16(result[i])) {
      if (wave.mode.dx10_clamp()) result[i] = 0;
      continue;
    }
    const double value = value_of(result[i]);
    result[i] = value > 1 ? 0x3c00 : value > 0 ? result[i] : 0;
  }
}

namespace {

template <class Op, bool Nearest>
[[gnu::noipa]] void arithmetic_loop(const uint32_t* a, const uint32_t* b, const uint32_t* c,
                                    uint32_t* __restrict r, const Mode mode, uint32_t largest) {
  const bool in = mode.bits >> 6 & 1, out = mode.bits >> 7 & 1;
  const auto widened = [in](uint32_t half) {
    return static_cast<double>(as_float(half_to_float(flushed16(half, in))));
  };
  for (int i = 0; i < kLanes; ++i) {
    const double value = Op::apply(widened(a[i]), Op::kSources > 1 ? widened(b[i]) : 0.0,
                                   Op::kSources > 2 ? widened(c[i]) : 0.0);
    const uint32_t half =
        Nearest ? double_to_half(value, largest) : double_to_half(value, mode.bits >> 2 & 3, largest);
    r[i] = flushed16(half, out);
  }
}

template <class Op, Rest R = Rest::zero>
void arithmetic(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const uint32_t* s[3] = {nullptr, nullptr, nullptr};
  for (int i = 0; i < Op::kSources; ++i) s[i] = fetch(wave, in, i, Width::w16, buffers[i]);
  const uint32_t largest = half_overflow(wave);
  if (wave.mode.round16_64() == 0 || Op::kExactRounding) {
    arithmetic_loop<Op, true>(s[0], s[1], s[2], result.lane, wave.mode, largest);
  } else {
    const HostRounding rounding(wave.mode.round16_64());
    arithmetic_loop<Op, false>(s[0], s[1], s[2], result.lane, wave.mode, largest);
  }
  settle_nans16(s, Op::kSources, result.lane);
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, R);
}

template <template <bool> class Op, Rest R = Rest::zero>
void selection(Wave& wave, const Instruction& in) {
  constexpr int kSources = Op<false>::kSources;
  Lanes buffers[3], result;
  const uint32_t* s[3] = {nullptr, nullptr, nullptr};
  for (int i = 0; i < kSources; ++i) s[i] = fetch(wave, in, i, Width::w16, buffers[i]);
  const bool ieee = wave.mode.ieee(), keep = wave.mode.denormal16_64_in() && wave.mode.denormal16_64_out();
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t a = half_to_float(flushed16(s[0][i], keep)), b = half_to_float(flushed16(s[1][i], keep));
    const uint32_t c = kSources > 2 ? half_to_float(flushed16(s[2][i], keep)) : 0;
    result.lane[i] = float_to_half(ieee ? Op<true>::apply(a, b, c) : Op<false>::apply(a, b, c));
  }
  if (in.clamp || in.omod) modify_output16(wave, in, result.lane);
  store16(wave, in, result.lane, R);
}

template <int N>
struct Rounded : Sources<N> {
  static constexpr bool kExactRounding = false;
};
struct Add : Rounded<2> {
  static double apply(double a, double b, double) { return a + b; }
};
struct Sub : Rounded<2> {
  static double apply(double a, double b, double) { return a - b; }
};
struct SubRev : Rounded<2> {
  static double apply(double a, double b, double) { return b - a; }
};
struct Mul : Rounded<2> {
  static double apply(double a, double b, double) { return a * b; }
};
struct Fma : Rounded<3> {
  static double apply(double a, double b, double c) { return a * b + c; }  // the product is exact
};
// The product is rounded to f16 first.
struct Mad : Rounded<3> {
  static double apply(double a, double b, double c) {
    const double product = as_float(half_to_float(double_to_half(a * b)));
    return product + c;
  }
};
struct Whole : Sources<1> {
  static constexpr bool kExactRounding = true;
};
struct Trunc : Whole {
  static double apply(double a, double, double) { return __builtin_trunc(a); }
};
struct Ceil : Whole {
  static double apply(double a, double, double) { return __builtin_ceil(a); }
};
struct Floor : Whole {
  static double apply(double a, double, double) { return __builtin_floor(a); }
};
struct RoundEven : Whole {
  static double apply(double a, double, double) { return __builtin_rint(a); }
};
struct Fract : Rounded<1> {
  static double apply(double a, double, double) { return a - __builtin_floor(a); }
};

// v_mad's product is rounded in the mode as well: without a directed version only nearest even is right.
template <Rest R>
void multiply_add(Wave& wave, const Instruction& in) {
  if (wave.mode.round16_64() != 0) fail("v_mad_f16 outside round-to-nearest-even is not emulated");
  arithmetic<Mad, R>(wave, in);
}

}  // namespace

Handler half_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_add_f16:
      return arithmetic<Add>;
    case Op::v_sub_f16:
      return arithmetic<Sub>;
    case Op::v_subrev_f16:
      return arithmetic<SubRev>;
    case Op::v_mul_f16:
      return arithmetic<Mul>;
    case Op::v_fma_f16:
      return arithmetic<Fma, Rest::keep>;
    case Op::v_fma_legacy_f16:
      return arithmetic<Fma>;
    case Op::v_mad_f16:
      return multiply_add<Rest::keep>;
    case Op::v_mad_legacy_f16:
    case Op::v_mac_f16:
    case Op::v_madmk_f16:
    case Op::v_madak_f16:
      return multiply_add<Rest::zero>;
    case Op::v_max_f16:
      return selection<Max>;
    case Op::v_min_f16:
      return selection<Min>;
    case Op::v_max3_f16:
      return selection<Max3, Rest::keep>;
    case Op::v_min3_f16:
      return selection<Min3, Rest::keep>;
    case Op::v_med3_f16:
      return selection<Med3, Rest::keep>;
    case Op::v_trunc_f16:
      return arithmetic<Trunc>;
    case Op::v_ceil_f16:
      return arithmetic<Ceil>;
    case Op::v_floor_f16:
      return arithmetic<Floor>;
    case Op::v_rndne_f16:
      return arithmetic<RoundEven>;
    case Op::v_fract_f16:
      return arithmetic<Fract>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
