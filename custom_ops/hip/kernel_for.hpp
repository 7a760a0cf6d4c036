// Whether there is a kernel for a problem, and which: the refusals, in the order in which they are made.
#pragma once

#include <sstream>

#include "../error.hpp"
#include "select.hpp"

namespace zyfa::hip {

std::string filled(std::string text, const std::string& mark, const std::string& value);

// "qk/v".
std::string dims(int64_t qk, int64_t v);

template <typename Got>
[[noreturn]] void refuse(const Refusal& refusal, const Got& got, const std::string& detail = "",
                         int64_t most = 0) {
  const std::string text = std::string(refusal.what) + ": expected " + refusal.expected;
  fail(filled(filled(text, "{}", detail), "{most}", std::to_string(most)), ", got ", got, "; ",
       refusal.advice);
}

void check_architecture(const std::string& architecture);
void check_attributes(const AttentionProblem& p, const GpuRequest& r);
void check_sizes(const AttentionProblem& p, bool quantised_here);
void check_strides(const std::string& name, const ByteStrides& strides, int64_t most_row);
void check_grid(const KernelRow& row, const std::array<int64_t, 3>& grid);

bool is_decode(const AttentionProblem& p, const GpuRequest& r);
// Whether the kernel's head dims are larger than the problem's.
inline bool is_padded(const AttentionProblem& p, const KernelRow& row) {
  return row.qk_dim != p.qk_dim || row.v_dim != p.v_dim;
}
// The row that computes attention. Refuses head dims, masks, and FP8 rounding without one.
const KernelRow& kernel_for(const AttentionProblem& p, const GpuRequest& r);

}  // namespace zyfa::hip
