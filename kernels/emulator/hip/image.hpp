// Code objects as HIP takes them: an ELF file for gfx950, or a bundle that holds one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zyfa::emulator::hip {

constexpr uint64_t kUnknownBytes = UINT64_MAX;

// The bytes of the gfx950 ELF file. HIP's interface gives no length: then that of the headers is believed.
// Throws HipError: hipErrorInvalidImage, hipErrorNoBinaryForGpu.
std::vector<uint8_t> code_object_at(const void* image, uint64_t bytes = kUnknownBytes);
// The whole file. Throws hipErrorFileNotFound.
std::vector<uint8_t> read_file(const std::string& path);

}  // namespace zyfa::emulator::hip
