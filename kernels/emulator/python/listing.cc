#include "listing.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "code_object.hpp"
#include "decode.hpp"
#include "errors.hpp"

namespace nb = nanobind;
using namespace zyfa::emulator;

namespace {

// ELF address behind the kernel's last instruction: its symbol's size says; without one, the end of its
// segment.
uint64_t end_of(const CodeObject& object, const Kernel& kernel, const Segment& segment) {
  for (const Symbol& symbol : object.symbols)
    if (symbol.function && symbol.address == kernel.entry && symbol.bytes > 0)
      return kernel.entry + symbol.bytes;
  return segment.address + segment.file_bytes;
}

bool is_branch(const Instruction& one) {
  return std::strncmp(one.info->name, "s_branch", 8) == 0 ||
         std::strncmp(one.info->name, "s_cbranch", 9) == 0;
}

// (offset from the entry, dwords, text, offset of the branch target or None) of each instruction.
nb::list listing(const nb::bytes& file, const std::string& name) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.c_str());
  const CodeObject object = CodeObject::parse({bytes, bytes + file.size()});
  const Kernel& kernel = object.kernel(name);
  nb::list made;
  for (const Segment& segment : object.segments) {
    const uint64_t last = segment.address + segment.file_bytes;
    if (!segment.executable || kernel.entry < segment.address || kernel.entry >= last) continue;
    const uint64_t end = std::min(end_of(object, kernel, segment), last);
    for (uint64_t at = kernel.entry; at + 4 <= end;) {
      const uint8_t* code = object.file.data() + segment.file_offset + (at - segment.address);
      std::string text;
      uint64_t size = 4;
      nb::object target = nb::none();
      try {
        const Instruction one = decode(code, end - at, at);
        text = disassemble(one);
        size = one.bytes;
        if (is_branch(one))
          target = nb::cast(static_cast<int64_t>(one.next() + int64_t{one.imm} * 4 - kernel.entry));
      } catch (const DecodeError& error) {
        text = std::string("; ") + error.what();
      }
      std::vector<uint32_t> dwords(size / 4);
      std::memcpy(dwords.data(), code, size);
      made.append(nb::make_tuple(at - kernel.entry, dwords, text, target));
      at += size;
    }
  }
  return made;
}

}  // namespace

void bind_listing(nb::module_& m) { m.def("listing", &listing, nb::arg("file"), nb::arg("kernel")); }
