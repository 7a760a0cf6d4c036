// Entry points: allocations, copies, fills.
#include <cstring>

#include "entry.hpp"

using namespace zyfa::emulator;
using namespace zyfa::emulator::hip;

namespace {

enum class Place { device, pinned, pageable };

// Needs the lock.
Place place_of(const void* pointer) {
  if (const auto* block = device().block_at(pointer); block != nullptr)
    return block->second.device() ? Place::device : Place::pinned;
  // Variables of code objects.
  return device().memory.find(reinterpret_cast<uintptr_t>(pointer), 1) != nullptr ? Place::device
                                                                                  : Place::pageable;
}

struct Side {
  uint8_t* pointer;
  Place place;
};

// Needs the lock.
Side side_of(const char* what, const void* pointer, size_t bytes, hipMemcpyKind kind, bool device_side) {
  expect(pointer != nullptr, format("%s: null pointer", what));
  const Side side{static_cast<uint8_t*>(const_cast<void*>(pointer)), place_of(pointer)};
  if (kind != hipMemcpyDefault) {
    if (device_side)
      expect(side.place != Place::pageable,
             format("%s: the direction says device memory, got host memory", what));
    else
      expect(side.place != Place::device,
             format("%s: the direction says host memory, got device memory", what),
             hipErrorInvalidMemcpyDirection);
  }
  if (side.place != Place::pageable)
    expect(device().memory.find(reinterpret_cast<uintptr_t>(pointer), bytes) != nullptr,
           format("%s: %zu bytes go beyond the allocation: %s", what, bytes,
                  device().memory.describe(reinterpret_cast<uintptr_t>(pointer) + bytes).c_str()));
  return side;
}

// Host address of one side when the work runs. Memory freed meanwhile is an illegal address, as on the chip.
uint8_t* resolve(const Side& side, size_t bytes, bool write) {
  if (side.place == Place::pageable) return side.pointer;
  try {
    return device().memory.at(reinterpret_cast<uintptr_t>(side.pointer), bytes, write,
                              write ? "copy" : "copy from");
  } catch (const LaunchError& error) {
    refuse(hipErrorIllegalAddress, error.what());
  }
}

bool to_device(hipMemcpyKind kind) {
  return kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice ||
         kind == hipMemcpyDeviceToDeviceNoCU;
}
bool from_device(hipMemcpyKind kind) {
  return kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice ||
         kind == hipMemcpyDeviceToDeviceNoCU;
}

// Rows of `width` bytes, the first bytes of which lie `pitch` apart on either side.
struct Rows {
  size_t width, height, to_pitch, from_pitch;
  size_t extent(size_t pitch) const { return (height - 1) * pitch + width; }
};

hipError_t copy_rows(const char* name, void* to, const void* from, const Rows& rows, hipMemcpyKind kind,
                     hipStream_t stream, bool blocking) {
  return enter(name, [&] {
    expect((kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault) || kind == hipMemcpyDeviceToDeviceNoCU,
           format("direction: expected 0..4 or 1024, got %d", kind), hipErrorInvalidMemcpyDirection);
    reach(FaultPoint::copy);
    Stream::Point point;
    bool pageable;
    {
      const std::lock_guard guard(device().lock);
      const auto target = device().stream(stream);
      if (blocking) device().refuse_in_capture(name);
      if (rows.width == 0 || rows.height == 0) return hipSuccess;
      const size_t written = rows.extent(rows.to_pitch), read = rows.extent(rows.from_pitch);
      const Side sink = side_of("destination", to, written, kind, to_device(kind));
      const Side source = side_of("source", from, read, kind, from_device(kind));
      pageable = sink.place == Place::pageable || source.place == Place::pageable;
      point = device().submit(target, [sink, source, rows, written, read] {
        const std::shared_lock use(device().in_use);
        uint8_t* target_row = resolve(sink, written, true);
        const uint8_t* source_row = resolve(source, read, false);
        for (size_t row = 0; row < rows.height; ++row)
          std::memmove(target_row + row * rows.to_pitch, source_row + row * rows.from_pitch, rows.width);
      });
    }
    // HIP documents copies of memory that is not pinned as synchronous.
    return point.stream != nullptr && (blocking || pageable) ? point.stream->wait(point.number) : hipSuccess;
  });
}

hipError_t copy(const char* name, void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                hipStream_t stream, bool blocking) {
  return copy_rows(name, to, from, {bytes, 1, bytes, bytes}, kind, stream, blocking);
}

hipError_t fill(const char* name, void* to, uint32_t pattern, size_t unit, size_t count, hipStream_t stream,
                bool blocking) {
  return enter(name, [&] {
    reach(FaultPoint::fill);
    Stream::Point point;
    {
      const std::lock_guard guard(device().lock);
      const auto target = device().stream(stream);
      if (blocking) device().refuse_in_capture(name);
      if (count == 0) return hipSuccess;
      expect(count <= SIZE_MAX / unit, "count: too large");
      expect(reinterpret_cast<uintptr_t>(to) % unit == 0,
             format("destination: expected a multiple of %zu", unit));
      const size_t bytes = count * unit;
      const Side sink = side_of("destination", to, bytes, hipMemcpyHostToDevice, true);
      point = device().submit(target, [sink, bytes, unit, pattern] {
        const std::shared_lock use(device().in_use);
        uint8_t* at = resolve(sink, bytes, true);
        if (unit == 1)
          std::memset(at, static_cast<int>(pattern & 0xff), bytes);
        else
          for (size_t i = 0; i < bytes; i += unit) std::memcpy(at + i, &pattern, unit);
      });
    }
    return blocking && point.stream != nullptr ? point.stream->wait(point.number) : hipSuccess;
  });
}

hipError_t allocate(const char* name, void** pointer, size_t bytes, hipStream_t stream, bool ordered) {
  return enter(name, [&] {
    expect(pointer != nullptr, "expected a place for the pointer, got a null pointer");
    *pointer = nullptr;
    reach(FaultPoint::malloc);
    const std::lock_guard guard(device().lock);
    if (ordered)
      expect(device().stream(stream)->capture == nullptr, "not supported in a capture",
             hipErrorStreamCaptureUnsupported);
    else
      device().refuse_in_capture(name);
    if (bytes != 0) *pointer = device().allocate(bytes);
    return hipSuccess;
  });
}

void release_now(void* pointer) {
  const std::unique_lock use(device().in_use);
  const std::lock_guard guard(device().lock);
  device().release(pointer);
}

// Waits for everything given so far, as HIP does before it frees. Failed work is no reason to keep memory.
void settle_device(const char* name) {
  {
    const std::lock_guard guard(device().lock);
    device().refuse_in_capture(name);
  }
  device().synchronize();
}

hipError_t release_host(const char* name, void* pointer, bool registered) {
  return enter(name, [&] {
    if (pointer == nullptr && !registered) return hipSuccess;
    settle_device(name);
    const std::unique_lock use(device().in_use);
    const std::lock_guard guard(device().lock);
    device().release_host(pointer, registered);
    return hipSuccess;
  });
}

}  // namespace

