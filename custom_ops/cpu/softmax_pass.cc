// Online softmax over ascending tiles.
#include <cmath>

#include "passes.hpp"
#include "tile_order.hpp"

namespace zyfa::cpu {
namespace {

// Descales of float8e4m3fn inputs enter here: this path computes with the stored values.
float descale(const AttentionProblem& p, const float* scales, ScaleStrides strides, int64_t batch,
              int64_t head) {
  return p.dtype == DType::float8e4m3fn ? scales[batch * strides.batch + head * strides.head] : 1.0f;
}

ScoreScale score_scale(const AttentionCall& call, int64_t batch, int64_t head) {
  const AttentionProblem& p = call.problem;
  const float natural = p.scale * (descale(p, call.tensors.q_scale, p.q_scale, batch, head) *
                                   descale(p, call.tensors.k_scale, p.k_scale, batch, p.kv_head(head)));
  if (call.tensors.attn_bias != nullptr || p.softcap > 0.0f) return {natural, false, false, kLog2E, true};
  if (natural == 0.0f) return {natural, false, true, 1.0f, false};
  return {natural, natural < 0.0f, false, std::fabs(natural) * kLog2E, false};
}

Operand form_of(const AttentionCall& call) {
  if (call.work.has_few_rows()) return Operand::fp32_few_rows;
  return call.problem.precision == Precision::bf16 ? call.kernels.fastest : Operand::fp32;
}

}  // namespace

SoftmaxPass::SoftmaxPass(const AttentionCall& call, const WorkItem& item)
    : call_(call),
      item_(item),
      bfloat16_(call.problem.precision == Precision::bf16),
      form_(form_of(call)),
      arena_(reserve()),
      scratch_(Panel::row_words(call.problem, form_), arena_),
      operands_(
          call.kernels, form_,
          {key_rows(call.problem, call.tensors), value_rows(call.problem, call.tensors), bfloat16_, 1.0f},
          call.problem.kv_len(), arena_),
      panels_(arena_.take<Panel>(item.panels)),
      queries_(arena_.take<PanelQuery>(item.panels)) {
  const auto scale = [&](int64_t head) { return score_scale(call, item.batch, head); };
  for (int64_t i = 0; i < item.panels; ++i) {
    new (panels_ + i) Panel(call, item, i, form_, scratch_, arena_);
    new (queries_ + i)
        PanelQuery(panels_[i].load_query(query_rows(call.problem, call.tensors), {bfloat16_}, scale, arena_));
  }
}

Arena& SoftmaxPass::reserve() const {
  const AttentionProblem& p = call_.problem;
  Arena& arena = Arena::of_this_thread();
  arena.reset(TileOperands::bytes(form_, p.qk_dim, p.v_dim) +
              PanelScratch::bytes(Panel::row_words(p, form_)) + Arena::bytes_for<Panel>(item_.panels) +
              Arena::bytes_for<PanelQuery>(item_.panels) + item_.panels * Panel::bytes(p, form_, 1));
  return arena;
}

void SoftmaxPass::run(int64_t part, int64_t parts) {
  const RowRange rows = call_.work.rows(item_);
  const KeyRange tiles =
      ascending_tiles(call_.problem, call_.mask.range(item_.batch), rows.first, rows.count);
  const int64_t count = tiles.end - tiles.begin;
  const PairsScope scope(call_.kernels);
  const int64_t first = tiles.begin + count * part / parts, past = tiles.begin + count * (part + 1) / parts;
  for (int64_t tile = first; tile < past; ++tile) {
    bool loaded = false;
    for (int64_t i = 0; i < item_.panels; ++i) {
      if (!panels_[i].look_at(tile)) continue;
      if (!loaded) operands_.load(item_.batch, item_.kv_head, tile);
      loaded = true;
      if (tile + 1 < past) operands_.fetch(item_.batch, item_.kv_head, tile + 1, i, item_.panels);
      step(panels_[i], queries_[i]);
    }
  }
}

void SoftmaxPass::step(Panel& panel, const PanelQuery& query) {
  const Kernels& kernels = call_.kernels;
  operands_.scores(query.data, panel.size(), scratch_.scores);
  panel.finish_scores(query, false);
  if (is_pairs(form_))
    kernels.softmax_pairs(query.scale.factor, panel.lanes, panel.state, scratch_.scores, scratch_.pairs);
  else if (bfloat16_)
    kernels.softmax_bfloat16(query.scale.factor, panel.lanes, panel.state, scratch_.scores);
  else
    kernels.softmax_fp32(query.scale.factor, panel.lanes, panel.state, scratch_.scores);
  panel.accumulate(operands_, nullptr, false);
}

void SoftmaxPass::write() const {
  const AttentionProblem& p = call_.problem;
  for (int64_t i = 0; i < item_.panels; ++i)
    panels_[i].write(
        0.0f,
        [&](int64_t head) {
          return descale(p, call_.tensors.v_scale, p.v_scale, item_.batch, p.kv_head(head));
        },
        queries_[i].scale.factor);
}

void SoftmaxPass::save(PartialPanel* partials) const {
  for (int64_t i = 0; i < item_.panels; ++i) partials[i].save(panels_[i]);
}

void SoftmaxPass::merge(const PartialPanel* partials, int64_t step, int64_t parts) {
  for (int64_t i = 0; i < item_.panels; ++i)
    panels_[i].merge(partials + i, step, parts, queries_[i].scale.factor);
}

}  // namespace zyfa::cpu
