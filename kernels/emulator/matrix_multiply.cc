// The exact order, fast. Every product is exact in double. Where the exponents of a row of A and a column of
// B lie close enough, so is the sum in any order (`range`); elsewhere the sum has an error bound, and only
// elements whose rounding the bound leaves open are computed again in wide fixed point. The file is compiled
// with contraction: a fused multiply-add of an exact product rounds as the addition alone does.
#include "matrix_multiply.hpp"

#include <cmath>
#include <cstring>

#include "rounding.hpp"

#define ZYFA_INLINE inline __attribute__((always_inline))

namespace zyfa::emulator {
namespace {

constexpr int kMaxElements = 32;

using Elements = double[kMaxElements][kLanes];

// ---- registers to doubles
// -----------------------------------------------------------------------------------------

template <int kBits>
ZYFA_INLINE void look_up(const double* table, const uint32_t* const* registers, int count, Elements& out) {
  constexpr uint32_t kMask = (1u << kBits) - 1;
  for (int e = 0; e < count; ++e) {
    const uint32_t* low = registers[e * kBits / 32];
    const uint32_t* high = registers[(e * kBits + kBits - 1) / 32];
    const int shift = e * kBits % 32;
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t both = low[l] | static_cast<uint64_t>(high[l]) << 32;
      out[e][l] = table[(low == high ? low[l] >> shift : static_cast<uint32_t>(both >> shift)) & kMask];
    }
  }
}

ZYFA_INLINE void unpack_f16(const uint32_t* const* registers, int count, Elements& out) {
  for (int e = 0; e < count; ++e)
    for (int l = 0; l < kLanes; ++l) {
      const uint32_t half = registers[e / 2][l] >> (e % 2 * 16) & 0xffff, magnitude = half & 0x7fff;
      // Normal: the exponent moves from bias 15 to 127. Denormal: 0.5 with the mantissa in its low bits,
      // minus 0.5.
      const uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00 ? 0x70000000u : 0x38000000u);
      const uint32_t denormal = magnitude + 0x3f000000u;
      float n, d;
      std::memcpy(&n, &normal, 4);
      std::memcpy(&d, &denormal, 4);
      const double value = magnitude < 0x400 ? (double{d} - 0.5) : double{n};
      out[e][l] = half & 0x8000 ? -value : value;
    }
}

ZYFA_INLINE void unpack_bf16(const uint32_t* const* registers, int count, Elements& out) {
  for (int e = 0; e < count; ++e)
    for (int l = 0; l < kLanes; ++l) {
      const uint32_t bits = registers[e / 2][l] >> (e % 2 * 16) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      out[e][l] = value;
    }
}

ZYFA_INLINE void unpack(ElementFormat format, const uint32_t* const* registers, int count, Elements& out) {
  switch (format) {
    case ElementFormat::fp8:
    case ElementFormat::bf8:
      return look_up<8>(value_table(format).data(), registers, count, out);
    case ElementFormat::fp6:
    case ElementFormat::bf6:
      return look_up<6>(value_table(format).data(), registers, count, out);
    case ElementFormat::fp4:
      return look_up<4>(value_table(format).data(), registers, count, out);
    case ElementFormat::f16:
      return unpack_f16(registers, count, out);
    case ElementFormat::bf16:
      return unpack_bf16(registers, count, out);
    case ElementFormat::i8:
      for (int e = 0; e < count; ++e)
        for (int l = 0; l < kLanes; ++l)
          out[e][l] = static_cast<int32_t>(registers[e / 4][l] << (24 - e % 4 * 8)) >> 24;
      return;
    case ElementFormat::f32:
      for (int l = 0; l < kLanes; ++l) {
        float value;
        std::memcpy(&value, &registers[0][l], 4);
        out[0][l] = value;
      }
      return;
    case ElementFormat::f64:
      for (int l = 0; l < kLanes; ++l) {
        const uint64_t bits = registers[0][l] | static_cast<uint64_t>(registers[1][l]) << 32;
        std::memcpy(&out[0][l], &bits, 8);
      }
      return;
  }
}

struct Operand {
  Elements values;
  int count = 0, run = 0;
};

