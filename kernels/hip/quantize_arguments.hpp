// Arguments of quantize.hip's kernels, for device and host code.
#pragma once

namespace zyfa::kernels {

// The scales of quantize_amax_* and quantize_convert_*: one, one per head, one per batch and head.
enum QuantizeGranularity : unsigned { kPerTensor = 0, kPerHead = 1, kPerBatchHead = 2 };

constexpr unsigned kQuantizeItems = 256;

// Both passes take the same arguments, workgroups of kQuantizeItems and the grid (blocks, heads, batch),
// blocks
// >= 1. Strides are in bytes; x, codes and their strides are multiples of 16 (codes: 8).
struct QuantizeArguments {
  const void* x;
  unsigned char* codes;
  float* scale;      // 1, heads or batch * heads
  float* partial;    // workspace: batch * heads * blocks maxima, written by the first pass
  const void* mask;  // null, or (batch, rows) numbers: rows whose number is 0 stay out of amax
  long long x_batch, x_head;
  long long codes_batch, codes_head;
  long long mask_batch;
  unsigned x_row, codes_row;
  unsigned mask_bytes;          // of one number: 1, 4 or 8
  unsigned rows, heads, batch;  // rows <= 2^26
  unsigned dim;                 // 64, 128, 192, 256
  unsigned rotation;            // 0, or the Hadamard block: dim, 64 for 192
  unsigned row_begin, row_end;  // rows outside stay out of amax
  unsigned granularity;
  unsigned blocks;
};
static_assert(sizeof(QuantizeArguments) == 128, "host and device read the same bytes");

// hadamard_*: contiguous rows; any grid along x, workgroups of kQuantizeItems.
struct HadamardArguments {
  const void* x;
  void* y;
  unsigned long long count;  // elements, a multiple of 64
  unsigned rotation;         // 64, 128 or 256
  unsigned blocks;           // the grid
};
static_assert(sizeof(HadamardArguments) == 32, "host and device read the same bytes");

}  // namespace zyfa::kernels
