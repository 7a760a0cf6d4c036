// Rotation and quantisation to E4M3 with float scales (docs/numerics.md, "Quantisation"), and the rotation
// alone. Two launches: maxima of blocks of rows, then scale and codes. A lane handles eight elements at a
// time; what neighbours in a row exchange never leaves the registers.
#include "chunk.hpp"
#include "quantize_arguments.hpp"

using namespace zyfa;
using namespace zyfa::kernels;

namespace {

constexpr float kLargest = 3.40282347e38f;
constexpr float kSmallestNormal = 0x1p-126f;

// Chunks in flight per lane: with 8 waves per SIMD one would do for HBM, two cover the tail of a wave.
constexpr uint32_t kInFlight = 2;

// Row of the head and byte offset in the row of chunk `index`.
struct Place {
  uint32_t row, chunk;
};
__device__ Place place_of(uint32_t index, uint32_t dim) {
  const uint32_t block = index / 8, in_block = index % 8;
  if (dim == 192) return {block / 3, block % 3 * 8 + in_block};
  const uint32_t shift = dim == 64 ? 0 : dim == 128 ? 1 : 2;
  return {block >> shift, (block & ((1u << shift) - 1)) * 8 + in_block};
}

__device__ const char* head_of(const void* base, int64_t batch_stride, int64_t head_stride) {
  return static_cast<const char*>(base) + block_z() * batch_stride + block_y() * head_stride;
}

// Calls step(place, index within a row's run of lanes, whether there is such a chunk) for the workgroup's
// share of the head's chunks; all lanes of a wave together.
template <typename Step>
__device__ void for_each_chunk(const QuantizeArguments& a, Step step) {
  const uint32_t count = a.rows * (a.dim / kChunk);
  const uint32_t item = chunk_of_lane(thread());
  for (uint32_t base = block() * kQuantizeItems * kInFlight; base < count;
       base += a.blocks * kQuantizeItems * kInFlight) {
    Place places[kInFlight];
    bool inside[kInFlight];
    for (uint32_t i = 0; i < kInFlight; ++i) {
      const uint32_t index = base + i * kQuantizeItems + item;
      inside[i] = index < count;
      places[i] = place_of(inside[i] ? index : 0, a.dim);
    }
    step(places, inside);
  }
}

template <typename T>
__device__ void load(const QuantizeArguments& a, const Place (&places)[kInFlight], floatx8 (&x)[kInFlight]) {
  const char* head = head_of(a.x, a.x_batch, a.x_head);
  for (uint32_t i = 0; i < kInFlight; ++i)
    x[i] = load_chunk<T>(head + uint64_t{places[i].row} * a.x_row + places[i].chunk * (kChunk * sizeof(T)));
  if (a.rotation != 0)
    for (uint32_t i = 0; i < kInFlight; ++i) x[i] = rotated(x[i], chunk_of_lane(lane()), a.rotation);
}

__device__ bool is_masked(const QuantizeArguments& a, uint32_t row) {
  const char* mask = static_cast<const char*>(a.mask) + block_z() * a.mask_batch;
  if (a.mask_bytes == 1) return reinterpret_cast<const uint8_t*>(mask)[row] == 0;
  if (a.mask_bytes == 4) return reinterpret_cast<const uint32_t*>(mask)[row] == 0;
  return reinterpret_cast<const uint64_t*>(mask)[row] == 0;
}

__device__ bool counts(const QuantizeArguments& a, uint32_t row) {
  return row >= a.row_begin && row < a.row_end && (a.mask == nullptr || !is_masked(a, row));
}

// max ignores NaN, and x * 0 + x is NaN for an infinity.
__device__ float largest_finite(floatx8 x, float so_far) {
  for (uint32_t i = 0; i < kChunk; ++i)
    so_far = __builtin_fmaxf(so_far, __builtin_fabsf(__builtin_fmaf(x[i], 0.0f, x[i])));
  return so_far;
}

// Of all work-items, in all of them.
__device__ float workgroup_max(float x) {
  __shared__ float maxima[kQuantizeItems / kWaveLanes];
  x = wave_max(x);
  if (lane() == 0) maxima[wave()] = x;
  barrier();
  return __builtin_fmaxf(__builtin_fmaxf(maxima[0], maxima[1]), __builtin_fmaxf(maxima[2], maxima[3]));
}

template <typename T>
__device__ void amax(const QuantizeArguments& a) {
  float largest = 0.0f;
  for_each_chunk(a, [&](const Place(&places)[kInFlight], const bool (&inside)[kInFlight]) {
    floatx8 x[kInFlight];
    load<T>(a, places, x);
    for (uint32_t i = 0; i < kInFlight; ++i)
      if (inside[i] && counts(a, places[i].row)) largest = largest_finite(x[i], largest);
  });
  largest = workgroup_max(largest);
  if (thread() == 0) a.partial[(uint64_t{block_z()} * a.heads + block_y()) * a.blocks + block()] = largest;
}

// Which maxima of the first pass make this workgroup's scale: `runs` runs of `length`, `stride` apart.
struct Maxima {
  uint64_t first, stride;
  uint32_t runs, length, scale;
};
__device__ Maxima maxima_of(const QuantizeArguments& a) {
  const uint32_t head = block_z() * a.heads + block_y();
  if (a.granularity == kPerTensor) return {0, 0, 1, a.batch * a.heads * a.blocks, 0};
  if (a.granularity == kPerHead)
    return {uint64_t{block_y()} * a.blocks, uint64_t{a.heads} * a.blocks, a.batch, a.blocks, block_y()};
  return {uint64_t{head} * a.blocks, 0, 1, a.blocks, head};
}

__device__ float scale_of(const QuantizeArguments& a) {
  const Maxima from = maxima_of(a);
  float largest = 0.0f;
  for (uint32_t run = 0; run < from.runs; ++run)
    for (uint32_t i = thread(); i < from.length; i += kQuantizeItems)
      largest = __builtin_fmaxf(largest, a.partial[from.first + run * from.stride + i]);
  largest = workgroup_max(largest);
  const float scale = largest == 0.0f ? 1.0f : __builtin_fmaxf(largest / kE4m3Max, kSmallestNormal);
  const bool first =
      a.granularity == kPerBatchHead || (block_z() == 0 && (a.granularity == kPerHead || block_y() == 0));
  if (first && block() == 0 && thread() == 0) a.scale[from.scale] = scale;
  return scale;
}

// fl(x / scale) for many x in six operations instead of the ten of a division: with y = fl(1 / scale) each
// q + y (x - q scale) is at most an ulp off after the first step and correctly rounded after the second
// (Markstein), as long as no remainder underflows: a small scale is lifted, and quotients under 2^-11, whose
// remainders may, are 0 in E4M3 whatever their last bit. Quotients stop at 456, which rounds to 448.
struct Divisor {
  float scale, reciprocal, lift, limit;

