// An OrtCustomOp built from a table: names, types and characteristics are data, behaviour is two functions of
// the kernel.
#pragma once

#include <string>
#include <vector>

#include "api.hpp"

namespace zyfa::ops {

constexpr const char* kDomain = "ai.zyfa";

struct Port {
  ONNXTensorElementDataType type;
  bool optional;
};

// One overload of an operator: concrete types for every port. ONNX Runtime picks the overload by type.
struct Overload {
  std::vector<Port> inputs, outputs;
};

// Computes one node; `Kernel` is constructed from OrtKernelInfo and has void run(RunContext&) const.
// kProvider names the execution provider that it is for, null for the CPU's.
template <typename Kernel>
class CustomOp : public OrtCustomOp {
 public:
  CustomOp(Overload overload, uint32_t version) : OrtCustomOp{}, overload_(std::move(overload)) {
    OrtCustomOp::version = version;
    GetName = [](const OrtCustomOp*) noexcept { return Kernel::kName; };
    GetExecutionProviderType = [](const OrtCustomOp*) noexcept -> const char* { return Kernel::kProvider; };
    GetInputTypeCount = [](const OrtCustomOp* op) noexcept { return self(op).inputs.size(); };
    GetOutputTypeCount = [](const OrtCustomOp* op) noexcept { return self(op).outputs.size(); };
    GetInputType = [](const OrtCustomOp* op, size_t i) noexcept { return self(op).inputs[i].type; };
    GetOutputType = [](const OrtCustomOp* op, size_t i) noexcept { return self(op).outputs[i].type; };
    GetInputCharacteristic = [](const OrtCustomOp* op, size_t i) noexcept {
      return characteristic(self(op).inputs[i]);
    };
    GetOutputCharacteristic = [](const OrtCustomOp* op, size_t i) noexcept {
      return characteristic(self(op).outputs[i]);
    };
    GetInputMemoryType = [](const OrtCustomOp*, size_t) noexcept { return OrtMemTypeDefault; };
    GetVariadicInputMinArity = [](const OrtCustomOp*) noexcept { return 1; };
    GetVariadicInputHomogeneity = [](const OrtCustomOp*) noexcept { return 0; };
    GetVariadicOutputMinArity = [](const OrtCustomOp*) noexcept { return 1; };
    GetVariadicOutputHomogeneity = [](const OrtCustomOp*) noexcept { return 0; };
    GetStartVersion = [](const OrtCustomOp*) noexcept { return 1; };
    GetEndVersion = [](const OrtCustomOp*) noexcept { return 1; };
    CreateKernelV2 = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info,
                        void** kernel) noexcept {
      return guarded(where(node_name_or_empty(info)), [&] { *kernel = new Kernel(info); });
    };
    KernelComputeV2 = [](void* kernel, OrtKernelContext* context) noexcept {
      const auto* const computing = static_cast<const Kernel*>(kernel);
      return guarded(where(computing->node_name), [&] {
        RunContext run(context);
        computing->run(run);
      });
    };
    KernelDestroy = [](void* kernel) noexcept { delete static_cast<Kernel*>(kernel); };
    // Older runtimes dereference the missing type of an absent optional input before calling this (seen to
    // crash in 1.22.2 and 1.23.2); they load models without shapes for our outputs.
    if (version >= 24) {
      InferOutputShapeFn = [](const OrtCustomOp*, OrtShapeInferContext* context) noexcept {
        return guarded(Kernel::kName, [&] { Kernel::infer_shapes(context); });
      };
    }
  }

 private:
  static const Overload& self(const OrtCustomOp* op) { return static_cast<const CustomOp*>(op)->overload_; }
  static OrtCustomOpInputOutputCharacteristic characteristic(const Port& port) {
    return port.optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
  }
  static std::string node_name_or_empty(const OrtKernelInfo* info) noexcept {
    try {
      return node_name(info);
    } catch (...) {
      return "";
    }
  }
  static std::string where(const std::string& node) noexcept {
    return node.empty() ? Kernel::kName : std::string(Kernel::kName) + " '" + node + "'";
  }

  Overload overload_;
};

}  // namespace zyfa::ops
