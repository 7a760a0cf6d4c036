#include "code_object.hpp"

#include <algorithm>
#include <cstring>

#include "errors.hpp"
#include "msgpack.hpp"

namespace zyfa::emulator {
namespace {

// ELF-64, little-endian: offsets of the fields that are read.
constexpr size_t kHeaderBytes = 64, kProgramHeaderBytes = 56, kSymbolBytes = 24, kRelaBytes = 24,
                 kDescriptorBytes = 64;
constexpr uint32_t kMachineAmdgpu = 224, kMachGfx950 = 0x4f;
constexpr uint32_t kLoad = 1, kDynamic = 2, kNote = 4, kExecutableFlag = 1;
constexpr uint32_t kMetadataNote = 32;
constexpr uint64_t kMaxImage = uint64_t{1}
                               << 30;  // no kernel's image comes near; guards against forged sizes
enum Dynamic : int64_t {
  kHash = 4,
  kStringTable = 5,
  kSymbolTable = 6,
  kRela = 7,
  kRelaSize = 8,
  kGnuHash = 0x6ffffef5
};
enum RelocationType : uint32_t { kAbs64 = 3, kRelative64 = 13 };

struct File {
  const std::vector<uint8_t>& bytes;

  template <typename T>
  T read(uint64_t at, const char* what) const {
    if (at > bytes.size() || sizeof(T) > bytes.size() - at)
      throw CodeObjectError(format("code object: %s at byte %llu lies outside the file of %zu bytes", what,
                                   static_cast<unsigned long long>(at), bytes.size()));
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
  }
};

// File offset of an ELF address that must be backed by the file.
uint64_t offset_of(const CodeObject& object, uint64_t address, uint64_t size, const char* what) {
  for (const Segment& s : object.segments)
    if (address >= s.address && address - s.address <= s.file_bytes &&
        size <= s.file_bytes - (address - s.address))
      return s.file_offset + (address - s.address);
  throw CodeObjectError(format("code object: %s at address 0x%llx lies in no loaded segment", what,
                               static_cast<unsigned long long>(address)));
}

void read_header(const File& file) {
  static const uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
  if (file.bytes.size() < kHeaderBytes || std::memcmp(file.bytes.data(), magic, 4) != 0)
    throw CodeObjectError("code object: not an ELF file");
  if (file.bytes[4] != 2 || file.bytes[5] != 1)
    throw CodeObjectError("code object: expected a 64-bit little-endian ELF file");
  if (const auto machine = file.read<uint16_t>(18, "machine"); machine != kMachineAmdgpu)
    throw CodeObjectError(
        format("code object: ELF machine %u, expected %u (AMD GPU)", machine, kMachineAmdgpu));
  if (const auto type = file.read<uint16_t>(16, "type"); type != 3)
    throw CodeObjectError(format("code object: ELF type %u, expected 3 (linked shared object)", type));
  if (const auto flags = file.read<uint32_t>(48, "flags"); (flags & 0xff) != kMachGfx950)
    throw CodeObjectError(
        format("code object: processor 0x%02x, expected 0x%02x (gfx950)", flags & 0xff, kMachGfx950));
}

struct Headers {
  uint64_t dynamic = 0, dynamic_bytes = 0;
  uint64_t note = 0, note_bytes = 0;
};

Headers read_segments(const File& file, CodeObject& object) {
  const auto table = file.read<uint64_t>(32, "program header offset");
  const auto entry_bytes = file.read<uint16_t>(54, "program header size");
  const auto count = file.read<uint16_t>(56, "program header count");
  if (count != 0 && entry_bytes != kProgramHeaderBytes)
    throw CodeObjectError(
        format("code object: program headers of %u bytes, expected %zu", entry_bytes, kProgramHeaderBytes));
  Headers found;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = table + i * kProgramHeaderBytes;
    const auto type = file.read<uint32_t>(at, "program header");
    const auto flags = file.read<uint32_t>(at + 4, "program header");
    const auto offset = file.read<uint64_t>(at + 8, "program header");
    const auto address = file.read<uint64_t>(at + 16, "program header");
    const auto file_bytes = file.read<uint64_t>(at + 32, "program header");
    const auto memory_bytes = file.read<uint64_t>(at + 40, "program header");
    if (type == kDynamic || type == kNote || type == kLoad)
      if (offset > file.bytes.size() || file_bytes > file.bytes.size() - offset)
        throw CodeObjectError(format("code object: segment %llu ends beyond the file (truncated?)",
                                     static_cast<unsigned long long>(i)));
    if (type == kDynamic) found.dynamic = offset, found.dynamic_bytes = file_bytes;
    if (type == kNote) found.note = offset, found.note_bytes = file_bytes;
    if (type != kLoad) continue;
    if (memory_bytes < file_bytes || address > kMaxImage || memory_bytes > kMaxImage)
      throw CodeObjectError(
          format("code object: segment %llu has an impossible size", static_cast<unsigned long long>(i)));
    object.segments.push_back({address, offset, file_bytes, memory_bytes, (flags & kExecutableFlag) != 0});
    object.image_bytes = std::max(object.image_bytes, address + memory_bytes);
  }
  std::vector<Segment> sorted = object.segments;
  std::sort(sorted.begin(), sorted.end(),
            [](const Segment& a, const Segment& b) { return a.address < b.address; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1].address + sorted[i - 1].memory_bytes > sorted[i].address)
      throw CodeObjectError("code object: segments overlap");
  if (object.segments.empty()) throw CodeObjectError("code object: no loadable segment");
  return found;
}

uint64_t symbol_count(const File& file, const CodeObject& object, uint64_t hash, uint64_t gnu_hash) {
  if (hash != 0)
    return file.read<uint32_t>(offset_of(object, hash, 8, "symbol hash table") + 4, "symbol count");
  if (gnu_hash == 0) return 0;
  const uint64_t at = offset_of(object, gnu_hash, 16, "symbol hash table");
  const auto buckets = file.read<uint32_t>(at, "hash buckets"),
             first = file.read<uint32_t>(at + 4, "first symbol");
  const auto bloom = file.read<uint32_t>(at + 8, "bloom words");
  const uint64_t bucket_table = at + 16 + uint64_t{bloom} * 8, chains = bucket_table + uint64_t{buckets} * 4;
  uint32_t last = 0;
  for (uint64_t i = 0; i < buckets; ++i)
    last = std::max(last, file.read<uint32_t>(bucket_table + i * 4, "hash bucket"));
  if (last < first) return first;
  while ((file.read<uint32_t>(chains + uint64_t{last - first} * 4, "hash chain") & 1) == 0) ++last;
  return uint64_t{last} + 1;
}

// Names end up in messages and in Python.
std::string checked_name(std::string name) {
  for (const char c : name)
    if (c < ' ' || c > '~')
      throw CodeObjectError(format("code object: byte 0x%02x in a name, expected printable ASCII",
                                   static_cast<unsigned>(static_cast<uint8_t>(c))));
  return name;
}

std::string read_text(const File& file, uint64_t at) {
  std::string text;
  for (char c; (c = static_cast<char>(file.read<uint8_t>(at + text.size(), "string"))) != 0;) text += c;
  return checked_name(text);
}

struct RawSymbol {
  std::string name;
  uint64_t value, bytes;
  uint8_t type;
};

std::vector<RawSymbol> read_dynamic(const File& file, CodeObject& object, const Headers& headers) {
  uint64_t hash = 0, gnu_hash = 0, strings = 0, table = 0, rela = 0, rela_bytes = 0;
  for (uint64_t i = 0; i + 16 <= headers.dynamic_bytes; i += 16) {
    const auto tag = file.read<int64_t>(headers.dynamic + i, "dynamic entry");
    const auto value = file.read<uint64_t>(headers.dynamic + i + 8, "dynamic entry");
    if (tag == 0) break;
    if (tag == kHash) hash = value;
    if (tag == kGnuHash) gnu_hash = value;
    if (tag == kStringTable) strings = value;
    if (tag == kSymbolTable) table = value;
    if (tag == kRela) rela = value;
    if (tag == kRelaSize) rela_bytes = value;
  }
  std::vector<RawSymbol> symbols;
  const uint64_t count = table && strings ? symbol_count(file, object, hash, gnu_hash) : 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = offset_of(object, table + i * kSymbolBytes, kSymbolBytes, "symbol");
    const uint64_t name = offset_of(object, strings + file.read<uint32_t>(at, "symbol"), 1, "symbol name");
    symbols.push_back({read_text(file, name), file.read<uint64_t>(at + 8, "symbol"),
                       file.read<uint64_t>(at + 16, "symbol"),
                       static_cast<uint8_t>(file.read<uint8_t>(at + 4, "symbol") & 15)});
  }
  for (uint64_t i = 0; i + kRelaBytes <= rela_bytes; i += kRelaBytes) {
    const uint64_t at = offset_of(object, rela + i, kRelaBytes, "relocation");
    const auto where = file.read<uint64_t>(at, "relocation"),
               info = file.read<uint64_t>(at + 8, "relocation");
    const auto addend = file.read<uint64_t>(at + 16, "relocation");
    const uint32_t type = static_cast<uint32_t>(info);
    const uint64_t symbol = info >> 32;
    if (type != kAbs64 && type != kRelative64)
      throw CodeObjectError(format("code object: relocation type %u is not supported (3 and 13 are)", type));
    if (type == kAbs64 && symbol >= symbols.size())
      throw CodeObjectError("code object: relocation names a symbol that does not exist");
    if (where > object.image_bytes || object.image_bytes - where < 8)
      throw CodeObjectError("code object: relocation outside the image");
    object.relocations.push_back({where, addend + (type == kAbs64 ? symbols[symbol].value : 0), 8});
  }
  return symbols;
}

