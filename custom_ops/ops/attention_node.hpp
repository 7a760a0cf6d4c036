// ZyfaPrefillAttention as a node: its inputs, attributes, problem and shapes, whatever computes it.
#pragma once

#include <array>
#include <vector>

#include "op.hpp"

namespace zyfa::ops {

enum AttentionInput : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kKeyMask,
  kAttnBias,
  kQScale,
  kKScale,
  kVScale,
  kSinks,
  kAttentionInputs
};
enum AttentionOutput : size_t { kOutput, kPresentKey, kPresentValue, kLse, kAttentionOutputs };

// Throws Error for attributes of other operators and for values that are none.
AttentionAttributes read_attributes(const NodeAttributes& node);

// Types and shapes as known before a run.
using StaticInputs = std::array<std::optional<StaticTensor>, kAttentionInputs>;

// What can be refused before the first run: everything when all shapes are known, else types and attributes.
// Returns the problem in the first case.
std::optional<AttentionProblem> check_static(const StaticInputs& inputs,
                                             const AttentionAttributes& attributes);

struct AttentionNode {
  static constexpr const char* kName = "ZyfaPrefillAttention";

  explicit AttentionNode(const OrtKernelInfo* info);

  // The tensors of a run and what is asked of them.
  struct Run {
    std::array<RunContext::Input, kAttentionInputs> inputs;
    AttentionProblem problem;
  };
  Run read(const RunContext& context) const;
  static void infer_shapes(OrtShapeInferContext* context);

  const std::string node_name;
  StaticInputs static_inputs;
  AttentionAttributes attributes;
};

// One for each combination of types.
std::vector<Overload> attention_overloads();

}  // namespace zyfa::ops
