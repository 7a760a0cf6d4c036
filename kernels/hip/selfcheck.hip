// Four small kernels that show whether a device, real or emulated, does what ours rely on: memory with tails,
// LDS and barriers, matrix instructions, FP8 conversion. They are written to be checked, not to be fast.
#include "device.hpp"

using namespace zyfa;

// out[i] = a[i] + b[i], i < count. Grid: enough workgroups of any size.
__global__ __launch_bounds__(1024) void vector_add(const float* a, const float* b, float* out,
                                                   uint32_t count) {
  const uint32_t i = block() * block_items() + thread();
  if (i < count) out[i] = a[i] + b[i];
}

// out[block] = sum of the block's items of `in`, added up as a tree: item i takes item i + stride, stride
// halving. Workgroup: a power of two. Dynamic LDS: one float per item.
__global__ __launch_bounds__(1024) void lds_reduction(const float* in, float* out, uint32_t count) {
  extern __shared__ float sums[];
  const uint32_t i = block() * block_items() + thread();
  sums[thread()] = i < count ? in[i] : 0.0f;
  for (uint32_t stride = block_items() / 2; stride > 0; stride /= 2) {
    barrier();
    if (thread() < stride) sums[thread()] += sums[thread() + stride];
  }
  if (thread() == 0) out[block()] = sums[0];
}

// c[m][n] = sum over k of a[m][k] · b[n][k]; rows are contiguous. Workgroup: 256, grid: (ceil(n / 64), ceil(m
// / 64)). Each of the four waves makes a 32 x 32 quarter of the 64 x 64 tile.
__global__ __launch_bounds__(256) void gemm_bf16(const bf16* a, const bf16* b, float* c, uint32_t m,
                                                 uint32_t n, uint32_t k) {
  constexpr uint32_t kTile = 64, kStep = 32;
  constexpr uint32_t kPitch = kStep + 8;  // rows of 80 bytes: ds_read_b128 stays aligned
  __shared__ bf16 a_tile[kTile * kPitch] __attribute__((aligned(16)));
  __shared__ bf16 b_tile[kTile * kPitch] __attribute__((aligned(16)));

  const uint32_t first_row = block_y() * kTile, first_column = block() * kTile;
  const uint32_t wave_row = wave() / 2 * 32, wave_column = wave() % 2 * 32;
  // Load: four work-items per row of a tile, eight values each.
  const uint32_t load_row = thread() / 4, load_k = thread() % 4 * 8;
  const uint32_t fragment = lane() % 32 * kPitch + lane() / 32 * 8;

  floatx16 sum = 0.0f;
  for (uint32_t at = 0; at < k; at += kStep) {
    barrier();  // readers of the previous step are done
    for (uint32_t e = 0; e < 8; ++e) {
      const uint32_t from_k = at + load_k + e, to = load_row * kPitch + load_k + e;
      const bool a_inside = first_row + load_row < m && from_k < k;
      const bool b_inside = first_column + load_row < n && from_k < k;
      a_tile[to] = a_inside ? a[uint64_t{first_row + load_row} * k + from_k] : bf16{0};
      b_tile[to] = b_inside ? b[uint64_t{first_column + load_row} * k + from_k] : bf16{0};
    }
    barrier();
    for (uint32_t step = 0; step < kStep; step += 16) {
      const bf16x8 rows = *reinterpret_cast<const bf16x8*>(&a_tile[wave_row * kPitch + fragment + step]);
      const bf16x8 columns =
          *reinterpret_cast<const bf16x8*>(&b_tile[wave_column * kPitch + fragment + step]);
      sum = mfma_32x32x16(rows, columns, sum);
    }
  }

  const uint32_t column = first_column + wave_column + lane() % 32;
  for (uint32_t r = 0; r < 16; ++r) {
    const uint32_t row = first_row + wave_row + mfma_32x32_row(lane(), r);
    if (row < m && column < n) c[uint64_t{row} * n + column] = sum[r];
  }
}

// out[i] = E4M3 of in[i] * scale, four values per work-item. Grid: enough workgroups of any size.
template <typename T>
__device__ void quantize_fp8(const T* in, uint8_t* out, float scale, uint32_t count) {
  const uint32_t first = 4 * (block() * block_items() + thread());
  if (first >= count) return;
  const uint32_t here = count - first < 4 ? count - first : 4;
  floatx4 values = 0.0f;
  for (uint32_t e = 0; e < 4; ++e)
    if (e < here) values[e] = static_cast<float>(in[first + e]) * scale;
  const uint32_t packed = to_e4m3(values);
  if (here == 4) {
    *reinterpret_cast<uint32_t*>(out + first) = packed;
  } else {
    for (uint32_t e = 0; e < here; ++e) out[first + e] = static_cast<uint8_t>(packed >> (8 * e));
  }
}

__global__ __launch_bounds__(1024) void quantize_fp8_f32(const float* in, uint8_t* out, float scale,
                                                         uint32_t count) {
  quantize_fp8(in, out, scale, count);
}

__global__ __launch_bounds__(1024) void quantize_fp8_bf16(const bf16* in, uint8_t* out, float scale,
                                                          uint32_t count) {
  quantize_fp8(in, out, scale, count);
}
