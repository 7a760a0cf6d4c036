#include "rows.hpp"

#include <cstring>

#include "../error.hpp"
#include "float_formats.hpp"

namespace zyfa::cpu {
namespace {

template <typename Stored, typename Convert>
void load(const void* data, int64_t offset, int64_t count, float* row, Convert convert) {
  const Stored* source = static_cast<const Stored*>(data) + offset;
  for (int64_t i = 0; i < count; ++i) row[i] = convert(source[i]);
}

template <typename Stored, typename Convert>
void store(const float* row, int64_t count, void* data, int64_t offset, Convert convert) {
  Stored* target = static_cast<Stored*>(data) + offset;
  for (int64_t i = 0; i < count; ++i) target[i] = convert(row[i]);
}

}  // namespace

void load_row(DType type, const void* data, int64_t offset, int64_t count, float* row) {
  switch (type) {
    case DType::float32:
      return load<float>(data, offset, count, row, [](float x) { return x; });
    case DType::float16:
      return load<uint16_t>(data, offset, count, row, from_float16);
    case DType::bfloat16:
      return load<uint16_t>(data, offset, count, row, from_bfloat16);
    case DType::float8e4m3fn:
      return load<uint8_t>(data, offset, count, row, from_fp8);
    default:
      fail("cannot read ", name(type), " as floating point");
  }
}

void store_row(DType type, const float* row, int64_t count, void* data, int64_t offset) {
  switch (type) {
    case DType::float32:
      return store<float>(row, count, data, offset, [](float x) { return x; });
    case DType::float16:
      return store<uint16_t>(row, count, data, offset, to_float16);
    case DType::bfloat16:
      return store<uint16_t>(row, count, data, offset, to_bfloat16);
    case DType::float8e4m3fn:
      return store<uint8_t>(row, count, data, offset, to_fp8);
    default:
      fail("cannot write floating point as ", name(type));
  }
}

void round_row_to_bfloat16(float* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) row[i] = from_bfloat16(to_bfloat16(row[i]));
}

}  // namespace zyfa::cpu
