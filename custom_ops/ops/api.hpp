// The wall between ONNX Runtime's C API and the rest: statuses become exceptions on the way in and statuses
// on the way out, handles get owners. Nothing outside ops/, ep/ and library.cc includes this.
#pragma once

#include <onnxruntime_c_api.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "../cpu/parallel.hpp"
#include "../problem.hpp"

namespace zyfa::ops {

// The API of the running ONNX Runtime and the version it was asked for; set once by library.cc.
extern const OrtApi* api;
extern uint32_t api_version;
// The 27 of ONNX Runtime 1.27.1: what it does, whatever API it was asked for.
extern uint32_t runtime_minor;

// Throws Error with ONNX Runtime's message when `status` is not null; releases it.
void check(OrtStatus* status);

// Why a device had no memory when it was last asked; set by whoever owns an allocator, null without one.
extern std::atomic<std::string (*)()> why_no_memory;
// Throws DeviceError with that reason. ONNX Runtime hands kernels tensors without memory (1.32).
[[noreturn]] void fail_without_memory(const std::string& what);

// Releases a status whose failure is an answer; true when it was a success.
bool succeeded(OrtStatus* status);

// OrtStatus for the exception being handled; call inside a catch block. Never throws.
OrtStatus* status_of_current_exception(const std::string& where) noexcept;

// Runs body at the C boundary: whatever is thrown comes back as a status that starts with `where`.
template <typename Body>
OrtStatus* guarded(const std::string& where, const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return status_of_current_exception(where);
  }
}

ONNXTensorElementDataType onnx_type(DType type);
std::optional<DType> dtype_of(ONNXTensorElementDataType type);

// Attributes of a node that no ONNX Runtime holds.
using AttributeList = std::map<std::string, std::variant<int64_t, float, std::string>>;

// Attributes of a node, typed; absent ones are empty, one of another type is an Error.
class NodeAttributes {
 public:
  explicit NodeAttributes(const OrtKernelInfo* info) : info_(info) {}
  // Of a node that has no kernel yet.
  explicit NodeAttributes(const OrtNode* node) : node_(node) {}
  explicit NodeAttributes(const AttributeList* list) : list_(list) {}
  std::optional<int64_t> integer(const char* name) const;
  std::optional<float> real(const char* name) const;
  std::optional<std::string> text(const char* name) const;
  bool present(const char* name) const { return !type_of(name).empty(); }

 private:
  // "int", "float", "string", "list", or "" when the attribute is absent.
  std::string type_of(const char* name) const;
  void refuse_other_types(const char* name, const char* expected) const;
  const OrtOpAttr* of_node(const char* name) const;
  template <typename Value>
  std::optional<Value> of_list(const char* name) const;
  const OrtKernelInfo* info_ = nullptr;
  const OrtNode* node_ = nullptr;
  const AttributeList* list_ = nullptr;
};

std::string node_name(const OrtKernelInfo* info);
size_t input_count(const OrtKernelInfo* info);

// Type and shape of an input as known when the session is created; empty for an absent optional input.
// Dimensions that are not known yet are -1, and so is the whole shape when `has_shape` is false.
struct StaticTensor {
  DType dtype;
  bool has_shape;
  std::vector<int64_t> shape;
};
std::optional<StaticTensor> static_input(const OrtKernelInfo* info, size_t index);
std::optional<StaticTensor> static_input(const OrtNode* node, size_t index);

// One run of a kernel.
class RunContext {
 public:
  explicit RunContext(OrtKernelContext* context) : context_(context) {}

  // Null info and data for an absent optional input.
  struct Input {
    std::optional<TensorInfo> info;
    const void* data = nullptr;
  };
  Input input(size_t index) const;
  // Null when the optional output is not wanted.
  void* output(size_t index, const std::vector<int64_t>& shape) const;
  // `wanted` tells an empty output, whose data may be null, from one that the node does not have.
  struct Output {
    bool wanted = false;
    void* data = nullptr;
  };
  Output optional_output(size_t index, const std::vector<int64_t>& shape) const;
  // Whether the input lies in the memory of a GPU, and of which; absent for the CPU's.
  std::optional<int> device_of_input(size_t index) const;
  // The stream of the provider that runs the node; null is HIP's null stream.
  void* gpu_stream() const;
  // The session's intra-op pool.
  cpu::ParallelFor parallel_for() const;

 private:
  OrtKernelContext* context_;
};

}  // namespace zyfa::ops
