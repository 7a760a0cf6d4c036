// Entry points: code objects, kernels, launches.
#include <algorithm>
#include <cstring>

#include "entry.hpp"
#include "image.hpp"
#include "properties.hpp"

using namespace zyfa::emulator;
using namespace zyfa::emulator::hip;

namespace {

hipError_t load_image(const char* name, hipModule_t* module, const void* image,
                      uint64_t bytes = kUnknownBytes) {
  return enter(name, [&] {
    expect(module != nullptr && image != nullptr,
           "expected a place for the handle and an image, got a null pointer");
    *module = nullptr;
    reach(FaultPoint::load);
    const std::lock_guard guard(device().lock);
    device().refuse_in_capture(name);
    std::shared_ptr<LoadedModule> loaded(
        load(CodeObject::parse(code_object_at(image, bytes)), device().memory).release(),
        [](LoadedModule* one) {
          unload(*one, device().memory);
          delete one;
        });
    *module = reinterpret_cast<hipModule_t>(loaded.get());
    device().modules[*module] = std::move(loaded);
    return hipSuccess;
  });
}

// Need the lock.
std::shared_ptr<LoadedModule> module_of(hipModule_t handle) {
  const auto found = device().modules.find(handle);
  expect(found != device().modules.end(), "module: expected a handle that is loaded", hipErrorInvalidHandle);
  return found->second;
}

std::shared_ptr<Function> function_of(hipFunction_t handle) {
  const auto found = device().functions.find(handle);
  expect(found != device().functions.end(),
         "function: expected a handle of hipModuleGetFunction whose module is loaded", hipErrorInvalidHandle);
  return found->second;
}

bool hidden(const KernelArgument& argument) { return argument.value_kind.rfind("hidden_", 0) == 0; }

uint32_t explicit_bytes(const Kernel& kernel) {
  uint32_t end = 0;
  for (const KernelArgument& argument : kernel.arguments)
    if (!hidden(argument)) end = std::max(end, argument.offset + argument.size);
  return kernel.arguments.empty() ? kernel.kernarg_bytes : end;
}

std::vector<uint8_t> pack(const Kernel& kernel, void** parameters) {
  std::vector<uint8_t> packed(explicit_bytes(kernel));
  size_t index = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (hidden(argument)) continue;
    const void* value = parameters[index++];
    expect(value != nullptr, format("argument %zu '%s': null pointer", index - 1, argument.name.c_str()));
    std::memcpy(packed.data() + argument.offset, value, argument.size);
  }
  return packed;
}

// The list of HIP_LAUNCH_PARAM_ entries: where the packed arguments are and how many bytes.
std::vector<uint8_t> unpack(const Kernel& kernel, void** extra) {
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  for (size_t i = 0; reinterpret_cast<uintptr_t>(extra[i]) != kLaunchParamEnd; i += 2) {
    const auto key = reinterpret_cast<uintptr_t>(extra[i]);
    expect(key == kLaunchParamPointer || key == kLaunchParamSize,
           "extra: expected HIP_LAUNCH_PARAM_BUFFER_POINTER, _SIZE and _END");
    expect(extra[i + 1] != nullptr, "extra: null pointer");
    if (key == kLaunchParamPointer) data = static_cast<const uint8_t*>(extra[i + 1]);
    if (key == kLaunchParamSize) bytes = *static_cast<const size_t*>(extra[i + 1]);
  }
  const uint32_t needed = explicit_bytes(kernel);
  expect(needed == 0 || data != nullptr, "extra: no HIP_LAUNCH_PARAM_BUFFER_POINTER");
  expect(bytes >= needed,
         format("kernel '%s': %zu bytes of arguments, it takes %u", kernel.name.c_str(), bytes, needed));
  return {data, data + bytes};
}

void check_sizes(const Kernel& kernel, const LaunchRequest& request) {
  const char* name = kernel.name.c_str();
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    expect(request.grid[axis] > 0 && request.grid[axis] <= static_cast<uint32_t>(kMaxGrid),
           format("kernel '%s': grid[%d] is %u", name, axis, request.grid[axis]),
           hipErrorInvalidConfiguration);
    expect(
        request.block[axis] > 0 && request.block[axis] <= static_cast<uint32_t>(kMaxThreads),
        format("kernel '%s': block[%d] is %u, expected 1..%d", name, axis, request.block[axis], kMaxThreads),
        hipErrorInvalidConfiguration);
    expect(uint64_t{request.grid[axis]} * request.block[axis] <= UINT32_MAX,
           format("kernel '%s': grid[%d] of %u blocks of %u work-items, expected less than 2^32 in all", name,
                  axis, request.grid[axis], request.block[axis]),
           hipErrorInvalidConfiguration);
    threads *= request.block[axis];
  }
  expect(threads <= kernel.max_workgroup,
         format("kernel '%s': %llu work-items per block, it allows %u", name,
                static_cast<unsigned long long>(threads), kernel.max_workgroup),
         hipErrorInvalidConfiguration);
  expect(uint64_t{kernel.lds_bytes} + request.dynamic_lds <= kLdsBytes,
         format("kernel '%s': %u + %u bytes of LDS, the limit is %u", name, kernel.lds_bytes,
                request.dynamic_lds, kLdsBytes));
}

