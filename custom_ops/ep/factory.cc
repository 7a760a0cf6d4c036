#include "factory.hpp"

#include <cstdlib>
#include <vector>

#include "../error.hpp"
#include "memory.hpp"
#include "provider.hpp"
#include "stream.hpp"

namespace zyfa::ep {
namespace {

constexpr const char* kDeviceKey = "device_id";  // in the metadata of a device

using KeyValues = std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)>;

KeyValues key_values(std::initializer_list<std::pair<const char*, std::string>> pairs) {
  OrtKeyValuePairs* raw = nullptr;
  ops::api->CreateKeyValuePairs(&raw);
  for (const auto& [key, value] : pairs) ops::api->AddKeyValuePair(raw, key, value.c_str());
  return {raw, ops::api->ReleaseKeyValuePairs};
}

class Factory : public OrtEpFactory {
 public:
  Factory() : OrtEpFactory{}, devices_(hip::Device::count()) {
    ort_version_supported = ops::api_version;
    ops::why_no_memory = last_refusal;
    GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) noexcept { return kVendor; };
    GetVendorId = [](const OrtEpFactory*) noexcept { return kAmd; };
    GetVersion = [](const OrtEpFactory*) noexcept { return kVersion; };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* hardware, size_t count,
                             OrtEpDevice** made, size_t most, size_t* number) noexcept {
      *number = 0;
      return ops::guarded(kProviderName,
                          [&] { of(self).devices({hardware, hardware + count}, made, most, *number); });
    };
    CreateEp = [](OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const* metadata,
                  size_t count, const OrtSessionOptions* session, const OrtLogger* logger,
                  OrtEp** ep) noexcept {
      return ops::guarded(kProviderName, [&] {
        const Options options = read_options(session);
        *ep = new Provider(hip::Device::of(chosen({metadata, metadata + count}, options)), options, logger);
      });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Provider*>(ep); };
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) noexcept {
      return ops::guarded(kProviderName, [&] {
        const OrtMemoryDevice* device = api()->MemoryInfo_GetMemoryDevice(info);
        *allocator =
            new Allocator(hip::Device::of(static_cast<int>(api()->MemoryDevice_GetDeviceId(device))), info);
      });
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) noexcept {
      delete static_cast<Allocator*>(allocator);
    };
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept {
      return ops::guarded(kProviderName, [&] { *transfer = new DataTransfer(); });
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return true; };
    CreateSyncStreamForDevice = [](OrtEpFactory*, const OrtMemoryDevice* device, const OrtKeyValuePairs*,
                                   OrtSyncStreamImpl** stream) noexcept {
      return ops::guarded(kProviderName, [&] {
        *stream = new SyncStream(hip::Device::of(static_cast<int>(api()->MemoryDevice_GetDeviceId(device))));
      });
    };
  }

 private:
  static Factory& of(OrtEpFactory* self) { return *static_cast<Factory*>(self); }

  // One device per GPU that HIP sees. ONNX Runtime may not list GPUs, or in another order: placement and
  // copies follow the memory, so that any hardware device will do to hang it on.
  void devices(const std::vector<const OrtHardwareDevice*>& hardware, OrtEpDevice** made, size_t most,
               size_t& number) {
    std::vector<const OrtHardwareDevice*> gpus;
    const OrtHardwareDevice* cpu = nullptr;
    for (const OrtHardwareDevice* device : hardware) {
      const OrtHardwareDeviceType type = ops::api->HardwareDevice_Type(device);
      if (type == OrtHardwareDeviceType_CPU) cpu = device;
      if (type == OrtHardwareDeviceType_GPU && ops::api->HardwareDevice_VendorId(device) == kAmd)
        gpus.push_back(device);
    }
    for (int i = 0; i < devices_ && number < most; ++i) {
      const OrtHardwareDevice* on = static_cast<size_t>(i) < gpus.size() ? gpus[static_cast<size_t>(i)] : cpu;
      if (on == nullptr) continue;
      const hip::Device& device = hip::Device::of(i);
      const KeyValues metadata = key_values({{kDeviceKey, std::to_string(i)},
                                             {"name", device.name},
                                             {"architecture", device.architecture},
                                             {"emulated", hip::Runtime::get().emulated() ? "1" : "0"}});
      OrtEpDevice* ep_device = nullptr;
      ops::check(api()->CreateEpDevice(this, on, metadata.get(), nullptr, &ep_device));
      OrtMemoryInfo* info = nullptr;  // never released: the device refers to it
      ops::check(ops::api->CreateMemoryInfo_V2("Zyfa", OrtMemoryInfoDeviceType_GPU, kAmd,
                                               static_cast<uint32_t>(i), OrtDeviceMemoryType_DEFAULT, 0,
                                               OrtDeviceAllocator, &info));
      ops::check(api()->EpDevice_AddAllocatorInfo(ep_device, info));
      made[number++] = ep_device;
    }
  }

  // The device that the session gave the provider.
  static int chosen(const std::vector<const OrtKeyValuePairs*>& metadata, const Options& options) {
    std::string offered;
    for (const OrtKeyValuePairs* pairs : metadata) {
      const char* number = ops::api->GetKeyValue(pairs, kDeviceKey);
      if (number == nullptr) continue;
      const int device = std::atoi(number);
      if (options.device_id.value_or(device) == device) return device;
      offered += (offered.empty() ? "" : ", ") + std::string(number);
    }
    fail("provider option device_id: expected one of ", offered, ", the devices given to the provider, got ",
         options.device_id.value_or(-1));
  }

  const int devices_;
};

}  // namespace

const OrtEpApi* api() {
  static const OrtEpApi* const found = ops::api_version >= kOldestApi ? ops::api->GetEpApi() : nullptr;
  return found;
}

OrtEpFactory* factory() {
  static Factory* const made = new Factory();
  return made;
}

}  // namespace zyfa::ep
