#include "sources.hpp"

#include "attention.hpp"

namespace zyfa::cpu {

RowView query_rows(const AttentionProblem& p, const AttentionTensors& t) {
  return {p.dtype, t.query, p.query};
}

KeyRows key_rows(const AttentionProblem& p, const AttentionTensors& t) {
  return {{p.dtype, t.past_key, p.past_key}, {p.dtype, t.key, p.key}, p.past_len, p.qk_dim};
}

KeyRows value_rows(const AttentionProblem& p, const AttentionTensors& t) {
  return {{p.dtype, t.past_value, p.past_value}, {p.dtype, t.value, p.value}, p.past_len, p.v_dim};
}

}  // namespace zyfa::cpu
