#include "api.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>

#include "../error.hpp"

namespace zyfa::ops {

const OrtApi* api = nullptr;
uint32_t api_version = 0;
uint32_t runtime_minor = 0;
std::atomic<std::string (*)()> why_no_memory{nullptr};

namespace {

struct TypePair {
  ONNXTensorElementDataType onnx;
  DType dtype;
};

constexpr TypePair kTypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DType::float32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DType::float16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DType::bfloat16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, DType::float8e4m3fn},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DType::boolean},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DType::int32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DType::int64},
};

TensorInfo tensor_info(const OrtTensorTypeAndShapeInfo* info, const std::string& what) {
  ONNXTensorElementDataType type;
  size_t rank = 0;
  check(api->GetTensorElementType(info, &type));
  check(api->GetDimensionsCount(info, &rank));
  TensorInfo tensor{DType::float32, std::vector<int64_t>(rank)};
  check(api->GetDimensions(info, tensor.shape.data(), rank));
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype) fail(what, ": element type ", static_cast<int>(type), " is not one this operator takes");
  tensor.dtype = *dtype;
  return tensor;
}

// ThreadSanitizer does not see how ONNX Runtime's thread pool, which is not built with it, hands work over
// and waits for it: these two say that it does. Between the items nothing is said.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
void handed_over_from(void* work) { __tsan_acquire(work); }
void handed_over_to(void* work) { __tsan_release(work); }
#else
void handed_over_from(void*) {}
void handed_over_to(void*) {}
#endif

// ParallelFor takes a plain function that must not throw; the first exception waits here for the caller.
struct ParallelWork {
  explicit ParallelWork(const std::function<void(int64_t)>& body) : body(body) {}

  const std::function<void(int64_t)>& body;
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr first;

  static void run(void* work, size_t index) noexcept {
    handed_over_from(work);
    static_cast<ParallelWork*>(work)->compute(static_cast<int64_t>(index));
    handed_over_to(work);
  }

  void compute(int64_t index) noexcept {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      body(index);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failed.exchange(true)) first = std::current_exception();
    }
  }
};

// A failure that ONNX Runtime reported, with its own code.
struct StatusError : Error {
  StatusError(OrtErrorCode found, const char* message) : Error(message), code(found) {}
  OrtErrorCode code;
};

OrtStatus* status_of(OrtErrorCode code, const std::string& where, const Error& error) noexcept {
  try {
    return api->CreateStatus(code, (where + ": " + error.what()).c_str());
  } catch (...) {
    return api->CreateStatus(ORT_FAIL, "out of memory");
  }
}

}  // namespace

