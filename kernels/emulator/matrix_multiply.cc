// The exact order, fast. Every product is exact in double. Where the exponents of a row of A and a column of
// B lie close enough, so is the sum in any order (`range`); elsewhere the sum has an error bound, and only
// elements whose rounding the bound leaves open are computed again in wide fixed point. The file is compiled
// with contraction: a fused multiply-add of an exact product rounds as the addition alone does.
#include "matrix_multiply.hpp"

#include <cmath>
#include <cstring>

#include "matrix_unpack.hpp"
#include "rounding.hpp"

namespace zyfa::emulator {
namespace {

// ---- operands --------------------------------------------------------------------------------------------

struct Unpacked {
  Elements values;
  int count = 0, run = 0;
};

template <int kSize>
ZYFA_INLINE void apply_scale(const MatrixShape& shape, const double* scale, Unpacked& operand) {
  for (int k = 0; k < shape.k; ++k) {
    const Slot slot = input_slot(shape, operand.count, operand.run, 0, k);
    double* values = operand.values[slot.element] + slot.lane;
    const double* factors = scale + kSize * (k / 32);
    for (int i = 0; i < kSize; ++i) values[i] *= factors[i];
  }
}

ZYFA_INLINE void read_operand(const MatrixShape& shape, ElementFormat format,
                              const uint32_t* const* registers, int count, int run, const double* scale,
                              Unpacked& out) {
  out.count = count;
  out.run = run;
  unpack(format, registers, count, out.values);
  if (scale == nullptr) return;
  if (shape.m == 32)
    apply_scale<32>(shape, scale, out);
  else
    apply_scale<16>(shape, scale, out);
}

// ---- how large, how fine ---------------------------------------------------------------------------------

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNothing = -10000;  // range of zeros alone: with them every sum is exact

// Of each row of A or column of B: the largest magnitude, and the bits between it and the smallest step.
struct Extent {
  double largest[kMaxRows] = {};
  double range[kMaxRows] = {};
};

ZYFA_INLINE double biased_exponent(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<double>(bits >> 52);  // of a positive number
}

template <int kSize>
ZYFA_INLINE void measure(const double* const* vectors, int count, int mantissa_bits, Extent& extent) {
  double smallest[kSize], largest[kSize];
  for (int i = 0; i < kSize; ++i) smallest[i] = kInfinity, largest[i] = 0;
  for (int k = 0; k < count; ++k) {
    const double* vector = vectors[k];
    for (int i = 0; i < kSize; ++i) {
      const double magnitude = std::fabs(vector[i]);
      const double step = magnitude > 0 ? magnitude : kInfinity;
      largest[i] = magnitude > largest[i] ? magnitude : largest[i];
      smallest[i] = step < smallest[i] ? step : smallest[i];
    }
  }
  for (int i = 0; i < kSize; ++i) {
    const double range = biased_exponent(largest[i]) - biased_exponent(smallest[i]) + mantissa_bits;
    extent.largest[i] = largest[i];
    extent.range[i] = largest[i] > 0 ? range : kNothing;
  }
}

// ---- the dot products ------------------------------------------------------------------------------------

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

template <int W, int V, int kSize>
ZYFA_INLINE void dot_dense(const MatrixBlock& block, double (*out)[kMaxRows]) {
  for (int i = 0; i < kSize; i += 4)
    for (int j = 0; j < kSize; j += V * W) dot_tile<W, V, 4>(block, i, j, out);
}

// One row at a time: each takes rows of B of its own.
template <int W, int V, int kSize>
ZYFA_INLINE void dot_sparse(const MatrixBlock& block, double (*out)[kMaxRows]) {
  using P = typename Pack<W>::type;
  for (int i = 0; i < kSize; ++i)
    for (int j = 0; j < kSize; j += V * W) {
      P sum[V];
      for (int v = 0; v < V; ++v) sum[v] = -(P{});
      for (int t = 0; t < block.terms; ++t) {
        const double* b = block.b[block.rows[t][i]] + j;
        const double a = block.a[t][i];
        for (int v = 0; v < V; ++v) sum[v] += a * *reinterpret_cast<const P*>(b + v * W);
      }
      for (int v = 0; v < V; ++v) *reinterpret_cast<P*>(out[i] + j + v * W) = sum[v];
    }
}

template <int W, int kSize>
ZYFA_INLINE void dot(const MatrixBlock& block, double (*out)[kMaxRows]) {
  constexpr int kWidth = W < kSize ? W : kSize;
  constexpr int kVectors = W == 8 && kSize == 32 ? 4 : kSize / kWidth < 2 ? 1 : 2;
  if (block.sparse) return dot_sparse<kWidth, kVectors, kSize>(block, out);
  dot_dense<kWidth, kVectors, kSize>(block, out);
}

// ---- rounding --------------------------------------------------------------------------------------------

struct Doubt {
  bool possible = false;  // sums may be inexact; else the rest has no meaning
  Extent a, b;
  double limit = 0;  // ranges that add up to no more leave the sum exact
  double error = 0;  // times the largest of both: bound of the sum's error
};

// D of one row.
template <int kSize>
ZYFA_INLINE void round_row(const MatrixBlock& block, const Doubt& doubt, int i, const double* sums,
                           const float* addend, float* d, bool saturate) {
  double c[kSize];
  for (int j = 0; j < kSize; ++j) c[j] = addend[j];
  double odd[kSize];
  for (int j = 0; j < kSize; ++j) odd[j] = add_to_odd(sums[j], c[j]);
  for (int j = 0; j < kSize; ++j) d[j] = static_cast<float>(odd[j]);
  if (saturate)
    for (int j = 0; j < kSize; ++j) d[j] = to_float(odd[j], true);
  if (!doubt.possible) return;

  double unsure[kSize];
  double any = 0;
  const double row_error = doubt.error * doubt.a.largest[i], limit = doubt.limit - doubt.a.range[i];
  for (int j = 0; j < kSize; ++j) {
    const double sum = sums[j] + c[j], magnitude = std::fabs(sum);
    const double error = row_error * doubt.b.largest[j] + magnitude * 0x1p-52;
    const double low = static_cast<float>(magnitude - error), high = static_cast<float>(magnitude + error);
    const double differs = low == high ? 0.0 : 1.0;
    const double tiny = magnitude > error ? 0.0 : 1.0;  // the sign is open
    const double inexact = doubt.b.range[j] > limit ? 1.0 : 0.0;
    const double finite = magnitude < kInfinity ? 1.0 : 0.0;
    unsure[j] = inexact * finite * (differs + tiny);
  }
  for (int j = 0; j < kSize; ++j) any = unsure[j] > any ? unsure[j] : any;
  if (any == 0) return;
  for (int j = 0; j < kSize; ++j)
    if (unsure[j] > 0) d[j] = exact_element(block, i, j, addend[j], saturate);
}

// ---- the other orders of summation -----------------------------------------------------------------------

// Numbers that are floats, kept as doubles.
template <int kSize>
ZYFA_INLINE void round_to_float(double* values, bool saturate) {
  if (saturate)
    for (int j = 0; j < kSize; ++j) values[j] = to_float(values[j], true);
  else
    for (int j = 0; j < kSize; ++j) values[j] = static_cast<float>(values[j]);
}

template <int kSize>
ZYFA_INLINE void sequential_row(const MatrixBlock& block, int i, const float* c, float* d, bool saturate) {
  double sum[kSize];
  for (int j = 0; j < kSize; ++j) sum[j] = c[j];
  for (int t = 0; t < block.terms; ++t) {
    const double a = block.a[t][i];
    const double* b = block.b[block.row(t, i)];
    for (int j = 0; j < kSize; ++j) sum[j] = add_to_odd(a * b[j], sum[j]);
    round_to_float<kSize>(sum, saturate);
  }
  for (int j = 0; j < kSize; ++j) d[j] = static_cast<float>(sum[j]);
}

template <int kSize>
ZYFA_INLINE void pairwise_row(const MatrixBlock& block, int i, const float* c, float* d, bool saturate) {
  double tree[kMaxTerms][kSize];
  for (int t = 0; t < block.terms; ++t) {
    const double a = block.a[t][i];
    const double* b = block.b[block.row(t, i)];
    for (int j = 0; j < kSize; ++j) tree[t][j] = a * b[j];
    round_to_float<kSize>(tree[t], saturate);
  }
  // Two floats added in double and rounded to float: as if rounded once (53 bits are more than 2 * 24 + 1).
  for (int width = block.terms; width > 1; width /= 2)
    for (int t = 0; t < width / 2; ++t) {
      for (int j = 0; j < kSize; ++j) tree[t][j] = tree[2 * t][j] + tree[2 * t + 1][j];
      round_to_float<kSize>(tree[t], saturate);
    }
  for (int j = 0; j < kSize; ++j) tree[0][j] += c[j];
  round_to_float<kSize>(tree[0], saturate);
  for (int j = 0; j < kSize; ++j) d[j] = static_cast<float>(tree[0][j]);
}

// ---- which sums are exact --------------------------------------------------------------------------------

ZYFA_INLINE int bits_of(int n) { return n <= 1 ? 0 : 32 - __builtin_clz(static_cast<uint32_t>(n - 1)); }

// How far the exponents of one row's (column's) scales lie apart at most. NaN does not count: its row is all
// NaN.
template <int kSize>
ZYFA_INLINE double scale_spread(const double* scale) {
  double spread = 0;
  for (int i = 0; i < kSize; ++i) {
    double least = kInfinity, most = 0;
    for (int l = i; l < kLanes; l += kSize) {
      least = scale[l] < least ? scale[l] : least;
      most = scale[l] > most ? scale[l] : most;
    }
    const double apart = most > 0 ? biased_exponent(most) - biased_exponent(least) : 0;
    spread = apart > spread ? apart : spread;
  }
  return spread;
}

template <int kSize>
ZYFA_INLINE void find_doubt(const MatrixJob& job, const MatrixBlock& block, Doubt& doubt) {
  const FormatInfo &a = info(job.a_format), &b = info(job.b_format);
  // |a| < 2^(e+1) for its largest exponent e: two bits more than the ranges, and the growth of the sum.
  doubt.limit = 53 - 2 - bits_of(block.terms);
  const double spread =
      job.a_scale == nullptr ? 0 : scale_spread<kSize>(job.a_scale) + scale_spread<kSize>(job.b_scale);
  if (a.range() + b.range() + spread <= doubt.limit) return;
  doubt.possible = true;
  doubt.error = 0x1p-52 * block.terms * block.terms;
  measure<kSize>(block.a, block.terms, a.mantissa_bits, doubt.a);
  measure<kSize>(block.b, job.shape->k, b.mantissa_bits, doubt.b);
}

// ---- one instruction -------------------------------------------------------------------------------------

ZYFA_INLINE void place(const MatrixJob& job, const Unpacked& a, const Unpacked& b, int number,
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

template <int kSize>
ZYFA_INLINE void integer_row(const double* sums, const uint32_t* c, uint32_t* d, bool saturate) {
  for (int j = 0; j < kSize; ++j) {
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

template <int W, int kSize>
ZYFA_INLINE void multiply_block(const MatrixJob& job, const MatrixBlock& block, int number, Output& out) {
  const MatrixShape& shape = *job.shape;
  alignas(64) double sums[kMaxRows][kMaxRows];
  Doubt doubt;
  const bool whole = shape.result == MatrixResult::i32;
  const bool exact = job.accumulation == Accumulation::exact;
  if (whole || exact) dot<W, kSize>(block, sums);
  if (!whole && exact) find_doubt<kSize>(job, block, doubt);
  for (int i = 0; i < kSize; ++i) {
    const Slot slot = output_slot(shape, number, i);
    const uint32_t* addend = job.c[slot.element] + slot.lane;
    uint32_t* result = out.registers[slot.element] + slot.lane;
    if (whole) {
      integer_row<kSize>(sums[i], addend, result, job.saturate);
      continue;
    }
    float c[kMaxRows], d[kMaxRows];
    std::memcpy(c, addend, sizeof(float) * kSize);
    if (exact)
      round_row<kSize>(block, doubt, i, sums[i], c, d, job.saturate);
    else if (job.accumulation == Accumulation::sequential)
      sequential_row<kSize>(block, i, c, d, job.saturate);
    else
      pairwise_row<kSize>(block, i, c, d, job.saturate);
    for (int j = 0; j < kSize; ++j) d[j] = d[j] == d[j] ? d[j] : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(result, d, sizeof(float) * kSize);
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

ZYFA_INLINE void negate(Unpacked& operand) {
  for (int l = 0; l < kLanes; ++l) operand.values[0][l] = -operand.values[0][l];
}

template <int W>
ZYFA_INLINE void multiply_with(const MatrixJob& job) {
  const MatrixShape& shape = *job.shape;
  alignas(64) Unpacked a, b;
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
    else if (shape.m == 32)
      multiply_block<W, 32>(job, block, number, out);
    else if (shape.m == 16)
      multiply_block<W, 16>(job, block, number, out);
    else
      multiply_block<W, 4>(job, block, number, out);
  }
  const int registers =
      shape.m * shape.m * shape.blocks / kLanes * (shape.result == MatrixResult::f64 ? 2 : 1);
  for (int r = 0; r < registers; ++r) std::memcpy(job.d[r], out.registers[r], sizeof out.registers[r]);
}

// ---- the best instruction set of this processor ----------------------------------------------------------

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
