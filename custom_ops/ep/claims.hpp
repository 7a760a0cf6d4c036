// Whether the GPU has a kernel for a node, as far as that is known before a run.
#pragma once

#include "../ops/attention_node.hpp"
#include "../ops/tensor_nodes.hpp"
#include "target.hpp"

namespace zyfa::ep {

// The attributes with the provider's precision put in their place.
AttentionAttributes with_options(AttentionAttributes attributes, DType dtype, const Options& options);

// All throw Error with the reason.
void check_attention(const ops::StaticInputs& inputs, const AttentionAttributes& attributes,
                     const Target& target);
void check_tensor_op(const std::optional<ops::StaticTensor>& x, const Target& target);
void check_node(const OrtNode* node, const Target& target);

}  // namespace zyfa::ep