void check(OrtStatus* status) {
  if (status == nullptr) return;
  const StatusError error(api->GetErrorCode(status), api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  throw error;
}

void fail_without_memory(const std::string& what) {
  const std::string reason = why_no_memory != nullptr ? why_no_memory.load()() : "";
  fail<DeviceError>(what, ": expected memory, got none", reason.empty() ? "" : ": ", reason);
}

bool succeeded(OrtStatus* status) {
  if (status == nullptr) return true;
  api->ReleaseStatus(status);
  return false;
}

OrtStatus* status_of_current_exception(const std::string& where) noexcept {
  try {
    throw;
  } catch (const StatusError& error) {
    return status_of(error.code, where, error);
  } catch (const DeviceError& error) {
    // Not ORT_EP_FAIL: at that code the Python package runs the session again on the CPU, for good (1.32).
    return status_of(ORT_FAIL, where, error);
  } catch (const Error& error) {
    return status_of(ORT_INVALID_ARGUMENT, where, error);
  } catch (const std::bad_alloc&) {
    return api->CreateStatus(ORT_FAIL, "out of memory");
  } catch (const std::exception& error) {
    return api->CreateStatus(ORT_FAIL, error.what());
  } catch (...) {
    return api->CreateStatus(ORT_FAIL, "unknown exception");
  }
}

ONNXTensorElementDataType onnx_type(DType type) {
  for (const TypePair& pair : kTypes)
    if (pair.dtype == type) return pair.onnx;
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

std::optional<DType> dtype_of(ONNXTensorElementDataType type) {
  for (const TypePair& pair : kTypes)
    if (pair.onnx == type) return pair.dtype;
  return std::nullopt;
}

const OrtOpAttr* NodeAttributes::of_node(const char* name) const {
  const OrtOpAttr* attribute = nullptr;
  return succeeded(api->Node_GetAttributeByName(node_, name, &attribute)) ? attribute : nullptr;
}

template <typename Value>
std::optional<Value> NodeAttributes::of_list(const char* name) const {
  const auto found = list_->find(name);
  if (found != list_->end() && std::holds_alternative<Value>(found->second))
    return std::get<Value>(found->second);
  return std::nullopt;
}

std::string NodeAttributes::type_of(const char* name) const {
  if (list_ != nullptr)
    return of_list<int64_t>(name) ? "int"
           : of_list<float>(name) ? "float"
           : list_->count(name)   ? "string"
                                  : "";
  if (node_ != nullptr) {
    const OrtOpAttr* attribute = of_node(name);
    if (attribute == nullptr) return "";
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    check(api->OpAttr_GetType(attribute, &type));
    return type == ORT_OP_ATTR_INT      ? "int"
           : type == ORT_OP_ATTR_FLOAT  ? "float"
           : type == ORT_OP_ATTR_STRING ? "string"
                                        : "list";
  }
  int64_t integer;
  float real;
  size_t size = 0;
  if (succeeded(api->KernelInfoGetAttribute_int64(info_, name, &integer))) return "int";
  if (succeeded(api->KernelInfoGetAttribute_float(info_, name, &real))) return "float";
  if (succeeded(api->KernelInfoGetAttribute_string(info_, name, nullptr, &size))) return "string";
  size = 0;
  if (succeeded(api->KernelInfoGetAttributeArray_int64(info_, name, nullptr, &size))) return "list";
  size = 0;
  if (succeeded(api->KernelInfoGetAttributeArray_float(info_, name, nullptr, &size))) return "list";
  return "";
}

void NodeAttributes::refuse_other_types(const char* name, const char* expected) const {
  const std::string type = type_of(name);
  if (!type.empty()) fail(name, ": expected an attribute of type ", expected, ", got ", type);
}

std::optional<int64_t> NodeAttributes::integer(const char* name) const {
  int64_t value;
  size_t size = 0;
  if (list_ != nullptr) {
    if (const std::optional<int64_t> listed = of_list<int64_t>(name)) return listed;
  } else if (node_ != nullptr) {
    if (type_of(name) == "int") {
      check(api->ReadOpAttr(of_node(name), ORT_OP_ATTR_INT, &value, sizeof value, &size));
      return value;
    }
  } else if (succeeded(api->KernelInfoGetAttribute_int64(info_, name, &value))) {
    return value;
  }
  refuse_other_types(name, "int");
  return std::nullopt;
}

std::optional<float> NodeAttributes::real(const char* name) const {
  float value;
  size_t size = 0;
  if (list_ != nullptr) {
    if (const std::optional<float> listed = of_list<float>(name)) return listed;
  } else if (node_ != nullptr) {
    if (type_of(name) == "float") {
      check(api->ReadOpAttr(of_node(name), ORT_OP_ATTR_FLOAT, &value, sizeof value, &size));
      return value;
    }
  } else if (succeeded(api->KernelInfoGetAttribute_float(info_, name, &value))) {
    return value;
  }
  refuse_other_types(name, "float");
  return std::nullopt;
}

std::optional<std::string> NodeAttributes::text(const char* name) const {
  size_t size = 0;
  if (list_ != nullptr) {
    const std::optional<std::string> listed = of_list<std::string>(name);
    if (!listed) refuse_other_types(name, "string");
    return listed;
  }
  if (node_ != nullptr) {
    if (type_of(name) != "string") {
      refuse_other_types(name, "string");
      return std::nullopt;
    }
    const OrtOpAttr* attribute = of_node(name);
    succeeded(api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, nullptr, 0, &size));  // says how long it is
    std::string value(size, '\0');
    check(api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, value.data(), size, &size));
    value.resize(size);
    return value;
  }
  if (!succeeded(api->KernelInfoGetAttribute_string(info_, name, nullptr, &size))) {
    refuse_other_types(name, "string");
    return std::nullopt;
  }
  std::string value(size, '\0');
  check(api->KernelInfoGetAttribute_string(info_, name, value.data(), &size));
  value.resize(size > 0 ? size - 1 : 0);  // the size counts the terminating zero
  return value;
}

std::string node_name(const OrtKernelInfo* info) {
  size_t size = 0;
  if (!succeeded(api->KernelInfo_GetNodeName(info, nullptr, &size)) || size <= 1) return "";
  std::string name(size, '\0');
  check(api->KernelInfo_GetNodeName(info, name.data(), &size));
  name.resize(size - 1);
  return name;
}

size_t input_count(const OrtKernelInfo* info) {
  size_t count = 0;
  check(api->KernelInfo_GetInputCount(info, &count));
  return count;
}

