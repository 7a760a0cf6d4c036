// f32 arithmetic: v_add/sub/mul/fma/min/max/med and rounding to integers.
#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {

void settle_nans32(const uint32_t* const* sources, int count, uint32_t* result) {
  for (int i = 0; i < kLanes; ++i) {
    if (!is_nan32(result[i])) continue;
    result[i] = kNan32;
    for (int s = count - 1; s >= 0; --s)
      if (is_nan32(sources[s][i])) result[i] = sources[s][i] | 0x400000;
  }
}

void modify_output32(const Wave& wave, const Instruction& in, uint32_t* result) {
  static constexpr float kFactors[4] = {1, 2, 4, 0.5f};
  // Output modifiers are ignored where output denormals are kept and in IEEE mode; they turn -0 into +0.
  if (in.omod != 0 && !wave.mode.denormal32_out() && !wave.mode.ieee()) {
    for (int i = 0; i < kLanes; ++i) {
      const float value = as_float(result[i]) * kFactors[in.omod & 3];
      result[i] = is_nan32(result[i]) ? result[i] : flushed(as_bits(value), 0x80000000u);
      result[i] = result[i] == 0x80000000u ? 0 : result[i];
    }
  }
  if (!in.clamp) return;
  const bool nan_to_zero = wave.mode.dx10_clamp();
  for (int i = 0; i < kLanes; ++i) {
    const float value = as_float(result[i]);
    const uint32_t bounded = value > 0 ? (value > 1 ? as_bits(1.0f) : result[i]) : 0;
    result[i] = is_nan32(result[i]) && !nan_to_zero ? result[i] : bounded;
  }
}

