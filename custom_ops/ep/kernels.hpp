// The operators of the library on the GPU, for each provider that the running ONNX Runtime can have.
#pragma once

#include "../ops/ops.hpp"

namespace zyfa::ep {

void add_gpu_kernels(ops::OpTable& table, uint32_t version);

}  // namespace zyfa::ep