// ---- allocation ------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) {
  return allocate("hipMalloc", pointer, bytes, nullptr, false);
}

ZYFA_HIP_EXPORT hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream) {
  return allocate("hipMallocAsync", pointer, bytes, stream, true);
}

ZYFA_HIP_EXPORT hipError_t hipFree(void* pointer) {
  return enter("hipFree", [&] {
    if (pointer == nullptr) return hipSuccess;
    settle_device("hipFree");
    release_now(pointer);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  return enter("hipFreeAsync", [&] {
    if (pointer == nullptr) return hipSuccess;
    const std::lock_guard guard(device().lock);
    const auto target = device().stream(stream);
    expect(target->capture == nullptr, "not supported in a capture", hipErrorStreamCaptureUnsupported);
    const auto* block = device().block_at(pointer);
    expect(block != nullptr && block->second.device() && block->first == reinterpret_cast<uintptr_t>(pointer),
           "expected a pointer of hipMalloc that is not freed");
    device().submit(target, [pointer] { release_now(pointer); });
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned flags) {
  return enter("hipHostMalloc", [&] {
    (void)flags;  // portable, mapped, write-combined, coherent: one kind of host memory has all of it
    expect(pointer != nullptr, "expected a place for the pointer, got a null pointer");
    *pointer = nullptr;
    reach(FaultPoint::host);
    const std::lock_guard guard(device().lock);
    device().refuse_in_capture("hipHostMalloc");
    if (bytes != 0) *pointer = device().allocate_host(bytes);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipHostFree(void* pointer) { return release_host("hipHostFree", pointer, false); }

ZYFA_HIP_EXPORT hipError_t hipHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return enter("hipHostRegister", [&] {
    (void)flags;
    expect(pointer != nullptr && bytes != 0, "expected memory of at least one byte");
    reach(FaultPoint::host);
    const std::lock_guard guard(device().lock);
    device().register_host(pointer, bytes);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipHostGetDevicePointer(void** on_device, void* pointer, unsigned flags) {
  return enter("hipHostGetDevicePointer", [&] {
    expect(on_device != nullptr && flags == 0, "expected a place for the pointer and no flags");
    const std::lock_guard guard(device().lock);
    const auto* block = device().block_at(pointer);
    expect(block != nullptr && !block->second.device(),
           "expected memory of hipHostMalloc or hipHostRegister");
    *on_device = pointer;
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipHostUnregister(void* pointer) {
  return release_host("hipHostUnregister", pointer, true);
}

ZYFA_HIP_EXPORT hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  return enter("hipMemGetInfo", [&] {
    expect(free != nullptr && total != nullptr, "expected places for the answers, got a null pointer");
    const std::lock_guard guard(device().lock);
    *free = device().bytes_free();
    *total = device().bytes_total();
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  return enter("hipPointerGetAttributes", [&] {
    expect(attributes != nullptr && pointer != nullptr,
           "expected a structure and a pointer, got a null pointer");
    const std::lock_guard guard(device().lock);
    auto* const address = const_cast<void*>(pointer);
    const auto* block = device().block_at(pointer);
    *attributes = {};
    expect(block != nullptr, "the pointer is none of an allocation");
    attributes->type = block->second.device() ? hipMemoryTypeDevice : hipMemoryTypeHost;
    attributes->devicePointer = address;
    attributes->hostPointer = block->second.device() ? nullptr : address;
    return hipSuccess;
  });
}

// ---- copies ----------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  return copy("hipMemcpy", to, from, bytes, kind, nullptr, true);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                          hipStream_t stream) {
  return copy("hipMemcpyAsync", to, from, bytes, kind, stream, false);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyWithStream(void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                                               hipStream_t stream) {
  return copy("hipMemcpyWithStream", to, from, bytes, kind, stream, true);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                            size_t width, size_t height, hipMemcpyKind kind,
                                            hipStream_t stream) {
  if (width > to_pitch || width > from_pitch)
    return enter("hipMemcpy2DAsync", [&]() -> hipError_t {
      refuse(hipErrorInvalidPitchValue,
             format("pitch: expected %zu, the width, or more, got %zu and %zu", width, to_pitch, from_pitch));
    });
  return copy_rows("hipMemcpy2DAsync", to, from, {width, height, to_pitch, from_pitch}, kind, stream, false);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void* from, size_t bytes) {
  return copy("hipMemcpyHtoD", to, from, bytes, hipMemcpyHostToDevice, nullptr, true);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes) {
  return copy("hipMemcpyDtoH", to, from, bytes, hipMemcpyDeviceToHost, nullptr, true);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return copy("hipMemcpyDtoD", to, from, bytes, hipMemcpyDeviceToDevice, nullptr, true);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void* from, size_t bytes,
                                              hipStream_t stream) {
  return copy("hipMemcpyHtoDAsync", to, from, bytes, hipMemcpyHostToDevice, stream, false);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes,
                                              hipStream_t stream) {
  return copy("hipMemcpyDtoHAsync", to, from, bytes, hipMemcpyDeviceToHost, stream, false);
}
ZYFA_HIP_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes,
                                              hipStream_t stream) {
  return copy("hipMemcpyDtoDAsync", to, from, bytes, hipMemcpyDeviceToDevice, stream, false);
}

// ---- fills -----------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipMemset(void* to, int value, size_t bytes) {
  return fill("hipMemset", to, static_cast<uint32_t>(value), 1, bytes, nullptr, true);
}
ZYFA_HIP_EXPORT hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream) {
  return fill("hipMemsetAsync", to, static_cast<uint32_t>(value), 1, bytes, stream, false);
}
ZYFA_HIP_EXPORT hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return fill("hipMemsetD32", to, static_cast<uint32_t>(value), 4, count, nullptr, true);
}
ZYFA_HIP_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
  return fill("hipMemsetD32Async", to, static_cast<uint32_t>(value), 4, count, stream, false);
}
