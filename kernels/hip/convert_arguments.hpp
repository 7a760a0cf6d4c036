// Arguments of convert.hip's kernels, for device and host code.
#pragma once

namespace zyfa::kernels {

constexpr unsigned kConvertItems = 256;

// copy_rows_*, zero_rows_*, cast_*, widen_*, mask_bytes_*: workgroups of kConvertItems, grid (blocks, heads,
// batch), blocks >= 1. Strides are in bytes. A row has `units` of what the kernel's name says; rows and units
// below 2^31, units >= 1.
struct RowsArguments {
  const void* source;  // zero_rows_* read none
  void* target;
  long long source_batch, source_head, source_row;
  long long target_batch, target_head, target_row;
  unsigned rows, units, blocks, reserved;
};
static_assert(sizeof(RowsArguments) == 80, "host and device read the same bytes");

// key_range: one workgroup of kConvertItems per batch entry, grid (1, 1, batch).
struct KeyRangeArguments {
  const void* mask;  // (batch, keys) numbers, nonzero = visible
  int* range;        // written: first visible key and one past the last, per batch entry; 0, 0 without any
  const float* q_scale;  // with strides in elements
  float* guarded;        // written: (batch, heads), q_scale, or NaN where the mask has holes
  int* status;           // becomes 1 when one has
  long long mask_batch;  // bytes
  unsigned mask_bytes;   // of one number: 1, 4 or 8
  unsigned keys, heads;
  unsigned q_scale_batch, q_scale_head, reserved;
};
static_assert(sizeof(KeyRangeArguments) == 72, "host and device read the same bytes");

}  // namespace zyfa::kernels