MsgValue read_metadata(const File& file, const Headers& headers) {
  for (uint64_t at = headers.note, end = headers.note + headers.note_bytes; at + 12 <= end;) {
    const uint64_t name_bytes = file.read<uint32_t>(at, "note"), bytes = file.read<uint32_t>(at + 4, "note");
    const auto type = file.read<uint32_t>(at + 8, "note");
    const uint64_t data = at + 12 + (name_bytes + 3) / 4 * 4;
    if (data > end || bytes > end - data) throw CodeObjectError("code object: metadata note is truncated");
    if (type == kMetadataNote) return read_msgpack(file.bytes.data() + data, bytes);
    at = data + (bytes + 3) / 4 * 4;
  }
  throw CodeObjectError("code object: no AMDGPU metadata note");
}

uint32_t read_count(const MsgValue& map, const char* key, uint32_t otherwise, uint32_t limit) {
  const MsgValue* found = map.get(key);
  if (found == nullptr) return otherwise;
  if (found->type != MsgValue::Type::integer || found->integer < 0 || found->integer > limit)
    throw CodeObjectError(format("code object metadata: %s must be an integer in 0..%u", key, limit));
  return static_cast<uint32_t>(found->integer);
}

std::string read_name(const MsgValue& map, const char* key, bool required) {
  const MsgValue* found = map.get(key);
  if (found == nullptr && !required) return "";
  if (found == nullptr || found->type != MsgValue::Type::text)
    throw CodeObjectError(format("code object metadata: a kernel has no text %s", key));
  return checked_name(found->text);
}

