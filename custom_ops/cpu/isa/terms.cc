// FP32 numbers to bfloat16 terms: the nearest one, then what is left of it, towards zero. Sums are exact.
#include "terms.hpp"

#include "isa.hpp"
#include "transpose.hpp"

namespace zyfa::cpu::isa {
namespace {

typedef uint16_t Halves __attribute__((vector_size(64)));  // twice as many

// The largest magnitudes of the lanes.
class Largest {
 public:
  void look_at(const Floats& x) {
    const Ints magnitude = (Ints)(bits_of(x) & 0x7fffffffu);
    bits_ = magnitude > bits_ ? magnitude : bits_;
  }
  Ints bits() const { return bits_; }

 private:
  Ints bits_{};
};

// See Kernels::key_terms; NaN and infinity have larger bits.
bool usable(int32_t largest) {
  constexpr int32_t kOne = 127, kMantissaBits = 23;
  return largest == 0 || (largest >= (kOne - 40) << kMantissaBits && largest < (kOne + 50) << kMantissaBits);
}

bool each_usable(const Ints& largest) {
  bool all = true;
  for (int64_t lane = 0; lane < kLaneBlock; ++lane) all &= usable(largest[lane]);
  return all;
}

bool all_usable(const Ints& largest) {
  int32_t most = 0;
  for (int64_t lane = 0; lane < kLaneBlock; ++lane) most = largest[lane] > most ? largest[lane] : most;
  return usable(most);
}

// The upper halves of the words of a, then of b.
inline Halves upper_halves(const Floats& a, const Floats& b) {
  return __builtin_shufflevector((Halves)a, (Halves)b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
                                 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63);
}

// Calls put(term, a, b) with two vectors' terms as FP32.
template <int kTerms, typename Put>
inline void each_term(Floats a, Floats b, const Put& put) {
  for (int term = 0; term < kTerms; ++term) {
    const Floats of_a = term == 0 ? nearest_bfloat16(a) : upper_half(a);
    const Floats of_b = term == 0 ? nearest_bfloat16(b) : upper_half(b);
    put(term, of_a, of_b);
    a -= of_a;
    b -= of_b;
  }
}

template <int kTerms>
inline void store_halves(const Floats& a, const Floats& b, int64_t stride, uint16_t* to) {
  each_term<kTerms>(a, b, [&](int term, const Floats& of_a, const Floats& of_b) {
    store(to + term * stride, upper_halves(of_a, of_b));
  });
}

template <int kTerms>
inline void step_of_keys(const float* k, int64_t term_stride, Largest& largest, uint16_t* to) {
  const Floats a = load(k), b = load(k + kLaneBlock);
  largest.look_at(a);
  largest.look_at(b);
  store_halves<kTerms>(a, b, term_stride, to);
}

// Fewer than kStep dims, filled up with zeros. Apart from the loop, whose constants would leave the
// registers.
template <int kTerms>
__attribute__((noinline)) void last_step_of_keys(const float* k, int64_t dims, int64_t term_stride,
                                                 Largest& largest, uint16_t* to) {
  float filled[kStep] = {};
  std::memcpy(filled, k, dims * sizeof(float));
  step_of_keys<kTerms>(filled, term_stride, largest, to);
}

template <int kTerms>
bool tile_of_keys(const float* k, int64_t k_stride, int64_t dim, uint16_t* to) {
  const TermStrides strides = strides_of_keys(dim);
  const int64_t whole = dim / kStep * kStep;
  Largest largest;
  for (int64_t key = 0; key < kTileKeys; ++key)
    for (int64_t d = 0; d < whole; d += kStep)
      step_of_keys<kTerms>(k + key * k_stride + d, strides.term, largest,
                           to + key * kStep + d / kStep * strides.step);
  Largest of_last;
  for (int64_t key = 0; whole < dim && key < kTileKeys; ++key)
    last_step_of_keys<kTerms>(k + key * k_stride + whole, dim - whole, strides.term, of_last,
                              to + key * kStep + whole / kStep * strides.step);
  largest.look_at((Floats)of_last.bits());
  return all_usable(largest.bits());
}

// kStep keys of all columns.
template <int kTerms>
bool step_of_values(const float* v, int64_t v_stride, int64_t columns, int64_t term_stride, uint16_t* to) {
  Largest first, second;
  for (int64_t column = 0; column < columns; column += kLaneBlock) {
    uint32_t turned[2][kLaneBlock * kLaneBlock];
    for (int64_t half = 0; half < 2; ++half)
      transpose_block(reinterpret_cast<const uint32_t*>(v + half * kLaneBlock * v_stride + column), v_stride,
                      turned[half], kLaneBlock);
    for (int64_t c = 0; c < kLaneBlock; ++c) {
      const Floats a = load_as<Floats>(turned[0] + c * kLaneBlock);
      const Floats b = load_as<Floats>(turned[1] + c * kLaneBlock);
      first.look_at(a);
      second.look_at(b);
      store_halves<kTerms>(a, b, term_stride, to + (column + c) * kStep);
    }
  }
  return each_usable(first.bits()) && each_usable(second.bits());
}

template <int kTerms>
bool block_of_queries(const float* q, int64_t dim, int64_t lanes, int64_t term_stride, uint32_t* to) {
  Largest largest;
  for (int64_t d = 0; d < dim; d += 2, to += kLaneBlock) {
    const Floats even = load(q + d * lanes), odd = load(q + (d + 1) * lanes);
    largest.look_at(even);
    largest.look_at(odd);
    each_term<kTerms>(even, odd, [&](int term, const Floats& of_even, const Floats& of_odd) {
      store(to + term * term_stride, pair_of(of_even, of_odd));
    });
  }
  return each_usable(largest.bits());
}

}  // namespace

template <typename Tag>
bool SplitTerms<Tag>::keys(const float* k, int64_t k_stride, int64_t terms, int64_t dim, uint16_t* to) {
  return with_terms(terms, [&](auto count) { return tile_of_keys<count()>(k, k_stride, dim, to); });
}

template <typename Tag>
bool SplitTerms<Tag>::values(const float* v, int64_t v_stride, int64_t terms, int64_t columns, uint16_t* to) {
  const TermStrides strides = strides_of_values(columns);
  return with_terms(terms, [&](auto count) {
    bool all = true;
    for (int64_t key = 0; key < kTileKeys; key += kStep, to += strides.step)
      all &= step_of_values<count()>(v + key * v_stride, v_stride, columns, strides.term, to);
    return all;
  });
}

template <typename Tag>
bool SplitTerms<Tag>::queries(const float* q, int64_t terms, int64_t dim, int64_t lanes, uint32_t* to) {
  const TermStrides strides = strides_of_lanes(dim, lanes);
  return with_terms(terms, [&](auto count) {
    bool all = true;
    for (int64_t lane = 0; lane < lanes; lane += kLaneBlock, to += strides.step)
      all &= block_of_queries<count()>(q + lane, padded(dim, kStep), lanes, strides.term, to);
    return all;
  });
}

template struct SplitTerms<ZYFA_ISA>;

}  // namespace zyfa::cpu::isa
