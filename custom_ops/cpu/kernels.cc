#include "kernels.hpp"

#include <cstdlib>
#include <string>

#include "../error.hpp"
#include "isa/isa.hpp"

namespace zyfa::cpu {
namespace {

struct Candidate {
  Kernels kernels;
  bool supported;
};

template <typename Tag>
Kernels kernels_of() {
  return {Tag::name,
          isa::Products<Tag>::scores,
          isa::Products<Tag>::exact_scores,
          isa::Products<Tag>::accumulate,
          isa::Rows<Tag>::row_stats,
          isa::Rows<Tag>::softmax_row,
          isa::Rows<Tag>::lean_row,
          isa::Rows<Tag>::two_term_row,
          isa::Rows<Tag>::bfloat16_row};
}

const Kernels& choose() {
  // Best first.
  static const Candidate candidates[] = {
#if defined(__x86_64__)
      {kernels_of<isa::Avx512>(), __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                      __builtin_cpu_supports("avx512bw") &&
                                      __builtin_cpu_supports("avx512vl")},
      {kernels_of<isa::Avx2>(), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
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