  __device__ explicit Divisor(float s) {
    lift = s < 0x1p-60f ? 0x1p64f : 1.0f;
    scale = s * lift;
    reciprocal = 1.0f / scale;
    const float most = s * 456.0f;
    limit = most < kLargest ? most : kLargest;
  }

  __device__ float quotient(float x) const {
    const float inside =
        __builtin_elementwise_maximum(__builtin_elementwise_minimum(x, limit), -limit) * lift;
    float q = inside * reciprocal;
    q = __builtin_fmaf(__builtin_fmaf(-q, scale, inside), reciprocal, q);
    q = __builtin_fmaf(__builtin_fmaf(-q, scale, inside), reciprocal, q);
    return __builtin_copysignf(q, x);  // the steps turn -0 into +0
  }
};

__device__ uint32_t codes_of(const Divisor& divisor, float a, float b, float c, float d) {
  const int low = __builtin_amdgcn_cvt_pk_fp8_f32(divisor.quotient(a), divisor.quotient(b), 0, false);
  return __builtin_amdgcn_cvt_pk_fp8_f32(divisor.quotient(c), divisor.quotient(d), low, true);
}

template <typename T>
__device__ void convert(const QuantizeArguments& a) {
  const Divisor divisor(scale_of(a));
  uint8_t* head =
      const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(head_of(a.codes, a.codes_batch, a.codes_head)));
  for_each_chunk(a, [&](const Place(&places)[kInFlight], const bool (&inside)[kInFlight]) {
    floatx8 x[kInFlight];
    load<T>(a, places, x);
    for (uint32_t i = 0; i < kInFlight; ++i) {
      const vec<uint32_t, 2> codes = {codes_of(divisor, x[i][0], x[i][1], x[i][2], x[i][3]),
                                      codes_of(divisor, x[i][4], x[i][5], x[i][6], x[i][7])};
      if (inside[i])
        *reinterpret_cast<vec<uint32_t, 2>*>(head + uint64_t{places[i].row} * a.codes_row +
                                             places[i].chunk * kChunk) = codes;
    }
  });
}

template <typename T>
__device__ void hadamard(const HadamardArguments& a) {
  const uint64_t count = a.count / kChunk, step = uint64_t{a.blocks} * kQuantizeItems;
  const uint32_t item = chunk_of_lane(thread());
  for (uint64_t base = uint64_t{block()} * kQuantizeItems; base < count; base += step) {
    const uint64_t chunk = base + item;
    const bool inside = chunk < count;
    const uint64_t at = (inside ? chunk : 0) * (kChunk * sizeof(T));
    const floatx8 x = load_chunk<T>(static_cast<const char*>(a.x) + at);
    const floatx8 y = rotated(x, item, a.rotation);
    if (inside) store_chunk<T>(static_cast<char*>(a.y) + at, y);
  }
}

}  // namespace

#define ZYFA_QUANTIZE_KERNELS(name, T)                                                             \
  __global__ __launch_bounds__(kQuantizeItems) void quantize_amax_##name(QuantizeArguments a) {    \
    amax<T>(a);                                                                                    \
  }                                                                                                \
  __global__ __launch_bounds__(kQuantizeItems) void quantize_convert_##name(QuantizeArguments a) { \
    convert<T>(a);                                                                                 \
  }                                                                                                \
  __global__ __launch_bounds__(kQuantizeItems) void hadamard_##name(HadamardArguments a) { hadamard<T>(a); }

ZYFA_QUANTIZE_KERNELS(f32, float)
ZYFA_QUANTIZE_KERNELS(f16, half)
ZYFA_QUANTIZE_KERNELS(bf16, bf16)
