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
  const size_t row_bytes = rows.dim * size_of(p.dtype);
  parallel_for(p.batch * p.kv_heads, [&](int64_t index) {
    const int64_t b = index / p.kv_heads, h = index % p.kv_heads;
    std::byte* target = static_cast<std::byte*>(present) + index * p.kv_len() * row_bytes;
    if (rows.past_len > 0) std::memcpy(target, rows.at(b, h, 0), rows.past_len * row_bytes);
    target += rows.past_len * row_bytes;
    for (int64_t row = 0; row < p.new_len && row_bytes > 0; ++row)
      std::memcpy(target + row * row_bytes, rows.at(b, h, rows.past_len + row), row_bytes);
  });
}

void softmax_in_parts(const AttentionCall& call, const ParallelFor& parallel_for) {
  const int64_t items = call.work.items(), parts = call.work.parts(), panels = call.work.max_panels();
  std::vector<PartialPanel> partials(items * parts * panels);
  parallel_for(items * parts, [&](int64_t index) {
    const WorkItem item = call.work.item(index / parts);
    if (item.panels == 0) return;
    SoftmaxPass pass(call, item);
    pass.run(index % parts, parts);
    pass.save(partials.data() + index * panels);
  });
  parallel_for(items, [&](int64_t index) {
    const WorkItem item = call.work.item(index);
    if (item.panels == 0) return;
    SoftmaxPass pass(call, item);
    pass.merge(partials.data() + index * parts * panels, panels, parts);
    pass.write();
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

  if (fp8) {
    parallel_for(work.items(), [&](int64_t index) {
      if (const WorkItem item = work.item(index); item.panels > 0) fp8_pass(call, *fp8, item, trace);
    });
  } else if (work.parts() > 1) {
    softmax_in_parts(call, parallel_for);
  } else {
    parallel_for(work.items(), [&](int64_t index) {
      const WorkItem item = work.item(index);
      if (item.panels == 0) return;
      SoftmaxPass pass(call, item);
      pass.run(0, 1);
      pass.write();
    });
  }
}

}  // namespace zyfa::cpu
