// Does what a choice says on a stream: workspace from the device's pool, pointers into the packed arguments,
// launches. Nothing waits, and after a first run with the same sizes nothing is allocated or loaded: a stream
// may be captured. The workspace of a capture is that capture's for good.
#pragma once

#include <array>

#include "device.hpp"
#include "select.hpp"

namespace zyfa::hip {

// Device addresses by Buffer; null where a problem has no such tensor, or an empty one. workspace and status
// are filled in by `run`.
using Pointers = std::array<const void*, sizeof(kBufferNames) / sizeof(*kBufferNames)>;

inline const void*& at(Pointers& pointers, Buffer buffer) { return pointers[static_cast<size_t>(buffer)]; }

// Throws Error when HIP refuses a launch. What fails later, fails the stream.
void run(const Choice& choice, Pointers pointers, Device& device, StreamHandle stream);

}  // namespace zyfa::hip
