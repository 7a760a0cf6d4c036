#include <utility>

#include "../error.hpp"
#include "../hip/run.hpp"
#include "node.hpp"

namespace zyfa::direct {
namespace {

using hip::Buffer;

constexpr Buffer kAttentionInputs[] = {Buffer::query,      Buffer::key,      Buffer::value, Buffer::past_key,
                                       Buffer::past_value, Buffer::key_mask, Buffer::bias,  Buffer::q_scale,
                                       Buffer::k_scale,    Buffer::v_scale,  Buffer::sinks};
constexpr Buffer kAttentionOutputs[] = {Buffer::output, Buffer::present_key, Buffer::present_value,
                                        Buffer::lse};
static_assert(std::size(kAttentionInputs) == ops::kAttentionInputs);
static_assert(std::size(kAttentionOutputs) == ops::kAttentionOutputs);
constexpr Buffer kX[] = {Buffer::x};
constexpr Buffer kQuantized[] = {Buffer::y, Buffer::scale};

// Which kernels run is settled when the node is made.
class GpuNode : public Node {
 public:
  GpuNode(hip::Device& device, hip::Choice choice, const Request& request, const Buffer* inputs,
          const Buffer* outputs)
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
  hip::GpuRequest request;
  request.architecture = architecture;
  request.byte_rounding = r.byte_rounding;
  request.key_mask = has(r.inputs, ops::kKeyMask) ? hip::KeyMask::unread : hip::KeyMask::none;
  request.bias = has(r.inputs, ops::kAttnBias);
  request.sinks = has(r.inputs, ops::kSinks);
  request.present_key = has(r.outputs, ops::kPresentKey);
  request.present_value = has(r.outputs, ops::kPresentValue);
  request.lse = has(r.outputs, ops::kLse);
  return hip::select(attention_problem(r), request);
}

hip::Choice quantize(const Request& request, const std::string& architecture) {
  const ops::QuantizeNode node = quantize_node(request);
  const ops::QuantizeNode::Sizes z = node.sizes(request.inputs[0]->shape);
  const auto of = node.granularity == ops::Granularity::tensor ? kernels::kPerTensor
                  : node.granularity == ops::Granularity::head ? kernels::kPerHead
                                                               : kernels::kPerBatchHead;
  return hip::select_quantize(
      {z.batch, z.heads, z.rows, z.dim, request.inputs[0]->dtype, node.layout, of, node.rotation},
      architecture);
}

hip::Choice hadamard(const Request& request, const std::string& architecture) {
  const TensorInfo& x = hadamard_input(request);
  int64_t count = 1;
  for (const int64_t size : x.shape) count *= size;
  return hip::select_hadamard(count, x.shape.back(), x.dtype, architecture);
}

}  // namespace

std::unique_ptr<Node> make_gpu_node(const Request& request) {
  hip::Device& device = hip::Device::of(*request.device);
  const std::string& architecture = device.architecture;
  const auto made = [&](hip::Choice choice, const Buffer* inputs, const Buffer* outputs) {
    return std::make_unique<GpuNode>(device, std::move(choice), request, inputs, outputs);
  };
  if (request.op == ops::AttentionNode::kName)
    return made(attention(request, architecture), kAttentionInputs, kAttentionOutputs);
  if (request.op == ops::QuantizeNode::kName) return made(quantize(request, architecture), kX, kQuantized);
  if (request.op == ops::HadamardNode::kName) return made(hadamard(request, architecture), kX, kQuantized);
  return make_cpu_node(request);  // which refuses the name
}

}  // namespace zyfa::direct
