#include "device.hpp"

#include <array>
#include <cstdio>
#include <cstring>

#include "../error.hpp"
#include "code_objects.hpp"
#include "select.hpp"

namespace zyfa::hip {
namespace {

// hipDeviceProp_tR0600, the layout of ROCm 6 and 7: 1,472 bytes, name first, gcnArchName at 1,160. Later ones
// may be longer.
constexpr size_t kProperties = 4 * 1472, kName = 0, kArchitecture_ = 1160, kText = 256;
constexpr int kNoDevice = 100;  // hipErrorNoDevice
constexpr size_t kPage = 4096, kWordBytes = 64;

constexpr const char* kHoles =
    "key_mask: expected one run of visible keys per batch entry with precision fp8 and more than 16 query "
    "rows, got a "
    "mask with holes; the output is NaN there: set precision to bf16, or run this node on the CPU";

}  // namespace

CurrentDevice::CurrentDevice(int ordinal) {
  const Runtime& hip = Runtime::get();
  hip.check(hip.GetDevice(&before_), "hipGetDevice");
  if (before_ == ordinal) return;
  hip.check(hip.SetDevice(ordinal), "hipSetDevice", std::to_string(ordinal));
  changed_ = true;
}

CurrentDevice::~CurrentDevice() {
  if (changed_) Runtime::get().SetDevice(before_);
}

int Device::count() {
  const Runtime& hip = Runtime::get();
  int count = 0;
  int code = hip.Init(0);
  if (code == 0) code = hip.GetDeviceCount(&count);
  if (code == kNoDevice) return 0;
  hip.check(code, "hipGetDeviceCount");
  return count;
}

Device& Device::of(int ordinal) {
  static std::mutex& mutex = *new std::mutex;
  static auto& devices = *new std::map<int, Device*>;
  const std::lock_guard<std::mutex> lock(mutex);
  Device*& device = devices[ordinal];
  if (device == nullptr) device = new Device(ordinal);
  return *device;
}

Device::Device(int number) : ordinal(number) {
  const Runtime& hip = Runtime::get();
  const int there = count();
  if (number < 0 || number >= there)
    fail("device_id: expected a number below ", there, ", the devices that ", hip.path(), " sees, got ",
         number);
  std::array<char, kProperties> properties{};
  hip.check(hip.GetDevicePropertiesR0600(properties.data(), number), "hipGetDeviceProperties");
  const auto text = [&](size_t at) { return std::string(&properties[at], strnlen(&properties[at], kText)); };
  name = text(kName);
  architecture = text(kArchitecture_);
}

FunctionHandle Device::function(const KernelRow& kernel) {
  const Runtime& hip = Runtime::get();
  const std::lock_guard<std::mutex> lock(mutex_);
  FunctionHandle& function = functions_[&kernel];
  if (function != nullptr) return function;
  ModuleHandle& module = modules_[kernel.code_object];
  if (module == nullptr) {
    const std::string code = read_code_object(kernel.code_object);
    ModuleHandle loaded = nullptr;
    hip.check(hip.ModuleLoadData(&loaded, code.data()), "hipModuleLoadData",
              std::string(kernel.code_object) + ".co on " + architecture);
    module = loaded;
  }
  FunctionHandle found = nullptr;
  hip.check(hip.ModuleGetFunction(&found, module, kernel.kernel), "hipModuleGetFunction", kernel.kernel);
  return function = found;
}

// Needs the lock.
int* Device::take_word() {
  if (words_.empty()) {
    const Runtime& hip = Runtime::get();
    const CurrentDevice current(ordinal);
    void* page = nullptr;
    hip.check(hip.HostMalloc(&page, kPage, kHostCoherent), "hipHostMalloc", std::to_string(kPage) + " bytes");
    for (size_t at = 0; at < kPage; at += kWordBytes)
      words_.push_back(reinterpret_cast<int*>(static_cast<char*>(page) + at));
  }
  int* word = words_.back();
  words_.pop_back();
  *word = 0;
  return word;
}

void Device::add_stream(StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  status_[stream] = take_word();
}

bool Device::remove_stream(StreamHandle stream) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = status_.find(stream);
  if (found == status_.end()) return false;
  const bool left = *found->second != 0;
  words_.push_back(found->second);
  status_.erase(found);
  return left;
}

void Device::report_foreign_streams() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [stream, word] : foreign_)
    if (__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL) != 0) std::fprintf(stderr, "%s\n", kHoles);
}

bool Device::knows(StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_.count(stream) != 0;
}

int* Device::status_of(StreamHandle stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = status_.find(stream);
  if (found != status_.end()) return found->second;
  int*& word = foreign_[stream];
  if (word == nullptr) word = take_word();
  return word;
}

void Device::check_status(StreamHandle stream) {
  int* word = status_of(stream);
  if (__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL) != 0) fail(kHoles);
}

Stream::Stream(Device& on) : device(on) {
  const Runtime& hip = Runtime::get();
  const CurrentDevice current(device.ordinal);
  hip.check(hip.StreamCreateWithFlags(&handle, kStreamNonBlocking), "hipStreamCreateWithFlags");
  try {
    device.add_stream(handle);
  } catch (...) {
    hip.StreamDestroy(handle);
    throw;
  }
}

Stream::~Stream() {
  const Runtime& hip = Runtime::get();
  hip.StreamSynchronize(handle);
  device.pool.finished(handle);
  if (device.remove_stream(handle)) std::fprintf(stderr, "%s\n", kHoles);
  hip.StreamDestroy(handle);
}

void Stream::synchronize() {
  const Runtime& hip = Runtime::get();
  const int code = hip.StreamSynchronize(handle);
  device.pool.finished(handle);
  hip.check(code, "hipStreamSynchronize");
  device.check_status(handle);
}

}  // namespace zyfa::hip
