// Lean P in interior tiles, two-term or BF16 P in edge tiles.
#include <algorithm>
#include <cmath>
#include <new>
#include <optional>

#include "passes.hpp"
#include "tile_order.hpp"

namespace zyfa::cpu {
namespace {

constexpr int64_t kBlocks = kPanelLanes / kLaneBlock;

ScoreScale score_scale(const AttentionCall& call, float q_scale, float k_scale) {
  const float natural = call.problem.scale * q_scale * k_scale;
  if (call.tensors.attn_bias != nullptr || call.problem.softcap > 0.0f)
    return {natural, false, false, 1.0f, true};
  const float a = std::fabs(natural * kLog2E);
  return {natural, natural < 0.0f, a == 0.0f, a == 0.0f ? 1.0f : a, false};
}

Operand form_of(const AttentionCall& call) {
  if (call.work.has_few_rows()) return Operand::fp32_few_rows;
  // A bfloat16 value over v_scale needs FP32.
  return call.problem.fp8_edges == Fp8Edges::bf16 ? Operand::fp32 : call.kernels.fastest;
}

// K and V, loaded when the first panel wants them.
struct Source {
  TileOperands operands;
  int64_t loaded = -1;
};

struct Fp8Panel {
  // load_codes(panel): its query.
  template <typename Load>
  Fp8Panel(const AttentionCall& call, const WorkItem& item, int64_t index, Operand form,
           const PanelScratch& scratch, Arena& arena, const Load& load_codes)
      : panel(call, item, index, form, scratch, arena), codes(load_codes(panel)) {
    for (int64_t block = 0; block < kBlocks; ++block)
      groups[block] = Fp8Group(call.problem, call.mask.range(item.batch),
                               panel.rows.row(std::min(block * kLaneBlock, panel.rows.lanes - 1)));
  }

  Panel panel;
  Fp8Group groups[kBlocks];  // by block of lanes
  PanelQuery codes;
  std::optional<PanelQuery> bfloat16;  // with fp8_edges = "bf16"
};

class Fp8Pass {
 public:
  Fp8Pass(const AttentionCall& call, const Fp8Inputs& inputs, const WorkItem& item, const Fp8Trace* trace)
      : call_(call),
        inputs_(inputs),
        item_(item),
        trace_(trace),
        bfloat16_edges_(call.problem.fp8_edges == Fp8Edges::bf16),
        form_(form_of(call)),
        value_scale_(inputs.v_scale[kv_index()]),
        arena_(reserve()),
        scratch_(Panel::row_words(call.problem, form_), arena_),
        codes_{operands({inputs.key, inputs.value, false, 1.0f})},
        panels_(arena_.take<Fp8Panel>(item.panels)) {
    const AttentionProblem& p = call.problem;
    if (bfloat16_edges_)
      bfloat16_.emplace(Source{
          operands({key_rows(p, call.tensors), value_rows(p, call.tensors), true, 1.0f / value_scale_})});
    for (int64_t i = 0; i < item.panels; ++i) make_panel(i);
  }

  void run() {
    const RowRange rows = call_.work.rows(item_);
    {
      const PairsScope scope(call_.kernels);
      const std::vector<int64_t> tiles = fp8_tiles(call_.problem, mask(), rows.first, rows.count);
      for (size_t t = 0; t < tiles.size(); ++t)
        for (int64_t i = 0; i < item_.panels; ++i) {
          if (!panels_[i].panel.look_at(tiles[t])) continue;
          if (t + 1 < tiles.size())
            codes_.operands.fetch(item_.batch, item_.kv_head, tiles[t + 1], i, item_.panels);
          visit(panels_[i], tiles[t]);
        }
    }
    float ones[kPanelLanes];
    std::fill_n(ones, kPanelLanes, 1.0f);
    for (int64_t i = 0; i < item_.panels; ++i)
      panels_[i].panel.write(kFp8Unit, [&](int64_t) { return value_scale_; }, ones);
  }

 private:
  int64_t kv_index() const { return item_.batch * call_.problem.kv_heads + item_.kv_head; }
  KeyRange mask() const { return call_.mask.range(item_.batch); }

  Arena& reserve() const {
    const AttentionProblem& p = call_.problem;
    Arena& arena = Arena::of_this_thread();
    arena.reset((bfloat16_edges_ ? 2 : 1) * TileOperands::bytes(form_, p.qk_dim, p.v_dim) +
                PanelScratch::bytes(Panel::row_words(p, form_)) +
                item_.panels *
                    (Arena::bytes_for<Fp8Panel>(1) + Panel::bytes(p, form_, bfloat16_edges_ ? 2 : 1)));
    return arena;
  }

  TileOperands operands(const OperandSource& source) const {
    return {call_.kernels, form_, source, call_.problem.kv_len(), arena_};
  }

