#include "atomic_ops.hpp"

#include <array>
#include <cstring>
#include <string>
#include <string_view>

namespace zyfa::emulator {
namespace {

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// A sum of two halves (or brain floats) is exact or wide enough in float32: 24 >= 2 * 11 + 2, so rounding
// twice is rounding once.
float half_to_float(uint32_t half) {
  const uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return bits_as<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return bits_as<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float value = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

uint32_t float_to_half(float value) {
  const uint32_t bits = bits_as<uint32_t>(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | (magnitude >> 13 & 0x1ff);
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // Adding 0.5 (ulp 2^-24) leaves subnormal halves, rounded to even, in the low bits.
  if (magnitude < 0x38800000) return sign | (bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) & 0x7ff);
  const uint32_t rebased = magnitude - (112u << 23);
  return sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13;
}

uint32_t add_halves(uint32_t a, uint32_t b) { return float_to_half(half_to_float(a) + half_to_float(b)); }

uint32_t add_brains(uint32_t a, uint32_t b) {
  const uint32_t sum = bits_as<uint32_t>(bits_as<float>(a << 16) + bits_as<float>(b << 16));
  if ((sum & 0x7fffffff) > 0x7f800000) return sum >> 16 | 0x40;
  return (sum + 0x7fff + (sum >> 16 & 1)) >> 16;
}

template <uint32_t (*kAdd)(uint32_t, uint32_t)>
uint64_t add_pair(uint64_t a, uint64_t b) {
  return kAdd(a & 0xffff, b & 0xffff) | uint64_t{kAdd(a >> 16 & 0xffff, b >> 16 & 0xffff)} << 16;
}

float flushed(float value, bool flush) {
  const uint32_t bits = bits_as<uint32_t>(value);
  return flush && (bits & 0x7f800000) == 0 ? bits_as<float>(bits & 0x80000000) : value;
}
double flushed(double value, bool) { return value; }

template <class U, class S, class F>
U apply_to(AtomicOp op, U memory, U data, U data1, bool flush) {
  const auto real = [&](U value) { return flushed(bits_as<F>(value), flush); };
  switch (op) {
    case AtomicOp::swap:
      return data;
    case AtomicOp::compare_swap:
      return memory == data ? data1 : memory;
    case AtomicOp::add:
      return memory + data;
    case AtomicOp::sub:
      return memory - data;
    case AtomicOp::reverse_sub:
      return data - memory;
    case AtomicOp::min_signed:
      return static_cast<S>(data) < static_cast<S>(memory) ? data : memory;
    case AtomicOp::max_signed:
      return static_cast<S>(data) > static_cast<S>(memory) ? data : memory;
    case AtomicOp::min_unsigned:
      return data < memory ? data : memory;
    case AtomicOp::max_unsigned:
      return data > memory ? data : memory;
    case AtomicOp::bit_and:
      return memory & data;
    case AtomicOp::bit_or:
      return memory | data;
    case AtomicOp::bit_xor:
      return memory ^ data;
    case AtomicOp::mask_or:
      return (memory & ~data) | data1;
    case AtomicOp::increment:
      return memory >= data ? 0 : memory + 1;
    case AtomicOp::decrement:
      return memory == 0 || memory > data ? data : memory - 1;
    case AtomicOp::wrap:
      return memory >= data ? memory - data : memory + data1;
    case AtomicOp::compare_swap_float:
      return real(memory) == real(data) ? data1 : memory;
    case AtomicOp::add_float:
      return bits_as<U>(flushed(real(memory) + real(data), flush));
    case AtomicOp::min_float:
      return real(data) < real(memory) ? data : memory;
    case AtomicOp::max_float:
      return real(data) > real(memory) ? data : memory;
    case AtomicOp::add_half_pair:
      return static_cast<U>(add_pair<add_halves>(memory, data));
    case AtomicOp::add_brain_pair:
      return static_cast<U>(add_pair<add_brains>(memory, data));
    case AtomicOp::none:
      break;
  }
  return memory;
}

struct NamedRow {
  std::string_view name;
  AtomicOp op;
  uint8_t bytes;
};

// Behind "ds_", without "_rtn".
constexpr NamedRow kLdsRows[] = {
    {"add_u32", AtomicOp::add, 4},
    {"sub_u32", AtomicOp::sub, 4},
    {"rsub_u32", AtomicOp::reverse_sub, 4},
    {"inc_u32", AtomicOp::increment, 4},
    {"dec_u32", AtomicOp::decrement, 4},
    {"min_i32", AtomicOp::min_signed, 4},
    {"max_i32", AtomicOp::max_signed, 4},
    {"min_u32", AtomicOp::min_unsigned, 4},
    {"max_u32", AtomicOp::max_unsigned, 4},
    {"and_b32", AtomicOp::bit_and, 4},
    {"or_b32", AtomicOp::bit_or, 4},
    {"xor_b32", AtomicOp::bit_xor, 4},
    {"mskor_b32", AtomicOp::mask_or, 4},
    {"wrxchg_b32", AtomicOp::swap, 4},
    {"cmpst_b32", AtomicOp::compare_swap, 4},
    {"cmpst_f32", AtomicOp::compare_swap_float, 4},
    {"min_f32", AtomicOp::min_float, 4},
    {"max_f32", AtomicOp::max_float, 4},
    {"add_f32", AtomicOp::add_float, 4},
    {"wrap_b32", AtomicOp::wrap, 4},
    {"pk_add_f16", AtomicOp::add_half_pair, 4},
    {"pk_add_bf16", AtomicOp::add_brain_pair, 4},
    {"add_u64", AtomicOp::add, 8},
    {"sub_u64", AtomicOp::sub, 8},
    {"rsub_u64", AtomicOp::reverse_sub, 8},
    {"inc_u64", AtomicOp::increment, 8},
    {"dec_u64", AtomicOp::decrement, 8},
    {"min_i64", AtomicOp::min_signed, 8},
    {"max_i64", AtomicOp::max_signed, 8},
    {"min_u64", AtomicOp::min_unsigned, 8},
    {"max_u64", AtomicOp::max_unsigned, 8},
    {"and_b64", AtomicOp::bit_and, 8},
    {"or_b64", AtomicOp::bit_or, 8},
    {"xor_b64", AtomicOp::bit_xor, 8},
    {"mskor_b64", AtomicOp::mask_or, 8},
    {"wrxchg_b64", AtomicOp::swap, 8},
    {"cmpst_b64", AtomicOp::compare_swap, 8},
    {"cmpst_f64", AtomicOp::compare_swap_float, 8},
    {"min_f64", AtomicOp::min_float, 8},
    {"max_f64", AtomicOp::max_float, 8},
    {"add_f64", AtomicOp::add_float, 8},
};

// Behind "flat_atomic_", "global_atomic_" and "buffer_atomic_".
constexpr NamedRow kMemoryRows[] = {
    {"swap", AtomicOp::swap, 4},
    {"cmpswap", AtomicOp::compare_swap, 4},
    {"add", AtomicOp::add, 4},
    {"sub", AtomicOp::sub, 4},
    {"smin", AtomicOp::min_signed, 4},
    {"umin", AtomicOp::min_unsigned, 4},
    {"smax", AtomicOp::max_signed, 4},
    {"umax", AtomicOp::max_unsigned, 4},
    {"and", AtomicOp::bit_and, 4},
    {"or", AtomicOp::bit_or, 4},
    {"xor", AtomicOp::bit_xor, 4},
    {"inc", AtomicOp::increment, 4},
    {"dec", AtomicOp::decrement, 4},
    {"add_f32", AtomicOp::add_float, 4},
    {"pk_add_f16", AtomicOp::add_half_pair, 4},
    {"pk_add_bf16", AtomicOp::add_brain_pair, 4},
    {"add_f64", AtomicOp::add_float, 8},
    {"min_f64", AtomicOp::min_float, 8},
    {"max_f64", AtomicOp::max_float, 8},
    {"swap_x2", AtomicOp::swap, 8},
    {"cmpswap_x2", AtomicOp::compare_swap, 8},
    {"add_x2", AtomicOp::add, 8},
    {"sub_x2", AtomicOp::sub, 8},
    {"smin_x2", AtomicOp::min_signed, 8},
    {"umin_x2", AtomicOp::min_unsigned, 8},
    {"smax_x2", AtomicOp::max_signed, 8},
    {"umax_x2", AtomicOp::max_unsigned, 8},
    {"and_x2", AtomicOp::bit_and, 8},
    {"or_x2", AtomicOp::bit_or, 8},
    {"xor_x2", AtomicOp::bit_xor, 8},
    {"inc_x2", AtomicOp::increment, 8},
    {"dec_x2", AtomicOp::decrement, 8},
};

template <size_t kRows>
AtomicRow named(const NamedRow (&rows)[kRows], std::string_view name) {
  for (const NamedRow& row : rows)
    if (row.name == name) return {row.op, row.bytes};
  return {};
}

AtomicRow find_row(const OpInfo& op) {
  std::string name = op.name;
  switch (op.format) {
    case Format::ds:
      if (const size_t at = name.find("_rtn"); at != std::string::npos) name.erase(at, 4);
      return named(kLdsRows, std::string_view(name).substr(3));
    case Format::flat:
    case Format::global:
    case Format::mubuf: {
      const size_t at = name.find("_atomic_");
      return at == std::string::npos ? AtomicRow()
                                     : named(kMemoryRows, std::string_view(name).substr(at + 8));
    }
    default:
      return {};
  }
}

}  // namespace

AtomicRow atomic_row(Op op) {
  static const auto kRows = [] {
    std::array<AtomicRow, static_cast<size_t>(Op::count)> rows{};
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = find_row(info(static_cast<Op>(i)));
    return rows;
  }();
  return kRows[static_cast<size_t>(op)];
}

uint64_t apply(AtomicRow row, uint64_t memory, uint64_t data, uint64_t data1, bool flush) {
  if (row.bytes == 8) return apply_to<uint64_t, int64_t, double>(row.op, memory, data, data1, flush);
  return apply_to<uint32_t, int32_t, float>(row.op, static_cast<uint32_t>(memory),
                                            static_cast<uint32_t>(data), static_cast<uint32_t>(data1), flush);
}

}  // namespace zyfa::emulator
