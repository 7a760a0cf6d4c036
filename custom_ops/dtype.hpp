// Element types of tensors, with names as they appear in messages.
#pragma once

#include <cstddef>

namespace zyfa {

enum class DType { float32, float16, bfloat16, float8e4m3fn, boolean, int32, int64 };

constexpr const char* name(DType type) {
  switch (type) {
    case DType::float32:
      return "float";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float8e4m3fn:
      return "float8e4m3fn";
    case DType::boolean:
      return "bool";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
  }
  return "?";
}

constexpr size_t size_of(DType type) {
  switch (type) {
    case DType::float8e4m3fn:
    case DType::boolean:
      return 1;
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::int64:
      return 8;
  }
  return 0;
}

constexpr bool is_float(DType type) {
  return type == DType::float32 || type == DType::float16 || type == DType::bfloat16;
}

}  // namespace zyfa
