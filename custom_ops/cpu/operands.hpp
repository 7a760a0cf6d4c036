// K and V of one tile in the form that the products take.
#pragma once

#include <cstdint>

#include "arena.hpp"
#include "kernels.hpp"
#include "sources.hpp"

namespace zyfa::cpu {

// Where a pass over the keys reads, and what it makes of it.
struct OperandSource {
  KeyRows key, value;
  bool to_bfloat16;    // K and V are rounded to bfloat16 first
  float value_factor;  // then V is multiplied; 1 with Operand::bfloat16_pairs
};

// Query rows of a panel, its lanes with padding, and what they see of the tile.
struct PanelSize {
  int64_t rows, lanes;
  const KeySpans& spans;
};

// P of a panel: FP32, or pairs and, unless null, pairs of second terms.
struct Probabilities {
  const float* fp32;
  const uint32_t *pairs, *low_pairs;
};

class TileOperands {
 public:
  TileOperands(const Kernels& kernels, Operand form, const OperandSource& source, int64_t kv_len,
               Arena& arena);
  static size_t bytes(Operand form, int64_t qk_dim, int64_t v_dim);

  // Columns of the output: v_dim, padded.
  static int64_t columns(Operand form, int64_t v_dim);
  // Dims of Q and K: qk_dim, padded.
  static int64_t dims(Operand form, int64_t qk_dim);

  // Keys that do not exist are zero.
  void load(int64_t batch, int64_t kv_head, int64_t tile);
  // Asks for the rows of another tile, part `part` of `parts`, to be spread over the work on this one:
  // waiting for memory took a sixth of FP32 prefill. Products for few rows ask by themselves.
  void fetch(int64_t batch, int64_t kv_head, int64_t tile, int64_t part, int64_t parts) const;
  // s = K Q for the rows of a panel, see Kernels::scores.
  void scores(const void* q, PanelSize size, float* s) const;
  // o = o * keep + V P.
  void accumulate(const Probabilities& p, PanelSize size, const float* keep, float* o) const;
  // The same as if values of `keys` that are not finite were zero.
  void accumulate_finite(uint64_t keys, const Probabilities& p, PanelSize size, const float* keep,
                         float* o) const;
  // Rows of the tile, of form fp32.
  struct Rows {
    const float* first;
    int64_t stride;
  };
  Rows keys() const { return {static_cast<const float*>(key_.data), key_.stride}; }
  Rows values() const { return {static_cast<const float*>(value_.data), value_.stride}; }
  // Keys whose values hold NaN or infinity.
  uint64_t not_finite();
  float value(int64_t key, int64_t column) const;

 private:
  // A tile of K or V: rows (FP32) or, for V, columns (pairs).
  struct Tile {
    DType type;
    const void* data;
    int64_t stride;  // elements
    void* buffer;    // where it is made when the source cannot be used as it is
    bool in_place;
  };

  void read(const KeyRows& rows, bool values, int64_t batch, int64_t kv_head, int64_t first, int64_t count);
  void read_run(const RowView& view, bool values, const void* from, int64_t first, int64_t count);
  bool usable_in_place(const RowView& view, bool values) const;
  void multiply(const Tile& v, const Probabilities& p, PanelSize size, const float* keep, float* o) const;
  static const std::byte* row(const Tile& tile, int64_t index);
  Ahead ahead(const Tile& tile, int64_t width, int64_t tiles) const;

  const Kernels& kernels_;
  const Operand form_;
  const OperandSource source_;
  const int64_t kv_len_, dims_, columns_;
  Tile key_, value_;
  void* clean_;        // a copy of V
  uint16_t* staging_;  // bfloat16 rows on their way
  int64_t tile_ = 0;
  bool searched_ = false;
  uint64_t not_finite_ = 0;
};

}  // namespace zyfa::cpu
