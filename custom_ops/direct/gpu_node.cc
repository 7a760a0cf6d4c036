#include <utility>

#include "../error.hpp"
#include "../hip/run.hpp"
#include "../ops/gpu_choices.hpp"
#include "node.hpp"

namespace zyfa::direct {
namespace {

using hip::Buffer;

constexpr Buffer kAttentionOutputs[] = {Buffer::output, Buffer::present_key, Buffer::present_value,
                                        Buffer::lse};
static_assert(std::size(kAttentionOutputs) == ops::kAttentionOutputs);

// Which kernels run is settled when the node is made.
class GpuNode : public Node {
 public:
  GpuNode(hip::Device& device, hip::Choice choice, const Request& request, const std::vector<Buffer>& inputs,
          const std::vector<Buffer>& outputs)
      : device_(device), choice_(std::move(choice)) {
    for (size_t i = 0; i < request.inputs.size(); ++i)
      if (request.inputs[i]) inputs_.push_back({i, inputs[i]});
    for (size_t i = 0; i < request.outputs.size(); ++i)
      if (request.outputs[i]) outputs_.push_back({i, outputs[i]});
  }

  void run(const void* const* inputs, void* const* outputs, void* stream) const override {
    hip::Pointers pointers{};
    for (const auto& [index, buffer] : inputs_) hip::at(pointers, buffer) = inputs[index];
    for (const auto& [index, buffer] : outputs_) hip::at(pointers, buffer) = outputs[index];
    hip::run(choice_, pointers, device_, stream);
  }

 private:
  hip::Device& device_;
  const hip::Choice choice_;
  std::vector<std::pair<size_t, Buffer>> inputs_, outputs_;
};

bool has(const std::vector<std::optional<TensorInfo>>& tensors, size_t index) {
  return index < tensors.size() && tensors[index].has_value();
}

hip::Choice attention(const Request& r, const std::string& architecture) {
  hip::GpuRequest request = ops::attention_request(architecture, r.byte_rounding,
                                                   [&](size_t index) { return has(r.inputs, index); });
  request.present_key = has(r.outputs, ops::kPresentKey);
  request.present_value = has(r.outputs, ops::kPresentValue);
  request.lse = has(r.outputs, ops::kLse);
  return hip::select(attention_problem(r), request);
}

hip::Choice quantize(const Request& request, const std::string& architecture) {
  const ops::QuantizeNode node = quantize_node(request);
  return ops::quantize_choice(node, *request.inputs[0], architecture);
}

}  // namespace

std::unique_ptr<Node> make_gpu_node(const Request& request) {
  hip::Device& device = hip::Device::of(*request.device);
  const std::string& architecture = device.architecture;
  const auto made = [&](hip::Choice choice, std::vector<Buffer> inputs, std::vector<Buffer> outputs) {
    return std::make_unique<GpuNode>(device, std::move(choice), request, inputs, outputs);
  };
  if (request.op == ops::AttentionNode::kName) {
    std::vector<Buffer> inputs;
    for (const auto& [name, buffer] : ops::kAttentionBuffers) inputs.push_back(buffer);
    return made(attention(request, architecture), inputs,
                {std::begin(kAttentionOutputs), std::end(kAttentionOutputs)});
  }
  if (request.op == ops::QuantizeNode::kName)
    return made(quantize(request, architecture), {Buffer::x}, {Buffer::y, Buffer::scale});
  if (request.op == ops::HadamardNode::kName)
    return made(ops::hadamard_choice(hadamard_input(request), architecture), {Buffer::x}, {Buffer::y});
  return make_cpu_node(request);  // which refuses the name
}

}  // namespace zyfa::direct
