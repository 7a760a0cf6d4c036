// The two ways an item goes through the keys.
#pragma once

#include <optional>

#include "fp8_inputs.hpp"
#include "panel.hpp"

namespace zyfa::cpu {

// FP32 and BF16: docs/numerics.md, "precision = fp32 and bf16".
void softmax_pass(const AttentionCall& call, const WorkItem& item);

// FP8: docs/numerics.md, "precision = fp8".
void fp8_pass(const AttentionCall& call, const Fp8Inputs& inputs, const WorkItem& item, const Fp8Trace* trace);

}  // namespace zyfa::cpu
