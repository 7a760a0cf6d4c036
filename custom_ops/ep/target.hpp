// Where a node runs on the GPU, and how.
#pragma once

#include <memory>

#include "../hip/device.hpp"
#include "options.hpp"

namespace zyfa::ep {

struct Target {
  hip::Device& device;
  Options options;
  std::shared_ptr<const void> lease = nullptr;  // of a host that gives memory back when nobody holds it
};

}  // namespace zyfa::ep
