#include "quantize.hpp"

#include <algorithm>
#include <cfloat>
#include <vector>

#include "elements.hpp"
#include "float_formats.hpp"

namespace zyfa::cpu {
namespace {

struct Row {
  DType type;
  const void* data;
};

// The row as it is stored, or in `scratch` when it has to be rotated.
Row row_at(const HeadRows& source, int64_t b, int64_t h, int64_t at, float* scratch) {
  const auto [view, index] = source.stored.where(at);
  const Row row = {view->dtype, view->at(b, h, index)};
  if (source.rotation_block == 0) return row;
  elements().rotate(row.type, row.data, source.stored.dim, source.rotation_block, DType::float32, scratch,
                    nullptr);
  return {DType::float32, scratch};
}

constexpr int64_t kElementsPerTask = 65536;

int64_t rows_per_task(const HeadRows& source) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, source.heads * source.stored.dim));
}

int64_t tasks_per_batch(const HeadRows& source) {
  return (source.rows + rows_per_task(source) - 1) / rows_per_task(source);
}

// Calls visit(task, b, h, row, scratch of `dim` floats) for every row of every head, in the order of memory
// within a task.
template <typename Visit>
void for_each_row(const HeadRows& source, const ParallelFor& parallel_for, const Visit& visit) {
  const int64_t tasks = tasks_per_batch(source), rows = rows_per_task(source);
  parallel_for(source.batch * tasks, [&](int64_t task) {
    const int64_t b = task / tasks, first = task % tasks * rows, last = std::min(source.rows, first + rows);
    std::vector<float> scratch(source.stored.dim);
    const Strides& strides = source.stored.fresh.strides;
    if (strides.head < strides.row) {
      for (int64_t at = first; at < last; ++at)
        for (int64_t h = 0; h < source.heads; ++h) visit(task, b, h, at, scratch.data());
    } else {
      for (int64_t h = 0; h < source.heads; ++h)
        for (int64_t at = first; at < last; ++at) visit(task, b, h, at, scratch.data());
    }
  });
}

}  // namespace

float fp8_scale(float amax) {
  if (amax == 0.0f) return 1.0f;
  const float scale = amax / kFp8Max;
  return scale < FLT_MIN ? FLT_MIN : scale;
}

void head_amax(const HeadRows& source, const ParallelFor& parallel_for, float* amax) {
  const int64_t tasks = tasks_per_batch(source);
  std::vector<float> of_task(source.batch * tasks * source.heads, 0.0f);
  for_each_row(source, parallel_for, [&](int64_t task, int64_t b, int64_t h, int64_t at, float* scratch) {
    if (source.counts && !source.counts(b, at)) return;
    const Row row = row_at(source, b, h, at, scratch);
    float& largest = of_task[task * source.heads + h];
    largest = std::max(largest, elements().largest_finite(row.type, row.data, source.stored.dim));
  });
  std::fill(amax, amax + source.batch * source.heads, 0.0f);
  for (int64_t task = 0; task < source.batch * tasks; ++task)
    for (int64_t h = 0; h < source.heads; ++h) {
      float& largest = amax[task / tasks * source.heads + h];
      largest = std::max(largest, of_task[task * source.heads + h]);
    }
}

void quantize_heads(const HeadRows& source, const ParallelFor& parallel_for, const float* scales,
                    uint8_t* codes, const Strides& strides) {
  for_each_row(source, parallel_for, [&](int64_t, int64_t b, int64_t h, int64_t at, float* scratch) {
    const Row row = row_at(source, b, h, at, scratch);
    uint8_t* target = codes + b * strides.batch + h * strides.head + at * strides.row;
    elements().to_fp8(row.type, row.data, source.stored.dim, scales[b * source.heads + h], target);
  });
}

}  // namespace zyfa::cpu
