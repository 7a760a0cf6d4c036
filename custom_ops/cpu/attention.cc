#include "attention.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "fp8_inputs.hpp"
#include "group.hpp"

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

  const int64_t groups_per_head = (p.q_len + kGroupRows - 1) / kGroupRows;
  const int64_t groups = p.batch * p.q_heads * groups_per_head;
  if (groups == 0) return;
  const KeyMask mask(p, t.key_mask);
  const AttentionCall call{p, t, mask, kernels()};
  std::optional<Fp8Inputs> fp8;
  if (p.precision == Precision::fp8) fp8.emplace(p, t, mask, parallel_for);

  parallel_for(groups, [&](int64_t index) {
    // Last rows first: under a causal mask they are the longest.
    const int64_t heads = p.batch * p.q_heads;
    const int64_t first_row = (groups_per_head - 1 - index / heads) * kGroupRows;
    const Group group{index % heads / p.q_heads, index % p.q_heads, first_row,
                      std::min(kGroupRows, p.q_len - first_row)};
    if (fp8)
      fp8_group(call, *fp8, group, trace);
    else
      softmax_group(call, group);
  });
}

}  // namespace zyfa::cpu
