// v_pk_*: two operations per lane, and v_fma_mix.
#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

// ---- sources ---------------------------------------------------------------------------------------------

bool selected(const Instruction& in, int source, bool high) {
  return (high ? in.op_sel_hi : in.op_sel) >> source & 1;
}

// A 32-bit register by itself, without modifiers (which packed operations read as neg_lo and neg_hi).
const uint32_t* raw(const Wave& wave, const Instruction& in, int source, Lanes& into, unsigned dword = 0) {
  const Operand& operand = in.src[source];
  if (operand.is_vgpr()) return wave.vgpr[operand.reg + dword];
  const uint32_t value = uniform_value(wave, operand, dword);
  for (uint32_t& lane : into.lane) lane = value;
  return into.lane;
}

// The halves that feed the low and the high operation, signs applied.
struct Halves {
  Lanes low, high;
};
void fetch_halves(const Wave& wave, const Instruction& in, int source, bool floats, Halves& into) {
  Lanes buffer;
  const uint32_t* from = raw(wave, in, source, buffer);
  // VOP2's packed form takes both halves in order.
  const bool vop3p = in.info->format == Format::vop3p;
  const unsigned low = vop3p && selected(in, source, false) ? 16 : 0,
                 high = !vop3p || selected(in, source, true) ? 16 : 0;
  const uint32_t low_sign = floats && in.src[source].neg ? 0x8000 : 0,
                 high_sign = floats && in.src[source].abs ? 0x8000 : 0;
  for (int i = 0; i < kLanes; ++i) {
    into.low.lane[i] = (from[i] >> low & 0xffff) ^ low_sign;
    into.high.lane[i] = (from[i] >> high & 0xffff) ^ high_sign;
  }
}

// Half of a register pair for one of the two f32 operations.
const uint32_t* fetch_single(const Wave& wave, const Instruction& in, int source, bool high, Lanes& into) {
  const Operand& operand = in.src[source];
  const uint32_t* from = raw(wave, in, source, into, selected(in, source, high));
  if (!(high ? operand.abs : operand.neg)) return from;
  for (int i = 0; i < kLanes; ++i) into.lane[i] = from[i] ^ 0x80000000u;
  return into.lane;
}

// ---- f32 -------------------------------------------------------------------------------------------------

struct Add32 {
  static constexpr int kSources = 2;
  static float apply(float a, float b, float) { return a + b; }
};
struct Mul32 {
  static constexpr int kSources = 2;
  static float apply(float a, float b, float) { return a * b; }
};
struct Fma32 {
  static constexpr int kSources = 3;
  static float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
};

template <class Op, bool Flush>
[[gnu::noipa]] uint32_t single_loop(const uint32_t* a, const uint32_t* b, const uint32_t* c,
                                    uint32_t* __restrict r, uint32_t keep_in, uint32_t keep_out) {
  uint32_t nans = 0;
  for (int i = 0; i < kLanes; ++i) {
    uint32_t x = a[i], y = b[i], z = Op::kSources > 2 ? c[i] : 0;
    if (Flush) x = flushed(x, keep_in), y = flushed(y, keep_in), z = flushed(z, keep_in);
    const float value = Op::apply(as_float(x), as_float(y), as_float(z));
    nans += value != value ? 1u : 0u;
    r[i] = Flush ? flushed(as_bits(value), keep_out) : as_bits(value);
  }
  return nans;
}

template <class Op>
void packed_f32(Wave& wave, const Instruction& in) {
  Lanes results[2];
  for (const bool high : {false, true}) {
    Lanes buffers[3];
    const uint32_t* s[3] = {nullptr, nullptr, nullptr};
    for (int i = 0; i < Op::kSources; ++i) s[i] = fetch_single(wave, in, i, high, buffers[i]);
    uint32_t* r = results[high].lane;
    uint32_t nans;
    if (plain_mode32(wave)) {
      nans = single_loop<Op, false>(s[0], s[1], s[2], r, 0, 0);
    } else {
      const HostRounding rounding(wave.mode.round32());
      nans = single_loop<Op, true>(s[0], s[1], s[2], r, keep_mask(wave.mode.denormal32_in()),
                                   keep_mask(wave.mode.denormal32_out()));
    }
    if (nans != 0) settle_nans32(s, Op::kSources, r);
    if (in.clamp) modify_output32(wave, in, r);
  }
  const uint64_t lanes = exec_of(wave);
  blend(wave.vgpr[in.dst.reg], results[0].lane, lanes);
  blend(wave.vgpr[in.dst.reg + 1], results[1].lane, lanes);
}

