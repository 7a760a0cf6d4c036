// MemcpyFromHost and MemcpyToHost, which ONNX Runtime puts between nodes on the CPU and ours.
#pragma once

#include "names.hpp"

namespace zyfa::ep {

// Made once, never released. Throws Error.
const OrtKernelRegistry* kernel_registry();

}  // namespace zyfa::ep