void run(const Function& function, const LaunchRequest& request, hipError_t planted) {
  if (planted != hipSuccess)
    throw HipError(planted, "kernel '" + request.kernel + "': failed on purpose: ZYFA_EMULATED_FAULT");
  const std::shared_lock use(device().in_use);
  const LaunchSummary summary = launch(*function.module, device().memory, request);
  if (summary.findings.empty()) return;
  const std::string text = describe(summary.findings);
  const bool wrong = std::any_of(summary.findings.begin(), summary.findings.end(),
                                 [](const Finding& f) { return f.severity == Severity::error; });
  if (wrong) throw HipError(hipErrorLaunchFailure, "kernel '" + request.kernel + "' is wrong:\n" + text);
  report().warn(text);
}

}  // namespace

// ---- modules ---------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
  std::vector<uint8_t> file;
  const hipError_t code = enter("hipModuleLoad", [&] {
    expect(path != nullptr, "expected a path, got a null pointer");
    file = read_file(path);
    expect(!file.empty(), std::string("'") + path + "' is empty", hipErrorInvalidImage);
    return hipSuccess;
  });
  return code != hipSuccess ? code : load_image("hipModuleLoad", module, file.data(), file.size());
}

ZYFA_HIP_EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return load_image("hipModuleLoadData", module, image);
}

// The options steer a compiler; a code object is compiled.
ZYFA_HIP_EXPORT hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned count,
                                               void* options, void** values) {
  (void)count, (void)options, (void)values;
  return load_image("hipModuleLoadDataEx", module, image);
}