  void make_panel(int64_t index) {
    const AttentionProblem& p = call_.problem;
    const auto quantised = [&](int64_t head) {
      return score_scale(call_, inputs_.q_scale[item_.batch * p.q_heads + head], inputs_.k_scale[kv_index()]);
    };
    const bool are_codes = inputs_.query.dtype == DType::float8e4m3fn;
    const QueryForm form = {false, are_codes ? nullptr : inputs_.query_codes.data() + item_.batch * p.q_heads,
                            inputs_.rotation_block};
    Fp8Panel& made = *new (panels_ + index) Fp8Panel(
        call_, item_, index, form_, scratch_, arena_,
        [&](const Panel& panel) { return panel.load_query(inputs_.query, form, quantised, arena_); });
    if (bfloat16_edges_)
      made.bfloat16 = made.panel.load_query(
          query_rows(p, call_.tensors), {true}, [&](int64_t) { return score_scale(call_, 1.0f, 1.0f); },
          arena_);
  }

  // Blocks that meet the tile with codes, then those that meet it with bfloat16 values.
  void visit(Fp8Panel& panel, int64_t tile) {
    BlockKind codes[kBlocks], bfloat16[kBlocks];
    bool any_codes = false, any_bfloat16 = false;
    for (int64_t block = 0; block < panel.panel.lanes / kLaneBlock; ++block) {
      const Fp8Group& group = panel.groups[block];
      codes[block] = bfloat16[block] = BlockKind::skip;
      if (!group.meets(tile)) continue;
      const bool edge = group.is_edge(tile) && call_.problem.fp8_edges != Fp8Edges::none;
      if (edge && bfloat16_edges_)
        bfloat16[block] = BlockKind::bfloat16;
      else
        codes[block] = edge ? BlockKind::two_term : BlockKind::lean;
      any_codes |= codes[block] != BlockKind::skip;
      any_bfloat16 |= bfloat16[block] != BlockKind::skip;
    }
    if (any_codes) step(panel.panel, panel.codes, codes_, tile, codes);
    if (any_bfloat16) step(panel.panel, *panel.bfloat16, *bfloat16_, tile, bfloat16);
  }

  void step(Panel& panel, const PanelQuery& query, Source& source, int64_t tile, const BlockKind* kinds) {
    if (source.loaded != tile) source.operands.load(item_.batch, item_.kv_head, tile);
    source.loaded = tile;
    source.operands.scores(query.data, panel.size(), scratch_.scores);
    panel.finish_scores(query, true);
    const BlockKind* end = kinds + panel.lanes / kLaneBlock;
    const bool low = is_pairs(form_) && std::find(kinds, end, BlockKind::two_term) != end;
    if (!is_pairs(form_))
      call_.kernels.fp8_fp32(query.scale, kinds, panel.lanes, panel.size().spans, panel.state,
                             scratch_.scores);
    else
      call_.kernels.fp8_pairs(query.scale, kinds, panel.lanes, panel.size().spans, panel.state,
                              scratch_.scores, scratch_.pairs, low ? scratch_.low_pairs : nullptr);
    panel.accumulate(source.operands, kinds, low);
    if (trace_ != nullptr) report(panel, tile, kinds, low);
  }

  void report(const Panel& panel, int64_t tile, const BlockKind* kinds, bool low) const {
    for (int64_t lane = 0; lane < panel.rows.lanes; ++lane) {
      const BlockKind kind = kinds[lane / kLaneBlock];
      const uint64_t seen = panel.seen(lane);
      if (kind == BlockKind::skip || seen == 0) continue;
      float p[kTileKeys] = {};
      for (int64_t key = 0; key < kTileKeys; ++key)
        if ((seen >> key & 1) != 0)
          p[key] = panel.probability(key, lane, false) + (low ? panel.probability(key, lane, true) : 0.0f);
      (*trace_)({item_.batch, panel.rows.head(lane), panel.rows.row(lane), tile, kind != BlockKind::lean,
                 panel.state.anchor[lane], panel.state.exponent[lane], p});
    }
  }

  const AttentionCall& call_;
  const Fp8Inputs& inputs_;
  const WorkItem& item_;
  const Fp8Trace* trace_;
  const bool bfloat16_edges_;
  const Operand form_;
  const float value_scale_;
  Arena& arena_;
  PanelScratch scratch_;
  Source codes_;
  std::optional<Source> bfloat16_;  // with fp8_edges = "bf16"
  Fp8Panel* panels_;
};

}  // namespace

void fp8_pass(const AttentionCall& call, const Fp8Inputs& inputs, const WorkItem& item,
              const Fp8Trace* trace) {
  Fp8Pass(call, inputs, item, trace).run();
}

}  // namespace zyfa::cpu
