// What a HIP kernel of this project may use: our own few names over clang's builtins, so that kernels compile
// with any clang that knows gfx950 and without ROCm's headers.
#pragma once

#define __global__ extern "C" __attribute__((global))
#define __device__ __attribute__((device)) inline
#define __shared__ __attribute__((shared))
// At most this many work-items per workgroup; registers are given out accordingly.
#define __launch_bounds__(items) __attribute__((amdgpu_flat_work_group_size(1, items)))

namespace zyfa {

using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using int32_t = int;
using int64_t = long long;

template <typename T, int N>
using vec = T __attribute__((ext_vector_type(N)));
using half = _Float16;
using bf16 = __bf16;
using bf16x8 = vec<bf16, 8>;
using halfx8 = vec<half, 8>;
using floatx4 = vec<float, 4>;
using floatx16 = vec<float, 16>;

constexpr uint32_t kWaveLanes = 64;

// Position of this work-item in the launch; along x where nothing else is said.
__device__ uint32_t thread() { return __builtin_amdgcn_workitem_id_x(); }
__device__ uint32_t block() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ uint32_t block_y() { return __builtin_amdgcn_workgroup_id_y(); }
__device__ uint32_t block_z() { return __builtin_amdgcn_workgroup_id_z(); }
__device__ uint32_t block_items() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ uint32_t lane() { return thread() % kWaveLanes; }
// The same in all lanes, and the compiler may know it.
__device__ uint32_t wave() { return __builtin_amdgcn_readfirstlane(thread() / kWaveLanes); }

// All work-items of the workgroup arrive, and see what the others wrote to LDS.
__device__ void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

// D = A·B + C on 32 x 32 x 16. Lane l brings A row l % 32 and B column l % 32 at k = 8 (l / 32) .. + 7.
__device__ floatx16 mfma_32x32x16(bf16x8 a, bf16x8 b, floatx16 c) {
  return __builtin_amdgcn_mfma_f32_32x32x16_bf16(a, b, c, 0, 0, 0);
}
// Row of D in register r of lane l; its column is l % 32.
__device__ uint32_t mfma_32x32_row(uint32_t l, uint32_t r) { return 8 * (r / 4) + 4 * (l / 32) + r % 4; }

// The same on 16 x 16 x 32: row and column l % 16, k = 8 (l / 16) .. + 7; register r of D is row 4 (l / 16) +
// r.
__device__ floatx4 mfma_16x16x32(bf16x8 a, bf16x8 b, floatx4 c) {
  return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, c, 0, 0, 0);
}

// Each lane gives the LDS address of four 16-bit values. In 16 lanes, lanes 4 p .. 4 p + 3 hold row p of a 4
// x 16 matrix, and lane i receives its column i.
__device__ vec<bf16, 4> read_transposed(const void* lds) {
  using Four = vec<bf16, 4>;
  using Lds = __attribute__((address_space(3))) Four;
  return __builtin_amdgcn_ds_read_tr16_b64_v4bf16((Lds*)lds);
}

constexpr float kE4m3Max = 448.0f;

// Four floats to E4M3, the first in the lowest byte: round to nearest even, beyond the range to ±448, NaN
// stays NaN. v_cvt_pk_fp8_f32 alone would turn what is out of range into NaN (MODE.FP16_OVFL = 0).
__device__ float saturated(float x) { return x != x ? x : __builtin_amdgcn_fmed3f(x, -kE4m3Max, kE4m3Max); }
__device__ uint32_t to_e4m3(floatx4 x) {
  const int low = __builtin_amdgcn_cvt_pk_fp8_f32(saturated(x[0]), saturated(x[1]), 0, false);
  return __builtin_amdgcn_cvt_pk_fp8_f32(saturated(x[2]), saturated(x[3]), low, true);
}

}  // namespace zyfa
