// v_cvt_scalef32_*: between the block-scaled formats (FP8, BF8, FP6, BF6, FP4) and f32, f16, bf16.
//
// The scale is 2^(e-127), e the exponent field of an f32 operand; 255 means NaN. Conversions into a small
// format divide by it, those out of one multiply: the meaning of OCP microscaling; AMD prints no formula.
// FP6, BF6 and FP4 have no NaN: converting one into them is an error of the launch.
#include "exec_vector_small.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

enum class Wide : uint8_t { f32, f16, bf16 };

// How the wide elements lie in the sources of a conversion into a small format.
enum class Layout : uint8_t {
  two_registers,  // S0 and S1, one f32 each
  packed,         // S0: consecutive elements
  interleaved,    // S0 and S1 take turns
};

struct Form {
  bool valid;
  bool narrowing;
  Wide wide;
  const Format* small;
  uint8_t count;  // elements
  Layout layout;
  bool stochastic;  // random number in S1
};

Form into(Wide wide, const Format& small, uint8_t count, Layout layout = Layout::packed,
          bool stochastic = false) {
  return {true, true, wide, &small, count, layout, stochastic};
}
Form out_of(Wide wide, const Format& small, uint8_t count) {
  return {true, false, wide, &small, count, Layout::packed, false};
}

