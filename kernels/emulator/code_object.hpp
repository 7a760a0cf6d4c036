// A gfx950 code object: ELF segments, kernel descriptors and metadata, checked before anything is believed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zyfa::emulator {

// Of a compute unit; one workgroup may own all of it.
constexpr uint32_t kLdsBytes = 163840;

struct KernelArgument {
  std::string name, value_kind;
  uint32_t offset = 0, size = 0;
};

struct Kernel {
  std::string name, symbol;
  uint64_t entry = 0;  // ELF address of the first instruction
  uint32_t lds_bytes = 0, private_bytes = 0, kernarg_bytes = 0, kernarg_align = 8;
  uint32_t max_workgroup = 1024;
  uint32_t vgprs = 0, accum_offset = 0;  // allocated in total; where the accumulation registers begin
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0, preload = 0;  // kernel_code_properties, kernarg preload
  std::vector<KernelArgument> arguments;
};

struct Segment {
  uint64_t address = 0, file_offset = 0, file_bytes = 0, memory_bytes = 0;
  bool executable = false;
};

struct Relocation {
  uint64_t address = 0;  // where, ELF address
  uint64_t value = 0;    // ELF address to write (the load address is added)
  uint32_t bytes = 8;
};

struct Symbol {
  std::string name;
  uint64_t address = 0, bytes = 0;
  bool function = false;
};

struct CodeObject {
  std::vector<uint8_t> file;
  std::vector<Segment> segments;
  std::vector<Kernel> kernels;
  std::vector<Relocation> relocations;
  std::vector<Symbol> symbols;  // sorted by address
  uint64_t image_bytes = 0;     // end of the last segment

  // Throws CodeObjectError: not ELF, not gfx950, truncated, contradicting metadata.
  static CodeObject parse(std::vector<uint8_t> file);
  // Throws CodeObjectError that lists the kernels there are.
  const Kernel& kernel(const std::string& name) const;
  // The function that contains or precedes this ELF address: "name+0x40".
  std::string nearest_symbol(uint64_t address) const;
};

}  // namespace zyfa::emulator
