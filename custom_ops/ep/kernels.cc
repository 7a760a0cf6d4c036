#include "kernels.hpp"

#include "../error.hpp"
#include "../hip/run.hpp"
#include "../ops/gpu_choices.hpp"
#include "claims.hpp"
#include "provider.hpp"
#include "rocm.hpp"

namespace zyfa::ep {
namespace {

using hip::Buffer;
using hip::Pointers;

void check_memory(const ops::RunContext& context, const ops::RunContext::Input& input, size_t index,
                  const char* name, const hip::Device& device) {
  if (!input.info) return;
  const std::optional<int> there = context.device_of_input(index);
  if (there != device.ordinal)
    fail(name, ": expected memory of GPU ", device.ordinal, ", got ",
         there ? "that of GPU " + std::to_string(*there) : "host memory");
  if (element_count(input.info->shape) != 0 && input.data == nullptr) ops::fail_without_memory(name);
}

// Hosts: whose nodes a kernel computes, and how it learns where.
struct PluginHost {
  static constexpr const char* kName = kProviderName;
  static Target target(const OrtKernelInfo* info) { return provider_of(info); }
};

struct RocmHost {
  static constexpr const char* kName = kRocmProvider;
  static Target target(const OrtKernelInfo* info) { return rocm_target(info); }
};

template <typename Host>
struct GpuAttention : ops::AttentionNode {
  static constexpr const char* kProvider = Host::kName;

  explicit GpuAttention(const OrtKernelInfo* info) : AttentionNode(info), target(Host::target(info)) {
    attributes = with_options(attributes, static_inputs[ops::kQuery]->dtype, target.options);
    check_attention(static_inputs, attributes, target);
  }

  void run(const ops::RunContext& context) const {
    const Run node = read(context);
    const AttentionProblem& p = node.problem;
    Pointers pointers{};
    for (size_t i = 0; i < ops::kAttentionInputs; ++i) {
      const auto [name, buffer] = ops::kAttentionBuffers[i];
      check_memory(context, node.inputs[i], i, name, target.device);
      hip::at(pointers, buffer) = node.inputs[i].data;
    }
    const auto output = [&](size_t index, Buffer buffer, const std::vector<int64_t>& shape) {
      const ops::RunContext::Output made = context.optional_output(index, shape);
      hip::at(pointers, buffer) = made.data;
      return made.wanted;
    };
    hip::GpuRequest request =
        ops::attention_request(target.device.architecture, target.options.byte_rounding,
                               [&](size_t index) { return node.inputs[index].info.has_value(); });
    output(ops::kOutput, Buffer::output, p.output_shape);
    request.present_key = output(ops::kPresentKey, Buffer::present_key, p.present_key_shape);
    request.present_value = output(ops::kPresentValue, Buffer::present_value, p.present_value_shape);
    request.lse = output(ops::kLse, Buffer::lse, p.lse_shape);
    hip::run(hip::select(p, request), pointers, target.device, context.gpu_stream());
  }

  const Target target;
};

template <typename Host>
struct GpuQuantize : ops::QuantizeNode {
  static constexpr const char* kProvider = Host::kName;

  explicit GpuQuantize(const OrtKernelInfo* info) : QuantizeNode(info), target(Host::target(info)) {
    check_tensor_op(static_x, target);
  }

  void run(const ops::RunContext& context) const {
    const ops::RunContext::Input x = context.input(0);
    check_memory(context, x, 0, "x", target.device);
    const hip::Choice choice = ops::quantize_choice(*this, *x.info, target.device.architecture);
    Pointers pointers{};
    hip::at(pointers, Buffer::x) = x.data;
    hip::at(pointers, Buffer::y) = context.output(0, x.info->shape);
    hip::at(pointers, Buffer::scale) = context.output(1, scale_shape(sizes(x.info->shape)));
    hip::run(choice, pointers, target.device, context.gpu_stream());
  }

  const Target target;
};

template <typename Host>
struct GpuHadamard : ops::HadamardNode {
  static constexpr const char* kProvider = Host::kName;

  explicit GpuHadamard(const OrtKernelInfo* info) : HadamardNode(info), target(Host::target(info)) {
    check_tensor_op(static_x, target);
  }

  void run(const ops::RunContext& context) const {
    const ops::RunContext::Input x = context.input(0);
    check_memory(context, x, 0, "x", target.device);
    check_shape(x.info->shape);
    const hip::Choice choice = ops::hadamard_choice(*x.info, target.device.architecture);
    Pointers pointers{};
    hip::at(pointers, Buffer::x) = x.data;
    hip::at(pointers, Buffer::y) = context.output(0, x.info->shape);
    hip::run(choice, pointers, target.device, context.gpu_stream());
  }

  const Target target;
};

template <typename Kernel>
void add(ops::OpTable& table, std::vector<ops::Overload> overloads, uint32_t version) {
  for (ops::Overload& overload : overloads) table.add<Kernel>(std::move(overload), version);
}

template <typename Host>
void add_all(ops::OpTable& table, uint32_t version) {
  add<GpuAttention<Host>>(table, ops::attention_overloads(), version);
  add<GpuQuantize<Host>>(table, ops::quantize_overloads(), version);
  add<GpuHadamard<Host>>(table, ops::hadamard_overloads(), version);
}

}  // namespace

void add_gpu_kernels(ops::OpTable& table, uint32_t version) {
  if (version >= kOldestApi) add_all<PluginHost>(table, version);
  if (has_rocm_provider()) add_all<RocmHost>(table, version);
}

}  // namespace zyfa::ep