ZYFA_INLINE void read_operand(const MatrixShape& shape, ElementFormat format,
                              const uint32_t* const* registers, int count, int run, const double* scale,
                              Operand& out) {
  out.count = count;
  out.run = run;
  unpack(format, registers, count, out.values);
  if (scale == nullptr) return;
  for (int k = 0; k < shape.k; ++k) {
    const Slot slot = input_slot(shape, count, run, 0, k);
    double* values = out.values[slot.element] + slot.lane;
    const double* factors = scale + shape.m * (k / 32);
    for (int i = 0; i < shape.m; ++i) values[i] *= factors[i];
  }
}

// ---- how large, how fine
// --------------------------------------------------------------------------------------------

// Of each row of A or column of B: the largest magnitude, and the bits between it and the smallest step.
constexpr int kNothing = -10000;  // range of zeros alone: with them every sum is exact

struct Extent {
  double largest[kMaxRows];
  int range[kMaxRows];
};

ZYFA_INLINE int biased_exponent(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<int>(bits >> 52 & 0x7ff);
}

ZYFA_INLINE void measure(const double* const* vectors, int count, int size, int mantissa_bits,
                         Extent& extent) {
  double smallest[kMaxRows], largest[kMaxRows];
  for (int i = 0; i < size; ++i) smallest[i] = std::numeric_limits<double>::infinity(), largest[i] = 0;
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < size; ++i) {
      const double magnitude = std::fabs(vectors[k][i]);
      const double step = magnitude > 0 ? magnitude : std::numeric_limits<double>::infinity();
      largest[i] = magnitude > largest[i] ? magnitude : largest[i];
      smallest[i] = step < smallest[i] ? step : smallest[i];
    }
  for (int i = 0; i < size; ++i) {
    extent.largest[i] = largest[i];
    const int range = biased_exponent(largest[i]) - biased_exponent(smallest[i]) + mantissa_bits;
    extent.range[i] = largest[i] > 0 ? range : kNothing;
  }
}

// ---- the dot products
// -------------------------------------------------------------------------------------------------

template <int W>
struct Pack {
  typedef double type __attribute__((vector_size(8 * W), aligned(8), may_alias));
};

// R rows by V * W columns, held in vector registers. Sums start at -0: what they would be of negative zeros
// alone.
template <int W, int V, int R>
ZYFA_INLINE void dot_tile(const MatrixBlock& block, int i, int j, double (*out)[kMaxRows]) {
  using P = typename Pack<W>::type;
  P sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sum[r][v] = -(P{});
  for (int t = 0; t < block.terms; ++t) {
    P b[V];
    for (int v = 0; v < V; ++v) b[v] = *reinterpret_cast<const P*>(block.b[t] + j + v * W);
    const double* a = block.a[t] + i;
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) sum[r][v] += a[r] * b[v];
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) *reinterpret_cast<P*>(out[i + r] + j + v * W) = sum[r][v];
}

template <int W, int V>
ZYFA_INLINE void dot_dense(const MatrixBlock& block, double (*out)[kMaxRows]) {
  for (int i = 0; i < block.size; i += 4)
    for (int j = 0; j < block.size; j += V * W) dot_tile<W, V, 4>(block, i, j, out);
}

ZYFA_INLINE void dot_sparse(const MatrixBlock& block, double (*out)[kMaxRows]) {
  for (int i = 0; i < block.size; ++i) {
    double sum[kMaxRows];
    for (int j = 0; j < kMaxRows; ++j) sum[j] = -0.0;
    for (int t = 0; t < block.terms; ++t) {
      const double a = block.a[t][i];
      const double* b = block.b[block.rows[t][i]];
      for (int j = 0; j < block.size; ++j) sum[j] += a * b[j];
    }
    for (int j = 0; j < block.size; ++j) out[i][j] = sum[j];
  }
}

template <int W>
ZYFA_INLINE void dot(const MatrixBlock& block, double (*out)[kMaxRows]) {
  constexpr int kNarrow = W < 4 ? W : 4;
  if (block.sparse) return dot_sparse(block, out);
  if (block.size == 32) return dot_dense<W, W == 8 ? 4 : 2>(block, out);
  if (block.size == 16) return dot_dense<W, 2>(block, out);
  return dot_dense<kNarrow, 4 / kNarrow>(block, out);
}

// ---- rounding
// ---------------------------------------------------------------------------------------------------------

struct Doubt {
  bool possible = false;  // sums may be inexact
  Extent a, b;
  int limit = 0;     // ranges that add up to no more leave the sum exact
  double error = 0;  // times the largest of both: bound of the sum's error
};

