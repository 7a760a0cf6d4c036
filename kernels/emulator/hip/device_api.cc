// Entry points: start, devices, errors.
#include <utility>

#include "entry.hpp"
#include "properties.hpp"

using namespace zyfa::emulator::hip;

namespace {

constexpr int kVersion = 70000000;  // major * 10^7 + minor * 10^5 + patch

struct ErrorRow {
  hipError_t code;
  const char *name, *text;
};

constexpr ErrorRow kErrors[] = {
#define ZYFA_HIP_ERROR(name, number, text) {name, #name, text},
#include "errors.def"
#undef ZYFA_HIP_ERROR
};

const ErrorRow& row_of(hipError_t code) {
  static constexpr ErrorRow kUnrecognized = {hipErrorUnknown, "unrecognized error code", ""};
  for (const ErrorRow& row : kErrors)
    if (row.code == code) return row;
  return kUnrecognized;
}

void expect_device(int id) {
  expect(id == 0, "device: expected 0, the only one, got " + std::to_string(id), hipErrorInvalidDevice);
}

template <typename Properties>
hipError_t properties_of(const char* name, Properties* properties, int id) {
  return enter(name, [&] {
    expect(properties != nullptr, "expected a structure to fill, got a null pointer");
    expect_device(id);
    describe(*properties);
    return hipSuccess;
  });
}

template <typename Value>
hipError_t give(const char* name, Value* where, Value value) {
  return enter(name, [&] {
    expect(where != nullptr, "expected a place for the answer, got a null pointer");
    *where = value;
    return hipSuccess;
  });
}

}  // namespace

ZYFA_HIP_EXPORT hipError_t hipInit(unsigned flags) {
  return enter("hipInit", [&] {
    expect(flags == 0, "flags: expected 0");
    reach(FaultPoint::device);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  return give("hipRuntimeGetVersion", version, kVersion);
}
ZYFA_HIP_EXPORT hipError_t hipDriverGetVersion(int* version) {
  return give("hipDriverGetVersion", version, kVersion);
}

ZYFA_HIP_EXPORT hipError_t hipGetDeviceCount(int* count) {
  return enter("hipGetDeviceCount", [&] {
    expect(count != nullptr, "expected a place for the answer, got a null pointer");
    *count = 0;
    reach(FaultPoint::device);
    *count = 1;
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipSetDevice(int id) {
  return enter("hipSetDevice", [&] {
    expect_device(id);
    reach(FaultPoint::device);
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipGetDevice(int* id) { return give("hipGetDevice", id, 0); }

ZYFA_HIP_EXPORT hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int id) {
  return properties_of("hipGetDevicePropertiesR0600", properties, id);
}

ZYFA_HIP_EXPORT hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000* properties, int id) {
  return properties_of("hipGetDevicePropertiesR0000", properties, id);
}

ZYFA_HIP_EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int id) {
  return properties_of("hipGetDeviceProperties", properties, id);
}

ZYFA_HIP_EXPORT hipError_t hipDeviceGetAttribute(int* value, int id, int ordinal) {
  return enter("hipDeviceGetAttribute", [&] {
    expect(value != nullptr, "expected a place for the answer, got a null pointer");
    expect_device(ordinal);
    expect(attribute(id, *value),
           "attribute " + std::to_string(id) + ": the emulated device does not have it");
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipDeviceCanAccessPeer(int* can, int id, int peer) {
  return enter("hipDeviceCanAccessPeer", [&] {
    expect(can != nullptr, "expected a place for the answer, got a null pointer");
    expect_device(id);
    expect_device(peer);
    *can = 0;
    return hipSuccess;
  });
}

ZYFA_HIP_EXPORT hipError_t hipDeviceSynchronize() {
  return enter("hipDeviceSynchronize", [&] {
    {
      const std::lock_guard guard(device().lock);
      device().refuse_in_capture("hipDeviceSynchronize");
    }
    return device().synchronize();
  });
}

ZYFA_HIP_EXPORT hipError_t hipGetLastError() { return std::exchange(last_error, hipSuccess); }
ZYFA_HIP_EXPORT hipError_t hipPeekAtLastError() { return last_error; }
ZYFA_HIP_EXPORT const char* hipGetErrorName(hipError_t code) { return row_of(code).name; }
// What happened in detail is in zyfa_emulated_last_report.
ZYFA_HIP_EXPORT const char* hipGetErrorString(hipError_t code) {
  const ErrorRow& row = row_of(code);
  return *row.text != '\0' ? row.text : row.name;
}
