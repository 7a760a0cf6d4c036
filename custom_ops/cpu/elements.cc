#include "elements.hpp"

#include <string>

#include "isa/elements.hpp"

namespace zyfa::cpu {
namespace {

template <typename Tag>
constexpr Elements elements_of() {
  using Loops = isa::ElementLoops<Tag>;
  return {Loops::largest_finite, Loops::code_scale,      Loops::to_fp8,
          Loops::rotate,         Loops::rotated_largest, Loops::rotated_to_fp8};
}

Elements choose() {
#if defined(__x86_64__)
  const std::string chosen = kernels().isa;
  if (chosen == isa::Avx2::name) return elements_of<isa::Avx2>();
  // Every other set than the baseline holds AVX-512.
  if (chosen != isa::Baseline::name) return elements_of<isa::Avx512>();
#endif
  return elements_of<isa::Baseline>();
}

}  // namespace

const Elements& elements() {
  static const Elements chosen = choose();
  return chosen;
}

}  // namespace zyfa::cpu
