#include "image.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "errors.hpp"
#include "stream.hpp"

namespace zyfa::emulator::hip {
namespace {

constexpr char kElfMagic[] =
    "\x7f"
    "ELF";
constexpr char kBundleMagic[] = "__CLANG_OFFLOAD_BUNDLE__";
constexpr uint16_t kMachineAmdGpu = 224;
constexpr uint32_t kMachMask = 0xff, kMachGfx950 = 0x4f, kNoBits = 8;
// Longer code objects do not exist; headers that say so are garbage.
constexpr uint64_t kLongest = uint64_t{1} << 32;

struct Image {
  const uint8_t* data;
  uint64_t bytes;

  const uint8_t* at(uint64_t offset, uint64_t size) const {
    const uint64_t end = std::min(bytes, kLongest);
    if (offset > end || size > end - offset) throw HipError(hipErrorInvalidImage, "code object: truncated");
    return data + offset;
  }
  template <typename T>
  T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, at(offset, sizeof value), sizeof value);
    return value;
  }
  bool begins_with(const char* magic) const {
    return bytes >= std::strlen(magic) && std::memcmp(data, magic, std::strlen(magic)) == 0;
  }
  Image from(uint64_t offset) const {
    return {at(offset, 0), bytes == kUnknownBytes ? kUnknownBytes : bytes - offset};
  }
};

uint64_t elf_bytes(const Image& elf) {
  const uint64_t programs = elf.read<uint64_t>(32), sections = elf.read<uint64_t>(40);
  const uint64_t program_count = elf.read<uint16_t>(56), section_count = elf.read<uint16_t>(60);
  uint64_t end = 64;
  const auto extend = [&](uint64_t offset, uint64_t size) {
    if (offset > kLongest || size > kLongest)
      throw HipError(hipErrorInvalidImage, "code object: sizes make no sense");
    end = std::max(end, offset + size);
  };
  for (uint64_t i = 0; i < program_count; ++i)
    extend(elf.read<uint64_t>(programs + i * 56 + 8), elf.read<uint64_t>(programs + i * 56 + 32));
  for (uint64_t i = 0; i < section_count; ++i)
    if (elf.read<uint32_t>(sections + i * 64 + 4) != kNoBits)
      extend(elf.read<uint64_t>(sections + i * 64 + 24), elf.read<uint64_t>(sections + i * 64 + 32));
  extend(programs, program_count * 56);
  extend(sections, section_count * 64);
  return end;
}

Image member_for_gfx950(const Image& bundle) {
  const auto count = bundle.read<uint64_t>(24);
  uint64_t entry = 32;
  std::string seen;
  for (uint64_t i = 0; i < count; ++i) {
    const auto offset = bundle.read<uint64_t>(entry), id_bytes = bundle.read<uint64_t>(entry + 16);
    const std::string id(reinterpret_cast<const char*>(bundle.at(entry + 24, id_bytes)), id_bytes);
    if (id.find("gfx950") != std::string::npos) return bundle.from(offset);
    seen += " " + id;
    entry += 24 + id_bytes;
  }
  throw HipError(hipErrorNoBinaryForGpu, "code object: the bundle has none for gfx950, only:" + seen);
}

}  // namespace

std::vector<uint8_t> code_object_at(const void* image, uint64_t bytes) {
  Image elf{static_cast<const uint8_t*>(image), bytes};
  if (elf.begins_with(kBundleMagic)) elf = member_for_gfx950(elf);
  if (!elf.begins_with(kElfMagic))
    throw HipError(hipErrorInvalidImage,
                   "code object: expected an ELF file or an uncompressed offload bundle");
  if (elf.read<uint8_t>(4) != 2 || elf.read<uint16_t>(18) != kMachineAmdGpu)
    throw HipError(hipErrorInvalidImage, "code object: expected a 64-bit AMDGPU ELF file");
  if (const uint32_t mach = elf.read<uint32_t>(48) & kMachMask; mach != kMachGfx950)
    throw HipError(hipErrorNoBinaryForGpu,
                   format("code object: expected gfx950 (machine 0x4f), got machine 0x%x", mach));
  const uint64_t size = elf_bytes(elf);
  const uint8_t* data = elf.at(0, size);
  return {data, data + size};
}

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw HipError(hipErrorFileNotFound, "hipModuleLoad: cannot read '" + path + "'");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace zyfa::emulator::hip
