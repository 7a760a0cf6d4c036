#include "runtime_abi.h"

#include <algorithm>
#include <cstdio>

#include "../error.hpp"
#include "code_objects.hpp"
#include "run.hpp"
#include "select_problem.hpp"

namespace {

using namespace zyfa;
using namespace zyfa::hip;

template <typename Body>
int guarded(char* text, int64_t size, const Body& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(text, static_cast<size_t>(size), "%s", error.what());
    return -1;
  }
}

}  // namespace

#define ZYFA_EXPORT extern "C" __attribute__((visibility("default")))

ZYFA_EXPORT int zyfa_pool_allocate(uint64_t bytes, int on_stream, void* stream, void** pointer, char* text,
                                   int64_t size) {
  return guarded(text, size, [&] {
    *pointer = Device::of(0).pool.allocate(bytes, on_stream != 0 ? std::optional(stream) : std::nullopt);
  });
}

ZYFA_EXPORT void zyfa_pool_release(void* pointer) { Device::of(0).pool.release(pointer); }
ZYFA_EXPORT void zyfa_pool_touch(void* stream) { Device::of(0).pool.touch(stream); }
ZYFA_EXPORT void zyfa_pool_finished(void* stream) { Device::of(0).pool.finished(stream); }

ZYFA_EXPORT int zyfa_pool_trim(char* text, int64_t size) {
  return guarded(text, size, [] { Device::of(0).pool.trim(); });
}

ZYFA_EXPORT int zyfa_run(const zyfa_select_problem* problem, const void* const* pointers, void* stream,
                         char* text, int64_t size) {
  return guarded(text, size, [&] {
    Pointers given{};
    std::copy(pointers, pointers + given.size(), given.begin());
    run(select(problem_of(*problem), request_of(*problem)), given, Device::of(0), stream);
  });
}

ZYFA_EXPORT int zyfa_device(int ordinal, char* text, int64_t size) {
  return guarded(text, size, [&] {
    const Device& device = Device::of(ordinal);
    std::snprintf(text, static_cast<size_t>(size), "%s|%s", device.name.c_str(), device.architecture.c_str());
  });
}

ZYFA_EXPORT int64_t zyfa_code_object(const char* name, char* text, int64_t size) {
  int64_t length = -1;
  guarded(text, size, [&] { length = static_cast<int64_t>(read_code_object(name).size()); });
  return length;
}
