#include "memory.hpp"

#include <cstdio>
#include <mutex>

#include "../error.hpp"

namespace zyfa::ep {
namespace {

bool on_our_device(const OrtMemoryDevice* device) {
  return api()->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU &&
         api()->MemoryDevice_GetVendorId(device) == kAmd;
}

bool on_host(const OrtMemoryDevice* device) {
  return api()->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU ||
         api()->MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
}

struct Refusal {
  std::mutex mutex;
  std::string text;
};

Refusal& refusal() {
  static Refusal& kept = *new Refusal;  // never destroyed: streams may be alive at exit
  return kept;
}

void keep_refusal(const char* reason) {
  Refusal& kept = refusal();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  kept.text = reason;
}

}  // namespace

std::string last_refusal() {
  Refusal& kept = refusal();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  return kept.text;
}

Allocator::Allocator(hip::Device& device, const OrtMemoryInfo* info)
    : OrtAllocator{}, device_(device), info_(info) {
  version = ops::api_version;
  Alloc = [](OrtAllocator* self, size_t bytes) noexcept {
    return static_cast<Allocator*>(self)->allocate(bytes, std::nullopt);
  };
  Reserve = Alloc;
  AllocOnStream = [](OrtAllocator* self, size_t bytes, OrtSyncStream* stream) noexcept {
    return static_cast<Allocator*>(self)->allocate(
        bytes, stream != nullptr ? std::optional(ops::api->SyncStream_GetHandle(stream)) : std::nullopt);
  };
  Free = [](OrtAllocator* self, void* pointer) noexcept {
    if (pointer != nullptr) static_cast<Allocator*>(self)->device_.pool.release(pointer);
  };
  Info = [](const OrtAllocator* self) noexcept { return static_cast<const Allocator*>(self)->info_; };
}

Allocator::~Allocator() {
  try {
    const hip::CurrentDevice current(device_.ordinal);
    device_.pool.trim();
  } catch (const std::exception&) {  // a device that is lost has nothing to give back
  }
}

// ONNX Runtime has no way to take a reason from an allocator: it is kept for whoever meets the null pointer,
// and goes where the runtime's own messages go.
void* Allocator::allocate(size_t bytes, std::optional<hip::StreamHandle> stream) noexcept {
  return unthrown(
      [&]() -> void* {
        if (bytes == 0) return nullptr;
        const hip::CurrentDevice current(device_.ordinal);
        return device_.pool.allocate(bytes, stream);
      },
      [](const char* reason) -> void* {
        std::fprintf(stderr, "%s: %s\n", kProviderName, reason);
        unthrown([&] { keep_refusal(reason); }, [](const char*) {});
        return nullptr;
      });
}

void copy(const OrtValue* source, OrtValue* target, bool has_stream, hip::StreamHandle stream) {
  size_t bytes = 0;
  ops::check(ops::api->GetTensorSizeInBytes(source, &bytes));
  if (bytes == 0) return;
  const void* from = nullptr;
  void* to = nullptr;
  ops::check(ops::api->GetTensorData(source, &from));
  ops::check(ops::api->GetTensorMutableData(target, &to));
  if (from == nullptr || to == nullptr)
    ops::fail_without_memory("copy of " + std::to_string(bytes) + " bytes");
  const OrtMemoryDevice *source_device = api()->Value_GetMemoryDevice(source),
                        *target_device = api()->Value_GetMemoryDevice(target);
  const bool from_host = on_host(source_device), to_host = on_host(target_device);
  const hip::CopyKind kind = from_host ? to_host ? hip::CopyKind::host_to_host : hip::CopyKind::host_to_device
                             : to_host ? hip::CopyKind::device_to_host
                                       : hip::CopyKind::device_to_device;
  const hip::Runtime& hip = hip::Runtime::get();
  const hip::CurrentDevice current(
      static_cast<int>(api()->MemoryDevice_GetDeviceId(from_host ? target_device : source_device)));
  const int direction = static_cast<int>(kind);
  if (!has_stream) {
    hip.check(hip.DeviceSynchronize(), "hipDeviceSynchronize");
    hip.check(hip.Memcpy(to, from, bytes, direction), "hipMemcpy", std::to_string(bytes) + " bytes");
    return;
  }
  const bool on_device = kind == hip::CopyKind::device_to_device;
  const auto call = on_device ? hip.MemcpyAsync : hip.MemcpyWithStream;
  hip.check(call(to, from, bytes, direction, stream), on_device ? "hipMemcpyAsync" : "hipMemcpyWithStream",
            std::to_string(bytes) + " bytes");
}

DataTransfer::DataTransfer() : OrtDataTransferImpl{} {
  ort_version_supported = ops::api_version;
  Release = [](OrtDataTransferImpl* self) noexcept { delete static_cast<DataTransfer*>(self); };
  CanCopy = [](const OrtDataTransferImpl*, const OrtMemoryDevice* source,
               const OrtMemoryDevice* target) noexcept {
    const bool from = on_our_device(source), to = on_our_device(target);
    if (from && to) return api()->MemoryDevice_GetDeviceId(source) == api()->MemoryDevice_GetDeviceId(target);
    return (from && on_host(target)) || (to && on_host(source));
  };
  CopyTensors = [](OrtDataTransferImpl*, const OrtValue** sources, OrtValue** targets,
                   OrtSyncStream** streams, size_t count) noexcept {
    return ops::guarded(kProviderName, [&] {
      for (size_t i = 0; i < count; ++i) {
        OrtSyncStream* stream = streams != nullptr ? streams[i] : nullptr;
        copy(sources[i], targets[i], stream != nullptr,
             stream != nullptr ? ops::api->SyncStream_GetHandle(stream) : nullptr);
      }
    });
  };
}

}  // namespace zyfa::ep
