#include "kernels.hpp"

#include <cstdlib>
#include <string>

#include "../error.hpp"
#include "isa/amx_state.hpp"
#include "isa/isa.hpp"

namespace zyfa::cpu {

void isa::refuse_type(const char* verb, DType type) {
  fail("cannot ", verb, " ", name(type), " as floating point");
}

namespace {

struct Candidate {
  Kernels kernels;
  bool supported;
};

void nothing() {}

// Everything but the products of pairs.
template <typename Tag>
Kernels kernels_of() {
  Kernels k{};
  k.isa = Tag::name;
  k.fastest = Operand::fp32;
  k.scores = isa::Products<Tag>::scores;
  k.accumulate = isa::Products<Tag>::accumulate;
  k.scores_few = isa::Few<Tag>::scores;
  k.accumulate_few = isa::Few<Tag>::accumulate;
  k.begin_pairs = k.end_pairs = nothing;
  k.hide = isa::Softmax<Tag>::hide;
  k.softmax_fp32 = isa::Softmax<Tag>::fp32;
  k.softmax_bfloat16 = isa::Softmax<Tag>::bfloat16;
  k.softmax_pairs = isa::Softmax<Tag>::pairs;
  k.fp8_fp32 = isa::Fp8<Tag>::fp32;
  k.fp8_pairs = isa::Fp8<Tag>::pairs;
  k.to_fp32 = isa::Convert<Tag>::to_fp32;
  k.to_bfloat16 = isa::Convert<Tag>::to_bfloat16;
  k.write_row = isa::Convert<Tag>::write_row;
  k.transpose = isa::Transpose<Tag>::words;
  k.transpose_values = isa::Transpose<Tag>::values;
  k.not_finite = isa::Convert<Tag>::not_finite;
  return k;
}

#if defined(__x86_64__)
// `Tag` adds products of pairs to the set `Rest`.
template <typename Tag, typename Rest>
Kernels kernels_with_pairs() {
  Kernels k = kernels_of<Rest>();
  k.isa = Tag::name;
  k.fastest = Operand::bfloat16_pairs;
  k.scores_pairs = isa::Pairs<Tag>::scores;
  k.accumulate_pairs = isa::Pairs<Tag>::accumulate;
  k.begin_pairs = isa::Pairs<Tag>::begin;
  k.end_pairs = isa::Pairs<Tag>::end;
  return k;
}

#if defined(ZYFA_HAS_AMX_BF16)
Kernels kernels_with_amx() {
  using Split = isa::SplitTerms<isa::AmxBf16>;
  using Products = isa::TermProducts<isa::AmxBf16>;
  Kernels k = kernels_with_pairs<isa::AmxBf16, isa::Avx512>();
  k.scores_terms = Products::scores;
  k.accumulate_terms = Products::accumulate;
  k.key_terms = Split::keys;
  k.value_terms = Split::values;
  k.query_terms = Split::queries;
  k.begin_softmax = isa::SoftmaxPieces<isa::Avx512>::begin;
  k.softmax_piece = isa::SoftmaxPieces<isa::Avx512>::piece;
  k.end_softmax = isa::SoftmaxPieces<isa::Avx512>::end;
  return k;
}
#endif

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

const Kernels& choose() {
  // Best first.
  static const Candidate candidates[] = {
#if defined(__x86_64__)
#if defined(ZYFA_HAS_AMX_BF16)
      {kernels_with_amx(), has_avx512() && amx_bf16_is_usable()},
#endif
#if defined(ZYFA_HAS_AVX512_BF16)
      {kernels_with_pairs<isa::Avx512Bf16, isa::Avx512>(),
       has_avx512() && __builtin_cpu_supports("avx512bf16")},
#endif
      {kernels_of<isa::Avx512>(), has_avx512()},
      {kernels_of<isa::Avx2>(),
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")},
#endif
      {kernels_of<isa::Baseline>(), true},
  };
  const char* wanted = std::getenv("ZYFA_CPU_ISA");
  if (wanted != nullptr && *wanted != '\0') {
    std::string known;
    for (const Candidate& candidate : candidates) {
      if (candidate.supported && std::string(wanted) == candidate.kernels.isa) return candidate.kernels;
      if (candidate.supported) known += std::string(known.empty() ? "" : ", ") + candidate.kernels.isa;
    }
    fail("ZYFA_CPU_ISA: expected one of ", known, " on this machine, got ", wanted);
  }
  for (const Candidate& candidate : candidates)
    if (candidate.supported) return candidate.kernels;
  return candidates[0].kernels;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace zyfa::cpu
