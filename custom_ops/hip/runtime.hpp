// HIP's entry points, opened with dlopen when a GPU is first asked for: the library loads on machines without
// ROCm. ZYFA_HIP_LIBRARY names another library, such as the emulated device.
#pragma once

#include <cstddef>
#include <string>

namespace zyfa::hip {

using StreamHandle = void*;
using EventHandle = void*;
using ModuleHandle = void*;
using FunctionHandle = void*;

enum class CopyKind : int { host_to_host = 0, host_to_device = 1, device_to_host = 2, device_to_device = 3 };
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kHostCoherent = 0x40000000;
constexpr unsigned kEventDisableTiming = 2;

// Name behind "hip", then the types of the arguments. All return hipError_t.
#define ZYFA_HIP_FUNCTIONS(F)                                                                       \
  F(Init, unsigned)                                                                                 \
  F(GetDeviceCount, int*)                                                                           \
  F(GetDevice, int*)                                                                                \
  F(SetDevice, int)                                                                                 \
  F(GetDevicePropertiesR0600, void*, int)                                                           \
  F(DeviceSynchronize, void)                                                                        \
  F(Malloc, void**, size_t)                                                                         \
  F(Free, void*)                                                                                    \
  F(HostMalloc, void**, size_t, unsigned)                                                           \
  F(MemGetInfo, size_t*, size_t*)                                                                   \
  F(Memcpy, void*, const void*, size_t, int)                                                        \
  F(MemcpyAsync, void*, const void*, size_t, int, StreamHandle)                                     \
  F(MemcpyWithStream, void*, const void*, size_t, int, StreamHandle)                                \
  F(StreamCreateWithFlags, StreamHandle*, unsigned)                                                 \
  F(StreamDestroy, StreamHandle)                                                                    \
  F(StreamSynchronize, StreamHandle)                                                                \
  F(StreamGetCaptureInfo, StreamHandle, int*, unsigned long long*)                                  \
  F(StreamWaitEvent, StreamHandle, EventHandle, unsigned)                                           \
  F(EventCreateWithFlags, EventHandle*, unsigned)                                                   \
  F(EventDestroy, EventHandle)                                                                      \
  F(EventRecord, EventHandle, StreamHandle)                                                         \
  F(EventSynchronize, EventHandle)                                                                  \
  F(ModuleLoadData, ModuleHandle*, const void*)                                                     \
  F(ModuleGetFunction, FunctionHandle*, ModuleHandle, const char*)                                  \
  F(ModuleLaunchKernel, FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, StreamHandle, void**, void**)

class Runtime {
 public:
  // Opened at the first call. Throws Error when there is no HIP library, or one that lacks an entry point.
  static const Runtime& get();

#define ZYFA_HIP_MEMBER(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  ZYFA_HIP_FUNCTIONS(ZYFA_HIP_MEMBER)
#undef ZYFA_HIP_MEMBER

  // Throws Error with HIP's own words when `code` is not hipSuccess; `what` says what the call was for.
  void check(int code, const char* call, const std::string& what = "") const;
  bool emulated() const { return last_report_ != nullptr; }
  const std::string& path() const { return path_; }

 private:
  Runtime();

  std::string path_;
  const char* (*error_name_)(int) = nullptr;
  const char* (*error_string_)(int) = nullptr;
  size_t (*last_report_)(char*, size_t) = nullptr;  // of the emulated device alone
};

}  // namespace zyfa::hip