// D of one row; false where the bound leaves the rounding of an element open.
ZYFA_INLINE void round_row(const MatrixBlock& block, const Doubt& doubt, int i, const double* sums,
                           const float* c, float* d, bool saturate) {
  for (int j = 0; j < block.size; ++j) d[j] = to_float(add_to_odd(sums[j], c[j]), saturate);
  if (!doubt.possible) return;
  int open = 0;
  uint8_t unsure[kMaxRows];
  const double row_error = doubt.error * doubt.a.largest[i];
  for (int j = 0; j < block.size; ++j) {
    const double sum = sums[j] + c[j];
    const double error = row_error * doubt.b.largest[j] + std::fabs(sum) * 0x1p-52;
    const bool inexact = doubt.a.range[i] + doubt.b.range[j] > doubt.limit;
    const bool finite = std::fabs(sum) < std::numeric_limits<double>::infinity();
    const bool same = to_float(sum - error, saturate) == to_float(sum + error, saturate) && sum != 0 &&
                      std::fabs(sum) > error;
    unsure[j] = inexact && finite && !same;
    open |= unsure[j];
  }
  if (!open) return;
  for (int j = 0; j < block.size; ++j)
    if (unsure[j]) d[j] = exact_element(block, i, j, c[j], saturate);
}

ZYFA_INLINE int bits_of(int n) { return n <= 1 ? 0 : 32 - __builtin_clz(static_cast<uint32_t>(n - 1)); }

ZYFA_INLINE void find_doubt(const MatrixJob& job, const MatrixBlock& block, Doubt& doubt) {
  const FormatInfo &a = info(job.a_format), &b = info(job.b_format);
  // |a| < 2^(e+1) for its largest exponent e: two bits more than the ranges, and the growth of the sum.
  doubt.limit = 53 - 2 - bits_of(block.terms);
  const bool scaled = job.a_scale != nullptr;
  if (!scaled && a.range() + b.range() <= doubt.limit) return;
  doubt.possible = true;
  doubt.error = 0x1p-52 * block.terms * block.terms;
  measure(block.a, block.terms, block.size, a.mantissa_bits, doubt.a);
  measure(block.b, job.shape->k, block.size, b.mantissa_bits, doubt.b);
}

// ---- one instruction
// ----------------------------------------------------------------------------------------------------

ZYFA_INLINE void place(const MatrixJob& job, const Operand& a, const Operand& b, int number,
                       MatrixBlock& block) {
  const MatrixShape& shape = *job.shape;
  block.size = shape.m;
  block.sparse = shape.sparse;
  block.terms = shape.sparse ? shape.k / 2 : shape.k;
  for (int k = 0; k < shape.k; ++k) {
    const Slot slot = input_slot(shape, b.count, b.run, number, k);
    block.b[k] = b.values[slot.element] + slot.lane;
  }
  for (int t = 0; t < block.terms; ++t) {
    const Slot slot = input_slot(shape, a.count, a.run, number, t);
    block.a[t] = a.values[slot.element] + slot.lane;
    if (!shape.sparse) continue;
    for (int i = 0; i < shape.m; ++i) {
      const uint32_t among_four = job.index[slot.lane + i] >> (job.index_shift + 2 * slot.element) & 3;
      block.rows[t][i] = static_cast<uint8_t>(t / 2 * 4 + among_four);
    }
  }
}

ZYFA_INLINE void integer_row(const double* sums, const uint32_t* c, uint32_t* d, int size, bool saturate) {
  for (int j = 0; j < size; ++j) {
    const int32_t sum = static_cast<int32_t>(sums[j]);  // at most 2^21
    const uint32_t wrapped = static_cast<uint32_t>(sum) + c[j];
    const auto addend = static_cast<int32_t>(c[j]);
    const bool over =
        saturate && ((sum < 0) == (addend < 0)) && ((static_cast<int32_t>(wrapped) < 0) != (sum < 0));
    d[j] = over ? (sum < 0 ? 0x80000000u : 0x7fffffffu) : wrapped;
  }
}

struct Output {
  uint32_t registers[32][kLanes];
};

