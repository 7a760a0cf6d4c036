#include "quantize.hpp"

#include <cfloat>
#include <cmath>
#include <vector>

#include "float_formats.hpp"
#include "hadamard.hpp"

namespace zyfa::cpu {
namespace {

void read_rotated(const HeadRows& source, int64_t b, int64_t h, int64_t row, float* out) {
  source.read(b, h, row, out);
  if (source.rotation_block != 0) hadamard_row(out, source.dim, source.rotation_block);
}

float largest_finite(const float* row, int64_t count, float so_far) {
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = std::fabs(row[i]);
    if (magnitude <= FLT_MAX && magnitude > so_far) so_far = magnitude;
  }
  return so_far;
}

}  // namespace

float fp8_scale(float amax) {
  if (amax == 0.0f) return 1.0f;
  const float scale = amax / kFp8Max;
  return scale < FLT_MIN ? FLT_MIN : scale;
}

void head_amax(const HeadRows& source, const ParallelFor& parallel_for, float* amax) {
  parallel_for(source.batch * source.heads, [&](int64_t index) {
    const int64_t b = index / source.heads, h = index % source.heads;
    std::vector<float> row(source.dim);
    float largest = 0.0f;
    for (int64_t at = 0; at < source.rows; ++at) {
      if (source.counts && !source.counts(b, at)) continue;
      read_rotated(source, b, h, at, row.data());
      largest = largest_finite(row.data(), source.dim, largest);
    }
    amax[index] = largest;
  });
}

void quantize_heads(const HeadRows& source, const ParallelFor& parallel_for, const float* scales,
                    uint8_t* codes, const Strides& strides) {
  parallel_for(source.batch * source.heads, [&](int64_t index) {
    const int64_t b = index / source.heads, h = index % source.heads;
    std::vector<float> row(source.dim);
    for (int64_t at = 0; at < source.rows; ++at) {
      read_rotated(source, b, h, at, row.data());
      uint8_t* target = codes + b * strides.batch + h * strides.head + at * strides.row;
      for (int64_t i = 0; i < source.dim; ++i) target[i] = to_fp8(row[i] / scales[index]);
    }
  });
}

}  // namespace zyfa::cpu
