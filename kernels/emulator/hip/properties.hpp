// What the emulated device says about itself.
#pragma once

#include "abi.hpp"
#include "code_object.hpp"

namespace zyfa::emulator::hip {

constexpr char kDeviceName[] = "emulated gfx950 (MI355X)";
constexpr char kArchitecture[] = "gfx950:sramecc+:xnack-";
constexpr int kUnits = 256, kLdsGranule = 1280, kSimds = 4, kWavesPerSimd = 8, kVgprsPerSimd = 512;
constexpr int kMaxThreads = 1024, kMaxGrid = 0x7fffffff, kMaxGridYz = 65536;

void describe(hipDeviceProp_tR0600& properties);
void describe(hipDeviceProp_tR0000& properties);
// False when the attribute is none of those the device has.
bool attribute(int id, int& value);

}  // namespace zyfa::emulator::hip
