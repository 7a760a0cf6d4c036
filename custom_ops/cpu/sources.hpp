// Where rows of Q, K and V come from: op inputs of any type and layout, past and new keys, or quantised
// workspace.
#pragma once

#include <cstdint>

#include "../problem.hpp"
#include "rows.hpp"

namespace zyfa::cpu {

struct RowView {
  DType dtype;
  const void* data;
  Strides strides;

  const void* at(int64_t batch, int64_t head, int64_t row) const {
    const int64_t offset = batch * strides.batch + head * strides.head + row * strides.row;
    return static_cast<const char*>(data) + offset * static_cast<int64_t>(size_of(dtype));
  }

  void read(int64_t batch, int64_t head, int64_t row, int64_t dim, float* out) const {
    load_row(dtype, data, batch * strides.batch + head * strides.head + row * strides.row, dim, out);
  }
};

// Rows of past ++ new keys (or values) by absolute key position.
struct KeyRows {
  RowView past, fresh;
  int64_t past_len, dim;

  void read(int64_t batch, int64_t head, int64_t key, float* out) const {
    if (key < past_len)
      past.read(batch, head, key, dim, out);
    else
      fresh.read(batch, head, key - past_len, dim, out);
  }
};

struct AttentionTensors;

RowView query_rows(const AttentionProblem& problem, const AttentionTensors& tensors);
KeyRows key_rows(const AttentionProblem& problem, const AttentionTensors& tensors);
KeyRows value_rows(const AttentionProblem& problem, const AttentionTensors& tensors);

}  // namespace zyfa::cpu