// D.lo = a half of S0, D.hi = a half of S1.
void packed_move(Wave& wave, const Instruction& in) {
  Lanes buffers[2], low, high;
  std::memcpy(low.lane, raw(wave, in, 0, buffers[0], in.op_sel & 1), sizeof low.lane);
  std::memcpy(high.lane, raw(wave, in, 1, buffers[1], in.op_sel >> 1 & 1), sizeof high.lane);
  const uint64_t lanes = exec_of(wave);
  blend(wave.vgpr[in.dst.reg], low.lane, lanes);
  blend(wave.vgpr[in.dst.reg + 1], high.lane, lanes);
}

// ---- f16 -------------------------------------------------------------------------------------------------

double widened(uint32_t half, bool denormals) { return as_float(half_to_float(flushed16(half, denormals))); }

struct Add16 {
  static constexpr int kSources = 2;
  static double apply(double a, double b, double) { return a + b; }
};
struct Mul16 {
  static constexpr int kSources = 2;
  static double apply(double a, double b, double) { return a * b; }
};
struct Fma16 {
  static constexpr int kSources = 3;
  static double apply(double a, double b, double c) { return a * b + c; }
};

template <class Op>
[[gnu::noipa]] void half_loop(const uint32_t* const* s, uint32_t* __restrict r, Mode mode, uint32_t largest) {
  const bool in = mode.bits >> 6 & 1, out = mode.bits >> 7 & 1;
  const unsigned rounding = mode.bits >> 2 & 3;
  for (int i = 0; i < kLanes; ++i) {
    const double value =
        Op::apply(widened(s[0][i], in), widened(s[1][i], in), Op::kSources > 2 ? widened(s[2][i], in) : 0);
    r[i] = flushed16(
        rounding == 0 ? double_to_half(value, largest) : double_to_half(value, rounding, largest), out);
  }
}

template <class Op>
void packed_f16(Wave& wave, const Instruction& in) {
  Halves sources[3];
  Lanes results[2];
  for (int i = 0; i < Op::kSources; ++i) fetch_halves(wave, in, i, true, sources[i]);
  for (const bool high : {false, true}) {
    const uint32_t* s[3];
    for (int i = 0; i < 3; ++i) s[i] = high ? sources[i].high.lane : sources[i].low.lane;
    {
      const HostRounding rounding(wave.mode.round16_64());
      half_loop<Op>(s, results[high].lane, wave.mode, half_overflow(wave));
    }
    settle_nans16(s, Op::kSources, results[high].lane);
    if (in.clamp) modify_output16(wave, in, results[high].lane);
  }
  for (int i = 0; i < kLanes; ++i) results[0].lane[i] |= results[1].lane[i] << 16;
  store(wave, in, results[0].lane);
}

template <template <bool> class Op>
void packed_f16_selection(Wave& wave, const Instruction& in) {
  constexpr int kSources = Op<false>::kSources;
  Halves sources[3];
  Lanes results[2];
  for (int i = 0; i < kSources; ++i) fetch_halves(wave, in, i, true, sources[i]);
  const bool ieee = wave.mode.ieee(), keep = wave.mode.denormal16_64_in() && wave.mode.denormal16_64_out();
  for (const bool high : {false, true}) {
    for (int i = 0; i < kLanes; ++i) {
      uint32_t v[3] = {0, 0, 0};
      for (int s = 0; s < kSources; ++s)
        v[s] = half_to_float(flushed16((high ? sources[s].high : sources[s].low).lane[i], keep));
      results[high].lane[i] =
          float_to_half(ieee ? Op<true>::apply(v[0], v[1], v[2]) : Op<false>::apply(v[0], v[1], v[2]));
    }
    if (in.clamp) modify_output16(wave, in, results[high].lane);
  }
  for (int i = 0; i < kLanes; ++i) results[0].lane[i] |= results[1].lane[i] << 16;
  store(wave, in, results[0].lane);
}

// ---- 16-bit integers -------------------------------------------------------------------------------------

