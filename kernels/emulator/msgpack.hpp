// The part of MessagePack that code object metadata uses: maps, arrays, strings, integers, booleans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zyfa::emulator {

struct MsgValue {
  enum class Type : uint8_t { nil, boolean, integer, text, array, map } type = Type::nil;
  int64_t integer = 0;
  std::string text;
  std::vector<MsgValue> items;                         // of arrays
  std::vector<std::pair<MsgValue, MsgValue>> entries;  // of maps

  // Value of a text key in a map, or nullptr.
  const MsgValue* get(const char* key) const;
};

// Throws CodeObjectError on truncated or foreign data. Depth and counts are bounded by the size of the data.
MsgValue read_msgpack(const uint8_t* data, size_t size);

}  // namespace zyfa::emulator