constexpr uint32_t kMaxKernarg = 1 << 16, kMaxPrivate = 1 << 20;

Kernel read_kernel(const File& file, const CodeObject& object, const std::vector<RawSymbol>& symbols,
                   const MsgValue& row) {
  Kernel kernel;
  kernel.name = read_name(row, ".name", true);
  kernel.symbol = read_name(row, ".symbol", true);
  kernel.kernarg_bytes = read_count(row, ".kernarg_segment_size", 0, kMaxKernarg);
  kernel.kernarg_align = std::max(8u, read_count(row, ".kernarg_segment_align", 8, 4096));
  kernel.max_workgroup = read_count(row, ".max_flat_workgroup_size", 1024, 1024);
  if (const uint32_t wave = read_count(row, ".wavefront_size", 64, 1024); wave != 64)
    throw CodeObjectError(format("code object metadata: kernel '%s' has waves of %u lanes, expected 64",
                                 kernel.name.c_str(), wave));
  if (const MsgValue* arguments = row.get(".args"))
    for (const MsgValue& argument : arguments->items)
      kernel.arguments.push_back(
          {read_name(argument, ".name", false), read_name(argument, ".value_kind", true),
           read_count(argument, ".offset", 0, kMaxKernarg), read_count(argument, ".size", 0, kMaxKernarg)});
  for (const KernelArgument& argument : kernel.arguments)
    if (uint64_t{argument.offset} + argument.size > kernel.kernarg_bytes)
      throw CodeObjectError(
          format("code object metadata: argument '%s' of kernel '%s' lies beyond its %u kernarg bytes",
                 argument.name.c_str(), kernel.name.c_str(), kernel.kernarg_bytes));

  const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                   [&](const RawSymbol& s) { return s.name == kernel.symbol; });
  if (symbol == symbols.end())
    throw CodeObjectError(
        format("code object: kernel descriptor '%s' is no symbol of the file", kernel.symbol.c_str()));
  const uint64_t at = offset_of(object, symbol->value, kDescriptorBytes, "kernel descriptor");
  kernel.lds_bytes = file.read<uint32_t>(at, "descriptor");
  kernel.private_bytes = file.read<uint32_t>(at + 4, "descriptor");
  kernel.entry = symbol->value + file.read<uint64_t>(at + 16, "descriptor");
  kernel.rsrc3 = file.read<uint32_t>(at + 44, "descriptor");
  kernel.rsrc1 = file.read<uint32_t>(at + 48, "descriptor");
  kernel.rsrc2 = file.read<uint32_t>(at + 52, "descriptor");
  kernel.properties = file.read<uint16_t>(at + 56, "descriptor");
  kernel.preload = file.read<uint16_t>(at + 58, "descriptor");
  kernel.vgprs = ((kernel.rsrc1 & 63) + 1) * 8;
  kernel.accum_offset = ((kernel.rsrc3 & 63) + 1) * 4;
  if (kernel.lds_bytes > kLdsBytes)
    throw CodeObjectError(format("code object: kernel '%s' asks for %u bytes of LDS, limit %u",
                                 kernel.name.c_str(), kernel.lds_bytes, kLdsBytes));
  if (kernel.private_bytes > kMaxPrivate)
    throw CodeObjectError(
        format("code object: kernel '%s' asks for %u bytes of private memory per lane, limit %u",
               kernel.name.c_str(), kernel.private_bytes, kMaxPrivate));
  for (const Segment& s : object.segments)
    if (s.executable && kernel.entry % 4 == 0 && kernel.entry >= s.address &&
        kernel.entry < s.address + s.file_bytes)
      return kernel;
  throw CodeObjectError(
      format("code object: entry of kernel '%s' is not in executable memory", kernel.name.c_str()));
}

}  // namespace