template <auto F, int N>
void packed_int(Wave& wave, const Instruction& in) {
  Halves s[3];
  Lanes result;
  for (int i = 0; i < N; ++i) fetch_halves(wave, in, i, false, s[i]);
  for (int i = 0; i < kLanes; ++i) {
    const uint32_t low = F(s[0].low.lane[i], s[1].low.lane[i], N > 2 ? s[2].low.lane[i] : 0);
    const uint32_t high = F(s[0].high.lane[i], s[1].high.lane[i], N > 2 ? s[2].high.lane[i] : 0);
    result.lane[i] = (low & 0xffff) | high << 16;
  }
  store(wave, in, result.lane);
}

int32_t sign16(uint32_t a) { return static_cast<int16_t>(a); }
uint32_t bounded(int64_t value, int64_t low, int64_t high) {
  return static_cast<uint32_t>(value < low ? low : value > high ? high : value);
}
uint32_t mad(uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }
uint32_t add(uint32_t a, uint32_t b, uint32_t) { return a + b; }
uint32_t sub(uint32_t a, uint32_t b, uint32_t) { return a - b; }
uint32_t mul(uint32_t a, uint32_t b, uint32_t) { return a * b; }
uint32_t left(uint32_t a, uint32_t b, uint32_t) { return b << (a & 15); }
uint32_t right(uint32_t a, uint32_t b, uint32_t) { return b >> (a & 15); }
uint32_t arithmetic(uint32_t a, uint32_t b, uint32_t) { return static_cast<uint32_t>(sign16(b) >> (a & 15)); }
uint32_t max_u(uint32_t a, uint32_t b, uint32_t) { return a > b ? a : b; }
uint32_t min_u(uint32_t a, uint32_t b, uint32_t) { return a < b ? a : b; }
uint32_t max_i(uint32_t a, uint32_t b, uint32_t) { return sign16(a) > sign16(b) ? a : b; }
uint32_t min_i(uint32_t a, uint32_t b, uint32_t) { return sign16(a) < sign16(b) ? a : b; }
uint32_t add_u_saturated(uint32_t a, uint32_t b, uint32_t) { return bounded(int64_t{a} + b, 0, 65535); }
uint32_t sub_u_saturated(uint32_t a, uint32_t b, uint32_t) { return bounded(int64_t{a} - b, 0, 65535); }
uint32_t mad_u_saturated(uint32_t a, uint32_t b, uint32_t c) { return bounded(int64_t{a} * b + c, 0, 65535); }
uint32_t add_i_saturated(uint32_t a, uint32_t b, uint32_t) {
  return bounded(sign16(a) + sign16(b), -32768, 32767);
}
uint32_t sub_i_saturated(uint32_t a, uint32_t b, uint32_t) {
  return bounded(sign16(a) - sign16(b), -32768, 32767);
}
uint32_t mad_i_saturated(uint32_t a, uint32_t b, uint32_t c) {
  return bounded(int64_t{sign16(a)} * sign16(b) + sign16(c), -32768, 32767);
}

// ---- f32 fused multiply-add of mixed sources -------------------------------------------------------------

[[gnu::noipa]] void fma_loop(const Lanes* s, uint32_t* __restrict r, uint32_t keep_in, uint32_t keep_out) {
  for (int i = 0; i < kLanes; ++i) {
    const float value =
        __builtin_fmaf(as_float(flushed(s[0].lane[i], keep_in)), as_float(flushed(s[1].lane[i], keep_in)),
                       as_float(flushed(s[2].lane[i], keep_in)));
    r[i] = flushed(as_bits(value), keep_out);
  }
}

// op_sel_hi: the source is a half, which op_sel chooses. neg and abs (neg_hi) act on the widened value.
void fetch_mixed(const Wave& wave, const Instruction& in, int source, Lanes& into) {
  Lanes buffer;
  const Operand& operand = in.src[source];
  const uint32_t* from = raw(wave, in, source, buffer);
  const bool half = selected(in, source, true), keep = wave.mode.bits >> 6 & 1;
  const unsigned shift = selected(in, source, false) ? 16 : 0;
  for (int i = 0; i < kLanes; ++i) {
    uint32_t value = half ? half_to_float(flushed16(from[i] >> shift & 0xffff, keep)) : from[i];
    if (operand.abs) value &= 0x7fffffff;
    if (operand.neg) value ^= 0x80000000;
    into.lane[i] = value;
  }
}

enum class To { single, low_half, high_half };

