#include "term_operands.hpp"

#include <algorithm>
#include <cmath>

#include "isa/terms.hpp"

namespace zyfa::cpu {
namespace {

int64_t key_elements(const AttentionProblem& p) {
  return terms_of(p.dtype) * isa::strides_of_keys(p.qk_dim).term;
}

int64_t value_elements(const AttentionProblem& p) {
  return terms_of(p.dtype) * isa::strides_of_values(p.v_dim).term;
}

int64_t query_words(int64_t terms, int64_t dim) {
  return terms * isa::strides_of_lanes(dim, kPanelLanes).term;
}

// Beyond that a score might be made of subnormal products.
bool is_ordinary_scale(float scale) { return std::fabs(scale) <= 0x1p60f; }

}  // namespace

TermOperands::TermOperands(const Kernels& kernels, const AttentionProblem& p, Arena& arena)
    : kernels_(kernels),
      terms_(terms_of(p.dtype)),
      dim_(p.qk_dim),
      columns_(TileOperands::columns(Operand::fp32, p.v_dim)),
      keys_(arena.take<uint16_t>(key_elements(p))),
      values_(arena.take<uint16_t>(value_elements(p))) {
  // Columns that fill up the last step are multiplied and left out.
  if (columns_ % kStep != 0) std::fill_n(values_, value_elements(p), uint16_t{0});
}

size_t TermOperands::bytes(const AttentionProblem& p) {
  return Arena::bytes_for<uint16_t>(key_elements(p)) + Arena::bytes_for<uint16_t>(value_elements(p));
}

size_t TermOperands::query_bytes(const AttentionProblem& p) {
  return Arena::bytes_for<uint32_t>(query_words(terms_of(p.dtype), p.qk_dim));
}

void TermOperands::load(const TileOperands& tile) {
  const TileOperands::Rows keys = tile.keys(), values = tile.values();
  usable_ = kernels_.key_terms(keys.first, keys.stride, terms_, dim_, keys_);
  usable_ &= kernels_.value_terms(values.first, values.stride, terms_, columns_, values_);
}

TermQuery TermOperands::load_query(const PanelQuery& query, int64_t lanes, Arena& arena) const {
  uint32_t* data = arena.take<uint32_t>(query_words(terms_, dim_));
  const bool usable = kernels_.query_terms(static_cast<const float*>(query.data), terms_, dim_, lanes, data);
  return {data, usable && std::all_of(query.natural, query.natural + lanes, is_ordinary_scale)};
}

void TermOperands::scores(const TermQuery& query, PanelSize size, const Meanwhile& meanwhile,
                          float* s) const {
  kernels_.scores_terms(keys_, query.data, terms_, dim_, size.lanes, size.spans, meanwhile, s);
}

void TermOperands::accumulate(const uint32_t* p, PanelSize size, const float* keep, float* o) const {
  kernels_.accumulate_terms(values_, terms_, p, columns_, size.lanes, size.spans, keep, o);
}

}  // namespace zyfa::cpu
