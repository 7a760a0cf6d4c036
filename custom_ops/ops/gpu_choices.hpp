// Which kernels a node's tensors ask for on a GPU: what every host of the GPU kernels asks in the same way.
#pragma once

#include <string>
#include <utility>

#include "../hip/select.hpp"
#include "attention_node.hpp"
#include "tensor_nodes.hpp"

namespace zyfa::ops {

// Inputs of attention by name, in the operator's order, and where the kernels look for them.
constexpr std::pair<const char*, hip::Buffer> kAttentionBuffers[] = {{"query", hip::Buffer::query},
                                                                     {"key", hip::Buffer::key},
                                                                     {"value", hip::Buffer::value},
                                                                     {"past_key", hip::Buffer::past_key},
                                                                     {"past_value", hip::Buffer::past_value},
                                                                     {"key_mask", hip::Buffer::key_mask},
                                                                     {"attn_bias", hip::Buffer::bias},
                                                                     {"q_scale", hip::Buffer::q_scale},
                                                                     {"k_scale", hip::Buffer::k_scale},
                                                                     {"v_scale", hip::Buffer::v_scale},
                                                                     {"sinks", hip::Buffer::sinks}};
static_assert(sizeof(kAttentionBuffers) / sizeof(*kAttentionBuffers) == kAttentionInputs);

// A request for attention, outputs aside; `has_input` says whether an input is given.
template <typename HasInput>
hip::GpuRequest attention_request(const std::string& architecture, hip::ByteRounding byte_rounding,
                                  const HasInput& has_input) {
  hip::GpuRequest request;
  request.architecture = architecture;
  request.byte_rounding = byte_rounding;
  request.key_mask = has_input(kKeyMask) ? hip::KeyMask::unread : hip::KeyMask::none;
  request.bias = has_input(kAttnBias);
  request.sinks = has_input(kSinks);
  return request;
}

hip::Choice quantize_choice(const QuantizeNode& node, const TensorInfo& x, const std::string& architecture);
hip::Choice hadamard_choice(const TensorInfo& x, const std::string& architecture);

}  // namespace zyfa::ops
