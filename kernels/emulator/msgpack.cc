#include "msgpack.hpp"

#include "errors.hpp"

namespace zyfa::emulator {
namespace {

constexpr int kMaxDepth = 16;

struct Reader {
  const uint8_t* at;
  const uint8_t* end;

  uint64_t take(unsigned bytes) {
    if (static_cast<size_t>(end - at) < bytes) throw CodeObjectError("code object metadata: truncated");
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value = value << 8 | *at++;
    return value;
  }

  // A container cannot have more items than bytes left: each takes at least one.
  size_t items(uint64_t count) const {
    if (count > static_cast<size_t>(end - at)) throw CodeObjectError("code object metadata: truncated");
    return count;
  }

  MsgValue text(uint64_t size) {
    items(size);
    MsgValue made;
    made.type = MsgValue::Type::text;
    made.text.assign(reinterpret_cast<const char*>(at), size);
    at += size;
    return made;
  }

  static MsgValue number(int64_t value, MsgValue::Type type = MsgValue::Type::integer) {
    MsgValue made;
    made.type = type;
    made.integer = value;
    return made;
  }

  MsgValue array(uint64_t count, int depth) {
    MsgValue made;
    made.type = MsgValue::Type::array;
    for (size_t i = 0, n = items(count); i < n; ++i) made.items.push_back(value(depth + 1));
    return made;
  }

  MsgValue map(uint64_t count, int depth) {
    MsgValue made;
    made.type = MsgValue::Type::map;
    for (size_t i = 0, n = items(count); i < n; ++i) {
      MsgValue key = value(depth + 1);
      made.entries.emplace_back(std::move(key), value(depth + 1));
    }
    return made;
  }

  MsgValue value(int depth) {
    if (depth > kMaxDepth) throw CodeObjectError("code object metadata: nested too deeply");
    const uint8_t tag = static_cast<uint8_t>(take(1));
    if (tag < 0x80) return number(tag);
    if (tag < 0x90) return map(tag & 15, depth);
    if (tag < 0xa0) return array(tag & 15, depth);
    if (tag < 0xc0) return text(tag & 31);
    if (tag >= 0xe0) return number(static_cast<int8_t>(tag));
    switch (tag) {
      case 0xc0:
        return MsgValue();
      case 0xc2:
      case 0xc3:
        return number(tag & 1, MsgValue::Type::boolean);
      case 0xcc:
        return number(static_cast<int64_t>(take(1)));
      case 0xcd:
        return number(static_cast<int64_t>(take(2)));
      case 0xce:
        return number(static_cast<int64_t>(take(4)));
      case 0xcf:
        return number(static_cast<int64_t>(take(8)));
      case 0xd0:
        return number(static_cast<int8_t>(take(1)));
      case 0xd1:
        return number(static_cast<int16_t>(take(2)));
      case 0xd2:
        return number(static_cast<int32_t>(take(4)));
      case 0xd3:
        return number(static_cast<int64_t>(take(8)));
      case 0xd9:
        return text(take(1));
      case 0xda:
        return text(take(2));
      case 0xdb:
        return text(take(4));
      case 0xdc:
        return array(take(2), depth);
      case 0xdd:
        return array(take(4), depth);
      case 0xde:
        return map(take(2), depth);
      case 0xdf:
        return map(take(4), depth);
      default:
        throw CodeObjectError(format("code object metadata: MessagePack tag 0x%02x is not expected", tag));
    }
  }
};

}  // namespace

const MsgValue* MsgValue::get(const char* key) const {
  for (const auto& [name, value] : entries)
    if (name.type == Type::text && name.text == key) return &value;
  return nullptr;
}

MsgValue read_msgpack(const uint8_t* data, size_t size) {
  Reader reader{data, data + size};
  return reader.value(0);
}

}  // namespace zyfa::emulator
