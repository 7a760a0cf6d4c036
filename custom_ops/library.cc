// The entry points of libzyfa_ort_ops.so. Everything that ONNX Runtime keeps pointers to lives here until the
// process ends: sessions may outlive the SessionOptions that registered the library.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "ep/factory.hpp"
#include "ep/kernels.hpp"
#include "error.hpp"
#include "ops/ops.hpp"

namespace zyfa {
namespace {

constexpr uint32_t kOldestApi =
    18;  // ParallelFor and shape inference came with 17, the last OrtCustomOp fields with 18

// "1.27.1" -> 27; 0 when the text is not of that form. ONNX Runtime's API version is its minor version.
uint32_t minor_version(const char* version) {
  const char* dot = version == nullptr ? nullptr : std::strchr(version, '.');
  return dot == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(dot + 1, nullptr, 10));
}

class Library {
 public:
  // Throws Error when the runtime is too old.
  static Library& of(const OrtApiBase& base) {
    static Library& library = *new Library(base);  // never destroyed: sessions may still be alive at exit
    return library;
  }
  OrtCustomOpDomain* domain() const { return domain_; }

 private:
  explicit Library(const OrtApiBase& base) {
    ops::runtime_minor = minor_version(base.GetVersionString());
    ops::api_version = std::min<uint32_t>(ops::runtime_minor, ORT_API_VERSION);
    ops::api = base.GetApi(ops::api_version);
    ops::check(ops::api->CreateCustomOpDomain(ops::kDomain, &domain_));
    ops::add_attention(table_, ops::api_version);
    ops::add_quantize_fp8(table_, ops::api_version);
    ops::add_hadamard(table_, ops::api_version);
    ep::add_gpu_kernels(table_, ops::api_version);
    for (const auto& op : table_.ops()) ops::check(ops::api->CustomOpDomain_Add(domain_, op.get()));
  }

  OrtCustomOpDomain* domain_ = nullptr;
  ops::OpTable table_;
};

// The status functions exist in every API version since the first, so an old runtime can be told why it is
// refused.
OrtStatus* refuse(const OrtApiBase& base, const std::string& who, uint32_t oldest_api) noexcept {
  const OrtApi* oldest = base.GetApi(1);
  if (oldest == nullptr) std::abort();
  const std::string message = who + ": needs ONNX Runtime 1." + std::to_string(oldest_api) +
                              " or later, this is " + base.GetVersionString() + "; upgrade onnxruntime";
  return oldest->CreateStatus(ORT_FAIL, message.c_str());
}

bool is_too_old(const OrtApiBase& base, uint32_t oldest_api) {
  const uint32_t version = minor_version(base.GetVersionString());
  return version < oldest_api || base.GetApi(std::min<uint32_t>(version, ORT_API_VERSION)) == nullptr;
}

}  // namespace
}  // namespace zyfa

#define ZYFA_ENTRY_POINT extern "C" __attribute__((visibility("default"))) OrtStatus* ORT_API_CALL

ZYFA_ENTRY_POINT RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  if (zyfa::is_too_old(*base, zyfa::kOldestApi)) return zyfa::refuse(*base, "zyfa_ort", zyfa::kOldestApi);
  return zyfa::ops::guarded("zyfa_ort", [&] {
    const zyfa::Library& library = zyfa::Library::of(*base);
    zyfa::ops::check(zyfa::ops::api->AddCustomOpDomain(options, library.domain()));
  });
}

ZYFA_ENTRY_POINT CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*,
                                   OrtEpFactory** factories, size_t most, size_t* number) {
  using namespace zyfa;
  *number = 0;
  if (is_too_old(*base, ep::kOldestApi)) return refuse(*base, ep::kProviderName, ep::kOldestApi);
  return ops::guarded(ep::kProviderName, [&] {
    Library::of(*base);
    if (most == 0) fail("expected room for a factory, got none");
    factories[0] = ep::factory();
    *number = 1;
  });
}

// "Allocation failed." is all that ONNX Runtime says of an allocator. Copies the reason, cut to what fits,
// and returns the bytes that it needs with its end; an empty text when no memory was refused.
extern "C" __attribute__((visibility("default"))) size_t zyfa_last_refusal(char* text, size_t bytes) {
  return zyfa::ep::unthrown(
      [&] {
        const std::string reason =
            zyfa::ops::why_no_memory != nullptr ? zyfa::ops::why_no_memory.load()() : std::string();
        if (bytes != 0) text[reason.copy(text, bytes - 1)] = '\0';
        return reason.size() + 1;
      },
      [](const char*) { return size_t{0}; });
}

// The factory stays: devices and sessions of another registration may still use it.
ZYFA_ENTRY_POINT ReleaseEpFactory(OrtEpFactory*) { return nullptr; }
