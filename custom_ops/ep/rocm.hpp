// ONNX Runtime's own ROCm provider (up to 1.22) as host of our kernels: it has memory and streams, and asks
// for no plugin API.
#pragma once

#include "target.hpp"

namespace zyfa::ep {

constexpr const char* kRocmProvider = "ROCMExecutionProvider";

// Whether the running ONNX Runtime was built with it.
bool has_rocm_provider();

// The device of a node's provider. Throws Error without HIP.
Target rocm_target(const OrtKernelInfo* info);

}  // namespace zyfa::ep
