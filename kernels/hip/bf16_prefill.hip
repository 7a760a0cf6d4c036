// BF16 prefill attention without softcap and bias. What the kernels take: prefill_arguments.hpp.
#include "prefill.hpp"

using namespace zyfa;

ZYFA_PREFILL_KERNEL(d64, 64, 64, kPrefillWaves, false)
ZYFA_PREFILL_KERNEL(d128, 128, 128, kPrefillWaves, false)
ZYFA_PREFILL_KERNEL(d192_v128, 192, 128, kPrefillWaves, false)
// Output and query alone take 192 of the 256 registers that a wave has when two share a SIMD.
ZYFA_PREFILL_KERNEL(d256, 256, 256, kPrefillWideWaves, false)