// Launches that are under way keep the code.
ZYFA_HIP_EXPORT hipError_t hipModuleUnload(hipModule_t handle) {
  return enter("hipModuleUnload", [&] {
    const std::lock_guard guard(device().lock);
    const auto module = module_of(handle);
    auto& functions = device().functions;
    for (auto at = functions.begin(); at != functions.end();)
      at = at->second->module == module ? functions.erase(at) : std::next(at);
    device().modules.erase(handle);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t handle,
                                                const char* name) {
  return enter("hipModuleGetFunction", [&] {
    expect(function != nullptr && name != nullptr,
           "expected a place for the handle and a name, got a null pointer");
    *function = nullptr;
    reach(FaultPoint::function);
    const std::lock_guard guard(device().lock);
    const auto module = module_of(handle);
    const auto& kernels = module->object.kernels;
    const auto kernel =
        std::find_if(kernels.begin(), kernels.end(), [&](const Kernel& k) { return k.name == name; });
    expect(kernel != kernels.end(), std::string("the code object has no kernel '") + name + "'",
           hipErrorNotFound);
    for (const auto& [known, one] : device().functions)
      if (one->kernel == &*kernel) return *function = known, hipSuccess;
    auto made = std::make_shared<Function>(Function{module, &*kernel});
    *function = reinterpret_cast<hipFunction_t>(made.get());
    device().functions[*function] = std::move(made);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* bytes, hipModule_t handle,
                                              const char* name) {
  return enter("hipModuleGetGlobal", [&] {
    expect(name != nullptr, "expected a name, got a null pointer");
    const std::lock_guard guard(device().lock);
    const auto module = module_of(handle);
    for (const Symbol& symbol : module->object.symbols) {
      if (symbol.function || symbol.name != name) continue;
      if (pointer != nullptr) *pointer = reinterpret_cast<void*>(module->load_address + symbol.address);
      if (bytes != nullptr) *bytes = symbol.bytes;
      return hipSuccess;
    }
    refuse(hipErrorNotFound, std::string("the code object has no variable '") + name + "'");
  });
}

// ---- kernels ---------------------------------------------------------------------------------------------

ZYFA_HIP_EXPORT hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute,
                                               hipFunction_t handle) {
  return enter("hipFuncGetAttribute", [&] {
    expect(value != nullptr, "expected a place for the answer, got a null pointer");
    const std::lock_guard guard(device().lock);
    const Kernel& kernel = *function_of(handle)->kernel;
    const auto lds = static_cast<int>(kernel.lds_bytes);
    switch (attribute) {
      case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(kernel.max_workgroup);
        break;
      case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = lds;
        break;
      case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = 0;
        break;
      case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(kernel.private_bytes);
        break;
      case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = static_cast<int>(kernel.vgprs);
        break;
      case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = 95;
        break;
      case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = static_cast<int>(kLdsBytes) - lds;
        break;
      default:
        refuse(hipErrorInvalidValue, format("attribute %d: the emulated device does not have it", attribute));
    }
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                              hipFunction_t handle,
                                                                              int threads,
                                                                              size_t dynamic_lds) {
  return enter("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
    expect(blocks != nullptr, "expected a place for the answer, got a null pointer");
    const std::lock_guard guard(device().lock);
    const Kernel& kernel = *function_of(handle)->kernel;
    expect(threads > 0 && threads <= static_cast<int>(kernel.max_workgroup),
           format("block: expected 1..%u work-items, got %d", kernel.max_workgroup, threads));
    const int waves = kSimds * std::min(kWavesPerSimd, kVgprsPerSimd / static_cast<int>(kernel.vgprs));
    const int waves_per_block = (threads + 63) / 64;
    const uint64_t lds = (kernel.lds_bytes + dynamic_lds + kLdsGranule - 1) / kLdsGranule * kLdsGranule;
    *blocks = waves / waves_per_block;
    if (lds > 0)
      *blocks = static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(*blocks), kLdsBytes / lds));
    return hipSuccess;
  });
}

namespace {

// `grid` counts blocks; `last` is the size of the last block along an axis, 0 where it is whole.
void submit_launch(hipFunction_t handle, const unsigned (&grid)[3], const unsigned (&block)[3],
                   const unsigned (&last)[3], unsigned dynamic_lds, hipStream_t stream, void** parameters,
                   void** extra) {
  reach(FaultPoint::launch);
  const std::lock_guard guard(device().lock);
  const auto function = function_of(handle);
  const auto target = device().stream(stream);
  const Kernel& kernel = *function->kernel;
  expect(parameters == nullptr || extra == nullptr, "arguments: expected kernelParams or extra, got both");
  LaunchRequest request;
  request.kernel = kernel.name;
  std::copy_n(grid, 3, request.grid);
  std::copy_n(block, 3, request.block);
  std::copy_n(last, 3, request.last);
  request.dynamic_lds = dynamic_lds;
  request.options.byte_rounding = doubts().byte_rounding;
  request.options.threads = std::max(1u, std::thread::hardware_concurrency());
  check_sizes(kernel, request);
  if (extra != nullptr)
    request.kernarg = unpack(kernel, extra);
  else if (explicit_bytes(kernel) > 0)
    expect(parameters != nullptr, format("kernel '%s': takes arguments, got none", kernel.name.c_str())),
        request.kernarg = pack(kernel, parameters);
  const hipError_t planted = faults().reach(FaultPoint::run);
  device().submit(target, [function, request, planted] { run(*function, request, planted); });
}

}  // namespace

ZYFA_HIP_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t handle, unsigned grid_x, unsigned grid_y,
                                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                                 unsigned block_z, unsigned dynamic_lds, hipStream_t stream,
                                                 void** parameters, void** extra) {
  return enter("hipModuleLaunchKernel", [&] {
    submit_launch(handle, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {0, 0, 0}, dynamic_lds,
                  stream, parameters, extra);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);

// A C++ function in HIP, whose sizes count work-items. Blocks of several sizes in one launch are not
// emulated.
__attribute__((visibility("default"))) hipError_t hipExtModuleLaunchKernel(
    hipFunction_t handle, uint32_t items_x, uint32_t items_y, uint32_t items_z, uint32_t block_x,
    uint32_t block_y, uint32_t block_z, size_t dynamic_lds, hipStream_t stream, void** parameters,
    void** extra, hipEvent_t start, hipEvent_t stop, uint32_t flags) {
  if (start != nullptr)
    if (const hipError_t code = hipEventRecord(start, stream); code != hipSuccess) return code;
  const hipError_t code = enter("hipExtModuleLaunchKernel", [&] {
    expect(flags == 0, format("flags: expected 0, got %u", flags));
    const unsigned items[] = {items_x, items_y, items_z}, block[] = {block_x, block_y, block_z};
    unsigned grid[3], last[3];
    for (int axis = 0; axis < 3; ++axis) {
      expect(block[axis] != 0, format("block[%d] is 0", axis), hipErrorInvalidConfiguration);
      last[axis] = items[axis] % block[axis];
      grid[axis] = items[axis] / block[axis] + (last[axis] != 0 ? 1 : 0);
    }
    submit_launch(handle, grid, block, last, static_cast<unsigned>(dynamic_lds), stream, parameters, extra);
    return hipSuccess;
  });
  if (code != hipSuccess || stop == nullptr) return code;
  return hipEventRecord(stop, stream);
}
