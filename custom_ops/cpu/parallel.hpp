// How the host runs independent pieces of work. The ops give ONNX Runtime's pool, tests a plain loop.
#pragma once

#include <cstdint>
#include <functional>

namespace zyfa::cpu {

// Calls body(0) ... body(count - 1), each once, in any order and on any thread; returns when all are done and
// rethrows the first exception.
using ParallelFor = std::function<void(int64_t count, const std::function<void(int64_t)>& body)>;

}  // namespace zyfa::cpu