CodeObject CodeObject::parse(std::vector<uint8_t> bytes) {
  CodeObject object;
  object.file = std::move(bytes);
  const File file{object.file};
  read_header(file);
  const Headers headers = read_segments(file, object);
  const std::vector<RawSymbol> symbols = read_dynamic(file, object, headers);
  for (const RawSymbol& s : symbols)
    if (!s.name.empty()) object.symbols.push_back({s.name, s.value, s.bytes, s.type == 2});
  std::sort(object.symbols.begin(), object.symbols.end(),
            [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
  const MsgValue metadata = read_metadata(file, headers);
  const MsgValue* kernels = metadata.get("amdhsa.kernels");
  if (kernels == nullptr || kernels->type != MsgValue::Type::array)
    throw CodeObjectError("code object metadata: no list amdhsa.kernels");
  for (const MsgValue& row : kernels->items)
    object.kernels.push_back(read_kernel(file, object, symbols, row));
  return object;
}

const Kernel& CodeObject::kernel(const std::string& name) const {
  std::string names;
  for (const Kernel& k : kernels) {
    if (k.name == name) return k;
    names += (names.empty() ? "'" : ", '") + k.name + "'";
  }
  throw CodeObjectError("code object: no kernel '" + name + "'; it has " + (names.empty() ? "none" : names));
}

std::string CodeObject::nearest_symbol(uint64_t address) const {
  const Symbol* nearest = nullptr;
  for (const Symbol& s : symbols)
    if (s.function && s.address <= address) nearest = &s;
  if (nearest == nullptr) return format("0x%llx", static_cast<unsigned long long>(address));
  return format("%s+0x%llx", nearest->name.c_str(),
                static_cast<unsigned long long>(address - nearest->address));
}

}  // namespace zyfa::emulator
