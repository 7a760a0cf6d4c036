#include "quantize.hpp"

#include <algorithm>
#include <cfloat>
#include <utility>
#include <vector>

#include "elements.hpp"
#include "float_formats.hpp"

namespace zyfa::cpu {
namespace {

struct Row {
  DType type;
  const void* data;
};

constexpr int64_t kElementsPerTask = 65536;
constexpr int64_t kStripElements = 4096;  // rotated at once, into the first cache

int64_t rows_per_task(const HeadRows& source) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, source.heads * source.stored.dim));
}

int64_t tasks_per_batch(const HeadRows& source) {
  return (source.rows + rows_per_task(source) - 1) / rows_per_task(source);
}

// Rows in the order of memory, as they are stored or rotated.
class RowReader {
 public:
  RowReader(const HeadRows& source, int64_t batch)
      : source_(source), batch_(batch), dim_(source.stored.dim), block_(source.rotation_block) {
    if (block_ != 0) rotated_.resize(std::max(kStripElements, dim_));
  }

  // Calls visit(h, row position, row) for the rows [first, last) of every head.
  template <typename Visit>
  void each(int64_t first, int64_t last, const Visit& visit) {
    const Strides& strides = source_.stored.fresh.strides;
    if (strides.head < strides.row) {
      for (int64_t at = first; at < last; ++at) {
        const auto [view, index] = source_.stored.where(at);
        strip(*view, 0, index, source_.heads, view->strides.head,
              [&, at = at](int64_t h, const Row& row) { visit(h, at, row); });
      }
      return;
    }
    const int64_t old = std::clamp(source_.stored.past_len, first, last);
    for (int64_t h = 0; h < source_.heads; ++h)
      for (const auto& [from, to] : {std::pair{first, old}, std::pair{old, last}}) {
        if (from == to) continue;
        const auto [view, index] = source_.stored.where(from);
        strip(*view, h, index, to - from, view->strides.row,
              [&, from = from](int64_t i, const Row& row) { visit(h, from + i, row); });
      }
  }

 private:
  // `count` rows of a tensor, `stride` elements apart; those that lie close together are rotated together.
  template <typename Visit>
  void strip(const RowView& view, int64_t h, int64_t index, int64_t count, int64_t stride,
             const Visit& visit) {
    const int64_t bytes = static_cast<int64_t>(size_of(view.dtype)) * stride;
    const char* first = static_cast<const char*>(view.at(batch_, h, index));
    if (block_ == 0) {
      for (int64_t i = 0; i < count; ++i) visit(i, Row{view.dtype, first + i * bytes});
      return;
    }
    const int64_t most =
        stride == dim_ ? std::max<int64_t>(1, kStripElements / std::max<int64_t>(1, dim_)) : 1;
    for (int64_t i = 0; i < count; i += most) {
      const int64_t rows = std::min(most, count - i);
      elements().rotate(view.dtype, first + i * bytes, rows * dim_, block_, DType::float32, rotated_.data(),
                        nullptr);
      for (int64_t r = 0; r < rows; ++r) visit(i + r, Row{DType::float32, rotated_.data() + r * dim_});
    }
  }

  const HeadRows& source_;
  const int64_t batch_, dim_, block_;
  std::vector<float> rotated_;
};

// Calls visit(task, b, h, row position, row) for every row of every head, in the order of memory within a
// task.
template <typename Visit>
void for_each_row(const HeadRows& source, const ParallelFor& parallel_for, const Visit& visit) {
  const int64_t tasks = tasks_per_batch(source), rows = rows_per_task(source);
  parallel_for(source.batch * tasks, [&](int64_t task) {
    const int64_t b = task / tasks, first = task % tasks * rows, last = std::min(source.rows, first + rows);
    RowReader(source, b).each(first, last,
                              [&](int64_t h, int64_t at, const Row& row) { visit(task, b, h, at, row); });
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
  const auto largest_finite = elements().largest_finite;
  for_each_row(source, parallel_for, [&](int64_t task, int64_t b, int64_t h, int64_t at, const Row& row) {
    if (source.counts && !source.counts(b, at)) return;
    float& largest = of_task[task * source.heads + h];
    largest = std::max(largest, largest_finite(row.type, row.data, source.stored.dim));
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
  const auto to_fp8 = elements().to_fp8;
  for_each_row(source, parallel_for, [&](int64_t, int64_t b, int64_t h, int64_t at, const Row& row) {
    uint8_t* target = codes + b * strides.batch + h * strides.head + at * strides.row;
    to_fp8(row.type, row.data, source.stored.dim, scales[b * source.heads + h], target);
  });
}

}  // namespace zyfa::cpu
