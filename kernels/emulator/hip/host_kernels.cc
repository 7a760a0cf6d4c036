// Entry points of programs with kernels compiled into them: clang registers their bundles when the program
// starts, a launch names a kernel by the address of its host function.
#include <map>
#include <vector>

#include "entry.hpp"

using namespace zyfa::emulator::hip;

extern "C" {
hipError_t hipModuleLoadData(hipModule_t* module, const void* image);
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name);
hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_lds,
                                 hipStream_t stream, void** parameters, void** extra);
}

namespace {

struct Size {
  unsigned x, y, z;
};

// What clang writes beside a bundle.
struct BundleWrapper {
  uint32_t magic, version;
  const void* bundle;
  void* unused;
};
constexpr uint32_t kWrapperMagic = 0x48495046;  // "HIPF"

struct Bundle {
  const void* image;
  hipModule_t module = nullptr;  // loaded when a kernel of it is first launched
};

struct HostKernel {
  Bundle* bundle;
  std::string name;
};

struct Launch {
  Size grid, block;
  size_t dynamic_lds;
  hipStream_t stream;
};

struct Registry {
  std::mutex lock;
  std::map<const void*, HostKernel> kernels;
};

// Never destroyed: programs unregister while the process ends.
Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}

thread_local std::vector<Launch> pushed;

// A call that has been refused with its reason on record.
void pass(hipError_t code) {
  if (code != hipSuccess) throw HipError(code, report().text());
}

}  // namespace

ZYFA_HIP_EXPORT void** __hipRegisterFatBinary(const void* data) {
  Bundle* made = nullptr;
  enter("__hipRegisterFatBinary", [&] {
    const auto* wrapper = static_cast<const BundleWrapper*>(data);
    expect(wrapper != nullptr && wrapper->magic == kWrapperMagic,
           "expected what clang writes for HIP programs");
    made = new Bundle{wrapper->bundle};
    return hipSuccess;
  });
  return reinterpret_cast<void**>(made);
}

ZYFA_HIP_EXPORT void __hipUnregisterFatBinary(void** handle) {
  const std::lock_guard guard(registry().lock);
  auto* const bundle = reinterpret_cast<Bundle*>(handle);
  std::map<const void*, HostKernel>& kernels = registry().kernels;
  for (auto it = kernels.begin(); it != kernels.end();)
    it = it->second.bundle == bundle ? kernels.erase(it) : std::next(it);
  delete bundle;
}

ZYFA_HIP_EXPORT void __hipRegisterFunction(void** handle, const void* host_function, char*, const char* name,
                                           unsigned, void*, void*, Size*, Size*, int*) {
  const std::lock_guard guard(registry().lock);
  registry().kernels[host_function] = {reinterpret_cast<Bundle*>(handle), name};
}

// Variables are of no use without the functions that copy to them by name, which do not exist here.
ZYFA_HIP_EXPORT void __hipRegisterVar(void**, void*, char*, char*, int, size_t, int, int) {}

ZYFA_HIP_EXPORT hipError_t __hipPushCallConfiguration(Size grid, Size block, size_t dynamic_lds,
                                                      hipStream_t stream) {
  return enter("__hipPushCallConfiguration", [&] {
    pushed.push_back({grid, block, dynamic_lds, stream});
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t __hipPopCallConfiguration(Size* grid, Size* block, size_t* dynamic_lds,
                                                     hipStream_t* stream) {
  return enter("__hipPopCallConfiguration", [&] {
    expect(!pushed.empty(), "expected a launch that was begun", hipErrorMissingConfiguration);
    const Launch launch = pushed.back();
    pushed.pop_back();
    *grid = launch.grid;
    *block = launch.block;
    *dynamic_lds = launch.dynamic_lds;
    *stream = launch.stream;
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipLaunchKernel(const void* host_function, Size grid, Size block,
                                           void** parameters, size_t dynamic_lds, hipStream_t stream) {
  return enter("hipLaunchKernel", [&] {
    const std::lock_guard guard(registry().lock);
    const auto found = registry().kernels.find(host_function);
    expect(found != registry().kernels.end() && found->second.bundle != nullptr,
           "expected the address of a kernel of this program", hipErrorInvalidDeviceFunction);
    Bundle& bundle = *found->second.bundle;
    if (bundle.module == nullptr) pass(hipModuleLoadData(&bundle.module, bundle.image));
    hipFunction_t function = nullptr;
    pass(hipModuleGetFunction(&function, bundle.module, found->second.name.c_str()));
    pass(hipModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                               static_cast<unsigned>(dynamic_lds), stream, parameters, nullptr));
    return hipSuccess;
  });
}