Form form_of(Op op) {
  constexpr Wide F32 = Wide::f32, F16 = Wide::f16, BF16 = Wide::bf16;
  switch (op) {
    case Op::v_cvt_scalef32_pk_fp8_f32:
      return into(F32, kFp8, 2, Layout::two_registers);
    case Op::v_cvt_scalef32_pk_bf8_f32:
      return into(F32, kBf8, 2, Layout::two_registers);
    case Op::v_cvt_scalef32_pk_fp4_f32:
      return into(F32, kFp4, 2, Layout::two_registers);
    case Op::v_cvt_scalef32_pk_fp8_f16:
      return into(F16, kFp8, 2);
    case Op::v_cvt_scalef32_pk_bf8_f16:
      return into(F16, kBf8, 2);
    case Op::v_cvt_scalef32_pk_fp4_f16:
      return into(F16, kFp4, 2);
    case Op::v_cvt_scalef32_pk_fp8_bf16:
      return into(BF16, kFp8, 2);
    case Op::v_cvt_scalef32_pk_bf8_bf16:
      return into(BF16, kBf8, 2);
    case Op::v_cvt_scalef32_pk_fp4_bf16:
      return into(BF16, kFp4, 2);
    case Op::v_cvt_scalef32_sr_fp8_f32:
      return into(F32, kFp8, 1, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_bf8_f32:
      return into(F32, kBf8, 1, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_fp8_f16:
      return into(F16, kFp8, 1, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_bf8_f16:
      return into(F16, kBf8, 1, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_fp8_bf16:
      return into(BF16, kFp8, 1, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_bf8_bf16:
      return into(BF16, kBf8, 1, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk_fp4_f32:
      return into(F32, kFp4, 2, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk_fp4_f16:
      return into(F16, kFp4, 2, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk_fp4_bf16:
      return into(BF16, kFp4, 2, Layout::packed, true);
    case Op::v_cvt_scalef32_2xpk16_fp6_f32:
      return into(F32, kFp6, 32, Layout::interleaved);
    case Op::v_cvt_scalef32_2xpk16_bf6_f32:
      return into(F32, kBf6, 32, Layout::interleaved);
    case Op::v_cvt_scalef32_pk32_fp6_f16:
      return into(F16, kFp6, 32);
    case Op::v_cvt_scalef32_pk32_bf6_f16:
      return into(F16, kBf6, 32);
    case Op::v_cvt_scalef32_pk32_fp6_bf16:
      return into(BF16, kFp6, 32);
    case Op::v_cvt_scalef32_pk32_bf6_bf16:
      return into(BF16, kBf6, 32);
    case Op::v_cvt_scalef32_sr_pk32_fp6_f32:
      return into(F32, kFp6, 32, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk32_bf6_f32:
      return into(F32, kBf6, 32, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk32_fp6_f16:
      return into(F16, kFp6, 32, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk32_bf6_f16:
      return into(F16, kBf6, 32, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk32_fp6_bf16:
      return into(BF16, kFp6, 32, Layout::packed, true);
    case Op::v_cvt_scalef32_sr_pk32_bf6_bf16:
      return into(BF16, kBf6, 32, Layout::packed, true);
    case Op::v_cvt_scalef32_f32_fp8:
      return out_of(F32, kFp8, 1);
    case Op::v_cvt_scalef32_f32_bf8:
      return out_of(F32, kBf8, 1);
    case Op::v_cvt_scalef32_f16_fp8:
      return out_of(F16, kFp8, 1);
    case Op::v_cvt_scalef32_f16_bf8:
      return out_of(F16, kBf8, 1);
    case Op::v_cvt_scalef32_pk_f32_fp8:
      return out_of(F32, kFp8, 2);
    case Op::v_cvt_scalef32_pk_f32_bf8:
      return out_of(F32, kBf8, 2);
    case Op::v_cvt_scalef32_pk_f32_fp4:
      return out_of(F32, kFp4, 2);
    case Op::v_cvt_scalef32_pk_f16_fp8:
      return out_of(F16, kFp8, 2);
    case Op::v_cvt_scalef32_pk_f16_bf8:
      return out_of(F16, kBf8, 2);
    case Op::v_cvt_scalef32_pk_f16_fp4:
      return out_of(F16, kFp4, 2);
    case Op::v_cvt_scalef32_pk_bf16_fp8:
      return out_of(BF16, kFp8, 2);
    case Op::v_cvt_scalef32_pk_bf16_bf8:
      return out_of(BF16, kBf8, 2);
    case Op::v_cvt_scalef32_pk_bf16_fp4:
      return out_of(BF16, kFp4, 2);
    case Op::v_cvt_scalef32_pk32_f32_fp6:
      return out_of(F32, kFp6, 32);
    case Op::v_cvt_scalef32_pk32_f32_bf6:
      return out_of(F32, kBf6, 32);
    case Op::v_cvt_scalef32_pk32_f16_fp6:
      return out_of(F16, kFp6, 32);
    case Op::v_cvt_scalef32_pk32_f16_bf6:
      return out_of(F16, kBf6, 32);
    case Op::v_cvt_scalef32_pk32_bf16_fp6:
      return out_of(BF16, kFp6, 32);
    case Op::v_cvt_scalef32_pk32_bf16_bf6:
      return out_of(BF16, kBf6, 32);
    default:
      return {};
  }
}

// ---- one lane's registers as a row of bits ---------------------------------------------------------------

struct Source {
  const uint32_t* registers[32];
  Lanes buffers[2];  // of sources that are no plain VGPRs: at most a pair
};

void gather(const Wave& wave, const Instruction& in, int source, unsigned dwords, Source& into) {
  Instruction form = in;
  form.op_sel = 0;
  for (unsigned d = 0; d < dwords; ++d)
    into.registers[d] = fetch(wave, form, source, Width::w32, into.buffers[d & 1], d);
}

uint32_t element(const Source& source, int lane, unsigned index, unsigned bits) {
  const unsigned at = index * bits, dword = at / 32, shift = at % 32;
  uint64_t window = source.registers[dword][lane];
  if (shift + bits > 32) window |= uint64_t{source.registers[dword + 1][lane]} << 32;
  return static_cast<uint32_t>(window >> shift) & (bits == 32 ? ~0u : (1u << bits) - 1);
}

unsigned bits_of(Wide wide) { return wide == Wide::f32 ? 32 : 16; }

double wide_value(Wide wide, uint32_t bits) {
  return as_float(wide == Wide::f32 ? bits : wide == Wide::bf16 ? bits << 16 : half_to_float(bits));
}

// 2^(e-127) of the scale operand, NaN of e = 255.
double scale_of(uint32_t bits) {
  const uint32_t exponent = bits >> 23 & 255;
  return exponent == 255 ? __builtin_nan("") : as_double(uint64_t{exponent + 1023 - 127} << 52);
}

uint32_t narrowed(double value, const Format& small, bool stochastic, uint32_t random, uint32_t overflow,
                  int lane) {
  const bool negative = as_bits64(value) >> 63;
  if (value != value) {
    if (small.nan == 0)
      fail("NaN in lane %d: its conversion into %d bits without a NaN is not documented", lane, small.bits);
    return finish_code(0, negative, true, overflow, small);
  }
  const double magnitude = __builtin_fabs(value);
  const uint32_t code = magnitude == __builtin_inf() ? 0xfffff
                        : stochastic                 ? stochastic_code(magnitude, random, small)
                                                     : nearest_code(magnitude, small);
  return finish_code(code, negative, false, overflow, small);
}

uint32_t widened(double value, Wide wide, uint32_t half_overflow) {
  if (wide == Wide::f32) return value != value ? kNan32 : as_bits(static_cast<float>(value));
  if (wide == Wide::f16) return double_to_half(value, half_overflow);
  if (value != value) return 0x7fc0;
  const bool negative = as_bits64(value) >> 63;
  const double magnitude = __builtin_fabs(value);
  return finish_code(magnitude == __builtin_inf() ? 0xfffff : nearest_code(magnitude, kBf16), negative, false,
                     overflow_code(false, kBf16), kBf16);
}

uint32_t next_random(uint32_t x) { return x << 1 ^ (x >> 31 ? 197u : 0u); }

// ---- the two directions ----------------------------------------------------------------------------------

// Fewer than 32 bits of result go to the byte or half that op_sel names, the rest of the register stays.
unsigned place_of(const Instruction& in, unsigned bits) {
  return bits == 8 ? 8 * (in.op_sel >> 2 & 3) : bits == 16 ? 16 * (in.op_sel >> 3 & 1) : 0;
}

void narrow(Wave& wave, const Instruction& in) {
  const Form form = form_of(in.op);
  const unsigned wide_bits = bits_of(form.wide), count = form.count;
  const bool two_sources = form.layout != Layout::packed;
  const int scale_source = two_sources || form.stochastic ? 2 : 1;
  Source sources[2], scales, randoms;
  const unsigned dwords = (two_sources ? count / 2 : count) * wide_bits;
  for (int s = 0; s < (two_sources ? 2 : 1); ++s) gather(wave, in, s, (dwords + 31) / 32, sources[s]);
  gather(wave, in, scale_source, 1, scales);
  if (form.stochastic) gather(wave, in, 1, 1, randoms);
  // A single half can be the upper one.
  const unsigned first = count == 1 && form.wide != Wide::f32 ? in.op_sel & 1 : 0;

  const uint64_t exec = exec_of(wave);
  const uint32_t overflow = overflow_code(wave.mode.fp16_overflow(), *form.small);
  const unsigned result_bits = count * static_cast<unsigned>(form.small->bits),
                 place = place_of(in, result_bits);
  Lanes results[6];
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(exec >> lane & 1)) continue;
    const double inverse = 1 / scale_of(scales.registers[0][lane]);
    uint32_t random = form.stochastic ? randoms.registers[0][lane] : 0;
    uint64_t pending = 0;
    unsigned held = 0, dword = 0;
    for (unsigned i = 0; i < count; ++i) {
      const Source& from = two_sources ? sources[i % 2] : sources[0];
      const uint32_t bits = element(from, lane, two_sources ? i / 2 : first + i, wide_bits);
      const uint32_t code = narrowed(wide_value(form.wide, bits) * inverse, *form.small, form.stochastic,
                                     random, overflow, lane);
      random = next_random(random);
      pending |= uint64_t{code} << held;
      held += static_cast<unsigned>(form.small->bits);
      if (held < 32) continue;
      results[dword++].lane[lane] = static_cast<uint32_t>(pending);
      pending >>= 32;
      held -= 32;
    }
    if (result_bits < 32) {
      const uint32_t mask = ((1u << result_bits) - 1) << place;
      results[0].lane[lane] = (wave.vgpr[in.dst.reg][lane] & ~mask) | static_cast<uint32_t>(pending) << place;
    }
  }
  for (unsigned d = 0; d < (result_bits + 31) / 32; ++d)
    blend(wave.vgpr[in.dst.reg + d], results[d].lane, exec);
}

void widen(Wave& wave, const Instruction& in) {
  const Form form = form_of(in.op);
  const unsigned small_bits = static_cast<unsigned>(form.small->bits), wide_bits = bits_of(form.wide),
                 count = form.count;
  Source source, scales;
  gather(wave, in, 0, (count * small_bits + 31) / 32, source);
  gather(wave, in, 1, 1, scales);
  // Which half or byte of the source: op_sel[0] of pairs of bytes, op_sel[1:0] of single bytes.
  const unsigned source_bits = count * small_bits;
  const unsigned first = source_bits == 8    ? (in.op_sel & 3u) * 8 / small_bits
                         : source_bits == 16 ? (in.op_sel & 1u) * 16 / small_bits
                                             : 0;

  const uint64_t exec = exec_of(wave);
  const uint32_t overflow = half_overflow(wave);
  Lanes results[32];
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(exec >> lane & 1)) continue;
    const double scale = scale_of(scales.registers[0][lane]);
    for (unsigned i = 0; i < count; ++i) {
      const double value = decode_small(element(source, lane, first + i, small_bits), *form.small) * scale;
      const uint32_t bits = widened(value, form.wide, overflow);
      if (wide_bits == 32)
        results[i].lane[lane] = bits;
      else
        results[i / 2].lane[lane] = i % 2 ? results[i / 2].lane[lane] | bits << 16 : bits;
    }
  }
  if (count == 1 && wide_bits == 16) return store16(wave, in, results[0].lane, Rest::zero);
  for (unsigned d = 0; d < count * wide_bits / 32; ++d)
    blend(wave.vgpr[in.dst.reg + d], results[d].lane, exec);
}

}  // namespace

Handler scaled_convert_handler(const Instruction& in) {
  const Form form = form_of(in.op);
  if (!form.valid || in.clamp || in.omod) return nullptr;
  return form.narrowing ? narrow : widen;
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
