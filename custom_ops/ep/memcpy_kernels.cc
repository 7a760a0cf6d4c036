#include "memcpy_kernels.hpp"

#include <vector>

#include "memory.hpp"

namespace zyfa::ep {
namespace {

constexpr ONNXTensorElementDataType kTypes[] = {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,          ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,           ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,          ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,          ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,        ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,         ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,       ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ,
};

class CopyKernel : public OrtKernelImpl {
 public:
  CopyKernel() : OrtKernelImpl{} {
    ort_version_supported = ops::api_version;
    Release = [](OrtKernelImpl* self) noexcept { delete static_cast<CopyKernel*>(self); };
    Compute = [](OrtKernelImpl*, OrtKernelContext* context) noexcept {
      return ops::guarded(kProviderName, [&] { compute(context); });
    };
  }

 private:
  static void compute(OrtKernelContext* context) {
    const OrtValue* source = nullptr;
    ops::check(ops::api->KernelContext_GetInput(context, 0, &source));
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    ops::check(ops::api->GetTensorTypeAndShape(source, &raw));
    const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> info(
        raw, ops::api->ReleaseTensorTypeAndShapeInfo);
    size_t rank = 0;
    ops::check(ops::api->GetDimensionsCount(raw, &rank));
    std::vector<int64_t> shape(rank);
    ops::check(ops::api->GetDimensions(raw, shape.data(), rank));
    OrtValue* target = nullptr;
    ops::check(ops::api->KernelContext_GetOutput(context, 0, shape.data(), rank, &target));
    copy(source, target, true, ops::RunContext(context).gpu_stream());
  }
};

void add(OrtKernelRegistry* registry, const char* op, bool from_host) {
  std::vector<const OrtDataType*> types;
  for (const ONNXTensorElementDataType type : kTypes) {
    const OrtDataType* found = nullptr;
    ops::check(api()->GetTensorDataType(type, &found));
    types.push_back(found);
  }
  OrtKernelDefBuilder* raw = nullptr;
  ops::check(api()->CreateKernelDefBuilder(&raw));
  const std::unique_ptr<OrtKernelDefBuilder, void (*)(OrtKernelDefBuilder*)> builder(
      raw, api()->ReleaseKernelDefBuilder);
  ops::check(api()->KernelDefBuilder_SetOperatorType(raw, op));
  ops::check(api()->KernelDefBuilder_SetDomain(raw, ""));
  ops::check(api()->KernelDefBuilder_SetSinceVersion(raw, 1, 1));
  ops::check(api()->KernelDefBuilder_SetExecutionProvider(raw, kProviderName));
  ops::check(from_host ? api()->KernelDefBuilder_SetInputMemType(raw, 0, OrtMemTypeCPUInput)
                       : api()->KernelDefBuilder_SetOutputMemType(raw, 0, OrtMemTypeCPUOutput));
  ops::check(api()->KernelDefBuilder_AddTypeConstraint(raw, "T", types.data(), types.size()));
  OrtKernelDef* definition = nullptr;
  ops::check(api()->KernelDefBuilder_Build(raw, &definition));
  const std::unique_ptr<OrtKernelDef, void (*)(OrtKernelDef*)> owner(definition, api()->ReleaseKernelDef);
  const OrtKernelCreateFunc create = [](void*, const OrtKernelInfo*, OrtKernelImpl** kernel) noexcept {
    return ops::guarded(kProviderName, [&] { *kernel = new CopyKernel(); });
  };
  ops::check(api()->KernelRegistry_AddKernel(registry, definition, create, nullptr));
}

const OrtKernelRegistry* made() {
  OrtKernelRegistry* registry = nullptr;
  ops::check(api()->CreateKernelRegistry(&registry));
  add(registry, "MemcpyFromHost", true);
  add(registry, "MemcpyToHost", false);
  return registry;
}

}  // namespace

const OrtKernelRegistry* kernel_registry() {
  static const OrtKernelRegistry* const registry = made();
  return registry;
}

}  // namespace zyfa::ep
