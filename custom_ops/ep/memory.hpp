// Device memory for ONNX Runtime, and copies to and from it.
#pragma once

#include "../hip/device.hpp"
#include "names.hpp"

namespace zyfa::ep {

// Takes from the device's pool, which outlives it. Why it had no memory last, ops::why_no_memory says.
class Allocator : public OrtAllocator {
 public:
  Allocator(hip::Device& device, const OrtMemoryInfo* info);
  // Gives unused memory back to the device.
  ~Allocator();

 private:
  void* allocate(size_t bytes, std::optional<hip::StreamHandle> stream) noexcept;

  hip::Device& device_;
  const OrtMemoryInfo* info_;
};

// Why the device had no memory when it was last asked; empty when it always had.
std::string last_refusal();

class DataTransfer : public OrtDataTransferImpl {
 public:
  DataTransfer();
};

// Copies a tensor on a stream; what touches host memory is done when this returns. Without a stream all work
// of the device is waited for. Throws Error.
void copy(const OrtValue* source, OrtValue* target, bool has_stream, hip::StreamHandle stream);

}  // namespace zyfa::ep