namespace {

// ---- loops -----------------------------------------------------------------------------------------------

// All lanes of one operation; counts NaN results. Flush: denormals of sources and result follow the keep
// masks.
template <class Op, bool Flush>
[[gnu::noipa]] uint32_t arithmetic_loop(const uint32_t* a, const uint32_t* b, const uint32_t* c,
                                        uint32_t* __restrict r, uint32_t keep_in, uint32_t keep_out) {
  uint32_t nans = 0;
  for (int i = 0; i < kLanes; ++i) {
    uint32_t x = a[i], y = Op::kSources > 1 ? b[i] : 0, z = Op::kSources > 2 ? c[i] : 0;
    if (Flush) x = flushed(x, keep_in), y = flushed(y, keep_in), z = flushed(z, keep_in);
    const float value = Op::apply(as_float(x), as_float(y), as_float(z));
    nans += value != value ? 1u : 0u;
    r[i] = Flush ? flushed(as_bits(value), keep_out) : as_bits(value);
  }
  return nans;
}

template <class Op>
void arithmetic(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const uint32_t* s[3] = {nullptr, nullptr, nullptr};
  for (int i = 0; i < Op::kSources; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  uint32_t nans;
  if (plain_mode32(wave)) {
    nans = arithmetic_loop<Op, false>(s[0], s[1], s[2], result.lane, 0, 0);
  } else {
    const HostRounding rounding(wave.mode.round32());
    nans = arithmetic_loop<Op, true>(s[0], s[1], s[2], result.lane, keep_mask(wave.mode.denormal32_in()),
                                     keep_mask(wave.mode.denormal32_out()));
  }
  if (nans != 0) settle_nans32(s, Op::kSources, result.lane);
  store_float(wave, in, result);
}

// Operations on bits that settle NaN themselves: f(a, b, c) -> bits.
template <class Op>
void selection_loop(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* __restrict r,
                    uint32_t keep) {
  for (int i = 0; i < kLanes; ++i)
    r[i] = Op::apply(flushed(a[i], keep), flushed(b[i], keep), Op::kSources > 2 ? flushed(c[i], keep) : 0);
}

template <template <bool> class Op>
void selection(Wave& wave, const Instruction& in) {
  Lanes buffers[3], result;
  const uint32_t* s[3] = {nullptr, nullptr, nullptr};
  for (int i = 0; i < Op<false>::kSources; ++i) s[i] = fetch(wave, in, i, Width::w32, buffers[i]);
  const uint32_t keep = keep_mask(wave.mode.denormal32_in() && wave.mode.denormal32_out());
  if (wave.mode.ieee())
    selection_loop<Op<true>>(s[0], s[1], s[2], result.lane, keep);
  else
    selection_loop<Op<false>>(s[0], s[1], s[2], result.lane, keep);
  store_float(wave, in, result);
}

// ---- operations ------------------------------------------------------------------------------------------

struct Add : Sources<2> {
  static float apply(float a, float b, float) { return a + b; }
};
struct Sub : Sources<2> {
  static float apply(float a, float b, float) { return a - b; }
};
struct SubRev : Sources<2> {
  static float apply(float a, float b, float) { return b - a; }
};
struct Mul : Sources<2> {
  static float apply(float a, float b, float) { return a * b; }
};
// 0 times anything, also infinity and NaN, is +0.
struct MulLegacy : Sources<2> {
  static float apply(float a, float b, float) {
    const float product = a * b;
    return a == 0 || b == 0 ? 0.0f : product;
  }
};
struct Fma : Sources<3> {
  static float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
};
struct Trunc : Sources<1> {
  static float apply(float a, float, float) { return __builtin_truncf(a); }
};
struct Ceil : Sources<1> {
  static float apply(float a, float, float) { return __builtin_ceilf(a); }
};
struct Floor : Sources<1> {
  static float apply(float a, float, float) { return __builtin_floorf(a); }
};
struct Fract : Sources<1> {
  static float apply(float a, float, float) { return a - __builtin_floorf(a); }
};
// Nearest even whatever MODE says: the host rounds so here.
struct RoundEven : Sources<1> {
  static float apply(float a, float, float) { return __builtin_rintf(a); }
};

// Rounding to integers does not depend on MODE's rounding.
template <class Op>
void rounding(Wave& wave, const Instruction& in) {
  Lanes buffer, result;
  const uint32_t* s[1] = {fetch(wave, in, 0, Width::w32, buffer)};
  const uint32_t nans = arithmetic_loop<Op, true>(s[0], nullptr, nullptr, result.lane,
                                                  keep_mask(wave.mode.denormal32_in()), ~0u);
  if (nans != 0) settle_nans32(s, 1, result.lane);
  store_float(wave, in, result);
}

}  // namespace

Handler float_handler(const Instruction& in) {
  switch (in.op) {
    case Op::v_add_f32:
      return arithmetic<Add>;
    case Op::v_sub_f32:
      return arithmetic<Sub>;
    case Op::v_subrev_f32:
      return arithmetic<SubRev>;
    case Op::v_mul_f32:
      return arithmetic<Mul>;
    case Op::v_mul_legacy_f32:
      return arithmetic<MulLegacy>;
    case Op::v_fma_f32:
    case Op::v_fmac_f32:
    case Op::v_fmamk_f32:
    case Op::v_fmaak_f32:
      return arithmetic<Fma>;
    case Op::v_max_f32:
      return selection<Max>;
    case Op::v_min_f32:
      return selection<Min>;
    case Op::v_max3_f32:
      return selection<Max3>;
    case Op::v_min3_f32:
      return selection<Min3>;
    case Op::v_med3_f32:
      return selection<Med3>;
    case Op::v_maximum3_f32:
      return selection<Maximum3>;
    case Op::v_minimum3_f32:
      return selection<Minimum3>;
    case Op::v_trunc_f32:
      return rounding<Trunc>;
    case Op::v_ceil_f32:
      return rounding<Ceil>;
    case Op::v_floor_f32:
      return rounding<Floor>;
    case Op::v_rndne_f32:
      return rounding<RoundEven>;
    case Op::v_fract_f32:
      return arithmetic<Fract>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
