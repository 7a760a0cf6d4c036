#include "direct_abi.h"

#include <cstdio>

#include "../error.hpp"
#include "../hip/device.hpp"
#include "node.hpp"

struct zyfa_node {
  std::string op, name;
  std::unique_ptr<zyfa::direct::Node> node;
};

struct zyfa_stream {
  explicit zyfa_stream(int device) : stream(zyfa::hip::Device::of(device)) {}
  zyfa::hip::Stream stream;
};

namespace {

using namespace zyfa;

constexpr hip::ByteRounding kRoundings[] = {hip::ByteRounding::unknown, hip::ByteRounding::nearest,
                                            hip::ByteRounding::truncate, hip::ByteRounding::other};

// The node that a message is about; none for null.
struct Where {
  const char* op = nullptr;
  const char* name = nullptr;
};

int failed(const Where& where, const char* what, char* text, int64_t size) noexcept {
  if (where.op == nullptr)
    std::snprintf(text, static_cast<size_t>(size), "%s", what);
  else
    std::snprintf(text, static_cast<size_t>(size), "%s '%s': %s", where.op, where.name, what);
  return -1;
}

template <typename Body>
int guarded(const Where& where, char* text, int64_t size, const Body& body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::bad_alloc&) {
    return failed(where, "out of memory", text, size);
  } catch (const std::exception& error) {
    return failed(where, error.what(), text, size);
  } catch (...) {
    return failed(where, "unknown exception", text, size);
  }
}

std::vector<std::optional<TensorInfo>> tensors(const zyfa_tensor* given, int64_t count, const char* what) {
  std::vector<std::optional<TensorInfo>> made;
  for (int64_t i = 0; i < count; ++i) {
    made.emplace_back();
    if (given[i].type == 0) continue;
    const std::optional<DType> dtype = ops::dtype_of(static_cast<ONNXTensorElementDataType>(given[i].type));
    if (!dtype) fail(what, " ", i, ": element type ", given[i].type, " is not one this operator takes");
    made.back() = TensorInfo{*dtype, {given[i].shape, given[i].shape + given[i].rank}};
  }
  return made;
}

direct::Request request_of(const zyfa_node_request& given) {
  direct::Request r;
  r.op = given.op;
  r.name = given.name;
  for (int64_t i = 0; i < given.attribute_count; ++i) {
    const zyfa_attribute& a = given.attributes[i];
    if (a.text != nullptr)
      r.attributes[a.name] = std::string(a.text);
    else if (a.is_real != 0)
      r.attributes[a.name] = a.real;
    else
      r.attributes[a.name] = a.integer;
  }
  r.inputs = tensors(given.inputs, given.input_count, "input");
  r.outputs = tensors(given.outputs, given.output_count, "output");
  if (given.device >= 0) r.device = given.device;
  if (given.byte_rounding < 0 || given.byte_rounding >= static_cast<int>(std::size(kRoundings)))
    fail("byte_rounding: expected 0 to 3, got ", given.byte_rounding);
  r.byte_rounding = kRoundings[given.byte_rounding];
  return r;
}

}  // namespace

#define ZYFA_EXPORT extern "C" __attribute__((visibility("default")))

ZYFA_EXPORT int zyfa_node_create(const zyfa_node_request* given, zyfa_node** node, char* text, int64_t size) {
  return guarded({given->op, given->name}, text, size, [&] {
    const direct::Request request = request_of(*given);
    auto made = std::make_unique<zyfa_node>();
    made->op = request.op;
    made->name = request.name;
    made->node = request.device ? direct::make_gpu_node(request) : direct::make_cpu_node(request);
    *node = made.release();
  });
}

ZYFA_EXPORT void zyfa_node_destroy(zyfa_node* node) { delete node; }

ZYFA_EXPORT int zyfa_node_run(const zyfa_node* node, const void* const* inputs, void* const* outputs,
                              void* stream, char* text, int64_t size) {
  return guarded({node->op.c_str(), node->name.c_str()}, text, size,
                 [&] { node->node->run(inputs, outputs, stream); });
}

ZYFA_EXPORT int zyfa_gpu_open(int32_t device, char* text, int64_t size) {
  return guarded({}, text, size, [&] {
    const hip::Device& opened = hip::Device::of(device);
    const hip::Runtime& runtime = hip::Runtime::get();
    std::snprintf(text, static_cast<size_t>(size), "%s|%s|%d|%s", opened.name.c_str(),
                  opened.architecture.c_str(), runtime.emulated() ? 1 : 0, runtime.path().c_str());
  });
}

ZYFA_EXPORT int zyfa_stream_create(int32_t device, zyfa_stream** stream, char* text, int64_t size) {
  return guarded({}, text, size, [&] { *stream = new zyfa_stream(device); });
}

ZYFA_EXPORT void* zyfa_stream_handle(const zyfa_stream* stream) { return stream->stream.handle; }

ZYFA_EXPORT int zyfa_stream_synchronize(zyfa_stream* stream, char* text, int64_t size) {
  return guarded({}, text, size, [&] { stream->stream.synchronize(); });
}

ZYFA_EXPORT void zyfa_stream_destroy(zyfa_stream* stream) { delete stream; }

ZYFA_EXPORT int zyfa_memory_allocate(int32_t device, uint64_t bytes, void* stream, void** pointer, char* text,
                                     int64_t size) {
  return guarded({}, text, size, [&] {
    const hip::CurrentDevice current(device);
    *pointer = hip::Device::of(device).pool.allocate(bytes, stream);
  });
}

ZYFA_EXPORT void zyfa_memory_release(int32_t device, void* pointer) {
  hip::Device::of(device).pool.release(pointer);
}

ZYFA_EXPORT int zyfa_memory_copy(int32_t device, void* to, const void* from, uint64_t bytes, int32_t kind,
                                 void* stream, char* text, int64_t size) {
  return guarded({}, text, size, [&] {
    const hip::CurrentDevice current(device);
    const hip::Runtime& runtime = hip::Runtime::get();
    hip::Device::of(device).pool.touch(stream);
    runtime.check(runtime.MemcpyAsync(to, from, bytes, kind, stream), "hipMemcpyAsync",
                  std::to_string(bytes) + " bytes");
  });
}