template <int W>
ZYFA_INLINE void multiply_block(const MatrixJob& job, const MatrixBlock& block, int number, Output& out) {
  const MatrixShape& shape = *job.shape;
  alignas(64) double sums[kMaxRows][kMaxRows];
  Doubt doubt;
  const bool whole = shape.result == MatrixResult::i32;
  const bool exact = job.accumulation == Accumulation::exact;
  if (whole || exact) dot<W>(block, sums);
  if (!whole && exact) find_doubt(job, block, doubt);
  for (int i = 0; i < shape.m; ++i) {
    const Slot slot = output_slot(shape, number, i);
    const uint32_t* addend = job.c[slot.element] + slot.lane;
    uint32_t* result = out.registers[slot.element] + slot.lane;
    if (whole) {
      integer_row(sums[i], addend, result, shape.m, job.saturate);
      continue;
    }
    float c[kMaxRows], d[kMaxRows];
    std::memcpy(c, addend, sizeof(float) * shape.m);
    if (exact)
      round_row(block, doubt, i, sums[i], c, d, job.saturate);
    else if (job.accumulation == Accumulation::sequential)
      sequential_row(block, i, c, d, job.saturate);
    else
      pairwise_row(block, i, c, d, job.saturate);
    for (int j = 0; j < shape.m; ++j) d[j] = d[j] == d[j] ? d[j] : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(result, d, sizeof(float) * shape.m);
  }
}

void multiply_f64(const MatrixJob& job, const MatrixBlock& block, int number, Output& out) {
  for (int i = 0; i < block.size; ++i) {
    const Slot slot = output_slot(*job.shape, number, i);
    const int low = 2 * slot.element, high = low + 1;
    for (int j = 0; j < block.size; ++j) {
      uint64_t bits = job.c[low][slot.lane + j] | static_cast<uint64_t>(job.c[high][slot.lane + j]) << 32;
      double c;
      std::memcpy(&c, &bits, 8);
      double d = f64_element(block, i, j, job.negate & 4 ? -c : c, job.accumulation, job.saturate);
      if (d != d) d = std::numeric_limits<double>::quiet_NaN();
      std::memcpy(&bits, &d, 8);
      out.registers[low][slot.lane + j] = static_cast<uint32_t>(bits);
      out.registers[high][slot.lane + j] = static_cast<uint32_t>(bits >> 32);
    }
  }
}

ZYFA_INLINE void negate(Operand& operand) {
  for (int l = 0; l < kLanes; ++l) operand.values[0][l] = -operand.values[0][l];
}

template <int W>
ZYFA_INLINE void multiply_with(const MatrixJob& job) {
  const MatrixShape& shape = *job.shape;
  alignas(64) Operand a, b;
  const int run_a = info(job.a_format).bits < 8 ? 0 : shape.sparse ? shape.run / 2 : shape.run;
  const int run_b = info(job.b_format).bits < 8 ? 0 : shape.run;
  read_operand(shape, job.a_format, job.a, shape.elements_a(), run_a, job.a_scale, a);
  read_operand(shape, job.b_format, job.b, shape.elements_b(), run_b, job.b_scale, b);
  if (job.negate & 1) negate(a);
  if (job.negate & 2) negate(b);
  MatrixBlock block;
  Output out;
  for (int number = 0; number < shape.blocks; ++number) {
    place(job, a, b, number, block);
    if (shape.result == MatrixResult::f64)
      multiply_f64(job, block, number, out);
    else
      multiply_block<W>(job, block, number, out);
  }
  const int registers =
      shape.m * shape.m * shape.blocks / kLanes * (shape.result == MatrixResult::f64 ? 2 : 1);
  for (int r = 0; r < registers; ++r) std::memcpy(job.d[r], out.registers[r], sizeof out.registers[r]);
}

// ---- the best instruction set of this processor
// ---------------------------------------------------------------------------

using Multiply = void (*)(const MatrixJob&);

void multiply_portable(const MatrixJob& job) { multiply_with<2>(job); }

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_avx2(const MatrixJob& job) { multiply_with<4>(job); }

__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,prefer-vector-width=512"))) void
multiply_avx512(const MatrixJob& job) {
  multiply_with<8>(job);
}

Multiply choose() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    return multiply_avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? multiply_avx2 : multiply_portable;
}
#else
Multiply choose() { return multiply_portable; }
#endif

}  // namespace

void multiply(const MatrixJob& job) {
  static const Multiply best = choose();
  best(job);
}

}  // namespace zyfa::emulator