template <To Where>
void fma_mixed(Wave& wave, const Instruction& in) {
  Lanes s[3], result;
  for (int i = 0; i < 3; ++i) fetch_mixed(wave, in, i, s[i]);
  const uint32_t keep_out = Where == To::single ? keep_mask(wave.mode.denormal32_out()) : ~0u;
  {
    const HostRounding rounding(wave.mode.round32());
    fma_loop(s, result.lane, keep_mask(wave.mode.denormal32_in()), keep_out);
  }
  const uint32_t* sources[3] = {s[0].lane, s[1].lane, s[2].lane};
  settle_nans32(sources, 3, result.lane);
  if (Where == To::single) {
    if (in.clamp) modify_output32(wave, in, result.lane);
    return store(wave, in, result.lane);
  }
  const uint32_t* old = wave.vgpr[in.dst.reg];
  for (uint32_t& lane : result.lane) {
    const uint32_t half = is_nan32(lane) || wave.mode.round16_64() == 0
                              ? float_to_half(lane, half_overflow(wave))
                              : double_to_half(as_float(lane), wave.mode.round16_64(), half_overflow(wave));
    lane = flushed16(half, wave.mode.bits >> 7 & 1);
  }
  if (in.clamp) modify_output16(wave, in, result.lane);
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = Where == To::high_half ? (old[i] & 0xffff) | result.lane[i] << 16
                                            : (old[i] & 0xffff0000) | result.lane[i];
  store(wave, in, result.lane);
}

}  // namespace

Handler packed_handler(const Instruction& in) {
  if (in.encoding == Encoding::sdwa || in.encoding == Encoding::dpp) return nullptr;
  const bool saturate = in.clamp;
  switch (in.op) {
    case Op::v_pk_fma_f32:
      return packed_f32<Fma32>;
    case Op::v_pk_mul_f32:
      return packed_f32<Mul32>;
    case Op::v_pk_add_f32:
      return packed_f32<Add32>;
    case Op::v_pk_mov_b32:
      return packed_move;
    case Op::v_pk_fma_f16:
    case Op::v_pk_fmac_f16:
      return packed_f16<Fma16>;
    case Op::v_pk_add_f16:
      return packed_f16<Add16>;
    case Op::v_pk_mul_f16:
      return packed_f16<Mul16>;
    case Op::v_pk_min_f16:
      return packed_f16_selection<Min>;
    case Op::v_pk_max_f16:
      return packed_f16_selection<Max>;
    case Op::v_pk_minimum3_f16:
      return packed_f16_selection<Minimum3>;
    case Op::v_pk_maximum3_f16:
      return packed_f16_selection<Maximum3>;
    case Op::v_fma_mix_f32:
      return fma_mixed<To::single>;
    case Op::v_fma_mixlo_f16:
      return fma_mixed<To::low_half>;
    case Op::v_fma_mixhi_f16:
      return fma_mixed<To::high_half>;
    case Op::v_pk_mad_i16:
      return saturate ? packed_int<mad_i_saturated, 3> : packed_int<mad, 3>;
    case Op::v_pk_mad_u16:
      return saturate ? packed_int<mad_u_saturated, 3> : packed_int<mad, 3>;
    case Op::v_pk_add_i16:
      return saturate ? packed_int<add_i_saturated, 2> : packed_int<add, 2>;
    case Op::v_pk_sub_i16:
      return saturate ? packed_int<sub_i_saturated, 2> : packed_int<sub, 2>;
    case Op::v_pk_add_u16:
      return saturate ? packed_int<add_u_saturated, 2> : packed_int<add, 2>;
    case Op::v_pk_sub_u16:
      return saturate ? packed_int<sub_u_saturated, 2> : packed_int<sub, 2>;
    case Op::v_pk_mul_lo_u16:
      return saturate ? nullptr : packed_int<mul, 2>;
    case Op::v_pk_lshlrev_b16:
      return saturate ? nullptr : packed_int<left, 2>;
    case Op::v_pk_lshrrev_b16:
      return saturate ? nullptr : packed_int<right, 2>;
    case Op::v_pk_ashrrev_i16:
      return saturate ? nullptr : packed_int<arithmetic, 2>;
    case Op::v_pk_max_i16:
      return packed_int<max_i, 2>;
    case Op::v_pk_min_i16:
      return packed_int<min_i, 2>;
    case Op::v_pk_max_u16:
      return packed_int<max_u, 2>;
    case Op::v_pk_min_u16:
      return packed_int<min_u, 2>;
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
