// The operators of the library, added overload by overload to the table that library.cc registers.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "op.hpp"

namespace zyfa::ops {

class OpTable {
 public:
  template <typename Kernel>
  void add(Overload overload, uint32_t version) {
    ops_.push_back({new CustomOp<Kernel>(std::move(overload), version),
                    [](OrtCustomOp* op) { delete static_cast<CustomOp<Kernel>*>(op); }});
  }
  const auto& ops() const { return ops_; }

 private:
  std::vector<std::unique_ptr<OrtCustomOp, void (*)(OrtCustomOp*)>> ops_;
};

void add_attention(OpTable& table, uint32_t version);
void add_quantize_fp8(OpTable& table, uint32_t version);
void add_hadamard(OpTable& table, uint32_t version);

}  // namespace zyfa::ops
