// One-line verbs for the machine instructions of the attention kernels. gfx942 lacks some of gfx950's: there
// the verb keeps its meaning and costs more.
#pragma once

#include "device.hpp"

namespace zyfa {

using bf16x2 = vec<bf16, 2>;
using bf16x4 = vec<bf16, 4>;
using halfx2 = vec<half, 2>;
using floatx2 = vec<float, 2>;
using shortx4 = vec<short, 4>;
using uint32x2 = vec<uint32_t, 2>;
using uint32x4 = vec<uint32_t, 4>;

template <typename T>
using lds_ptr = T __attribute__((address_space(3)))*;

constexpr uint32_t kRawBuffer = 0x00020000;

#if defined(__gfx942__)
constexpr bool kTwoStages = false;  // 64 KiB of LDS hold one stage of the large head dims
#else
constexpr bool kTwoStages = true;
#endif

// D = A·B + C on 32 x 32 x 16. Lane l brings 8 values of A row l % 32 and of B column l % 32. Which k they
// belong to is the callers' business, as long as A and B agree.
__device__ floatx16 multiply(bf16x8 a, bf16x8 b, floatx16 c) {
#if defined(__gfx942__)
  const auto low = [](bf16x8 x) { return __builtin_bit_cast(shortx4, x.lo); };
  const auto high = [](bf16x8 x) { return __builtin_bit_cast(shortx4, x.hi); };
  c = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(low(a), low(b), c, 0, 0, 0);
  return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(high(a), high(b), c, 0, 0, 0);
#else
  return __builtin_amdgcn_mfma_f32_32x32x16_bf16(a, b, c, 0, 0, 0);
#endif
}

// Lanes form groups of 16. Lanes 4p to 4p + 3 of a group point at the 16 consecutive values of row p, 4
// values each; lane i receives column i, rows 0 to 3.
__device__ bf16x4 read_transposed(lds_ptr<const bf16x4> from) {
#if defined(__gfx942__)
  const bf16x4 own = *from;
  bf16x4 column;
  for (uint32_t p = 0; p < 4; ++p) {
    const uint32_t source = (lane() & 48) + 4 * p + lane() % 16 / 4;
    const uint32x2 words = __builtin_bit_cast(uint32x2, own);
    uint32x2 row;
    for (uint32_t w = 0; w < 2; ++w) row[w] = __builtin_amdgcn_ds_bpermute(4 * source, words[w]);
    column[p] = __builtin_bit_cast(bf16x4, row)[lane() % 4];
  }
  return column;
#else
  return __builtin_amdgcn_ds_read_tr16_b64_v4bf16((lds_ptr<bf16x4>)from);
#endif
}

// Memory seen through a window of `bytes`: reads beyond it give zeros.
using window = __amdgpu_buffer_rsrc_t;
__device__ window window_of(const void* base, uint32_t bytes) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(base), 0, bytes, kRawBuffer);
}

template <typename T>
__device__ float load(window from, uint32_t offset);
template <>
__device__ float load<float>(window from, uint32_t offset) {
  return __builtin_bit_cast(float, __builtin_amdgcn_raw_buffer_load_b32(from, offset, 0, 0));
}
template <>
__device__ float load<bf16>(window from, uint32_t offset) {
  const uint32_t bits = __builtin_amdgcn_raw_buffer_load_b16(from, offset, 0, 0);
  return __builtin_bit_cast(float, bits << 16);
}

constexpr uint32_t kOutside = 0xFFFFFF00;  // an offset beyond every window

// 16 bytes per lane from the window to LDS, lane l's to `to` + 16 l. They are there for this wave after
// wait_for_loads(), for the others after a barrier behind that.
__device__ void load_to_lds(window from, uint32_t offset, lds_ptr<uint8_t> to) {
#if defined(__gfx942__)
  const auto data = __builtin_amdgcn_raw_buffer_load_b128(from, offset, 0, 0);
  *(lds_ptr<uint32x4>)(to + 16 * lane()) = __builtin_bit_cast(uint32x4, data);
#else
  __builtin_amdgcn_raw_ptr_buffer_load_lds(from, (lds_ptr<void>)to, 16, offset, 0, 0, 0);
#endif
}
__device__ void wait_for_loads() { __builtin_amdgcn_s_waitcnt(0x0F70); }  // vmcnt(0)

// {x of lane l, x of lane l - 32} become {x, y} of ... : afterwards lanes below 32 hold x of lanes l and l +
// 32, lanes from 32 on hold y of lanes l - 32 and l.
__device__ uint32x2 swap_halves(uint32_t x, uint32_t y) {
#if defined(__gfx942__)
  const bool upper = lane() >= 32;
  const uint32_t other = __builtin_amdgcn_ds_bpermute(4 * (lane() ^ 32), upper ? x : y);
  return upper ? uint32x2{other, y} : uint32x2{x, other};
#else
  const auto swapped = __builtin_amdgcn_permlane32_swap(x, y, false, false);
  return uint32x2{swapped[0], swapped[1]};
#endif
}
// x of lane l % 32 and of lane l % 32 + 32.
__device__ floatx2 both_halves(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  return __builtin_bit_cast(floatx2, swap_halves(bits, bits));
}

// The operands stay in their registers until `result` is there; loads from LDS stay on their side of this.
template <typename T>
__device__ void keep(bf16x8 a, bf16x8 b, T& result) {
  asm volatile("" : "+v"(result) : "v"(a), "v"(b));
}

// The scheduler moves nothing across the first, and neither matrix nor memory instructions across the second.
__device__ void pin_all() { __builtin_amdgcn_sched_barrier(0); }
__device__ void pin_order() {
  __builtin_amdgcn_sched_barrier(0x0406);
}  // VALU, SALU, transcendentals may pass
// Matrix instructions issued before have left the pipe.
__device__ void drain_matrix_pipe() {
  pin_all();
  asm volatile("s_nop 15");
  pin_all();
}
// The compiler computes what depends on x here, and not once for all tiles.
__device__ void not_invariant(uint32_t& x) { asm volatile("" : "+v"(x)); }

// NaN when one of them is.
__device__ float maximum(float a, float b) { return __builtin_elementwise_maximum(a, b); }

// sum + pair[0] + pair[1].
__device__ float add_pair(bf16x2 pair, float sum) {
#if defined(__gfx942__)
  return sum + static_cast<float>(pair[0]) + static_cast<float>(pair[1]);
#else
  return __builtin_amdgcn_fdot2_f32_bf16(pair, bf16x2{1.0f, 1.0f}, sum, false);
#endif
}

// Round to nearest even, NaN stays NaN.
__device__ bf16x2 to_bf16(float a, float b) { return __builtin_convertvector((floatx2{a, b}), bf16x2); }
__device__ halfx2 to_half(float a, float b) { return __builtin_convertvector((floatx2{a, b}), halfx2); }

__device__ float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
__device__ float log2(float x) { return __builtin_amdgcn_logf(x); }
__device__ float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }

// x, which is the same in all lanes, in a scalar register.
__device__ int uniform(int x) { return __builtin_amdgcn_readfirstlane(x); }

// Whether it holds in some lane; the same in all lanes.
__device__ bool any(bool condition) { return __builtin_amdgcn_ballot_w64(condition) != 0; }

}  // namespace zyfa
