#include "rocm.hpp"

#include <cstring>
#include <map>
#include <mutex>

namespace zyfa::ep {
namespace {

// The device that the provider's allocator takes its memory from.
int device_of(const OrtKernelInfo* info) {
  OrtAllocator* raw = nullptr;
  ops::check(ops::api->KernelInfoGetAllocator(info, OrtMemTypeDefault, &raw));
  const std::unique_ptr<OrtAllocator, void (*)(OrtAllocator*)> allocator(raw, ops::api->ReleaseAllocator);
  const OrtMemoryInfo* memory = nullptr;
  ops::check(ops::api->AllocatorGetInfo(raw, &memory));
  int id = 0;
  ops::check(ops::api->MemoryInfoGetId(memory, &id));
  return id;
}

// Held by every kernel on a device; with the last one workspace goes back to the device, as the plugin
// provider's allocator gives it back when a session ends, and what the last launches found is told.
class Lease {
 public:
  explicit Lease(hip::Device& device) : device_(device) {}
  ~Lease() {
    try {
      const hip::CurrentDevice current(device_.ordinal);
      const hip::Runtime& hip = hip::Runtime::get();
      hip.check(hip.DeviceSynchronize(), "hipDeviceSynchronize");
      device_.pool.trim();
      device_.report_foreign_streams();
    } catch (const std::exception&) {  // a device that is lost has nothing to give back
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  hip::Device& device_;
};

std::shared_ptr<const Lease> lease_on(hip::Device& device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& leases = *new std::map<int, std::weak_ptr<const Lease>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const Lease>& known = leases[device.ordinal];
  std::shared_ptr<const Lease> lease = known.lock();
  if (lease == nullptr) known = lease = std::make_shared<const Lease>(device);
  return lease;
}

}  // namespace

bool has_rocm_provider() {
  char** names = nullptr;
  int count = 0;
  ops::check(ops::api->GetAvailableProviders(&names, &count));
  bool found = false;
  for (int i = 0; i < count; ++i) found = found || std::strcmp(names[i], kRocmProvider) == 0;
  ops::check(ops::api->ReleaseAvailableProviders(names, count));
  return found;
}

Target rocm_target(const OrtKernelInfo* info) {
  hip::Device& device = hip::Device::of(device_of(info));
  return {device, {}, lease_on(device)};
}

}  // namespace zyfa::ep
