// Online softmax over ascending tiles.
#include <cmath>

#include "passes.hpp"
#include "tile_order.hpp"

namespace zyfa::cpu {
namespace {

// Descales of float8e4m3fn inputs enter here: this path computes with the stored values.
float descale(const AttentionProblem& p, const float* scales, ScaleStrides strides, int64_t batch, int64_t head) {
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

}  // namespace

void softmax_pass(const AttentionCall& call, const WorkItem& item) {
  const AttentionProblem& p = call.problem;
  const Kernels& kernels = call.kernels;
  const bool bfloat16 = p.precision == Precision::bf16;
  const Operand form = bfloat16 ? kernels.fastest : Operand::fp32;
  const int64_t row_words = Panel::row_words(p, form);

  Arena& arena = Arena::of_this_thread();
  arena.reset(TileOperands::bytes(form, p.qk_dim, p.v_dim) + PanelScratch::bytes(row_words) +
              item.panels * (Arena::bytes_for<Panel>(1) + Arena::bytes_for<PanelQuery>(1) +
                             Panel::bytes(p, form, 1)));
  const PanelScratch scratch(row_words, arena);
  TileOperands operands(kernels, form, {key_rows(p, call.tensors), value_rows(p, call.tensors), bfloat16, 1.0f},
                        p.kv_len(), arena);
  Panel* panels = arena.take<Panel>(item.panels);
  PanelQuery* queries = arena.take<PanelQuery>(item.panels);
  for (int64_t i = 0; i < item.panels; ++i) {
    new (panels + i) Panel(call, item, i, form, scratch, arena);
    new (queries + i) PanelQuery(panels[i].load_query(
        query_rows(p, call.tensors), bfloat16,
        [&](int64_t head) { return score_scale(call, item.batch, head); }, arena));
  }

  const RowRange rows = call.work.rows(item);
  const KeyRange tiles = ascending_tiles(p, call.mask.range(item.batch), rows.first, rows.count);
  kernels.begin_pairs();
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    bool loaded = false;
    for (int64_t i = 0; i < item.panels; ++i) {
      Panel& panel = panels[i];
      if (!panel.look_at(tile)) continue;
      if (!loaded) operands.load(item.batch, item.kv_head, tile);
      loaded = true;
      const float* factor = queries[i].scale.factor;
      operands.scores(queries[i].data, panel.lanes, scratch.scores);
      panel.finish_scores(queries[i], false);
      if (form == Operand::bfloat16_pairs)
        kernels.softmax_pairs(factor, panel.lanes, panel.state, scratch.scores, scratch.pairs);
      else
        (bfloat16 ? kernels.softmax_bfloat16 : kernels.softmax_fp32)(factor, panel.lanes, panel.state,
                                                                     scratch.scores);
      panel.accumulate(operands, nullptr, false);
    }
  }
  kernels.end_pairs();
  for (int64_t i = 0; i < item.panels; ++i)
    panels[i].write(
        0.0f,
        [&](int64_t head) { return descale(p, call.tensors.v_scale, p.v_scale, item.batch, p.kv_head(head)); },
        queries[i].scale.factor);
}

}  // namespace zyfa::cpu
