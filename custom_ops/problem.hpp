// What an attention node asks for: shapes, strides, limits, masks. Knows neither ONNX Runtime nor HIP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dtype.hpp"

namespace zyfa {

enum class Layout { bshd, bhsd };
enum class Alignment { bottom_right, top_left };
enum class Precision { fp32, bf16, fp8 };
enum class Fp8Edges { hilo, bf16, none };
enum class Rotation { none, hadamard };

// Attributes as written in the node; an empty optional means "not written".
struct AttentionAttributes {
  std::optional<int64_t> num_heads;
  std::optional<int64_t> kv_num_heads;
  std::optional<float> scale;
  bool is_causal = true;
  Alignment causal_alignment = Alignment::bottom_right;
  int64_t window_left = -1;
  float softcap = 0.0f;
  std::optional<Layout> layout;
  std::optional<Precision> precision;
  std::optional<Fp8Edges> fp8_edges;
  std::optional<Rotation> rotation;
  std::optional<DType> out_dtype;
};

struct TensorInfo {
  DType dtype;
  std::vector<int64_t> shape;
};

inline int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

struct AttentionInputs {
  TensorInfo query, key, value;
  std::optional<TensorInfo> past_key, past_value, key_mask, attn_bias, q_scale, k_scale, v_scale, sinks;
};

// Element strides of a (batch, head, row, column) view; columns are contiguous unless `column` is 0
// (broadcast).
struct Strides {
  int64_t batch = 0, head = 0, row = 0, column = 1;
};

// Scale inputs hold 1, H or B*H values.
struct ScaleStrides {
  int64_t batch = 0, head = 0;
};

// Half-open range of key positions.
struct KeyRange {
  int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

struct AttentionProblem {
  int64_t batch, q_heads, kv_heads, q_len, new_len, past_len, qk_dim, v_dim;
  DType dtype, out_dtype;
  Strides query, key, value, output, past_key, past_value, bias;
  ScaleStrides q_scale, k_scale, v_scale;
  DType mask_dtype;
  float scale, softcap;
  bool is_causal;
  Alignment causal_alignment;
  int64_t window_left;
  Precision precision;
  Fp8Edges fp8_edges;
  Rotation rotation;
  std::vector<int64_t> output_shape, present_key_shape, present_value_shape, lse_shape;

  int64_t kv_len() const { return past_len + new_len; }
  int64_t group_size() const { return kv_heads == 0 ? 1 : q_heads / kv_heads; }
  int64_t kv_head(int64_t q_head) const { return q_head / group_size(); }

  // Key position on the diagonal of query row `row`; may be negative or beyond the last key.
  int64_t diagonal(int64_t row) const {
    return causal_alignment == Alignment::bottom_right ? row + kv_len() - q_len : row;
  }
  // Keys that causality and window leave to `row`.
  KeyRange visible_keys(int64_t row) const;
  // Keys that at least one query row sees.
  KeyRange visible_keys_of_any_row() const;
};

// Checks that can be made when the node is created. Throws Error.
void check_attributes(const AttentionAttributes& attributes, DType dtype);

// Builds the problem or throws Error naming the attribute or input, what was expected and what was found.
AttentionProblem make_attention_problem(const AttentionAttributes& attributes, const AttentionInputs& inputs);

// The last dimension that a Hadamard rotation takes: a power of two, or 192 = 3 blocks of 64. Returns the
// block, 0 when none.
int64_t hadamard_block(int64_t dim);

// "2x3x64", for messages.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace zyfa
