// What everything of the plugin execution provider shares: its name, ONNX Runtime's table for providers, and
// how a C struct of callbacks is made from a class.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <string>

#include "../ops/api.hpp"

namespace zyfa::ep {

constexpr const char* kProviderName = "ZyfaExecutionProvider";
constexpr const char* kVendor = "zyfa_ort";
constexpr const char* kVersion = "0.1.0";
constexpr uint32_t kAmd = 0x1002;
// Providers bring their own copy kernels from here on; before, ONNX Runtime hands host pointers to device
// kernels.
constexpr uint32_t kOldestApi = 24;

// Of the running ONNX Runtime; null before 1.24.
const OrtEpApi* api();

// Runs body in a callback that returns no status: what is thrown is given to `otherwise`.
template <typename Body, typename Otherwise>
auto unthrown(const Body& body, const Otherwise& otherwise) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return otherwise(error.what());
  } catch (...) {
    return otherwise("unknown exception");
  }
}

}  // namespace zyfa::ep
