// The two ways an item goes through the keys.
#pragma once

#include <optional>

#include "fp8_inputs.hpp"
#include "panel.hpp"
#include "term_operands.hpp"

namespace zyfa::cpu {

// FP32 and BF16: docs/numerics.md, "precision = fp32 and bf16".
class SoftmaxPass {
 public:
  SoftmaxPass(const AttentionCall& call, const WorkItem& item);

  // Goes through part `part` of `parts` of the item's tiles.
  void run(int64_t part, int64_t parts);
  void write() const;
  // State of every panel, to be merged in another pass of the same item that ran nothing: part after part,
  // each `step` panels long.
  void save(PartialPanel* partials) const;
  void merge(const PartialPanel* partials, int64_t step, int64_t parts);

 private:
  Arena& reserve() const;
  // A panel meets the tile that is loaded.
  void step(Panel& panel, const PanelQuery& query);
  // The same in terms; but for its scores, what there is to do is done with the next panel's, or by finish().
  void begin(int64_t panel);
  void finish();
  void add_values();

  const AttentionCall& call_;
  const WorkItem item_;
  const bool bfloat16_;
  const Operand form_;
  Arena& arena_;
  PanelScratch scratch_;
  TileOperands operands_;
  Panel* panels_;
  PanelQuery* queries_;
  std::optional<TermOperands> terms_;  // where they are faster
  TermQuery* term_queries_;
  TermSoftmax softmax_;
  Panel* begun_ = nullptr;  // has scores
};

// FP8: docs/numerics.md, "precision = fp8".
void fp8_pass(const AttentionCall& call, const Fp8Inputs& inputs, const WorkItem& item,
              const Fp8Trace* trace);

}  // namespace zyfa::cpu
