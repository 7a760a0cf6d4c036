// What ONNX Runtime makes providers, devices and allocators with.
#pragma once

#include "names.hpp"

namespace zyfa::ep {

// Lives until the process ends. Throws Error without HIP.
OrtEpFactory* factory();

}  // namespace zyfa::ep
