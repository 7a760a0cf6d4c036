#include "quantize.hpp"

#include <algorithm>
#include <cfloat>
#include <utility>
#include <vector>

#include "arena.hpp"
#include "elements.hpp"
#include "float_formats.hpp"

namespace zyfa::cpu {
namespace {

// Rows of a tensor, `stride` bytes apart: of consecutive heads or of consecutive positions.
struct Strip {
  DType type;
  const char* data;
  int64_t count, stride;
  int64_t head, at;  // of the first
  bool along_heads;

  int64_t head_of(int64_t i) const { return along_heads ? head + i : head; }
  int64_t at_of(int64_t i) const { return along_heads ? at : at + i; }
  const char* row(int64_t i) const { return data + i * stride; }
};

constexpr int64_t kElementsPerTask = 65536;
constexpr int64_t kStripRows = 32;

int64_t rows_per_task(const HeadRows& source) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, source.heads * source.stored.dim));
}

int64_t tasks_per_batch(const HeadRows& source) {
  return (source.rows + rows_per_task(source) - 1) / rows_per_task(source);
}

// Calls visit(strip) for the rows [first, last) of every head of a batch, in the order of memory.
template <typename Visit>
void for_each_strip(const HeadRows& source, int64_t b, int64_t first, int64_t last, const Visit& visit) {
  const auto cut = [&](int64_t head, int64_t at, int64_t count, bool along_heads) {
    const auto [view, index] = source.stored.where(at);
    const int64_t bytes =
        static_cast<int64_t>(size_of(view->dtype)) * (along_heads ? view->strides.head : view->strides.row);
    Strip strip{view->dtype, static_cast<const char*>(view->at(b, head, index)), 0, bytes, head, at,
                along_heads};
    for (int64_t done = 0; done < count; done += strip.count) {
      strip.count = std::min(kStripRows, count - done);
      visit(strip);
      strip.data = strip.row(strip.count);
      (along_heads ? strip.head : strip.at) += strip.count;
    }
  };
  const Strides& strides = source.stored.fresh.strides;
  if (strides.head < strides.row) {
    for (int64_t at = first; at < last; ++at) cut(0, at, source.heads, true);
    return;
  }
  const int64_t old = std::clamp(source.stored.past_len, first, last);
  for (int64_t h = 0; h < source.heads; ++h) {
    if (first < old) cut(h, first, old - first, false);
    if (old < last) cut(h, old, last - old, false);
  }
}

// Calls visit(task, b, strip) for every row of every head.
template <typename Visit>
void for_each_strip(const HeadRows& source, const ParallelFor& parallel_for, const Visit& visit) {
  const int64_t tasks = tasks_per_batch(source), rows = rows_per_task(source);
  parallel_for(source.batch * tasks, [&](int64_t task) {
    const int64_t b = task / tasks, first = task % tasks * rows, last = std::min(source.rows, first + rows);
    for_each_strip(source, b, first, last, [&](const Strip& strip) { visit(task, b, strip); });
  });
}

// Calls visit(rows, index of the first in the strip): all at once where one lies behind the other.
template <typename Visit>
void for_rotated_rows(const HeadRows& source, const Strip& strip, const Visit& visit) {
  const int64_t dim = source.stored.dim;
  Arena& arena = Arena::of_this_thread();
  arena.reset(Arena::bytes_for<float>(dim));
  float* scratch = arena.take<float>(dim);
  const bool together = strip.stride == dim * static_cast<int64_t>(size_of(strip.type));
  const int64_t count = together ? strip.count : 1;
  for (int64_t i = 0; i < strip.count; i += count)
    visit(RotatedRows{strip.type, strip.row(i), count, dim, source.rotation_block, scratch}, i);
}

// Largest finite magnitudes of the rows of a strip.
void largest_of_strip(const HeadRows& source, const Strip& strip, float* largest) {
  if (source.rotation_block != 0)
    return for_rotated_rows(source, strip, [&](const RotatedRows& rows, int64_t first) {
      elements().rotated_largest(rows, largest + first);
    });
  for (int64_t i = 0; i < strip.count; ++i)
    largest[i] = elements().largest_finite(strip.type, strip.row(i), source.stored.dim);
}

// `to` is of the first row.
void quantize_strip(const HeadRows& source, const Strip& strip, const RowCodes& to) {
  if (source.rotation_block != 0)
    return for_rotated_rows(source, strip, [&](const RotatedRows& rows, int64_t first) {
      elements().rotated_to_fp8(rows,
                                {to.scales + first * to.scale_step, to.scale_step, to.row(first), to.stride});
    });
  for (int64_t i = 0; i < strip.count; ++i)
    elements().to_fp8(strip.type, strip.row(i), source.stored.dim, to.scale(i), to.row(i));
}

}  // namespace

float fp8_scale(float amax) {
  if (amax == 0.0f) return 1.0f;
  const float scale = amax / kFp8Max;
  return scale < FLT_MIN ? FLT_MIN : scale;
}

std::vector<CodeScale> code_scales(const float* scales, int64_t count) {
  std::vector<CodeScale> prepared(count);
  std::transform(scales, scales + count, prepared.begin(), elements().code_scale);
  return prepared;
}

void head_amax(const HeadRows& source, const ParallelFor& parallel_for, float* amax) {
  const int64_t tasks = tasks_per_batch(source);
  std::vector<float> of_task(source.batch * tasks * source.heads, 0.0f);
  for_each_strip(source, parallel_for, [&](int64_t task, int64_t b, const Strip& strip) {
    const auto counts = [&](int64_t i) { return !source.counts || source.counts(b, strip.at_of(i)); };
    int64_t first = 0;
    while (first < strip.count && !counts(first)) ++first;
    if (first == strip.count) return;
    float of_row[kStripRows];
    largest_of_strip(source, strip, of_row);
    for (int64_t i = first; i < strip.count; ++i) {
      if (!counts(i)) continue;
      float& largest = of_task[task * source.heads + strip.head_of(i)];
      largest = std::max(largest, of_row[i]);
    }
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
  const std::vector<CodeScale> prepared = code_scales(scales, source.batch * source.heads);
  for_each_strip(source, parallel_for, [&](int64_t, int64_t b, const Strip& strip) {
    uint8_t* target = codes + b * strides.batch + strip.head * strides.head + strip.at * strides.row;
    const int64_t stride = strip.along_heads ? strides.head : strides.row;
    quantize_strip(source, strip,
                   {prepared.data() + b * source.heads + strip.head, strip.along_heads, target, stride});
  });
}

}  // namespace zyfa::cpu
