#include "run.hpp"

#include <cstring>

#include "../error.hpp"

namespace zyfa::hip {
namespace {

// HIP_LAUNCH_PARAM_BUFFER_POINTER and its relatives.
void* const kArgumentPointer = reinterpret_cast<void*>(1);
void* const kArgumentSize = reinterpret_cast<void*>(2);
void* const kArgumentEnd = reinterpret_cast<void*>(3);

class Workspace {
 public:
  Workspace(Pool& pool, size_t bytes, StreamHandle stream)
      : pool_(pool), memory_(bytes != 0 ? pool.allocate(bytes, stream, capture_of(stream)) : nullptr) {}
  ~Workspace() {
    if (memory_ != nullptr) pool_.release(memory_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  const void* memory() const { return memory_; }

 private:
  // The number of the capture that the stream is in; 0 when it is in none.
  static uint64_t capture_of(StreamHandle stream) {
    const Runtime& hip = Runtime::get();
    int status = 0;
    unsigned long long number = 0;
    hip.check(hip.StreamGetCaptureInfo(stream, &status, &number), "hipStreamGetCaptureInfo");
    return status == 0 ? 0 : number;
  }

  Pool& pool_;
  void* memory_;
};

void launch(const Launch& step, const Pointers& pointers, Device& device, StreamHandle stream) {
  std::array<unsigned char, sizeof(step.arguments)> block = step.arguments;
  for (const Pointer& pointer : step.pointers) {
    const char* base = static_cast<const char*>(pointers[static_cast<size_t>(pointer.at.buffer)]);
    const void* address = base != nullptr ? base + pointer.at.offset : nullptr;
    std::memcpy(&block[pointer.offset], &address, sizeof(address));
  }
  const KernelRow& row = *step.kernel;
  size_t size = static_cast<size_t>(row.argument_bytes);
  void* extra[] = {kArgumentPointer, block.data(), kArgumentSize, &size, kArgumentEnd};
  const auto grid = [&](size_t axis) { return static_cast<unsigned>(step.grid[axis]); };
  const Runtime& hip = Runtime::get();
  hip.check(hip.ModuleLaunchKernel(device.function(row), grid(0), grid(1), grid(2),
                                   static_cast<unsigned>(row.work_items), 1, 1, 0, stream, nullptr, extra),
            "hipModuleLaunchKernel", row.kernel);
}

}  // namespace

void run(const Choice& choice, Pointers pointers, Device& device, StreamHandle stream) {
  if (choice.launches.empty()) return;
  const CurrentDevice current(device.ordinal);
  // Somebody else waits for a stream that is not ours: what earlier launches found is said here.
  if (!device.knows(stream)) device.check_status(stream);
  device.pool.touch(stream);
  Workspace workspace(device.pool, static_cast<size_t>(choice.workspace_bytes), stream);
  at(pointers, Buffer::workspace) = workspace.memory();
  at(pointers, Buffer::status) = device.status_of(stream);
  for (const Launch& step : choice.launches) launch(step, pointers, device, stream);
}

}  // namespace zyfa::hip
