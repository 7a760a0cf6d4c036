#include "key_visibility.hpp"

#include <algorithm>

#include "../error.hpp"

namespace zyfa::cpu {
namespace {

bool mask_value(DType type, const void* mask, int64_t at) {
  switch (type) {
    case DType::boolean:
      return static_cast<const bool*>(mask)[at];
    case DType::int32:
      return static_cast<const int32_t*>(mask)[at] != 0;
    case DType::int64:
      return static_cast<const int64_t*>(mask)[at] != 0;
    default:
      fail("key_mask type: expected bool, int32 or int64, got ", name(type));
  }
}

}  // namespace

uint64_t range_bits(KeyRange range, int64_t tile) {
  const int64_t begin = std::max<int64_t>(range.begin - tile * kTileKeys, 0);
  const int64_t end = std::min(range.end - tile * kTileKeys, kTileKeys);
  if (begin >= end) return 0;
  const uint64_t below_end = end == kTileKeys ? ~uint64_t{0} : (uint64_t{1} << end) - 1;
  return below_end & (~uint64_t{0} << begin);
}

KeyMask::KeyMask(const AttentionProblem& problem, const void* mask)
    : tiles_((problem.kv_len() + kTileKeys - 1) / kTileKeys),
      words_(problem.batch * tiles_),
      ranges_(problem.batch, KeyRange{0, problem.kv_len()}) {
  const int64_t keys = problem.kv_len();
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    uint64_t* words = words_.data() + batch * tiles_;
    if (mask == nullptr) {
      for (int64_t tile = 0; tile < tiles_; ++tile) words[tile] = range_bits({0, keys}, tile);
      continue;
    }
    KeyRange range{keys, 0};
    for (int64_t key = 0; key < keys; ++key) {
      if (!mask_value(problem.mask_dtype, mask, batch * keys + key)) continue;
      words[key / kTileKeys] |= uint64_t{1} << (key % kTileKeys);
      range = {std::min(range.begin, key), key + 1};
    }
    ranges_[batch] = range.empty() ? KeyRange{} : range;
  }
}

}  // namespace zyfa::cpu
