#include "provider.hpp"

#include <cstring>
#include <vector>

#include "../error.hpp"
#include "../ops/op.hpp"
#include "claims.hpp"
#include "memcpy_kernels.hpp"
#include "stream.hpp"

namespace zyfa::ep {
namespace {

constexpr const char* kNoWait =
    "disable_synchronize_execution_providers";  // of a run, in ONNX Runtime's words

// Why the node has no GPU kernel; empty when it has one, or when that shows in the run.
std::string refusal(const OrtNode* node, const Provider& provider) {
  try {
    check_node(node, provider);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

Provider::Provider(hip::Device& on, const Options& given, const OrtLogger* logger)
    : OrtEp{}, Target{on, given}, logger_(logger) {
  ort_version_supported = ops::api_version;
  GetName = [](const OrtEp*) noexcept { return kProviderName; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
    return ops::guarded(kProviderName, [&] { static_cast<const Provider*>(self)->claim(graph, support); });
  };
  CreateSyncStreamForDevice = [](OrtEp* self, const OrtMemoryDevice*, OrtSyncStreamImpl** stream) noexcept {
    return ops::guarded(kProviderName,
                        [&] { *stream = new SyncStream(static_cast<const Provider*>(self)->device); });
  };
  GetKernelRegistry = [](OrtEp*, const OrtKernelRegistry** registry) noexcept {
    return ops::guarded(kProviderName, [&] { *registry = kernel_registry(); });
  };
  OnRunStart = [](OrtEp*, const OrtRunOptions* run) noexcept {
    return ops::guarded(kProviderName, [&] {
      const char* no_wait = ops::api->GetRunConfigEntry(run, kNoWait);
      this_run_waits = no_wait == nullptr || std::strcmp(no_wait, "1") != 0;
    });
  };
  IsConcurrentRunSupported = [](OrtEp*, bool* supported) noexcept -> OrtStatus* {
    *supported = true;
    return nullptr;
  };
}

// A refusal here would be logged and forgotten: without fallback the nodes are taken all the same, and their
// kernels refuse to be made.
void Provider::claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support) const {
  size_t count = 0;
  ops::check(ops::api->Graph_GetNumNodes(graph, &count));
  std::vector<const OrtNode*> nodes(count);
  ops::check(ops::api->Graph_GetNodes(graph, nodes.data(), count));
  size_t ours = 0, declined = 0;
  for (const OrtNode* node : nodes) {
    const char *domain = nullptr, *taken = nullptr, *name = nullptr, *op = nullptr;
    ops::check(ops::api->Node_GetDomain(node, &domain));
    if (domain == nullptr || std::strcmp(domain, ops::kDomain) != 0) continue;
    ops::check(ops::api->Node_GetEpName(node, &taken));
    if (taken != nullptr && *taken != '\0') continue;
    ++ours;
    const std::string reason = options.allow_fallback ? refusal(node, *this) : "";
    if (reason.empty()) {
      ops::check(api()->EpGraphSupportInfo_AddSingleNode(support, node));
      continue;
    }
    ops::check(ops::api->Node_GetName(node, &name));
    ops::check(ops::api->Node_GetOperatorType(node, &op));
    ++declined;
    warn(std::string(op) + " '" + name + "' runs on the CPU: " + reason);
  }
  if (declined != 0)
    warn(std::to_string(declined) + " of " + std::to_string(ours) + " nodes of " + ops::kDomain +
         " run on the CPU");
}

void Provider::warn(const std::string& text) const {
  ops::check(ops::api->Logger_LogMessage(logger_, ORT_LOGGING_LEVEL_WARNING,
                                         (kProviderName + (": " + text)).c_str(), ORT_FILE, __LINE__,
                                         __func__));
}

const Provider& provider_of(const OrtKernelInfo* info) {
  const OrtEp* ep = nullptr;
  ops::check(api()->KernelInfo_GetEp(info, &ep));
  if (ep == nullptr || std::strcmp(ep->GetName(ep), kProviderName) != 0)
    fail("expected a node of ", kProviderName, ", got one of ",
         ep == nullptr ? "another provider" : ep->GetName(ep));
  return *static_cast<const Provider*>(ep);
}

}  // namespace zyfa::ep
