#include "panel.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "elements.hpp"
#include "float_formats.hpp"

namespace zyfa::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLn2 = 0.69314718055994530942;
constexpr int64_t kPairWords = kTileKeys / 2 * kPanelLanes;  // of the probabilities of a tile

// Sign of Q and what stands for a scale of 0.
void apply_sign(const ScoreScale& scale, int64_t count, float* row) {
  if (scale.negate)
    for (int64_t i = 0; i < count; ++i) row[i] = -row[i];
  if (scale.zero)
    for (int64_t i = 0; i < count; ++i) row[i] = row[i] == row[i] ? 0.0f : row[i];
}

// Which key of the tile a key is, from 0 to kTileKeys.
int32_t in_tile(int64_t key, int64_t tile) {
  return static_cast<int32_t>(std::clamp<int64_t>(key - tile * kTileKeys, 0, kTileKeys));
}

}  // namespace

PanelScratch::PanelScratch(int64_t row_words, Arena& arena)
    : scores(arena.take<float>(kTileKeys * kPanelLanes)),
      next_scores(arena.take<float>(kTileKeys * kPanelLanes)),
      pairs(arena.take<uint32_t>(kMostTerms * kPairWords)),
      low_pairs(pairs + kPairWords),
      rows(arena.take<uint32_t>(kPanelLanes * row_words)) {}

size_t PanelScratch::bytes(int64_t row_words) {
  return 2 * Arena::bytes_for<float>(kTileKeys * kPanelLanes) +
         Arena::bytes_for<uint32_t>(kMostTerms * kPairWords) +
         Arena::bytes_for<uint32_t>(kPanelLanes * row_words);
}

int64_t Panel::row_words(const AttentionProblem& p, Operand form) {
  // Twice the dims: a row in FP32 and, behind it, its pairs.
  return std::max(2 * padded(p.qk_dim, kStep), TileOperands::columns(form, p.v_dim));
}

size_t Panel::bytes(const AttentionProblem& p, Operand form, int64_t queries) {
  return Arena::bytes_for<float>(TileOperands::columns(form, p.v_dim) * kPanelLanes) +
         queries * Arena::bytes_for<float>(padded(p.qk_dim, kStep) * kPanelLanes);
}

Panel::Panel(const AttentionCall& call, const WorkItem& item, int64_t index, Operand form,
             const PanelScratch& scratch, Arena& arena)
    : rows(call.work.panel(item, index)),
      lanes(padded(rows.lanes, kLaneBlock)),
      call_(call),
      scratch_(scratch),
      batch_(item.batch),
      columns_(TileOperands::columns(form, call.problem.v_dim)),
      form_(form),
      common_{0, std::numeric_limits<int64_t>::max()},
      together_{std::numeric_limits<int64_t>::max(), 0} {
  output = arena.take<float>(columns_ * kPanelLanes);
  std::fill_n(output, columns_ * lanes, 0.0f);
  std::fill_n(state.anchor, kPanelLanes, -kInfinity);
  std::fill_n(state.sum, kPanelLanes, 0.0f);
  std::fill_n(state.nan, kPanelLanes, 0);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const KeyRange& range = range_[lane] =
        lane < rows.lanes ? call.problem.visible_keys(rows.row(lane)) : range_[0];
    common_ = {std::max(common_.begin, range.begin), std::min(common_.end, range.end)};
    if (!range.empty())
      together_ = {std::min(together_.begin, range.begin), std::max(together_.end, range.end)};
  }
}

void Panel::read_query(const RowView& view, const QueryForm& form, int64_t lane, float* row) const {
  const int64_t dim = call_.problem.qk_dim, head = rows.head(lane);
  const void* stored = view.at(batch_, head, rows.row(lane));
  if (form.fp8_scales == nullptr) return call_.kernels.to_fp32(view.dtype, stored, dim, row);
  // Codes take the place of the pairs that are made of them later.
  uint8_t* codes = reinterpret_cast<uint8_t*>(row + padded(dim, kStep));
  const CodeScale& scale = form.fp8_scales[head];
  if (form.rotation_block != 0)
    elements().rotated_to_fp8({view.dtype, stored, 1, dim, form.rotation_block, row}, {&scale, 0, codes, 0});
  else
    elements().to_fp8(view.dtype, stored, dim, scale, codes);
  call_.kernels.to_fp32(DType::float8e4m3fn, codes, dim, row);
}

