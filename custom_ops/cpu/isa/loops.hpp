// Loops over stored elements, a vector of FP32 at a time. Included as lanes.hpp is.
#pragma once

#include "lanes.hpp"

namespace zyfa::cpu::isa {
namespace {

// Bytes that are fetched ahead: hardware stops at the end of a page. 0.44 as much time for float16 tensors of
// 64 MB, 0.8 for the others; 1 KB to 16 KB do the same.
constexpr int64_t kAhead = 2048;

inline const char* at(const void* data, int64_t bytes) { return static_cast<const char*>(data) + bytes; }
inline char* at(void* data, int64_t bytes) { return static_cast<char*>(data) + bytes; }

// Calls body(vector, index) for whole vectors of FP32; the last one, if it is not whole, is filled up with
// zeros.
template <typename Stored, typename Body>
inline void for_each_vector(const void* x, int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    __builtin_prefetch(at(x, i * Stored::kBytes + kAhead));
    body(Stored::widen(at(x, i * Stored::kBytes)), i);
  }
  if (i == count) return;
  alignas(Floats) char padded[sizeof(Floats)] = {};
  std::memcpy(padded, at(x, i * Stored::kBytes), (count - i) * Stored::kBytes);
  body(Stored::widen(padded), i);
}

// Calls body(vector, index) like for_each_vector, and writes what it returns.
template <typename From, typename To, typename Body>
inline void map_vectors(const void* x, int64_t count, void* y, Body body) {
  for_each_vector<From>(x, count, [&](Floats value, int64_t i) {
    if (i + kLanes <= count) return To::narrow(at(y, i * To::kBytes), body(value));
    alignas(Floats) char padded[sizeof(Floats)];
    To::narrow(padded, body(value));
    std::memcpy(at(y, i * To::kBytes), padded, (count - i) * To::kBytes);
  });
}

}  // namespace
}  // namespace zyfa::cpu::isa
