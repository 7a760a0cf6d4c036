#include "runtime.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "../error.hpp"

namespace zyfa::hip {
namespace {

constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6"};
constexpr size_t kReportLength = 400;

void* opened(std::string& path) {
  const char* chosen = std::getenv("ZYFA_HIP_LIBRARY");
  std::vector<std::string> candidates(std::begin(kLibraries), std::end(kLibraries));
  if (chosen != nullptr && *chosen != '\0') candidates = {chosen};
  // One that is loaded already, by MIGraphX or another provider: two runtimes do not share memory and
  // streams.
  for (const std::string& name : candidates) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
      path = name;
      return library;
    }
  }
  std::string tried, reason;
  for (const std::string& name : candidates) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      path = name;
      return library;
    }
    tried += (tried.empty() ? "" : ", ") + name;
    const char* error = dlerror();
    reason = error != nullptr ? error : "no reason given";
  }
  fail<DeviceError>("HIP: expected one of ", tried, ", none can be loaded (", reason,
                    "); install ROCm, or set ZYFA_HIP_LIBRARY to a HIP library");
}

void* symbol(void* library, const std::string& path, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr)
    fail<DeviceError>(path, ": has no ", name, "; expected the HIP library of ROCm 6 or 7");
  return found;
}

}  // namespace

const Runtime& Runtime::get() {
  static const Runtime& runtime = *new Runtime();  // never destroyed: streams may be alive at exit
  return runtime;
}

Runtime::Runtime() {
  void* library = opened(path_);
#define ZYFA_HIP_LOOK_UP(name, ...) \
  name = reinterpret_cast<decltype(name)>(symbol(library, path_, "hip" #name));
  ZYFA_HIP_FUNCTIONS(ZYFA_HIP_LOOK_UP)
#undef ZYFA_HIP_LOOK_UP
  error_name_ = reinterpret_cast<decltype(error_name_)>(symbol(library, path_, "hipGetErrorName"));
  error_string_ = reinterpret_cast<decltype(error_string_)>(symbol(library, path_, "hipGetErrorString"));
  last_report_ = reinterpret_cast<decltype(last_report_)>(dlsym(library, "zyfa_emulated_last_report"));
}

void Runtime::check(int code, const char* call, const std::string& what) const {
  if (code == 0) return;
  std::string report;
  if (emulated()) {
    report.resize(kReportLength);
    last_report_(report.data(), report.size());
    report.resize(std::char_traits<char>::length(report.c_str()));
    for (char& c : report)
      if (c == '\n') c = ' ';
    if (!report.empty()) report = ": " + report;
  }
  fail<DeviceError>(call, what.empty() ? "" : " of ", what, ": ", error_string_(code), " (",
                    error_name_(code), ")", report);
}

}  // namespace zyfa::hip