void Panel::prepare_row(const RowView& view, const QueryForm& form, const ScoreScale& scale, int64_t lane,
                        float* row, uint16_t* pairs) const {
  const int64_t dim = call_.problem.qk_dim;
  if (is_pairs(form_) && form.fp8_scales == nullptr && !scale.negate && !scale.zero)
    return call_.kernels.to_bfloat16(view.dtype, view.at(batch_, rows.head(lane), rows.row(lane)), dim,
                                     pairs);
  read_query(view, form, lane, row);
  apply_sign(scale, dim, row);
  if (!form.to_bfloat16 && !is_pairs(form_)) return;
  call_.kernels.to_bfloat16(DType::float32, row, dim, pairs);
  if (!is_pairs(form_)) call_.kernels.to_fp32(DType::bfloat16, pairs, dim, row);
}

PanelQuery Panel::load_query(const RowView& view, const QueryForm& form,
                             const std::function<ScoreScale(int64_t head)>& scale_of, Arena& arena) const {
  const int64_t dim = call_.problem.qk_dim, width = padded(dim, kStep), stride = 2 * width;
  const Kernels& kernels = call_.kernels;
  PanelQuery query;
  query.data = arena.take<float>(width * kPanelLanes);
  int64_t head = -1;
  ScoreScale scale{};
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const bool there = lane < rows.lanes;
    if (const int64_t of = rows.head(there ? lane : 0); of != head) scale = scale_of(head = of);
    query.scale.finished = scale.finished;
    query.scale.factor[lane] = scale.factor;
    query.natural[lane] = scale.natural;
    float* row = reinterpret_cast<float*>(scratch_.rows + lane * stride);
    uint16_t* pairs = reinterpret_cast<uint16_t*>(row + width);
    if (there) prepare_row(view, form, scale, lane, row, pairs);
    const int64_t made = there ? dim : 0;
    std::fill(row + made, row + width, 0.0f);
    std::fill(pairs + made, pairs + 2 * padded(width / 2, kLaneBlock), uint16_t{0});
  }
  if (form_ == Operand::fp32_few_rows) {
    for (int64_t lane = 0; lane < rows.lanes; ++lane)
      std::copy_n(reinterpret_cast<const float*>(scratch_.rows + lane * stride), width,
                  static_cast<float*>(query.data) + lane * width);
    return query;
  }
  const bool fp32 = !is_pairs(form_);
  kernels.transpose(scratch_.rows + (fp32 ? 0 : width), stride, lanes,
                    fp32 ? width : padded(width / 2, kLaneBlock), static_cast<uint32_t*>(query.data), lanes);
  return query;
}

bool Panel::look_at(int64_t tile) {
  const int64_t first = tile * kTileKeys, past = first + kTileKeys;
  tile_ = tile;
  unmasked_ = call_.mask.bits(batch_, tile);
  partial_ = unmasked_ != ~uint64_t{0} || first < common_.begin || past > common_.end;
  if (unmasked_ == 0 || first >= together_.end || past <= together_.begin) return false;
  find_spans();
  return true;
}

void Panel::find_spans() {
  spans_ = {};
  if (!partial_) return;
  for (int64_t block = 0; block < lanes / kLaneBlock; ++block) {
    int32_t first = kTileKeys, past = 0;
    for (int64_t lane = block * kLaneBlock; lane < (block + 1) * kLaneBlock; ++lane) {
      first = std::min(first, begin_[lane] = in_tile(range_[lane].begin, tile_));
      past = std::max(past, end_[lane] = in_tile(range_[lane].end, tile_));
    }
    first = first / 2 * 2;
    spans_.block[block] = {first, std::max<int64_t>(padded(past, 2) - first, 0)};
  }
  for (int64_t block = 0; block < lanes / kLaneBlock; block += kHalfLanes / kLaneBlock) {
    const KeySpan& one = spans_.block[block];
    const KeySpan& two = block + 1 < lanes / kLaneBlock ? spans_.block[block + 1] : one;
    const int64_t first = std::min(one.first, two.first);
    spans_.half[block * kLaneBlock / kHalfLanes] = {first, std::max(one.past(), two.past()) - first};
  }
}

