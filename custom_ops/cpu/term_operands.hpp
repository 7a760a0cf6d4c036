// FP32 operands in bfloat16 terms, made of those of FP32.
#pragma once

#include <cstdint>

#include "operands.hpp"
#include "panel.hpp"

namespace zyfa::cpu {

// Q of a panel, and whether terms can stand for it.
struct TermQuery {
  uint32_t* data;
  bool usable;
};

class TermOperands {
 public:
  TermOperands(const Kernels& kernels, const AttentionProblem& problem, Arena& arena);
  static size_t bytes(const AttentionProblem& problem);
  static size_t query_bytes(const AttentionProblem& problem);

  // Of a tile, of form fp32.
  void load(const TileOperands& tile);
  TermQuery load_query(const PanelQuery& query, int64_t lanes, Arena& arena) const;
  // Whether terms can stand for the tile; see Kernels::key_terms.
  bool usable() const { return usable_; }

  // See Kernels::scores_terms. The tile and the query are usable.
  void scores(const TermQuery& query, PanelSize size, const Meanwhile& meanwhile, float* s) const;
  void accumulate(const uint32_t* p, PanelSize size, const float* keep, float* o) const;

 private:
  const Kernels& kernels_;
  const int64_t terms_, dim_, columns_;
  uint16_t *keys_, *values_;
  bool usable_ = false;
};

}  // namespace zyfa::cpu
