// v_cmp and v_cmpx: one bit per lane, 0 where EXEC is 0. v_cmpx writes EXEC as well.
#include "exec_vector_float.hpp"

namespace zyfa::emulator::ZYFA_LEVEL {
namespace {

void finish(Wave& wave, const Instruction& in, uint64_t mask) {
  mask &= exec_of(wave);
  store_mask(wave, in.dst, mask);
  if (in.sdst) store_mask(wave, in.sdst, mask);  // EXEC of v_cmpx
}

// Relations as tables of what counts as true: less, equal, greater, unordered.
enum : unsigned { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

template <unsigned Table, typename T>
uint32_t holds(T a, T b) {
  const uint32_t less = a<b, equal = a == b, greater = a> b;
  uint32_t made = 0;
  if (Table & kLess) made |= less;
  if (Table & kEqual) made |= equal;
  if (Table & kGreater) made |= greater;
  if (Table & kUnordered) made |= (less | equal | greater) ^ 1;
  return made;
}

// ---- integers --------------------------------------------------------------------------------------------

template <unsigned Table, typename T, Width W>
void compare_int(Wave& wave, const Instruction& in) {
  Lanes buffers[2], flags;
  const uint32_t* a = fetch(wave, in, 0, W, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, W, buffers[1]);
  for (int i = 0; i < kLanes; ++i)
    flags.lane[i] = holds<Table, T>(static_cast<T>(a[i]), static_cast<T>(b[i]));
  finish(wave, in, mask_of(flags.lane));
}
template <unsigned Table, typename T>
void compare_int64(Wave& wave, const Instruction& in) {
  Lanes64 a, b;
  Lanes flags;
  fetch64(wave, in, 0, a);
  fetch64(wave, in, 1, b);
  for (int i = 0; i < kLanes; ++i)
    flags.lane[i] = holds<Table, T>(static_cast<T>(a.lane[i]), static_cast<T>(b.lane[i]));
  finish(wave, in, mask_of(flags.lane));
}

// ---- floats ----------------------------------------------------------------------------------------------

template <unsigned Table>
void compare_f32(Wave& wave, const Instruction& in) {
  Lanes buffers[2], flags;
  const uint32_t* a = fetch(wave, in, 0, Width::w32, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w32, buffers[1]);
  const uint32_t keep = keep_mask(wave.mode.bits >> 4 & 1);
  for (int i = 0; i < kLanes; ++i)
    flags.lane[i] = holds<Table, float>(as_float(flushed(a[i], keep)), as_float(flushed(b[i], keep)));
  finish(wave, in, mask_of(flags.lane));
}
template <unsigned Table>
void compare_f16(Wave& wave, const Instruction& in) {
  Lanes buffers[2], flags;
  const uint32_t* a = fetch(wave, in, 0, Width::w16, buffers[0]);
  const uint32_t* b = fetch(wave, in, 1, Width::w16, buffers[1]);
  const bool keep = wave.mode.bits >> 6 & 1;
  for (int i = 0; i < kLanes; ++i)
    flags.lane[i] = holds<Table, float>(as_float(half_to_float(flushed16(a[i], keep))),
                                        as_float(half_to_float(flushed16(b[i], keep))));
  finish(wave, in, mask_of(flags.lane));
}
template <unsigned Table>
void compare_f64(Wave& wave, const Instruction& in) {
  Lanes64 a, b;
  Lanes flags;
  fetch64(wave, in, 0, a);
  fetch64(wave, in, 1, b);
  const bool keep = wave.mode.bits >> 6 & 1;
  const auto value = [keep](uint64_t bits) {
    return as_double(keep || (bits & 0x7ff0000000000000) ? bits : bits & uint64_t{1} << 63);
  };
  for (int i = 0; i < kLanes; ++i) flags.lane[i] = holds<Table, double>(value(a.lane[i]), value(b.lane[i]));
  finish(wave, in, mask_of(flags.lane));
}

// ---- classes ---------------------------------------------------------------------------------------------

// Bit of the class mask: sNaN, qNaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf. Denormals
// are told apart whatever MODE says.
unsigned class_bit(bool negative, uint64_t exponent, uint64_t top, uint64_t mantissa, bool quiet) {
  if (exponent == top) return mantissa != 0 ? (quiet ? 1 : 0) : negative ? 2 : 9;
  if (exponent != 0) return negative ? 3 : 8;
  if (mantissa != 0) return negative ? 4 : 7;
  return negative ? 5 : 6;
}
template <Width W>
void classify(Wave& wave, const Instruction& in) {
  constexpr int kMantissa = W == Width::w64 ? 52 : W == Width::w32 ? 23 : 10;
  constexpr int kExponent = W == Width::w64 ? 11 : W == Width::w32 ? 8 : 5;
  Lanes buffers[2], flags;
  Lanes64 value;
  if (W == Width::w64) {
    fetch64(wave, in, 0, value);
  } else {
    const uint32_t* a = fetch(wave, in, 0, W, buffers[0]);
    for (int i = 0; i < kLanes; ++i) value.lane[i] = a[i];
  }
  const uint32_t* wanted = fetch(wave, in, 1, Width::w32, buffers[1]);
  constexpr uint64_t kTop = (uint64_t{1} << kExponent) - 1;
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t bits = value.lane[i];
    const unsigned bit = class_bit(bits >> (kMantissa + kExponent) & 1, bits >> kMantissa & kTop, kTop,
                                   bits & ((uint64_t{1} << kMantissa) - 1), bits >> (kMantissa - 1) & 1);
    flags.lane[i] = wanted[i] >> bit & 1;
  }
  finish(wave, in, mask_of(flags.lane));
}

// The sixteen float relations and the eight integer ones stand in this order in the opcode tables.
constexpr unsigned L = kLess, E = kEqual, G = kGreater, U = kUnordered;

template <template <unsigned> class Family>
Handler float_relation(unsigned number) {
  switch (number) {
    case 0:
      return Family<0>::run;
    case 1:
      return Family<L>::run;
    case 2:
      return Family<E>::run;
    case 3:
      return Family<L | E>::run;
    case 4:
      return Family<G>::run;
    case 5:
      return Family<L | G>::run;
    case 6:
      return Family<G | E>::run;
    case 7:
      return Family<L | E | G>::run;
    case 8:
      return Family<U>::run;
    case 9:
      return Family<L | U>::run;
    case 10:
      return Family<E | U>::run;
    case 11:
      return Family<L | E | U>::run;
    case 12:
      return Family<G | U>::run;
    case 13:
      return Family<L | G | U>::run;
    case 14:
      return Family<G | E | U>::run;
    default:
      return Family<L | E | G | U>::run;
  }
}
template <template <unsigned> class Family>
Handler int_relation(unsigned number) {
  switch (number) {
    case 0:
      return Family<0>::run;
    case 1:
      return Family<L>::run;
    case 2:
      return Family<E>::run;
    case 3:
      return Family<L | E>::run;
    case 4:
      return Family<G>::run;
    case 5:
      return Family<L | G>::run;
    case 6:
      return Family<G | E>::run;
    default:
      return Family<L | E | G>::run;
  }
}

#define ZYFA_FAMILY(name, ...)                                                    \
  template <unsigned Table>                                                       \
  struct name {                                                                   \
    static void run(Wave& wave, const Instruction& in) { __VA_ARGS__(wave, in); } \
  };
ZYFA_FAMILY(HalfFamily, compare_f16<Table>)
ZYFA_FAMILY(FloatFamily, compare_f32<Table>)
ZYFA_FAMILY(DoubleFamily, compare_f64<Table>)
ZYFA_FAMILY(I16Family, compare_int<Table, int16_t, Width::w16>)
ZYFA_FAMILY(U16Family, compare_int<Table, uint16_t, Width::w16>)
ZYFA_FAMILY(I32Family, compare_int<Table, int32_t, Width::w32>)
ZYFA_FAMILY(U32Family, compare_int<Table, uint32_t, Width::w32>)
ZYFA_FAMILY(I64Family, compare_int64<Table, int64_t>)
ZYFA_FAMILY(U64Family, compare_int64<Table, uint64_t>)
#undef ZYFA_FAMILY

}  // namespace

Handler compare_handler(const Instruction& in) {
  if (in.info->format != Format::vopc) return nullptr;
  const unsigned opcode = in.info->opcode, relation = opcode & 15;
  switch (opcode >> 4) {
    case 0x1:
      switch (relation / 2) {
        case 0:
          return classify<Width::w32>;
        case 1:
          return classify<Width::w64>;
        case 2:
          return classify<Width::w16>;
        default:
          return nullptr;
      }
    case 0x2:
    case 0x3:
      return float_relation<HalfFamily>(relation);
    case 0x4:
    case 0x5:
      return float_relation<FloatFamily>(relation);
    case 0x6:
    case 0x7:
      return float_relation<DoubleFamily>(relation);
    case 0xa:
    case 0xb:
      return relation < 8 ? int_relation<I16Family>(relation) : int_relation<U16Family>(relation - 8);
    case 0xc:
    case 0xd:
      return relation < 8 ? int_relation<I32Family>(relation) : int_relation<U32Family>(relation - 8);
    case 0xe:
    case 0xf:
      return relation < 8 ? int_relation<I64Family>(relation) : int_relation<U64Family>(relation - 8);
    default:
      return nullptr;
  }
}

}  // namespace zyfa::emulator::ZYFA_LEVEL
