#include "properties.hpp"

#include <algorithm>
#include <cstring>

#include "device.hpp"

namespace zyfa::emulator::hip {
namespace {

constexpr int kClock = 2400000;  // kHz
constexpr int kBusWidth = 8192;
constexpr int kL2Bytes = 4 << 20;  // of each of the 8 dies
constexpr int kThreadsPerUnit = kSimds * kWavesPerSimd * 64;
constexpr int kRegistersPerUnit = kVgprsPerSimd * kSimds * 64, kRegistersPerBlock = 65536;
constexpr int kConstantBytes = 0x7fffffff;
// hipDeviceArch_t: atomics, doubles, votes, shuffles and 3-D grids; no surfaces, no dynamic parallelism.
constexpr uint32_t kFeatures = 0x87ff;

struct AttributeRow {
  int id, value;
};

constexpr AttributeRow kAttributes[] = {
    {0, 1},                    // EccEnabled
    {2, 8},                    // AsyncEngineCount
    {3, 1},                    // CanMapHostMemory
    {5, kClock},               // ClockRate
    {6, 0},                    // ComputeMode
    {8, 1},                    // ConcurrentKernels
    {10, 0},                   // CooperativeLaunch
    {11, 0},                   // CooperativeMultiDeviceLaunch
    {16, 0},                   // Integrated
    {17, 0},                   // IsMultiGpuBoard
    {18, 0},                   // KernelExecTimeout
    {19, kL2Bytes},            // L2CacheSize
    {23, 9},                   // ComputeCapabilityMajor
    {24, 0},                   // ManagedMemory
    {25, 32},                  // MaxBlocksPerMultiProcessor
    {26, kMaxThreads},         // MaxBlockDimX
    {27, kMaxThreads},         // MaxBlockDimY
    {28, kMaxThreads},         // MaxBlockDimZ
    {29, kMaxGrid},            // MaxGridDimX
    {30, kMaxGridYz},          // MaxGridDimY
    {31, kMaxGridYz},          // MaxGridDimZ
    {56, kMaxThreads},         // MaxThreadsPerBlock
    {57, kThreadsPerUnit},     // MaxThreadsPerMultiProcessor
    {59, kBusWidth},           // MemoryBusWidth
    {61, 5},                   // ComputeCapabilityMinor
    {63, kUnits},              // MultiprocessorCount
    {65, 0},                   // PageableMemoryAccess
    {67, 0},                   // PciBusId
    {68, 0},                   // PciDeviceId
    {69, 0},                   // PciDomainId
    {71, kRegistersPerBlock},  // MaxRegistersPerBlock
    {72, kRegistersPerUnit},   // MaxRegistersPerMultiprocessor
    {74, kLdsBytes},           // MaxSharedMemoryPerBlock
    {75, kLdsBytes},           // SharedMemPerBlockOptin
    {76, kLdsBytes},           // SharedMemPerMultiprocessor
    {78, 0},                   // StreamPrioritiesSupported
    {83, kConstantBytes},      // TotalConstantMemory
    {85, 1},                   // UnifiedAddressing
    {87, 64},                  // WarpSize
    {88, 0},                   // MemoryPoolsSupported
    {89, 0},                   // VirtualMemoryManagementSupported
    {90, 1},                   // HostRegisterSupported
    {10002, kLdsBytes},        // MaxSharedMemoryPerMultiprocessor
    {10011, 0},                // IsLargeBar
    {10012, 0},                // AsicRevision
    {10014, 0},                // ImageSupport
    {10015, kUnits},           // PhysicalMultiProcessorCount
    {10018, 8},                // NumberOfXccs
    {10019, kVgprsPerSimd},    // MaxAvailableVgprsPerThread
};

// The fields that both layouts have.
template <typename Properties>
void describe_common(Properties& p) {
  p = {};
  std::memcpy(p.name, kDeviceName, sizeof kDeviceName);
  std::memcpy(p.gcnArchName, kArchitecture, sizeof kArchitecture);
  p.totalGlobalMem = device().bytes_total();
  p.sharedMemPerBlock = p.maxSharedMemoryPerMultiProcessor = kLdsBytes;
  p.regsPerBlock = kRegistersPerBlock;
  p.warpSize = 64;
  p.maxThreadsPerBlock = kMaxThreads;
  std::fill_n(p.maxThreadsDim, 3, kMaxThreads);
  p.maxGridSize[0] = kMaxGrid;
  p.maxGridSize[1] = p.maxGridSize[2] = kMaxGridYz;
  p.clockRate = kClock;
  p.memoryBusWidth = kBusWidth;
  p.totalConstMem = kConstantBytes;
  p.major = 9;
  p.minor = 5;
  p.multiProcessorCount = kUnits;
  p.l2CacheSize = kL2Bytes;
  p.maxThreadsPerMultiProcessor = kThreadsPerUnit;
  p.arch = kFeatures;
  p.concurrentKernels = p.canMapHostMemory = p.ECCEnabled = 1;
  p.memPitch = kConstantBytes;
}

}  // namespace

void describe(hipDeviceProp_tR0600& p) {
  describe_common(p);
  p.asyncEngineCount = 8;
  p.unifiedAddressing = p.hostRegisterSupported = 1;
  p.sharedMemPerMultiprocessor = p.sharedMemPerBlockOptin = kLdsBytes;
  p.regsPerMultiprocessor = kRegistersPerUnit;
  p.maxBlocksPerMultiProcessor = 32;
}

void describe(hipDeviceProp_tR0000& p) {
  describe_common(p);
  p.gcnArch = 950;
}

bool attribute(int id, int& value) {
  for (const AttributeRow& row : kAttributes)
    if (row.id == id) {
      value = row.value;
      return true;
    }
  return false;
}

}  // namespace zyfa::emulator::hip
