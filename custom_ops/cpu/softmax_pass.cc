// Online softmax over ascending tiles.
#include <cmath>
#include <utility>

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

// Multiply-adds that the rows of a key head do with a key, from which on they are worth making terms of its
// tiles: 128 rows of 3 heads of 64 dims (49,152) take 5 % longer with them, 512 of one head 0.85 of the time.
constexpr int64_t kWorthTerms = 65536;

bool uses_terms(const AttentionCall& call) {
  const AttentionProblem& p = call.problem;
  return p.precision == Precision::fp32 && !call.work.has_few_rows() &&
         call.kernels.scores_terms != nullptr &&
         p.group_size() * p.q_len * (p.qk_dim + p.v_dim) >= kWorthTerms;
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
      queries_(arena_.take<PanelQuery>(item.panels)),
      term_queries_(arena_.take<TermQuery>(item.panels)) {
  if (uses_terms(call)) terms_.emplace(call.kernels, call.problem, arena_);
  const auto scale = [&](int64_t head) { return score_scale(call, item.batch, head); };
  for (int64_t i = 0; i < item.panels; ++i) {
    new (panels_ + i) Panel(call, item, i, form_, scratch_, arena_);
    new (queries_ + i)
        PanelQuery(panels_[i].load_query(query_rows(call.problem, call.tensors), {bfloat16_}, scale, arena_));
    if (terms_) term_queries_[i] = terms_->load_query(queries_[i], panels_[i].lanes, arena_);
  }
}

Arena& SoftmaxPass::reserve() const {
  const AttentionProblem& p = call_.problem;
  size_t bytes = TileOperands::bytes(form_, p.qk_dim, p.v_dim) +
                 PanelScratch::bytes(Panel::row_words(p, form_)) + Arena::bytes_for<Panel>(item_.panels) +
                 Arena::bytes_for<PanelQuery>(item_.panels) + Arena::bytes_for<TermQuery>(item_.panels) +
                 item_.panels * Panel::bytes(p, form_, 1);
  if (uses_terms(call_)) bytes += TermOperands::bytes(p) + item_.panels * TermOperands::query_bytes(p);
  Arena& arena = Arena::of_this_thread();
  arena.reset(bytes);
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
      if (!loaded) {
        operands_.load(item_.batch, item_.kv_head, tile);
        if (terms_) terms_->load(operands_);
      }
      loaded = true;
      if (tile + 1 < past) operands_.fetch(item_.batch, item_.kv_head, tile + 1, i, item_.panels);
      if (terms_ && terms_->usable() && term_queries_[i].usable)
        begin(i);
      else
        step(panels_[i], queries_[i]);
    }
    finish();
  }
}

void SoftmaxPass::step(Panel& panel, const PanelQuery& query) {
  const Kernels& kernels = call_.kernels;
  finish();
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

// Vectors work on one panel while tile registers multiply for the next: 7 % less time at 8,192 rows than one
// after the other.
void SoftmaxPass::begin(int64_t index) {
  Panel& panel = panels_[index];
  const Kernels& kernels = call_.kernels;
  const int64_t pieces = begun_ == nullptr ? 0 : kTileKeys / 2;
  terms_->scores(term_queries_[index], panel.size(), {kernels.softmax_piece, &softmax_, pieces},
                 scratch_.next_scores);
  add_values();
  std::swap(scratch_.scores, scratch_.next_scores);
  panel.finish_scores(queries_[index], false);
  softmax_.factor = queries_[index].scale.factor;
  softmax_.lanes = panel.lanes;
  softmax_.state = &panel.state;
  softmax_.s = scratch_.scores;
  softmax_.p = scratch_.pairs;
  kernels.begin_softmax(softmax_);
  begun_ = &panel;
}

void SoftmaxPass::finish() {
  if (begun_ == nullptr) return;
  for (int64_t piece = 0; piece < kTileKeys / 2; ++piece) call_.kernels.softmax_piece(softmax_, piece);
  add_values();
}

void SoftmaxPass::add_values() {
  if (begun_ == nullptr) return;
  call_.kernels.end_softmax(softmax_);
  terms_->accumulate(scratch_.pairs, begun_->size(), begun_->state.keep, begun_->output);
  begun_ = nullptr;
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
