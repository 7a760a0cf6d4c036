#include "shape_inference.hpp"

#include <atomic>

namespace zyfa::ops {

Dim operator+(const Dim& first, const Dim& second) {
  if (!first.known() || !second.known()) return {};
  if (first.value >= 0 && second.value >= 0) return {first.value + second.value, ""};
  const auto text = [](const Dim& dim) { return dim.value >= 0 ? std::to_string(dim.value) : dim.symbol; };
  return {-1, text(first) + " + " + text(second)};
}

Dim fresh_dim() {
  static std::atomic<uint64_t> count{0};
  return {-1, "zyfa_dim_" + std::to_string(count++)};
}

ShapeContext::Tensor ShapeContext::input(size_t index) const {
  size_t count = 0;
  check(api->ShapeInferContext_GetInputCount(context_, &count));
  if (index >= count) return {};
  OrtTensorTypeAndShapeInfo* info = nullptr;  // owned by the context
  check(api->ShapeInferContext_GetInputTypeShape(context_, index, &info));
  Tensor tensor;
  size_t rank = 0;
  check(api->GetTensorElementType(info, &tensor.type));
  check(api->GetDimensionsCount(info, &rank));
  std::vector<int64_t> sizes(rank);
  std::vector<const char*> symbols(rank, "");
  check(api->GetDimensions(info, sizes.data(), rank));
  check(api->GetSymbolicDimensions(info, symbols.data(), rank));
  for (size_t i = 0; i < rank; ++i)
    tensor.dims.push_back({sizes[i], symbols[i] == nullptr ? "" : symbols[i]});
  return tensor;
}

std::optional<int64_t> ShapeContext::integer(const char* name) const {
  const OrtOpAttr* attribute = nullptr;
  int64_t value;
  size_t size = 0;
  if (!succeeded(api->ShapeInferContext_GetAttribute(context_, name, &attribute)) || attribute == nullptr)
    return {};
  if (!succeeded(api->ReadOpAttr(attribute, ORT_OP_ATTR_INT, &value, sizeof value, &size))) return {};
  return value;
}

std::optional<std::string> ShapeContext::text(const char* name) const {
  const OrtOpAttr* attribute = nullptr;
  char value[64];  // every legal value of a text attribute is shorter
  size_t size = 0;
  if (!succeeded(api->ShapeInferContext_GetAttribute(context_, name, &attribute)) || attribute == nullptr)
    return {};
  if (!succeeded(api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, value, sizeof value, &size))) return {};
  return std::string(value, size < sizeof value ? size : sizeof value);
}

void ShapeContext::set_output(size_t index, ONNXTensorElementDataType type,
                              const std::vector<Dim>& dims) const {
  // Naming an output that the node does not have is an error status in 1.32; 1.23, 1.24 and 1.27 crash.
  if (dims.empty() || (index > 0 && runtime_minor < 32)) return;
  // There is no way to say "unknown": -1 without a symbol becomes a dimension of -1, which ONNX Runtime then
  // folds into the constants of Reshape nodes, and a made-up symbol that two nodes share would mean that
  // their lengths are equal.
  for (const Dim& dim : dims)
    if (!dim.known()) return;
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(api->CreateTensorTypeAndShapeInfo(&raw));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> info(
      raw, api->ReleaseTensorTypeAndShapeInfo);
  std::vector<int64_t> sizes;
  std::vector<const char*> symbols;
  for (const Dim& dim : dims) {
    sizes.push_back(dim.value);
    symbols.push_back(dim.symbol.c_str());
  }
  check(api->SetTensorElementType(raw, type));
  check(api->SetDimensions(raw, sizes.data(), sizes.size()));
  check(api->SetSymbolicDimensions(raw, symbols.data(), symbols.size()));
  OrtStatus* status = api->ShapeInferContext_SetOutputTypeShape(context_, index, raw);
  if (index > 0)
    succeeded(status);
  else
    check(status);
}

}  // namespace zyfa::ops
