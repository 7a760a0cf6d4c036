#include "attention.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "passes.hpp"

namespace zyfa::cpu {
namespace {

// present = past ++ new, as (batch, kv_heads, keys, dim).
void write_present(const AttentionProblem& p, const KeyRows& rows, void* present,
                   const ParallelFor& parallel_for) {
  if (present == nullptr) return;
  const size_t element = size_of(p.dtype), row_bytes = rows.dim * element;
  parallel_for(p.batch * p.kv_heads, [&](int64_t index) {
    const int64_t b = index / p.kv_heads, h = index % p.kv_heads;
    std::byte* target = static_cast<std::byte*>(present) + index * p.kv_len() * row_bytes;
    const auto source = [&](const RowView& view, int64_t row) {
      const Strides& s = view.strides;
      return static_cast<const std::byte*>(view.data) + (b * s.batch + h * s.head + row * s.row) * element;
    };
    if (rows.past_len > 0) std::memcpy(target, source(rows.past, 0), rows.past_len * row_bytes);
    target += rows.past_len * row_bytes;
    for (int64_t row = 0; row < p.new_len && row_bytes > 0; ++row)
      std::memcpy(target + row * row_bytes, source(rows.fresh, row), row_bytes);
  });
}

}  // namespace

void attention(const AttentionProblem& p, const AttentionTensors& t, const ParallelFor& parallel_for,
               const Fp8Trace* trace) {
  write_present(p, key_rows(p, t), t.present_key, parallel_for);
  write_present(p, value_rows(p, t), t.present_value, parallel_for);

  const Work work(p);
  if (work.items() == 0) return;
  const KeyMask mask(p, t.key_mask);
  const AttentionCall call{p, t, mask, kernels(), work};
  std::optional<Fp8Inputs> fp8;
  if (p.precision == Precision::fp8) fp8.emplace(p, t, mask, parallel_for);

  parallel_for(work.items(), [&](int64_t index) {
    const WorkItem item = work.item(index);
    if (item.panels == 0) return;
    if (fp8)
      fp8_pass(call, *fp8, item, trace);
    else
      softmax_pass(call, item);
  });
}

}  // namespace zyfa::cpu
