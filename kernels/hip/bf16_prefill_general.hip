// BF16 prefill attention for what needs_general() of prefill_arguments.hpp names.
#include "prefill.hpp"

using namespace zyfa;

// Logits need more than the 256 registers that a wave has when two share a SIMD.
ZYFA_PREFILL_KERNEL(d64_general, 64, 64, kPrefillWideWaves, true)
ZYFA_PREFILL_KERNEL(d128_general, 128, 128, kPrefillWideWaves, true)
ZYFA_PREFILL_KERNEL(d192_v128_general, 192, 128, kPrefillWideWaves, true)
ZYFA_PREFILL_KERNEL(d256_general, 256, 256, kPrefillWideWaves, true)