uint64_t Panel::seen(int64_t lane) const {
  return unmasked_ & range_bits(range_[lane], tile_) & ~removed_[lane];
}

void Panel::finish_scores(const PanelQuery& query, bool log2_units) {
  removes_ = false;
  if (call_.tensors.attn_bias != nullptr || call_.problem.softcap > 0.0f) finish_logits(query, log2_units);
  // The FP8 path looks at no others.
  const KeySpans within = log2_units ? spans_ : KeySpans{};
  if (partial_) call_.kernels.hide(unmasked_, begin_, end_, lanes, within, scratch_.scores);
}

void Panel::finish_logits(const PanelQuery& query, bool log2_units) {
  const AttentionProblem& p = call_.problem;
  const int64_t in_range = std::min(kTileKeys, p.kv_len() - tile_ * kTileKeys);
  for (int64_t lane = 0; lane < rows.lanes; ++lane) {
    float bias[kTileKeys] = {};
    if (call_.tensors.attn_bias != nullptr) {
      const int64_t at = batch_ * p.bias.batch + rows.head(lane) * p.bias.head + rows.row(lane) * p.bias.row +
                         tile_ * kTileKeys * p.bias.column;
      const void* from = static_cast<const std::byte*>(call_.tensors.attn_bias) + at * size_of(p.dtype);
      call_.kernels.to_fp32(p.dtype, from, p.bias.column == 0 ? 1 : in_range, bias);
      if (p.bias.column == 0) std::fill_n(bias, in_range, bias[0]);
    }
    removed_[lane] = 0;
    for (int64_t key = 0; key < in_range; ++key) {
      float& s = scratch_.scores[key * lanes + lane];
      float y = s * query.natural[lane];
      if (p.softcap > 0.0f) y = p.softcap * std::tanh(y / p.softcap);
      y += bias[key];
      if (y == -kInfinity || bias[key] == -kInfinity) {
        removed_[lane] |= uint64_t{1} << key;
        y = -kInfinity;
      }
      s = log2_units && std::fabs(y) <= FLT_MAX ? std::clamp(y * kLog2E, -FLT_MAX, FLT_MAX) : y;
    }
    removes_ |= removed_[lane] != 0;
  }
}

float Panel::probability(int64_t key, int64_t lane, bool low) const {
  if (!is_pairs(form_)) return scratch_.scores[key * lanes + lane];
  const uint32_t* pairs = low ? scratch_.low_pairs : scratch_.pairs;
  const uint32_t word = pairs[key / 2 * lanes + lane];
  return from_bfloat16(static_cast<uint16_t>(key % 2 == 0 ? word : word >> 16));
}

void Panel::accumulate(TileOperands& operands, const BlockKind* kinds, bool low) {
  const BlockKind* end = kinds + lanes / kLaneBlock;
  const bool all =
      !partial_ && !removes_ && (kinds == nullptr || std::find(kinds, end, BlockKind::skip) == end);
  if (const uint64_t keys = all ? 0 : operands.not_finite(); keys != 0)
    return accumulate_around(keys, operands, kinds, low);
  operands.accumulate(probabilities(low), size(), state.keep, output);
}

// 0 * NaN is NaN: such values are left out, then added to the rows that see them. All other sums are what
// they would be with finite values.
void Panel::accumulate_around(uint64_t keys, TileOperands& operands, const BlockKind* kinds, bool low) {
  operands.accumulate_finite(keys, probabilities(low), size(), state.keep, output);
  for (int64_t lane = 0; lane < rows.lanes; ++lane) {
    if (kinds != nullptr && kinds[lane / kLaneBlock] == BlockKind::skip) continue;
    const uint64_t wanted = keys & seen(lane);
    for (int64_t key = 0; key < kTileKeys; ++key) {
      if ((wanted >> key & 1) == 0) continue;
      const float weight = probability(key, lane, false) + (low ? probability(key, lane, true) : 0.0f);
      for (int64_t column = 0; column < columns_; ++column)
        if (const float v = operands.value(key, column); !std::isfinite(v))
          output[column * lanes + lane] += weight * v;
    }
  }
}