std::optional<StaticTensor> static_input(const OrtKernelInfo* info, size_t index) {
  if (index >= input_count(info)) return std::nullopt;
  OrtTypeInfo* raw = nullptr;
  // An absent optional input has no type; ONNX Runtime says so with an error.
  if (!succeeded(api->KernelInfo_GetInputTypeInfo(info, index, &raw))) return std::nullopt;
  const std::unique_ptr<OrtTypeInfo, void (*)(OrtTypeInfo*)> type(raw, api->ReleaseTypeInfo);
  const OrtTensorTypeAndShapeInfo* shape_info = nullptr;
  check(api->CastTypeInfoToTensorInfo(type.get(), &shape_info));
  if (shape_info == nullptr) fail("input ", index, ": expected a tensor");
  const TensorInfo tensor = tensor_info(shape_info, "input " + std::to_string(index));
  // A missing shape and a scalar both read as rank 0.
  return StaticTensor{tensor.dtype, !tensor.shape.empty(), tensor.shape};
}

std::optional<StaticTensor> static_input(const OrtNode* node, size_t index) {
  size_t count = 0;
  check(api->Node_GetNumInputs(node, &count));
  if (index >= count) return std::nullopt;
  std::vector<const OrtValueInfo*> inputs(count);
  check(api->Node_GetInputs(node, inputs.data(), count));
  const OrtTypeInfo* type = nullptr;  // owned by the graph
  if (inputs[index] == nullptr || !succeeded(api->GetValueInfoTypeInfo(inputs[index], &type)) ||
      type == nullptr)
    return std::nullopt;
  const OrtTensorTypeAndShapeInfo* shape_info = nullptr;
  check(api->CastTypeInfoToTensorInfo(type, &shape_info));
  if (shape_info == nullptr) fail("input ", index, ": expected a tensor");
  const TensorInfo tensor = tensor_info(shape_info, "input " + std::to_string(index));
  return StaticTensor{tensor.dtype, !tensor.shape.empty(), tensor.shape};
}

RunContext::Input RunContext::input(size_t index) const {
  size_t count = 0;
  check(api->KernelContext_GetInputCount(context_, &count));
  if (index >= count) return {};
  const OrtValue* value = nullptr;
  check(api->KernelContext_GetInput(context_, index, &value));
  if (value == nullptr) return {};
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(api->GetTensorTypeAndShape(value, &raw));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> info(
      raw, api->ReleaseTensorTypeAndShapeInfo);
  Input input;
  input.info = tensor_info(info.get(), "input " + std::to_string(index));
  void* data = nullptr;
  // Read only: the API has no const form of this call before version 23.
  check(api->GetTensorMutableData(const_cast<OrtValue*>(value), &data));
  input.data = data;
  return input;
}

void* RunContext::output(size_t index, const std::vector<int64_t>& shape) const {
  return optional_output(index, shape).data;
}

RunContext::Output RunContext::optional_output(size_t index, const std::vector<int64_t>& shape) const {
  size_t count = 0;
  check(api->KernelContext_GetOutputCount(context_, &count));
  if (index >= count) return {};
  OrtValue* value = nullptr;
  check(api->KernelContext_GetOutput(context_, index, shape.data(), shape.size(), &value));
  if (value == nullptr) return {};
  Output output{true, nullptr};
  check(api->GetTensorMutableData(value, &output.data));
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (output.data == nullptr && !empty) fail_without_memory("output " + std::to_string(index));
  return output;
}

std::optional<int> RunContext::device_of_input(size_t index) const {
  const OrtValue* value = nullptr;
  check(api->KernelContext_GetInput(context_, index, &value));
  const OrtMemoryInfo* memory = nullptr;
  check(api->GetTensorMemoryInfo(value, &memory));
  OrtMemoryInfoDeviceType type;
  api->MemoryInfoGetDeviceType(memory, &type);
  if (type != OrtMemoryInfoDeviceType_GPU) return std::nullopt;
  int id = 0;
  check(api->MemoryInfoGetId(memory, &id));
  return id;
}

void* RunContext::gpu_stream() const {
  void* stream = nullptr;
  check(api->KernelContext_GetGPUComputeStream(context_, &stream));
  return stream;
}

cpu::ParallelFor RunContext::parallel_for() const {
  return [context = context_](int64_t count, const std::function<void(int64_t)>& body) {
    if (count <= 0) return;
    ParallelWork work{body};
    // 0 batches: every index is a task of its own, so that long and short rows of a causal problem balance.
    handed_over_to(&work);
    OrtStatus* const status =
        api->KernelContext_ParallelFor(context, &ParallelWork::run, static_cast<size_t>(count), 0, &work);
    handed_over_from(&work);
    check(status);
    if (work.first) std::rethrow_exception(work.first);
  };
}

}  // namespace zyfa::ops
