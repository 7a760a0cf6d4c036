// What lies between a model's tensors and the attention kernels: rows copied, made zero, cast to bfloat16, a
// bias widened, masks made bytes, and the range of keys that a mask leaves.
#include "chunk.hpp"
#include "convert_arguments.hpp"

using namespace zyfa;
using namespace zyfa::kernels;

namespace {

constexpr uint32_t kZeroBytes = sizeof(vec<uint32_t, 4>);

// Calls step(from, to) for the workgroup's share of the head's units.
template <typename Step>
__device__ void for_each_unit(const RowsArguments& a, uint32_t source_unit, uint32_t target_unit, Step step) {
  const char* source =
      static_cast<const char*>(a.source) + block_z() * a.source_batch + block_y() * a.source_head;
  char* target = static_cast<char*>(a.target) + block_z() * a.target_batch + block_y() * a.target_head;
  const uint32_t first = block() * kConvertItems + thread(), stride = a.blocks * kConvertItems;
  const uint32_t step_rows = stride / a.units, step_units = stride % a.units;
  uint32_t row = first / a.units, unit = first % a.units;
  while (row < a.rows) {
    step(source + row * a.source_row + uint64_t{unit} * source_unit,
         target + row * a.target_row + uint64_t{unit} * target_unit);
    row += step_rows;
    unit += step_units;
    if (unit >= a.units) {
      unit -= a.units;
      ++row;
    }
  }
}

template <typename Unit>
__device__ void copy_rows(const RowsArguments& a) {
  for_each_unit(a, sizeof(Unit), sizeof(Unit), [](const char* from, char* to) {
    *reinterpret_cast<Unit*>(to) = *reinterpret_cast<const Unit*>(from);
  });
}

__device__ void zero_rows(const RowsArguments& a) {
  for_each_unit(a, 0, kZeroBytes,
                [](const char*, char* to) { *reinterpret_cast<vec<uint32_t, 4>*>(to) = {}; });
}

template <typename From>
__device__ void cast_rows(const RowsArguments& a) {
  for_each_unit(a, kChunk * sizeof(From), kChunk * sizeof(bf16),
                [](const char* from, char* to) { store_chunk<bf16>(to, load_chunk<From>(from)); });
}

template <typename Number>
__device__ void mask_bytes(const RowsArguments& a) {
  for_each_unit(a, sizeof(Number), 1, [](const char* from, char* to) {
    *to = *reinterpret_cast<const Number*>(from) != 0 ? 1 : 0;
  });
}

struct Seen {
  uint32_t first, end, count;
};
__device__ Seen both(const Seen& a, const Seen& b) {
  return {a.first < b.first ? a.first : b.first, a.end > b.end ? a.end : b.end, a.count + b.count};
}

// Loads in flight per lane: one workgroup reads the whole mask, and nothing but latency counts.
constexpr uint32_t kLoads = 32;

template <typename Number>
__device__ Seen seen_by_lane(const KeyRangeArguments& a) {
  const auto* mask =
      reinterpret_cast<const Number*>(static_cast<const char*>(a.mask) + block_z() * a.mask_batch);
  Seen seen = {a.keys, 0, 0};
  for (uint32_t base = thread(); base < a.keys; base += kConvertItems * kLoads) {
    Number numbers[kLoads];
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t key = base + i * kConvertItems;
      numbers[i] = mask[key < a.keys ? key : base];
    }
    for (uint32_t i = 0; i < kLoads; ++i) {
      const uint32_t key = base + i * kConvertItems;
      if (key < a.keys && numbers[i] != 0) seen = both(seen, {key, key + 1, 1});
    }
  }
  return seen;
}

// Of all work-items, in the first one.
__device__ Seen workgroup_seen(Seen seen) {
  __shared__ Seen parts[kConvertItems];
  parts[thread()] = seen;
  for (uint32_t half = kConvertItems / 2; half != 0; half /= 2) {
    barrier();
    if (thread() < half) parts[thread()] = seen = both(seen, parts[thread() + half]);
  }
  return seen;
}

__device__ void find_range(const KeyRangeArguments& a) {
  __shared__ uint32_t holes;
  Seen seen = workgroup_seen(a.mask_bytes == 1   ? seen_by_lane<uint8_t>(a)
                             : a.mask_bytes == 4 ? seen_by_lane<uint32_t>(a)
                                                 : seen_by_lane<uint64_t>(a));
  if (thread() == 0) {
    const bool any = seen.count != 0;
    a.range[2 * block_z()] = any ? static_cast<int>(seen.first) : 0;
    a.range[2 * block_z() + 1] = static_cast<int>(seen.end);
    holes = any && seen.end - seen.first != seen.count ? 1 : 0;
    if (holes != 0) *a.status = 1;
  }
  barrier();
  const float poison = holes != 0 ? __builtin_nanf("") : 0.0f;
  for (uint32_t head = thread(); head < a.heads; head += kConvertItems)
    a.guarded[uint64_t{block_z()} * a.heads + head] =
        a.q_scale[uint64_t{block_z()} * a.q_scale_batch + uint64_t{head} * a.q_scale_head] + poison;
}

}  // namespace

#define ZYFA_ROWS_KERNEL(name, body) \
  __global__ __launch_bounds__(kConvertItems) void name(RowsArguments a) { body(a); }

ZYFA_ROWS_KERNEL(copy_rows_16, (copy_rows<vec<uint32_t, 4>>))
ZYFA_ROWS_KERNEL(copy_rows_1, copy_rows<uint8_t>)
ZYFA_ROWS_KERNEL(zero_rows_16, zero_rows)
ZYFA_ROWS_KERNEL(cast_f32_bf16, cast_rows<float>)
ZYFA_ROWS_KERNEL(cast_f16_bf16, cast_rows<half>)
ZYFA_ROWS_KERNEL(mask_bytes_i32, mask_bytes<uint32_t>)
ZYFA_ROWS_KERNEL(mask_bytes_i64, mask_bytes<uint64_t>)

__global__ __launch_bounds__(kConvertItems) void widen_f16_f32(RowsArguments a) {
  for_each_unit(a, sizeof(half), sizeof(float), [](const char* from, char* to) {
    *reinterpret_cast<float*>(to) = static_cast<float>(*reinterpret_cast<const half*>(from));
  });
}

__global__ __launch_bounds__(kConvertItems) void key_range(KeyRangeArguments a) { find_range(a); }