void PartialPanel::save(const Panel& panel) {
  output_.assign(panel.output, panel.output + panel.columns_ * panel.lanes);
  sum_.assign(panel.state.sum, panel.state.sum + panel.lanes);
  anchor_.assign(panel.state.anchor, panel.state.anchor + panel.lanes);
}

void Panel::merge(const PartialPanel* partials, int64_t step, int64_t parts, const float* log2_per_anchor) {
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t lane = 0; lane < lanes; ++lane)
      state.anchor[lane] = std::max(state.anchor[lane], partials[part * step].anchor_[lane]);
  for (int64_t part = 0; part < parts; ++part) {
    const PartialPanel& partial = partials[part * step];
    float weight[kPanelLanes];
    for (int64_t lane = 0; lane < lanes; ++lane) {
      // A part that saw no key counts nothing; one that saw only NaN has a NaN sum.
      const float anchor = partial.anchor_[lane], top = state.anchor[lane];
      weight[lane] = anchor == -kInfinity ? 1.0f : std::exp2((anchor - top) * log2_per_anchor[lane]);
      state.sum[lane] += partial.sum_[lane] * weight[lane];
    }
    for (int64_t column = 0; column < columns_; ++column)
      for (int64_t lane = 0; lane < lanes; ++lane)
        output[column * lanes + lane] += partial.output_[column * lanes + lane] * weight[lane];
  }
}

std::byte* Panel::output_row(int64_t lane) const {
  const AttentionProblem& p = call_.problem;
  const int64_t offset =
      batch_ * p.output.batch + rows.head(lane) * p.output.head + rows.row(lane) * p.output.row;
  return static_cast<std::byte*>(call_.tensors.output) + offset * size_of(p.out_dtype);
}

// Asks for the row to be written, while others are transposed.
void Panel::fetch_output(int64_t lane) const {
  constexpr int64_t kCacheLine = 64;
  const std::byte* row = output_row(lane);
  const int64_t bytes = call_.problem.v_dim * static_cast<int64_t>(size_of(call_.problem.out_dtype));
  for (int64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(row + at, 1, 2);
}

void Panel::write(float unit, const std::function<float(int64_t head)>& value_scale,
                  const float* log2_per_anchor) const {
  const AttentionProblem& p = call_.problem;
  const Kernels& kernels = call_.kernels;
  for (int64_t lane = 0; lane < rows.lanes; ++lane) fetch_output(lane);
  kernels.transpose(reinterpret_cast<const uint32_t*>(output), lanes, columns_, lanes, scratch_.rows,
                    columns_);
  for (int64_t lane = 0; lane < rows.lanes; ++lane) {
    float* o = reinterpret_cast<float*>(scratch_.rows) + lane * columns_;
    const int64_t head = rows.head(lane), row = rows.row(lane);
    float lse = -kInfinity, factor = 1.0f, divisor = 1.0f;
    if (state.nan[lane] != 0 || state.sum[lane] != state.sum[lane]) {
      std::fill_n(o, p.v_dim, std::nanf(""));
      lse = std::nanf("");
    } else if (state.anchor[lane] == -kInfinity) {
      std::fill_n(o, p.v_dim, 0.0f);
    } else {
      // Logits beyond 2.4e38 are finite, but not in log2 units.
      const double anchor = static_cast<double>(state.anchor[lane]) * log2_per_anchor[lane];
      factor = value_scale(head);
      divisor = state.sum[lane];
      if (call_.tensors.sinks != nullptr)
        divisor += std::exp2(std::fma(call_.tensors.sinks[head], kLog2E, static_cast<float>(unit - anchor)));
      if (call_.tensors.lse != nullptr)
        lse = static_cast<float>(kLn2 * (anchor + std::log2(static_cast<double>(state.sum[lane])) - unit));
    }
    kernels.write_row(p.out_dtype, o, p.v_dim, factor, divisor, output_row(lane));
    if (call_.tensors.lse != nullptr) call_.tensors.lse[(batch_ * p.q_heads + head) * p.q_len + row] = lse;
  }
}

}  // namespace zyfa::cpu
