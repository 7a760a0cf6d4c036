// ZyfaPrefillAttention on the CPU.
#include "../cpu/attention.hpp"

#include "attention_node.hpp"
#include "ops.hpp"

namespace zyfa::ops {
namespace {

struct AttentionKernel : AttentionNode {
  static constexpr const char* kProvider = nullptr;

  using AttentionNode::AttentionNode;

  void run(const RunContext& context) const {
    const Run node = read(context);
    const auto& in = node.inputs;
    const AttentionProblem& problem = node.problem;
    const auto floats = [&](AttentionInput input) { return static_cast<const float*>(in[input].data); };
    cpu::AttentionTensors tensors{};
    tensors.query = in[kQuery].data;
    tensors.key = in[kKey].data;
    tensors.value = in[kValue].data;
    tensors.past_key = in[kPastKey].data;
    tensors.past_value = in[kPastValue].data;
    tensors.key_mask = in[kKeyMask].info ? in[kKeyMask].data : nullptr;
    tensors.attn_bias = in[kAttnBias].info ? in[kAttnBias].data : nullptr;
    tensors.q_scale = floats(kQScale);
    tensors.k_scale = floats(kKScale);
    tensors.v_scale = floats(kVScale);
    tensors.sinks = floats(kSinks);
    tensors.output = context.output(kOutput, problem.output_shape);
    tensors.present_key = context.output(kPresentKey, problem.present_key_shape);
    tensors.present_value = context.output(kPresentValue, problem.present_value_shape);
    tensors.lse = static_cast<float*>(context.output(kLse, problem.lse_shape));
    cpu::attention(problem, tensors, context.parallel_for());
  }
};

}  // namespace

void add_attention(OpTable& table, uint32_t version) {
  for (Overload& overload : attention_overloads()) table.add<AttentionKernel>(std::move(overload), version);
}

}  // namespace zyfa::ops
