// Where rows of Q, K and V come from: op inputs of any type and layout, past and new keys, or quantised
// workspace.
#pragma once

#include <cstdint>
#include <utility>

#include "../problem.hpp"

namespace zyfa::cpu {

struct RowView {
  DType dtype;
  const void* data;
  Strides strides;

  const void* at(int64_t batch, int64_t head, int64_t row) const {
    const int64_t offset = batch * strides.batch + head * strides.head + row * strides.row;
    return static_cast<const char*>(data) + offset * static_cast<int64_t>(size_of(dtype));
  }
};

// Rows of past ++ new keys (or values) by absolute key position; of any tensor, without a past.
struct KeyRows {
  RowView past, fresh;
  int64_t past_len, dim;

  // The tensor that holds a key's row, and which of its rows that is.
  std::pair<const RowView*, int64_t> where(int64_t key) const {
    return key < past_len ? std::pair{&past, key} : std::pair{&fresh, key - past_len};
  }
  const void* at(int64_t batch, int64_t head, int64_t key) const {
    const auto [view, row] = where(key);
    return view->at(batch, head, row);
  }
};

struct AttentionTensors;

RowView query_rows(const AttentionProblem& problem, const AttentionTensors& tensors);
KeyRows key_rows(const AttentionProblem& problem, const AttentionTensors& tensors);
KeyRows value_rows(const AttentionProblem& problem, const AttentionTensors& tensors);

}  // namespace zyfa::cpu
